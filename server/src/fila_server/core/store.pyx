"""The disk, as the core sees it; the map and the rules are in store.pxd.

    DIRECTORY/fila.lock     held while a server runs; says which process
    DIRECTORY/format        the number of this layout, in text
    DIRECTORY/rocksdb/      everything else, by families (store.pxd)
    DIRECTORY/ballast       given up when the disk is nearly full (disk.pyx)

Opening goes lock, format, scan of the WAL (walscan.pyx), RocksDB, format again (from the
META family, in case the file was lost). Each step that fails releases the earlier ones.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset, strcmp, strlen, strstr

from fila_server.core.damage cimport seek_behind_damage
from fila_server.core.disk cimport (
    directory_bytes,
    directory_lock,
    directory_unlock,
    format_read,
    format_write,
)
from fila_server.core.rocksdb cimport *
from fila_server.core.storestatus cimport store_classify, store_failed
from fila_server.core.tuning cimport default_store_options, tuned_options
from fila_server.core.walscan cimport scan_wal

cdef const char* FAMILY_NAMES[FAMILY_COUNT]
FAMILY_NAMES[META] = "default"      # RocksDB insists on a family of this name
FAMILY_NAMES[FRAMES] = "frames"
FAMILY_NAMES[INDEX] = "index"
FAMILY_NAMES[SETTLED] = "settled"
FAMILY_NAMES[LEASES] = "leases"
FAMILY_NAMES[STATES] = "states"
FAMILY_NAMES[QUEUES] = "queues"
FAMILY_NAMES[KEYS] = "keys"
FAMILY_NAMES[CONFIG] = "config"
FAMILY_NAMES[BUCKETS] = "buckets"
FAMILY_NAMES[DEDUP] = "dedup"

cdef const char* FORMAT_KEY = "format"


# --- open --------------------------------------------------------------------------------

cdef void store_default_options(StoreOptions* options) noexcept nogil:
    default_store_options(options)


cdef int store_open(Store* store, const char* directory, const StoreOptions* options, StoreError* error) noexcept nogil:
    cdef int status
    memset(store, 0, sizeof(Store))
    store.lock_fd = -1
    if strlen(directory) + 32 > sizeof(store.directory):
        return store_failed(error, STORE_UNWRITABLE, "the data directory's path is too long: %.200s...", directory)
    snprintf(store.directory, sizeof(store.directory), "%s/rocksdb", directory)

    store.lock_fd = directory_lock(directory, error)
    if store.lock_fd < 0:
        return error.status
    status = _check_format_file(store, directory, error)
    if status == STORE_OK:
        status = _check_wal(store, options, error)
    if status == STORE_OK:
        status = _check_families(store, error)
    if status == STORE_OK:
        status = _open_database(store, options, error)
    if status == STORE_OK:
        status = _check_format_record(store, directory, error)
    if status != STORE_OK:
        store_close(store)
    return status


cdef int _too_new(StoreError* error, int64_t format) noexcept nogil:
    if error != NULL:
        error.status = STORE_TOO_NEW
        snprintf(error.text, STORE_ERROR_BYTES,
                 "the data directory has format %lld, this server knows up to %d; "
                 "start the newer server again, or use another data directory",
                 <long long>format, <int>STORE_FORMAT)
    return STORE_TOO_NEW


cdef int _check_format_file(Store* store, const char* directory, StoreError* error) noexcept nogil:
    cdef int64_t format = format_read(directory)
    if format > STORE_FORMAT:
        return _too_new(error, format)
    return STORE_OK         # a missing or unreadable file is judged by the META record


cdef int _check_wal(Store* store, const StoreOptions* options, StoreError* error) noexcept nogil:
    scan_wal(store.directory, &store.wal)
    if options.stop_on_damage and (store.wal.damaged_regions or store.wal.batches_lost):
        if error != NULL:
            error.status = STORE_DAMAGED
            snprintf(error.text, STORE_ERROR_BYTES,
                     "the write-ahead log %s is damaged: %lld records cannot be read; restore the data directory "
                     "from a copy, or start without storage.on_damage = \"stop\" to go on without them",
                     store.wal.first_damaged_file, <long long>store.wal.records_lost)
        return STORE_DAMAGED
    return STORE_OK


cdef int _check_families(Store* store, StoreError* error) noexcept nogil:
    """Refuse families we do not know: RocksDB would refuse too, with a text nobody can use."""
    cdef rocksdb_options_t* options = rocksdb_options_create()
    cdef size_t count = 0, i
    cdef int known
    cdef int status = STORE_OK
    cdef char* message = NULL
    cdef char** names = rocksdb_list_column_families(options, store.directory, &count, &message)
    rocksdb_options_destroy(options)
    if message != NULL:     # a new directory; or damage, which opening tells better
        rocksdb_free(message)
        return STORE_OK
    for i in range(count):
        for known in range(FAMILY_COUNT):
            if strcmp(names[i], FAMILY_NAMES[known]) == 0:
                break
        else:
            status = store_failed(error, STORE_TOO_NEW,
                             "the data directory has a record family \"%s\" that this server does not know; "
                             "start the newer server again, or use another data directory", names[i])
            break
    rocksdb_list_column_families_destroy(names, count)
    return status


cdef int _open_database(Store* store, const StoreOptions* options, StoreError* error) noexcept nogil:
    cdef int family
    cdef char* message = NULL
    store.cache = rocksdb_cache_create_lru(<size_t>options.block_cache_bytes)
    for family in range(FAMILY_COUNT):
        store.options[family] = tuned_options(options, family, store.cache)

    store.db = rocksdb_open_column_families(
        store.options[META], store.directory, FAMILY_COUNT, FAMILY_NAMES,
        <const rocksdb_options_t**>store.options, store.family, &message)
    if message != NULL and strstr(message, "Corruption") != NULL and not options.stop_on_damage:
        message = _repair(store, message)
    if message != NULL:
        store.db = NULL
        return _open_failed(error, message)

    store.write_options = rocksdb_writeoptions_create()
    rocksdb_writeoptions_set_sync(store.write_options, 0)
    rocksdb_writeoptions_set_no_slowdown(store.write_options, 1)
    store.read_options = rocksdb_readoptions_create()
    store.scan_options = rocksdb_readoptions_create()
    _set_scan(store.scan_options)
    return STORE_OK


cdef char* _repair(Store* store, char* message) noexcept nogil:
    """Rebuild RocksDB's table of contents from the tables that are whole, then open once more."""
    rocksdb_free(message)
    message = NULL
    rocksdb_repair_db(store.options[META], store.directory, &message)
    if message != NULL:
        return message
    store.repaired = True
    store.db = rocksdb_open_column_families(
        store.options[META], store.directory, FAMILY_COUNT, FAMILY_NAMES,
        <const rocksdb_options_t**>store.options, store.family, &message)
    return message


