"""DIRECTORY/fila.lock     held while a server runs; says which process
    DIRECTORY/format        the number of this layout, in text
    DIRECTORY/rocksdb/      everything else, by families (families.pxd)
    DIRECTORY/ballast       given up when the disk is nearly full (disk.pyx)

Opening goes lock, format, table of contents (manifest_copy.pyx), scan of the WAL (walscan.pyx), RocksDB,
format again (from the META family, in case the file was lost). Each step that fails releases the earlier
ones.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memset, strlen

from fila_server.core.storage.data_directory cimport (
    FORMAT_UNREADABLE, directory_lock, directory_unlock, format_read, format_write, salvage_is_asked,
)
from fila_server.core.storage.database cimport (
    database_check_families, database_close, database_open, database_rebuild,
)
from fila_server.core.storage.disk cimport disk_check_start
from fila_server.core.storage.families cimport FAMILY_COUNT, FRAMES, META, STAGED, STORE_FORMAT
from fila_server.core.storage.log_note cimport lognote_begin, lognote_read, lognote_write
from fila_server.core.storage.manifest cimport manifest_drop_repeated, manifest_needed_log
from fila_server.core.storage.manifest_copy cimport manifest_copy_heal, manifest_copy_update
from fila_server.core.storage.rocksdb cimport (
    rocksdb_free, rocksdb_get_latest_sequence_number, rocksdb_iter_get_error, rocksdb_iterator_t,
    rocksdb_writebatch_t,
)
from fila_server.core.storage.salvage cimport (
    Gap, salvage_begin, salvage_beside, salvage_commit, salvage_finish, salvage_gaps, salvage_gaps_free,
    salvage_records, salvage_replace_tables,
)
from fila_server.core.storage.status cimport (
    STORE_DAMAGED, STORE_ERROR_BYTES, STORE_FAILED, STORE_NOT_FOUND, STORE_OK, STORE_TOO_NEW,
    STORE_UNWRITABLE, store_failed,
)
from fila_server.core.storage.store cimport (
    batch_free, batch_new, batch_put, scan_free, scan_next, scan_seek_first, scan_valid, store_get,
    store_iterate, store_sync, store_write,
)
from fila_server.core.storage.tuning cimport default_store_options
from fila_server.core.storage.walscan cimport leave_out_bad_batches, scan_wal

cdef enum:
    TABLES_LOST_MAX = 1000      # of one salvage; more is not damage but another disk

cdef const char* FORMAT_KEY = "format"


# --- open --------------------------------------------------------------------------------

cdef void store_default_options(StoreOptions* options) noexcept nogil:
    default_store_options(options)


cdef int store_open(
        Store* store, const char* directory, const StoreOptions* options, int64_t format,
        StoreError* error) noexcept nogil:
    cdef int status
    memset(store, 0, sizeof(Store))
    store.lock_fd = -1
    if strlen(directory) + 32 > sizeof(store.directory):
        return store_failed(
            error, STORE_UNWRITABLE, "the data directory's path is too long: %.200s...", directory)
    snprintf(store.directory, sizeof(store.directory), "%s/rocksdb", directory)

    store.lock_fd = directory_lock(directory, error)
    if store.lock_fd < 0:
        return error.status
    status = _check_format_file(directory, options, format, error)
    if status == STORE_OK:
        status = salvage_finish(directory, error)
    if status == STORE_OK:
        status = _check_contents(store, directory, options, error)
    if status == STORE_OK:
        status = _check_wal(store, options, error)
    if status == STORE_OK:
        status = disk_check_start(directory, store.wal.bytes, error)
    if status == STORE_OK:
        status = database_check_families(store.directory, error)
    if status == STORE_OK:
        status = _open_database(store, directory, options, error)
    if status == STORE_OK and options.stop_on_damage:
        status = _check_payloads(store, directory, error)
    if status == STORE_OK:
        status = _check_format_record(store, directory, format, error)
    if status != STORE_OK:
        store_close(store)
    else:
        lognote_begin(store)
        manifest_copy_update(store.directory)
    return status


cdef int _format_agrees(
        int64_t found, int64_t format, const char* directory, StoreError* error) noexcept nogil:
    """Whether this server knows it, and whether it is of a copy or of a broker alone, as was asked for."""
    if found > COPY_FORMAT:
        return _too_new(error, found)
    if format == ANY_FORMAT:
        return STORE_OK
    if found == COPY_FORMAT and format != COPY_FORMAT:
        return store_failed(
            error, STORE_FAILED,
            "the data directory %.200s is a copy of a group's broker, and would be a second broker if it "
            "served alone; start it as a node of its group, name another data directory, or make it a "
            "broker's alone again with fila-server cluster leave", directory)
    if found < COPY_FORMAT and format == COPY_FORMAT:
        return store_failed(
            error, STORE_FAILED,
            "the data directory %.200s is of a broker alone, and no copy of a group's; start it without a "
            "group, name an empty data directory, or begin the group with it by fila-server cluster init",
            directory)
    return STORE_OK


cdef int _too_new(StoreError* error, int64_t found) noexcept nogil:
    if error != NULL:
        error.status = STORE_TOO_NEW
        snprintf(error.text, STORE_ERROR_BYTES,
                 "the data directory has format %lld, this server knows up to %d; "
                 "start the newer server again, or use another data directory",
                 <long long>found, <int>COPY_FORMAT)
    return STORE_TOO_NEW


cdef int _check_format_file(
        const char* directory, const StoreOptions* options, int64_t format, StoreError* error) noexcept nogil:
    cdef int64_t found = format_read(directory)
    cdef int status = STORE_OK
    if found > 0:
        status = _format_agrees(found, format, directory, error)
    if status != STORE_OK:
        return status
    if found == FORMAT_UNREADABLE and options.stop_on_damage:
        return store_failed(
            error, STORE_DAMAGED,
            "the file \"format\" in the data directory %.200s cannot be read; restore it from a copy, "
            "or start with storage.on_damage = \"start\" to go by the record in the store", directory)
    return STORE_OK         # a missing or unreadable file is judged by the META record


cdef int _check_contents(
        Store* store, const char* directory, const StoreOptions* options, StoreError* error) noexcept nogil:
    store.healed_bytes = manifest_copy_heal(store.directory, not options.stop_on_damage)
    store.healed_bytes += manifest_drop_repeated(store.directory, not options.stop_on_damage)
    if not options.stop_on_damage or store.healed_bytes == 0:
        return STORE_OK
    return store_failed(
        error, STORE_DAMAGED,
        "the table of contents (rocksdb/CURRENT, rocksdb/MANIFEST-*) in the data directory %.200s is "
        "damaged; restore it from a copy, or start with storage.on_damage = \"start\" to put it right from "
        "its mirror",
        directory)


cdef int _check_wal(Store* store, const StoreOptions* options, StoreError* error) noexcept nogil:
    cdef int64_t oldest_log = manifest_needed_log(store.directory)
    cdef uint64_t first = lognote_read(store, oldest_log)
    scan_wal(store.directory, oldest_log, first, store.promised, &store.wal)
    if options.stop_on_damage and store.wal.notes_missing:
        return store_failed(
            error, STORE_DAMAGED,
            "the note rocksdb/synced in %.200s is missing or damaged, so whether the write-ahead log is "
            "whole cannot be known; restore it from a copy, or start with storage.on_damage = \"start\" to "
            "go on without it", store.directory)
    if (
        options.stop_on_damage
        and (store.wal.damaged_regions or store.wal.batches_lost or store.wal.logs_missing)
    ):
        if error != NULL:
            error.status = STORE_DAMAGED
            snprintf(error.text, STORE_ERROR_BYTES,
                     "the write-ahead log %s is %s: %lld records cannot be read; restore the data directory "
                     "from a copy, or start with storage.on_damage = \"start\" to go on without them",
                     store.wal.first_damaged_file,
                     <const char*> ("missing" if store.wal.logs_missing else "damaged"),
                     <long long>store.wal.records_lost)
        return STORE_DAMAGED
    if store.wal.damaged_regions or store.wal.batches_lost:
        leave_out_bad_batches(store.directory, oldest_log, first)
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


cdef int _check_payloads(Store* store, const char* directory, StoreError* error) noexcept nogil:
    """All that wait are read: nothing else tells whether one of them is damaged. Recovery reads the rest."""
    cdef rocksdb_iterator_t* scan
    cdef char* message
    cdef int family
    for family in range(FAMILY_COUNT):
        if family != FRAMES and family != STAGED:
            continue
        message = NULL
        scan = store_iterate(store, family, NULL)
        scan_seek_first(scan)
        while scan_valid(scan):
            scan_next(scan)
        rocksdb_iter_get_error(scan, &message)
        scan_free(scan)
        if message != NULL:
            rocksdb_free(message)
            return store_failed(
                error, STORE_DAMAGED,
                "a file of payloads (rocksdb/*.blob) in the data directory %.200s is missing or damaged; "
                "restore it from a copy, or start with storage.on_damage = \"start\" to go on without what "
                "it held",
                directory)
    return STORE_OK


cdef int _salvage(
        Store* store, const char* directory, const StoreOptions* options, StoreError* error) noexcept nogil:
    """Replace the damaged store by a copy of what can be read of it."""
    cdef Store damaged
    cdef Store sound
    cdef Gap* gaps = NULL
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
        status = salvage_records(&damaged, &sound, &gaps, error)
    if status == STORE_OK and gaps != NULL:
        status = _salvage_gaps(&damaged, &sound, directory, gaps, options, error)
    database_close(&damaged)
    database_close(&sound)
    salvage_gaps_free(directory, gaps)
    store.salvage.records = sound.salvage.records
    store.salvage.gaps = sound.salvage.gaps
    store.salvage.acks_lost += sound.salvage.acks_lost
    return salvage_commit(directory, error) if status == STORE_OK else status


cdef int _salvage_gaps(
        Store* damaged, Store* sound, const char* directory, const Gap* gaps, const StoreOptions* options,
        StoreError* error) noexcept nogil:
    """What cannot be opened beside the damaged store has nothing to add: the salvage goes on without."""
    cdef Store beside
    cdef StoreError ignored
    cdef int status
    memset(&beside, 0, sizeof(Store))
    if not salvage_beside(damaged, gaps, directory):
        return STORE_OK
    snprintf(beside.directory, sizeof(beside.directory), "%s/rocksdb.beside", directory)
    if database_open(&beside, beside.directory, options, True, &ignored) != STORE_OK:
        return STORE_OK
    status = salvage_gaps(&beside, sound, gaps, error)
    database_close(&beside)
    return status


cdef int _open_damaged(
        Store* store, Store* damaged, const StoreOptions* options, StoreError* error) noexcept nogil:
    cdef int replaced
    cdef int status = database_open(damaged, store.directory, options, True, error)
    if status == STORE_DAMAGED:
        store.rebuilt = True
        status = database_rebuild(store.directory, options, error)
        if status == STORE_OK:
            status = database_open(damaged, store.directory, options, True, error)
    while status == STORE_OK and store.salvage.tables_lost < TABLES_LOST_MAX:
        replaced = salvage_replace_tables(damaged, store.directory, &store.salvage)
        if replaced == 0:
            break
        database_close(damaged)
        status = database_open(damaged, store.directory, options, True, error)
    return status


cdef int store_turn(
        Store* store, rocksdb_writebatch_t* batch, bint is_copy, StoreError* error) noexcept nogil:
    return _write_format_record(store, batch, COPY_FORMAT if is_copy else STORE_FORMAT, error)


cdef int _write_format_record(
        Store* store, rocksdb_writebatch_t* batch, int64_t format, StoreError* error) noexcept nogil:
    cdef char number = <char>format
    cdef int status
    batch_put(store, batch, META, FORMAT_KEY, strlen(FORMAT_KEY), &number, 1)
    status = store_write(store, batch, error)
    batch_free(batch)
    return store_sync(store, error) if status == STORE_OK else status


cdef int64_t store_format(Store* store, StoreError* error) noexcept nogil:
    cdef char* value = NULL
    cdef size_t value_bytes = 0
    cdef int64_t found
    if store_get(store, META, FORMAT_KEY, strlen(FORMAT_KEY), &value, &value_bytes, error) != STORE_OK:
        return 0
    found = value[0] if value_bytes == 1 else 0
    free(value)
    return found


cdef int store_format_file(const char* directory, int64_t format, StoreError* error) noexcept nogil:
    return format_write(directory, format, error)


cdef int _check_format_record(
        Store* store, const char* directory, int64_t format, StoreError* error) noexcept nogil:
    """The number is kept twice: a file can be read without the engine, a record cannot be lost alone."""
    cdef char* value = NULL
    cdef size_t value_bytes = 0
    cdef int64_t found
    cdef int status = store_get(store, META, FORMAT_KEY, strlen(FORMAT_KEY), &value, &value_bytes, error)
    if status == STORE_OK:
        found = value[0] if value_bytes == 1 else 0
        free(value)
        status = _format_agrees(found, format, directory, error)
        if status != STORE_OK or format == ANY_FORMAT:
            return status
        # From now on there may be records that an older server can't read.
        if found < format:
            status = _write_format_record(store, batch_new(), format, error)
            if status != STORE_OK:
                return status
    elif format == ANY_FORMAT:
        return store_failed(
            error, STORE_DAMAGED,
            "the store in the data directory %.200s does not say which format it has; start the server once, "
            "which puts it right", directory)
    elif status == STORE_NOT_FOUND:
        store.created = rocksdb_get_latest_sequence_number(store.db) == 0
        if not store.created and format_read(directory) == FORMAT_UNREADABLE:
            return store_failed(
                error, STORE_DAMAGED,
                "neither the file \"format\" in the data directory %.200s nor the record of it in the "
                "store can be read, so this server cannot know whether it may write there; if no newer "
                "server has used "
                "the directory, write the line \"fila 1\" into that file and start again", directory)
        if not store.created:
            status = _format_agrees(format_read(directory), format, directory, error)
            if status != STORE_OK:
                return status
        status = _write_format_record(store, batch_new(), format, error)
        if status != STORE_OK:
            return status
    elif status != STORE_DAMAGED:       # a damaged record leaves the file to judge by
        return status
    if format_read(directory) != format:
        store.format_rewritten = format_read(directory) == FORMAT_UNREADABLE
        return format_write(directory, format, error)
    return STORE_OK


cdef void store_close(Store* store) noexcept nogil:
    if store.db != NULL:
        manifest_copy_update(store.directory)
        lognote_write(store)
    database_close(store)
    if store.parting != NULL:
        batch_free(store.parting)
        store.parting = NULL
    if store.lock_fd >= 0:
        directory_unlock(store.lock_fd)
        store.lock_fd = -1
