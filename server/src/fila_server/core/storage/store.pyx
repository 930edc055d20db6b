"""A write that the engine refuses is classed here: for now, for lack of room, or for good."""

from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from fila_server.core.storage.data_directory cimport directory_bytes, salvage_ask
from fila_server.core.storage.database cimport set_scan_options
from fila_server.core.storage.families cimport FAMILY_COUNT
from fila_server.core.storage.rocksdb cimport *
from fila_server.core.storage.status cimport (
    STORE_DAMAGED, STORE_FAILED, STORE_FULL, STORE_NOT_FOUND, STORE_OK, STORE_STALLED, store_classify,
    store_classify_read, store_failed,
)
from fila_server.core.structures.atomics cimport atomic_store, count_add, flag_load, flag_store

cdef enum:
    LOG_BLOCK_BYTES = 32768


# --- write -------------------------------------------------------------------------------

cdef int store_write(Store* store, rocksdb_writebatch_t* batch, StoreError* error) noexcept nogil:
    cdef char* message = NULL
    cdef int status
    store.calls += 1
    if store.muted:
        status = store.reported[(store.calls - 1) % 4] if store.calls <= 4 else STORE_OK
        return STORE_OK if status == STORE_OK else store_failed(error, status, "as it was recorded%s", "")
    rocksdb_write(store.db, store.write_options, batch, &message)
    if message == NULL:
        count_add(&store.counters.writes, 1)
        store.counters.bytes_written += batch_bytes(batch)
        flag_store(&store.stopped, False)
        return STORE_OK
    status = store_classify(error, message)
    if status == STORE_STALLED:
        store.counters.stalled += 1
    elif status == STORE_FULL:
        store.counters.full += 1
        flag_store(&store.stopped, True)
    else:
        store.counters.failed += 1
        flag_store(&store.stopped, True)
        if status == STORE_DAMAGED:     # a compaction met it; RocksDB takes no write any more
            _met_damage(store)
            status = store_failed(error, STORE_FAILED,
                                  "a damaged table stopped the storage engine; restart the server, which "
                                  "copies "
                                  "what can be read%s", "")
    return status


cdef int store_part_log(Store* store, StoreError* error) noexcept nogil:
    cdef char* nothing
    if store.parting == NULL:
        store.parting = batch_new()
        nothing = <char*>calloc(1, LOG_BLOCK_BYTES)
        if nothing == NULL:
            return store_failed(error, STORE_FAILED, "out of memory writing the log%s", "")
        # in the log only, in no table
        rocksdb_writebatch_put_log_data(store.parting, nothing, LOG_BLOCK_BYTES)
        free(nothing)
    return store_write(store, store.parting, error)


cdef void _met_damage(Store* store) noexcept nogil:
    """Count it, and see that the next start copies the store without the damaged block."""
    store.counters.damaged_reads += 1
    salvage_ask(store.directory)


cdef int store_sync(Store* store, StoreError* error) noexcept nogil:
    cdef char* message = NULL
    cdef uint64_t written = rocksdb_get_latest_sequence_number(store.db)
    if store.muted:
        return STORE_OK
    if flag_load(&store.stopped):
        # After a failed append RocksDB 7.8.3 may abort the process when asked to sync that log. When there is
        # room again it flushes all memory to tables; the next write that succeeds starts a new log.
        return store_failed(error, STORE_FULL, "nothing can be synced until writes work again%s", "")
    rocksdb_flush_wal(store.db, 1, &message)
    if message == NULL:
        store.counters.syncs += 1
        atomic_store(&store.synced, written)
        return STORE_OK
    store.counters.failed += 1
    return store_classify(error, message)


# --- read --------------------------------------------------------------------------------

cdef int _get(
        Store* store, rocksdb_readoptions_t* options, int family, const char* key, size_t key_bytes,
        char** value, size_t* value_bytes, StoreError* error) noexcept nogil:
    cdef char* message = NULL
    cdef const char* pinned
    cdef int status
    cdef rocksdb_pinnableslice_t* slice = rocksdb_get_pinned_cf(
        store.db, options, store.family[family], key, key_bytes, &message)
    value[0] = NULL
    value_bytes[0] = 0
    if message != NULL:
        status = store_classify_read(error, message)
        if status == STORE_DAMAGED:
            _met_damage(store)
        return status
    if slice == NULL:
        return STORE_NOT_FOUND
    pinned = rocksdb_pinnableslice_value(slice, value_bytes)
    value[0] = <char*>malloc(value_bytes[0] + 1)
    if value[0] == NULL:
        rocksdb_pinnableslice_destroy(slice)
        return store_failed(error, STORE_FAILED, "out of memory reading a record%s", "")
    memcpy(value[0], pinned, value_bytes[0])
    rocksdb_pinnableslice_destroy(slice)
    return STORE_OK