cdef int _open_failed(StoreError* error, char* message) noexcept nogil:
    cdef int status
    if strstr(message, "Corruption") != NULL:
        status = store_failed(error, STORE_DAMAGED,
                         "the data directory is damaged beyond what can be skipped; restore it from a copy, "
                         "or move it away to start empty (%.300s)", message)
    elif strstr(message, "No space left") != NULL:
        status = store_failed(error, STORE_FULL, "the disk is full; make room, then start again (%.300s)", message)
    elif strstr(message, "ermission denied") != NULL or strstr(message, "ead-only file system") != NULL:
        status = store_failed(error, STORE_UNWRITABLE,
                         "the data directory cannot be written; check its owner and mode (%.300s)", message)
    else:
        status = store_failed(error, STORE_FAILED, "the storage engine cannot open the data directory (%.300s)", message)
    rocksdb_free(message)
    return status


cdef int _check_format_record(Store* store, const char* directory, StoreError* error) noexcept nogil:
    """The number is kept twice: a file can be read without the engine, a record cannot be lost alone."""
    cdef char number[24]
    cdef char* value = NULL
    cdef size_t value_bytes = 0
    cdef int64_t format
    cdef rocksdb_writebatch_t* batch
    cdef int status = store_get(store, META, FORMAT_KEY, strlen(FORMAT_KEY), &value, &value_bytes, error)
    if status == STORE_OK:
        format = value[0] if value_bytes == 1 else 0
        free(value)
        if format > STORE_FORMAT:
            return _too_new(error, format)
    elif status == STORE_NOT_FOUND:
        store.created = rocksdb_get_latest_sequence_number(store.db) == 0
        number[0] = <char>STORE_FORMAT
        batch = batch_new()
        batch_put(store, batch, META, FORMAT_KEY, strlen(FORMAT_KEY), number, 1)
        status = store_write(store, batch, error)
        batch_free(batch)
        if status == STORE_OK:
            status = store_sync(store, error)
        if status != STORE_OK:
            return status
    else:
        return status
    if format_read(directory) != STORE_FORMAT:
        return format_write(directory, STORE_FORMAT, error)
    return STORE_OK


