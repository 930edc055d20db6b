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
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset, strcmp, strlen, strstr

from fila_server.core.database cimport (
    database_check_families,
    database_close,
    database_open,
    database_rebuild,
    set_scan_options,
)
from fila_server.core.disk cimport (
    directory_bytes,
    directory_lock,
    directory_unlock,
    FORMAT_MISSING,
    FORMAT_UNREADABLE,
    disk_check_start,
    format_read,
    format_write,
    salvage_ask,
    salvage_is_asked,
)
from fila_server.core.lognote cimport lognote_check_end, lognote_check_files, lognote_write
from fila_server.core.mirror cimport mirror_heal, mirror_update
from fila_server.core.rocksdb cimport *
from fila_server.core.salvage cimport (
    salvage_begin,
    salvage_commit,
    salvage_finish,
    salvage_records,
    salvage_replace_table,
)
from fila_server.core.storestatus cimport store_classify, store_classify_read, store_failed
from fila_server.core.tuning cimport default_store_options
from fila_server.core.walscan cimport scan_wal

cdef enum:
    TABLES_LOST_MAX = 1000      # of one salvage; more is not damage but another disk
    LOG_BLOCK_BYTES = 32768

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
    status = _check_format_file(store, directory, options, error)
    if status == STORE_OK:
        status = salvage_finish(directory, error)
    if status == STORE_OK:
        status = _check_wal(store, options, error)
    if status == STORE_OK:
        status = disk_check_start(directory, store.wal.bytes, error)
    if status == STORE_OK:
        store.healed_bytes = 0 if options.stop_on_damage else mirror_heal(store.directory)
        status = database_check_families(store.directory, error)
    if status == STORE_OK:
        status = _open_database(store, directory, options, error)
    if status == STORE_OK:
        lognote_check_end(store)
        if options.stop_on_damage and store.wal.records_lost:
            status = store_failed(
                error, STORE_DAMAGED, "the end of the write-ahead log is missing or damaged in the data directory %.200s; restore it "
                "from a copy, or start with storage.on_damage = \"start\" to go on without it", directory)
    if status == STORE_OK:
        status = _check_format_record(store, directory, error)
    if status != STORE_OK:
        store_close(store)
    else:
        mirror_update(store.directory)
    return status


cdef int _too_new(StoreError* error, int64_t format) noexcept nogil:
    if error != NULL:
        error.status = STORE_TOO_NEW
        snprintf(error.text, STORE_ERROR_BYTES,
                 "the data directory has format %lld, this server knows up to %d; "
                 "start the newer server again, or use another data directory",
                 <long long>format, <int>STORE_FORMAT)
    return STORE_TOO_NEW


cdef int _check_format_file(
        Store* store, const char* directory, const StoreOptions* options, StoreError* error) noexcept nogil:
    cdef int64_t format = format_read(directory)
    if format > STORE_FORMAT:
        return _too_new(error, format)
    if format == FORMAT_UNREADABLE and options.stop_on_damage:
        return store_failed(
            error, STORE_DAMAGED, "the file \"format\" in the data directory %.200s cannot be read; restore it from a copy, "
            "or start with storage.on_damage = \"start\" to go by the record in the store", directory)
    return STORE_OK         # a missing or unreadable file is judged by the META record


cdef int _check_wal(Store* store, const StoreOptions* options, StoreError* error) noexcept nogil:
    scan_wal(store.directory, &store.wal)
    lognote_check_files(store)
    if options.stop_on_damage and (store.wal.damaged_regions or store.wal.batches_lost or store.wal.logs_missing):
        if error != NULL:
            error.status = STORE_DAMAGED
            snprintf(error.text, STORE_ERROR_BYTES,
                     "the write-ahead log %s is %s: %lld records cannot be read; restore the data directory "
                     "from a copy, or start with storage.on_damage = \"start\" to go on without them",
                     store.wal.first_damaged_file, <const char*> ("missing" if store.wal.logs_missing else "damaged"),
                     <long long>store.wal.records_lost)
        return STORE_DAMAGED
    return STORE_OK


cdef int _open_database(
        Store* store, const char* directory, const StoreOptions* options, StoreError* error) noexcept nogil:
    cdef int status = STORE_DAMAGED
    if options.stop_on_damage or not salvage_is_asked(directory):
        status = database_open(store, store.directory, options, False, error)
    if status == STORE_DAMAGED and not options.stop_on_damage:
        status = _salvage(store, directory, options, error)
        if status == STORE_OK:
            status = database_open(store, store.directory, options, False, error)
    return status