cdef int store_get(
        Store* store, int family, const char* key, size_t key_bytes,
        char** value, size_t* value_bytes, StoreError* error) noexcept nogil:
    return _get(store, store.read_options, family, key, key_bytes, value, value_bytes, error)


cdef int store_get_many(
        Store* store, int family, const rocksdb_snapshot_t* snapshot, int count,
        const char** keys, const size_t* key_bytes,
        char** values, size_t* value_bytes, int* statuses, StoreError* error) noexcept nogil:
    """STORE_OK when each key was found; else the last status that was not."""
    cdef rocksdb_readoptions_t* options = rocksdb_readoptions_create()
    cdef int i
    cdef int worst = STORE_OK
    rocksdb_readoptions_set_snapshot(options, snapshot)
    rocksdb_readoptions_set_fill_cache(options, 0)
    for i in range(count):
        statuses[i] = _get(store, options, family, keys[i], key_bytes[i], &values[i], &value_bytes[i], error)
        if statuses[i] != STORE_OK:
            worst = statuses[i]
    rocksdb_readoptions_destroy(options)
    return worst


cdef rocksdb_iterator_t* store_iterate(
        Store* store, int family, const rocksdb_snapshot_t* snapshot) noexcept nogil:
    cdef rocksdb_readoptions_t* options
    cdef rocksdb_iterator_t* scan
    if snapshot == NULL:
        return rocksdb_create_iterator_cf(store.db, store.scan_options, store.family[family])
    options = rocksdb_readoptions_create()
    set_scan_options(options)
    rocksdb_readoptions_set_snapshot(options, snapshot)
    scan = rocksdb_create_iterator_cf(store.db, options, store.family[family])
    rocksdb_readoptions_destroy(options)    # the iterator took a copy
    return scan


cdef int scan_status(Store* store, rocksdb_iterator_t* scan, StoreError* error) noexcept nogil:
    cdef char* message = NULL
    cdef int status
    rocksdb_iter_get_error(scan, &message)
    if message == NULL:
        return STORE_OK
    status = store_classify(error, message)
    if status == STORE_DAMAGED:
        _met_damage(store)
    return status


# --- what it holds, and giving it back ---------------------------------------------------

cdef uint64_t _sum_over_families(Store* store, const char* property) noexcept nogil:
    cdef uint64_t total = 0, one = 0
    cdef int family
    for family in range(FAMILY_COUNT):
        if rocksdb_property_int_cf(store.db, store.family[family], property, &one) == 0:
            total += one
    return total


cdef uint64_t store_memtable_bytes(Store* store) noexcept nogil:
    return _sum_over_families(store, "rocksdb.size-all-mem-tables")


cdef uint64_t store_cache_bytes(Store* store) noexcept nogil:
    return rocksdb_cache_get_usage(store.cache)


cdef uint64_t store_table_bytes(Store* store) noexcept nogil:
    return (_sum_over_families(store, "rocksdb.total-sst-files-size")
            + _sum_over_families(store, "rocksdb.total-blob-file-size"))


cdef uint64_t store_wal_bytes(Store* store) noexcept nogil:
    return directory_bytes(store.directory, ".log")


cdef uint64_t store_disk_bytes(Store* store) noexcept nogil:
    return directory_bytes(store.directory, "")


cdef bint store_is_stopped(Store* store) noexcept nogil:
    return flag_load(&store.stopped)


cdef int store_compact(
        Store* store, int family, const char* first, size_t first_bytes,
        const char* end, size_t end_bytes, StoreError* error) noexcept nogil:
    cdef rocksdb_compactoptions_t* options
    # What was deleted last is still a note in memory; only in a table can it cancel what it deletes.
    cdef int status = store_flush(store, family, error)
    if status != STORE_OK:
        return status
    options = rocksdb_compactoptions_create()
    # Automatic compactions of the other families go on beside it.
    rocksdb_compactoptions_set_exclusive_manual_compaction(options, 0)
    rocksdb_compact_range_cf_opt(store.db, store.family[family], options, first, first_bytes, end, end_bytes)
    rocksdb_compactoptions_destroy(options)
    return STORE_OK


cdef void store_compact_cancel(Store* store) noexcept nogil:
    rocksdb_disable_manual_compaction(store.db)


cdef void store_compact_again(Store* store) noexcept nogil:
    rocksdb_enable_manual_compaction(store.db)


cdef int store_flush(Store* store, int family, StoreError* error) noexcept nogil:
    cdef char* message = NULL
    cdef rocksdb_flushoptions_t* options = rocksdb_flushoptions_create()
    rocksdb_flushoptions_set_wait(options, 1)
    rocksdb_flush_cf(store.db, options, store.family[family], &message)
    rocksdb_flushoptions_destroy(options)
    if message != NULL:
        return store_classify(error, message)
    return STORE_OK
