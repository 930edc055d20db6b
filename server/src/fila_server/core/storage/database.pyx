from libc.stdint cimport UINT64_MAX
from libc.string cimport strcmp, strstr

from fila_server.core.storage.families cimport (
    ACCESS, AUDIT, BUCKETS, CONFIG, DEDUP, FAMILY_COUNT, FRAMES, INDEX, KEPT, KEYS, LEASES, META, QUEUES,
    SETTLED, SINKS, STAGED, STATES,
)
from fila_server.core.storage.rocksdb cimport *
from fila_server.core.storage.status cimport (
    STORE_DAMAGED, STORE_FAILED, STORE_FULL, STORE_OK, STORE_TOO_NEW, STORE_UNWRITABLE, store_classify,
    store_failed,
)
from fila_server.core.storage.tuning cimport tuned_options
from fila_server.core.structures.atomics cimport flag_load

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
FAMILY_NAMES[SINKS] = "sinks"
FAMILY_NAMES[STAGED] = "staged"
FAMILY_NAMES[ACCESS] = "access"
FAMILY_NAMES[AUDIT] = "audit"
FAMILY_NAMES[KEPT] = "kept"


cdef int database_open(
        Store* store, const char* path, const StoreOptions* options, bint lenient,
        StoreError* error) noexcept nogil:
    cdef int family
    cdef char* message = NULL
    store.cache = rocksdb_cache_create_lru(<size_t>options.block_cache_bytes)
    for family in range(FAMILY_COUNT):
        store.options[family] = tuned_options(options, family, store.cache)
        if lenient:
            _make_lenient(store.options[family])
    store.db = rocksdb_open_column_families(
        store.options[META], path, FAMILY_COUNT, FAMILY_NAMES,
        <const rocksdb_options_t**>store.options, store.family, &message)
    if message != NULL:
        store.db = NULL
        database_close(store)
        return _open_failed(error, message, lenient)
    store.write_options = rocksdb_writeoptions_create()
    rocksdb_writeoptions_set_sync(store.write_options, 0)
    rocksdb_writeoptions_set_no_slowdown(store.write_options, 1)
    store.read_options = rocksdb_readoptions_create()
    store.scan_options = rocksdb_readoptions_create()
    set_scan_options(store.scan_options)
    return STORE_OK


cdef void _make_lenient(rocksdb_options_t* options) noexcept nogil:
    cdef char* message = NULL
    # So that an empty table may stand in for a broken one. Only the text form of the options has this one.
    rocksdb_get_options_from_string(options, "verify_sst_unique_id_in_manifest=false", options, &message)
    if message != NULL:
        rocksdb_free(message)       # an engine that does not know the option does not check either
        message = NULL
    # A table of contents that was made up from the tables found may name one twice, before and after a
    # compaction.
    rocksdb_get_options_from_string(options, "force_consistency_checks=false", options, &message)
    if message != NULL:
        rocksdb_free(message)
    rocksdb_options_set_paranoid_checks(options, 0)
    rocksdb_options_set_disable_auto_compactions(options, 1)


cdef void set_scan_options(rocksdb_readoptions_t* options) noexcept nogil:
    """Read ahead, and leave the cache to those who come back."""
    rocksdb_readoptions_set_fill_cache(options, 0)
    rocksdb_readoptions_set_readahead_size(options, 1 << 20)


cdef int _open_failed(StoreError* error, char* message, bint lenient) noexcept nogil:
    cdef int status
    if lenient and (strstr(message, "Corruption") != NULL or strstr(message, "No such file") != NULL):
        status = store_failed(error, STORE_DAMAGED,
                              "the data directory is damaged beyond what can be read around; restore it "
                              "from a copy, or "
                              "move it away to start with an empty one (%.300s)", message)
    elif strstr(message, "Corruption") != NULL or strstr(message, "No such file") != NULL:
        status = store_failed(error, STORE_DAMAGED,
                              "the data directory is damaged; restore it from a copy, or start with "
                              "storage.on_damage = \"start\" to go on with what can be read (%.300s)",
                              message)
    elif strstr(message, "No space left") != NULL:
        status = store_failed(
            error, STORE_FULL, "the disk is full; make room, then start again (%.300s)", message)
    elif strstr(message, "ermission denied") != NULL or strstr(message, "ead-only file system") != NULL:
        status = store_failed(error, STORE_UNWRITABLE,
                         "the data directory cannot be written; check its owner and mode (%.300s)", message)
    else:
        status = store_failed(
            error, STORE_FAILED, "the storage engine cannot open the data directory (%.300s)", message)
    rocksdb_free(message)
    return status


cdef int database_rebuild(const char* path, const StoreOptions* options, StoreError* error) noexcept nogil:
    cdef rocksdb_options_t* tuned = tuned_options(options, META, NULL)
    cdef char* message = NULL
    rocksdb_repair_db(tuned, path, &message)
    rocksdb_options_destroy(tuned)
    return STORE_OK if message == NULL else _open_failed(error, message, True)


cdef int database_check_families(const char* path, StoreError* error) noexcept nogil:
    """Refuse families we do not know: RocksDB would refuse too, with a text nobody can use."""
    cdef rocksdb_options_t* options = rocksdb_options_create()
    cdef size_t count = 0, i
    cdef int known
    cdef int status = STORE_OK
    cdef char* message = NULL
    cdef char** names = rocksdb_list_column_families(options, path, &count, &message)
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


cdef void database_close(Store* store) noexcept nogil:
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
        rocksdb_readoptions_destroy(store.read_options)
        rocksdb_readoptions_destroy(store.scan_options)
        store.write_options = NULL
        store.read_options = store.scan_options = NULL
    if store.cache != NULL:
        rocksdb_cache_destroy(store.cache)
        store.cache = NULL


# --- a copy of the directory -----------------------------------------------------------------
# RocksDB makes it; while it does, it deletes no file, and writes go on.

cdef int store_checkpoint(Store* store, const char* path, StoreError* error) noexcept nogil:
    cdef rocksdb_checkpoint_t* checkpoint
    cdef char* message = NULL
    if flag_load(&store.stopped):
        # The log's last record may be half there, and 7.8.3 may abort when it is asked to finish it.
        return store_failed(error, STORE_FULL, "nothing can be copied until writes work again%s", "")
    checkpoint = rocksdb_checkpoint_object_create(store.db, &message)
    if message != NULL:
        return store_classify(error, message)
    # A flush would cost tables that most messages never need; without one the copied log has what they lack.
    rocksdb_checkpoint_create(checkpoint, path, UINT64_MAX, &message)
    rocksdb_checkpoint_object_destroy(checkpoint)
    if message != NULL:
        return store_classify(error, message)
    return STORE_OK
