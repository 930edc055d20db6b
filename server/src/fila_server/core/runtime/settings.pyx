"""Every setting of the core by its name, with the value that counts where the dictionary has none: tests and
the simulation give those alone that they are about."""

from fila_server.core.storage.opening cimport store_default_options


cdef void core_configure(Core* core, dict settings) except *:
    core.quantum = settings.get("scheduler.quantum", 1000)
    core.durable_default = settings.get("storage.durability", "fsync") == "fsync"
    core.stop_on_damage = settings.get("storage.on_damage", "start") == "stop"
    core.hot_bytes_max = settings.get(
        "storage.hot_payload_bytes", settings.get("storage.hot_payload_bytes_max", 268435456))
    core.dedup_rows_max = settings.get("limits.dedup_keys_max", 1000000)
    core.sinks.staged_bytes_max = settings.get("sinks.staged_bytes_max", 1073741824)
    core.sinks.attempts_max = settings.get("sinks.attempts_max", 10000)
    core.sinks.sinks_max = settings.get("sinks.sinks_max", 10000)
    core.sinks.orphan_age_ns = settings.get("sinks.orphan_age_ms", 86400000) * 1000000
    core.limits.payload_bytes_max = settings.get("limits.payload_bytes_max", 1048576)
    core.limits.headers_max = settings.get("limits.headers_max", 64)
    core.limits.header_key_bytes_max = settings.get("limits.header_key_bytes_max", 4096)
    core.limits.header_value_bytes_max = settings.get("limits.header_value_bytes_max", 4096)
    core.limits.fairness_key_bytes_max = settings.get("limits.fairness_key_bytes_max", 256)
    core.limits.throttle_key_bytes_max = settings.get("limits.throttle_key_bytes_max", 256)
    core.limits.throttle_keys_max = settings.get("limits.throttle_keys_max", 16)
    core.limits.batch_messages_max = settings.get("limits.batch_messages_max", 10000)
    core.limits.batch_bytes_max = max(
        settings.get("limits.batch_bytes_max", 16777216), core.limits.payload_bytes_max + 1048576)
    core.limits.dedup_key_bytes_max = settings.get("limits.dedup_key_bytes_max", 128)


cdef void store_configure(StoreOptions* options, bint stop_on_damage, dict settings) except *:
    store_default_options(options)
    options.stop_on_damage = stop_on_damage
    options.memtable_bytes = settings.get("storage.memtable_bytes", options.memtable_bytes)
    options.memtable_count = settings.get("storage.memtable_count", options.memtable_count)
    options.wal_bytes_max = settings.get("storage.wal_bytes_max", options.wal_bytes_max)
    options.block_cache_bytes = settings.get("storage.block_cache_bytes", options.block_cache_bytes)
    options.blob_min_bytes = settings.get("storage.blob_min_bytes", options.blob_min_bytes)
