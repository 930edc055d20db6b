"""Two batches a pass, so that a disk that refuses can refuse new messages alone. A write that is put
off blocks the core: what stands in the batches must stay the newest that there is.
"""

from libc.stdint cimport uint64_t, uint8_t

from fila_server.core.formats.limit_records cimport bucket_record_put
from fila_server.core.formats.records cimport meta_record_put
from fila_server.core.history.inputs cimport write_failed
from fila_server.core.index.leases cimport groups_flush
from fila_server.core.lifecycle.answers cimport answers_tell, answers_written, refusals_written
from fila_server.core.lifecycle.building cimport frames_build, moved_bytes_free
from fila_server.core.lifecycle.ending cimport settled_flush
from fila_server.core.lifecycle.enqueue cimport enqueue_written
from fila_server.core.lifecycle.routing cimport weights_record
from fila_server.core.protocol.refusals cimport REFUSED_DISK_FULL, REFUSED_STALLED
from fila_server.core.runtime.confirming cimport group_append, group_beat, group_confirm
from fila_server.core.scheduling.throttle cimport throttle_key_drop_if_idle
from fila_server.core.sinks.staging cimport staged_written
from fila_server.core.state.state cimport Effect, Frame, ThrottleKey
from fila_server.core.storage.disk cimport DISK_CRITICAL
from fila_server.core.storage.families cimport Store
from fila_server.core.storage.status cimport (
    STORE_DAMAGED, STORE_FAILED, STORE_FULL, STORE_OK, STORE_STALLED, StoreError, failure_report,
)
from fila_server.core.storage.store cimport batch_clear, batch_count, store_part_log, store_sync, store_write
from fila_server.core.structures.atomics cimport atomic_load, atomic_store, flag_store

cdef enum:
    LAST_TRIES = 40
    LAST_WAIT_MS = 50
    STALL_NS_MAX = 1000000000       # a flush takes tens of milliseconds; longer is trouble, and told so


# --- the write -------------------------------------------------------------------------------

cdef void writes_begin(Core* core) noexcept nogil:
    cdef Store* store = core.store
    store.calls = 0


cdef void _buckets_flush(Core* core) noexcept nogil:
    cdef ThrottleKey* bucket = core.dirty_keys
    cdef ThrottleKey* following
    core.dirty_keys = NULL
    while bucket != NULL:
        following = bucket.next_dirty
        bucket.next_dirty = NULL
        bucket.dirty = False
        bucket_record_put(core, bucket)
        throttle_key_drop_if_idle(core, bucket)
        bucket = following


cdef uint8_t _write(Core* core) noexcept nogil:
    """Write the pass: the settles, what is kept apart, then the frames. 0, or why not."""
    cdef Store* store = core.store
    cdef int status = STORE_OK
    if core.disk_level == DISK_CRITICAL:
        # One more append could meet a full disk, and RocksDB aborts on that.
        return REFUSED_DISK_FULL
    if core.shared.in_group:
        return _append(core)
    if batch_count(core.settles):
        status = store_write(core.store, core.settles, core.error)
        if status == STORE_OK:
            batch_clear(core.settles)
    if status == STORE_OK and batch_count(core.apart):
        status = store_part_log(core.store, core.error)
        if status == STORE_OK:
            status = store_write(core.store, core.apart, core.error)
        if status == STORE_OK:
            batch_clear(core.apart)
    if status == STORE_OK and batch_count(core.enqueues):
        status = store_write(core.store, core.enqueues, core.error)
        if status == STORE_OK:
            batch_clear(core.enqueues)
    if status == STORE_OK:
        return 0
    write_failed(core, <int> store.calls - 1, status)
    if status == STORE_DAMAGED or status == STORE_FAILED:
        failure_report(core.shared.failure, core.error)   # the engine writes no more until
                                                            # it is opened anew
    core.counters.stalls += 1
    return REFUSED_STALLED if status == STORE_STALLED else REFUSED_DISK_FULL


cdef uint8_t _append(Core* core) noexcept nogil:
    """Make the pass a record of the log; where it only tells something, a barrier. 0, or why not."""
    cdef Store* store = core.store
    cdef int status = STORE_OK
    if not (
        batch_count(core.settles) or batch_count(core.apart) or batch_count(core.enqueues)
        or core.enqueued != NULL or core.sinks.staging != NULL or answers_tell(core)
    ):
        if core.shared.group != NULL:
            group_beat(core)
        return 0
    store.calls += 1
    if store.muted:
        status = store.reported[0]
    elif not group_append(core):
        status = STORE_STALLED
    flag_store(&core.shared.log_stands, status != STORE_OK)
    if status != STORE_OK:
        write_failed(core, 0, status)
        core.counters.stalls += 1
        return REFUSED_STALLED
    batch_clear(core.settles)
    batch_clear(core.apart)
    batch_clear(core.enqueues)
    core.sync_wanted = True
    return 0