cdef void store_close(Store* store) noexcept nogil:
    cdef int family
    if store.db != NULL:
        rocksdb_disable_manual_compaction(store.db)
        for family in range(FAMILY_COUNT):
            if store.family[family] != NULL:
                rocksdb_column_family_handle_destroy(store.family[family])
                store.family[family] = NULL
        rocksdb_close(store.db)
        store.db = NULL
    for family in range(FAMILY_COUNT):
        if store.options[family] != NULL:
            rocksdb_options_destroy(store.options[family])
            store.options[family] = NULL
    if store.write_options != NULL:
        rocksdb_writeoptions_destroy(store.write_options)
        store.write_options = NULL
    if store.read_options != NULL:
        rocksdb_readoptions_destroy(store.read_options)
        rocksdb_readoptions_destroy(store.scan_options)
        store.read_options = store.scan_options = NULL
    if store.cache != NULL:
        rocksdb_cache_destroy(store.cache)
        store.cache = NULL
    if store.lock_fd >= 0:
        directory_unlock(store.lock_fd)
        store.lock_fd = -1


# --- write -------------------------------------------------------------------------------

cdef int store_write(Store* store, rocksdb_writebatch_t* batch, StoreError* error) noexcept nogil:
    cdef char* message = NULL
    cdef int status
    rocksdb_write(store.db, store.write_options, batch, &message)
    if message == NULL:
        store.counters.writes += 1
        store.counters.bytes_written += batch_bytes(batch)
        store.stopped = False
        return STORE_OK
    status = store_classify(error, message)
    if status == STORE_STALLED:
        store.counters.stalled += 1
    elif status == STORE_FULL:
        store.counters.full += 1
        store.stopped = True
    else:
        store.counters.failed += 1
        store.stopped = True
    return status


cdef int store_sync(Store* store, StoreError* error) noexcept nogil:
    cdef char* message = NULL
    rocksdb_flush_wal(store.db, 1, &message)
    if message == NULL:
        store.counters.syncs += 1
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
        status = store_classify(error, message)
        if status == STORE_DAMAGED:
            store.counters.damaged_reads += 1
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


cdef void _set_scan(rocksdb_readoptions_t* options) noexcept nogil:
    rocksdb_readoptions_set_fill_cache(options, 0)
    rocksdb_readoptions_set_readahead_size(options, 1 << 20)


cdef rocksdb_iterator_t* store_iterate(
        Store* store, int family, const rocksdb_snapshot_t* snapshot) noexcept nogil:
    cdef rocksdb_readoptions_t* options
    cdef rocksdb_iterator_t* scan
    if snapshot == NULL:
        return rocksdb_create_iterator_cf(store.db, store.scan_options, store.family[family])
    options = rocksdb_readoptions_create()
    _set_scan(options)
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
        store.counters.damaged_reads += 1
    return status


cdef int scan_skip_damage(
        Store* store, rocksdb_iterator_t* scan, const char* last, size_t last_bytes, StoreError* error) noexcept nogil:
    cdef int status = seek_behind_damage(scan, last, last_bytes)
    if status != STORE_OK:
        return store_failed(error, status, "nothing readable lies behind a damaged block%s", "")
    return STORE_OK


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
    return store.stopped


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


cdef int store_flush(Store* store, int family, StoreError* error) noexcept nogil:
    cdef char* message = NULL
    cdef rocksdb_flushoptions_t* options = rocksdb_flushoptions_create()
    rocksdb_flushoptions_set_wait(options, 1)
    rocksdb_flush_cf(store.db, options, store.family[family], &message)
    rocksdb_flushoptions_destroy(options)
    if message != NULL:
        return store_classify(error, message)
    return STORE_OK
