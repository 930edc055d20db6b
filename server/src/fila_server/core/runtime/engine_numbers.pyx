"""Each is read as it is at the moment, beside the threads that count; nobody decides by it."""

from fila_server.core.state.directory cimport directory_walked
from fila_server.core.storage.families cimport Store, WalReport
from fila_server.core.storage.reclaim cimport Upkeep


cdef dict core_counters(Core* core):
    cdef Upkeep* upkeep = core.shared.upkeep
    return {
        "passes": core.counters.passes, "epochs": core.counters.epochs, "syncs": core.shared.syncs,
        "commands": core.counters.commands, "frames_in": core.counters.frames_in,
        "messages_in": core.counters.messages_in, "refused": core.counters.refused,
        "lost_ranges": core.counters.lost_ranges, "lost_messages": core.counters.lost_messages,
        "lost_acks": core.counters.lost_acks,
        "next_lease_id": core.next_lease_id, "loads": core.counters.loads,
        "evictions": core.counters.evictions, "stalls": core.counters.stalls,
        "rewrites": core.counters.rewrites, "hot_bytes": core.hot_bytes, "index_bytes": core.index_bytes,
        "keys": core.keys_count, "remembered_keys": core.clocks_count,
        "leases": core.leases.count, "consumers": core.consumers.count,
        "timers": core.timers.count, "mailbox": core.mailbox.count if core.mailbox != NULL else 0,
        "epoch": core.epoch,
        "durable": core.shared.durable,
        "frames_built": core.counters.frames_built, "work": core.counters.work,
        "pass_work_max": core.counters.pass_work_max, "walked": core.counters.walked + directory_walked(),
        "trims": upkeep.trim_count, "taken_apart": core.counters.taken_apart, "visits": core.counters.visits,
        "stirs": core.counters.stirs,
        "staged_bytes": core.sinks.staged_bytes, "sinks": core.sinks.by_name.count,
        "sink_lost": core.sinks.counters.lost, "sink_swept": core.sinks.counters.swept,
        "latency": [core.counters.latency[i] for i in range(32)],
    }


cdef bint _log_is_short(WalReport* wal):
    return (wal.records_lost or wal.damaged_regions or wal.logs_missing or wal.records_unsynced
            or wal.logs_unsynced or wal.tail_bytes_dropped)


cdef dict opening_found(Core* core):
    cdef Store* store = core.store
    return {
        "records_lost": store.wal.records_lost, "logs_missing": store.wal.logs_missing,
        "notes_missing": store.wal.notes_missing,
        "lost_ranges": core.counters.lost_ranges,
        "lost_acks": core.counters.lost_acks,
        "damaged_blocks": core.counters.damaged_blocks,
        "salvaged_records": store.salvage.records, "salvage_gaps": store.salvage.gaps,
        "salvage_tables_lost": store.salvage.tables_lost,
        "contents_healed_bytes": store.healed_bytes,
        "contents_rebuilt": int(store.rebuilt), "format_rewritten": int(store.format_rewritten),
        "tail_bytes_dropped": store.wal.tail_bytes_dropped,
        "records_unsynced": store.wal.records_unsynced, "logs_unsynced": store.wal.logs_unsynced,
        "noted_ms": store.wal.noted_ms if _log_is_short(&store.wal) else 0,
    }


cdef dict log_found(Core* core):
    cdef Store* store = core.store
    return {
        "damaged_regions": store.wal.damaged_regions,
        "batches_lost": store.wal.batches_lost,
        "records_lost": store.wal.records_lost,
        "tail_bytes_dropped": store.wal.tail_bytes_dropped,
    }