cdef int _salvage(
        Store* store, const char* directory, const StoreOptions* options, StoreError* error) noexcept nogil:
    """Replace the damaged store by a copy of what can be read of it."""
    cdef Store damaged
    cdef Store sound
    cdef int status
    memset(&damaged, 0, sizeof(Store))
    memset(&sound, 0, sizeof(Store))
    status = _open_damaged(store, &damaged, options, error)
    if status != STORE_OK:
        return status
    salvage_begin(directory)
    snprintf(sound.directory, sizeof(sound.directory), "%s/rocksdb.copying", directory)
    status = database_open(&sound, sound.directory, options, False, error)
    if status == STORE_OK:
        status = salvage_records(&damaged, &sound, error)
    database_close(&damaged)
    database_close(&sound)
    store.salvage.records = sound.salvage.records
    store.salvage.gaps = sound.salvage.gaps
    return salvage_commit(directory, error) if status == STORE_OK else status


cdef int _open_damaged(Store* store, Store* damaged, const StoreOptions* options, StoreError* error) noexcept nogil:
    cdef int status = database_open(damaged, store.directory, options, True, error)
    if status == STORE_DAMAGED:
        store.rebuilt = True
        status = database_rebuild(store.directory, options, error)
        if status == STORE_OK:
            status = database_open(damaged, store.directory, options, True, error)
    while status == STORE_OK and store.salvage.tables_lost < TABLES_LOST_MAX:
        if not salvage_replace_table(damaged, store.directory):
            break
        store.salvage.tables_lost += 1
        database_close(damaged)
        status = database_open(damaged, store.directory, options, True, error)
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
        if not store.created and format_read(directory) == FORMAT_UNREADABLE:
            return store_failed(
                error, STORE_DAMAGED, "neither the file \"format\" in the data directory %.200s nor the record of it in the "
                "store can be read, so this server cannot know whether it may write there; if no newer server has used "
                "the directory, write the line \"fila 1\" into that file and start again", directory)
        number[0] = <char>STORE_FORMAT
        batch = batch_new()
        batch_put(store, batch, META, FORMAT_KEY, strlen(FORMAT_KEY), number, 1)
        status = store_write(store, batch, error)
        batch_free(batch)
        if status == STORE_OK:
            status = store_sync(store, error)
        if status != STORE_OK:
            return status
    elif status != STORE_DAMAGED:       # a damaged record leaves the file to judge by
        return status
    if format_read(directory) != STORE_FORMAT:
        store.format_rewritten = format_read(directory) == FORMAT_UNREADABLE
        return format_write(directory, STORE_FORMAT, error)
    return STORE_OK


cdef void store_close(Store* store) noexcept nogil:
    if store.db != NULL:
        mirror_update(store.directory)
        lognote_write(store)
    database_close(store)
    if store.parting != NULL:
        batch_free(store.parting)
        store.parting = NULL
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
        if status == STORE_DAMAGED:     # a compaction met it; RocksDB takes no write any more
            _met_damage(store)
            status = store_failed(error, STORE_FAILED,
                                  "a damaged table stopped the storage engine; restart the server, which copies "
                                  "what can be read%s", "")
    return status


cdef int store_part_log(Store* store, StoreError* error) noexcept nogil:
    cdef char* nothing
    if store.parting == NULL:
        store.parting = batch_new()
        nothing = <char*>calloc(1, LOG_BLOCK_BYTES)
        if nothing == NULL:
            return store_failed(error, STORE_FAILED, "out of memory writing the log%s", "")
        rocksdb_writebatch_put_log_data(store.parting, nothing, LOG_BLOCK_BYTES)     # in the log only, in no table
        free(nothing)
    return store_write(store, store.parting, error)


cdef void _met_damage(Store* store) noexcept nogil:
    """Count it, and see that the next start copies the store without the damaged block."""
    store.counters.damaged_reads += 1
    salvage_ask(store.directory)


cdef int store_sync(Store* store, StoreError* error) noexcept nogil:
    cdef char* message = NULL
    cdef uint64_t written = rocksdb_get_latest_sequence_number(store.db)
    if store.stopped:
        # After a failed append RocksDB 7.8.3 may abort the process when asked to sync that log. When there is
        # room again it flushes all memory to tables; the next write that succeeds starts a new log.
        return store_failed(error, STORE_FULL, "nothing can be synced until writes work again%s", "")
    rocksdb_flush_wal(store.db, 1, &message)
    if message == NULL:
        store.counters.syncs += 1
        store.synced = written
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