cdef bint _needs_sync(Core* core) noexcept nogil:
    """Whether what is about to be written may have to wait for its epoch before anybody sees it."""
    cdef Frame* frame = core.stored
    while frame != NULL and not frame.durable:
        frame = frame.next_dying
    return core.sync_wanted or frame != NULL or core.shared.in_group


cdef void pass_write(Core* core) noexcept nogil:
    """Build, write, answer.

    What the engine will not take just now is held and tried again with nothing in between. A
    stall that lasts, or a full disk, refuses the new messages, and tells so at once; acks and leases
    stay held until they are written, and their answers with them.
    """
    cdef uint8_t refused
    cdef Effect* last
    frames_build(core)
    moved_bytes_free(core)
    if not core.shared.blocked:         # else it tries once more what the last pass built
        weights_record(core)
    settled_flush(core)
    groups_flush(core)
    _buckets_flush(core)
    if core.stored != NULL and not core.shared.blocked:
        # moved messages bring their ids along, and move time on too
        if core.wall_ms > <int64_t> core.id_ms:
            core.id_ms, core.id_sequence = <uint64_t> core.wall_ms, 0
        meta_record_put(core, b"id", core.id_ms)
    if _needs_sync(core):
        atomic_store(&core.shared.coming, core.epoch)
    refused = _write(core)
    if refused == REFUSED_STALLED and not core.shared.in_group:
        if not core.shared.blocked:
            core.blocked_since_ns = core.mono_ns
        if core.mono_ns - core.blocked_since_ns < STALL_NS_MAX:
            flag_store(&core.shared.blocked, True)
            return
    last = core.passing_last
    enqueue_written(core, refused)
    if core.sinks.staging != NULL:
        staged_written(core, refused)
    if refused:
        batch_clear(core.enqueues)
    if refused and core.shared.in_group:
        refusals_written(core, last)    # "not now" tells nothing of what the log holds; all else does
    flag_store(
        &core.shared.blocked,
        refused != 0 and (
            batch_count(core.settles) + batch_count(core.apart) > 0
            or core.shared.in_group and core.passing != NULL))
    if core.shared.blocked:
        if not core.shared.in_group:
            refusals_written(core, last)
        return                          # the other answers wait until the batch is written
    answers_written(core)
    if core.sync_wanted:
        core.sync_wanted = False
        atomic_store(&core.shared.wanted, core.epoch)
        core.epoch += 1
        core.counters.epochs += 1
    else:
        atomic_store(&core.shared.coming, core.shared.wanted)   # the disk refused what was coming


cdef bint commit_pass(Core* core) noexcept nogil:
    """Runs on the commit thread. What was written before `wanted` was read is on disk when it returns."""
    cdef StoreError error
    cdef uint64_t wanted = atomic_load(&core.shared.wanted)
    cdef int status
    if core.shared.group != NULL:
        return group_confirm(core, 0)
    if wanted <= atomic_load(&core.shared.durable):
        return False
    status = store_sync(core.store, &error)
    if status == STORE_FULL:
        return False                    # the engine has stopped writing and resumes
                                        # by itself when there is room
    if status != STORE_OK:
        failure_report(core.shared.failure, &error)    # nothing can be promised any more; see StoreFailure
        return False
    atomic_store(&core.shared.durable, wanted)
    core.shared.syncs += 1
    return True


cdef void commit_last(Core* core) noexcept nogil:
    cdef int tries = LAST_TRIES if core.shared.group != NULL else 1
    while tries and atomic_load(&core.shared.durable) < atomic_load(&core.shared.wanted):
        tries -= 1
        if core.shared.group != NULL:
            group_confirm(core, LAST_WAIT_MS)
        else:
            commit_pass(core)


cdef void sync_took(Core* core, int64_t ns) noexcept nogil:
    cdef uint64_t us = <uint64_t> ns // 1000
    cdef int bits = 0
    core.shared.sync_us_sum += us
    while us and bits < 31:
        us >>= 1
        bits += 1
    core.shared.sync_us[bits] += 1
