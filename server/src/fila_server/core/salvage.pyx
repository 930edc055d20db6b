"""What can be read of a damaged store, copied into a sound one.

RocksDB reads around a damaged block, but it cannot get rid of one: the compaction that meets
it fails, and from then on every write does, at each start anew. So a store in which damage was
met is copied at the next start, record by record, without the blocks that cannot be read.

    rocksdb             the store
    rocksdb.copying     while records are copied; of no use after a crash
    rocksdb.salvaged    complete; from here on the exchange is finished at any later start
    rocksdb.damaged     what was exchanged, kept for whoever wants to look into it
    salvage             the note that a copy is due

A deleted record may come back where the block that said "deleted" is the damaged one. That is
why the engine compares every record it recovers with its own counters.
"""

from libc.errno cimport errno
from libc.stdio cimport rename, snprintf
from libc.string cimport memcpy, strcmp, strerror

from fila_server.core.damage cimport Scanned, scan_behind_damage
from fila_server.core.rocksdb cimport *
from fila_server.core.store cimport (
    FAMILY_COUNT,
    STORE_FAILED,
    STORE_OK,
    Store,
    StoreError,
    batch_bytes,
    batch_clear,
    batch_put,
)
from fila_server.core.storestatus cimport store_classify, store_failed


cdef extern from "fcntl.h" nogil:
    enum:
        O_CLOEXEC
        O_CREAT
        O_DIRECTORY
        O_RDONLY
        O_WRONLY
    int c_open "open"(const char* path, int flags, ...)

cdef extern from "unistd.h" nogil:
    int c_close "close"(int fd)
    int fsync(int fd)
    int access(const char* path, int mode)
    int unlink(const char* path)
    int rmdir(const char* path)

cdef extern from "dirent.h" nogil:
    ctypedef struct DIR:
        pass
    cdef struct dirent_t "dirent":
        char d_name[256]
    DIR* opendir(const char* path)
    dirent_t* readdir(DIR* directory)
    int closedir(DIR* directory)

cdef enum:
    BATCH_BYTES = 1048576
    KEY_BYTES_MAX = 1024
    PATH_BYTES = 4300


# --- the copy ----------------------------------------------------------------------------

cdef int salvage_records(Store* damaged, Store* sound, StoreError* error) noexcept nogil:
    cdef rocksdb_writebatch_t* batch = rocksdb_writebatch_create()
    # Nobody is served yet, so here a write may wait for the disk.
    cdef rocksdb_writeoptions_t* patient = rocksdb_writeoptions_create()
    cdef rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create()
    cdef char* message = NULL
    cdef int family
    for family in range(FAMILY_COUNT):
        _copy_family(damaged, sound, family, batch, patient, &message)
        if message == NULL:
            _write(sound, batch, patient, &message)
        if message == NULL:
            rocksdb_flush_cf(sound.db, flush, sound.family[family], &message)
        if message != NULL:
            break
    rocksdb_flushoptions_destroy(flush)
    rocksdb_writeoptions_destroy(patient)
    rocksdb_writebatch_destroy(batch)
    return STORE_OK if message == NULL else store_classify(error, message)


cdef void _copy_family(
        Store* damaged, Store* sound, int family, rocksdb_writebatch_t* batch,
        rocksdb_writeoptions_t* patient, char** message) noexcept nogil:
    cdef char last[KEY_BYTES_MAX]
    cdef size_t last_bytes = 0, value_bytes = 0
    cdef const char* key
    cdef const char* value
    cdef Scanned scanned
    cdef rocksdb_iterator_t* scan
    scanned.db = damaged.db
    scanned.family = damaged.family[family]
    scanned.options = damaged.scan_options
    scan = rocksdb_create_iterator_cf(scanned.db, scanned.options, scanned.family)
    rocksdb_iter_seek_to_first(scan)
    while scan != NULL and message[0] == NULL:
        if not rocksdb_iter_valid(scan):
            if not _is_damaged(scan):
                break
            sound.salvage.gaps += 1
            rocksdb_iter_destroy(scan)
            scan = scan_behind_damage(&scanned, last, last_bytes)
            continue
        key = rocksdb_iter_key(scan, &last_bytes)
        last_bytes = min(last_bytes, <size_t>KEY_BYTES_MAX)
        memcpy(last, key, last_bytes)
        value = rocksdb_iter_value(scan, &value_bytes)
        batch_put(sound, batch, family, last, last_bytes, value, value_bytes)
        sound.salvage.records += 1
        if batch_bytes(batch) > BATCH_BYTES:
            _write(sound, batch, patient, message)
        rocksdb_iter_next(scan)
    if scan != NULL:
        rocksdb_iter_destroy(scan)


cdef bint _is_damaged(rocksdb_iterator_t* scan) noexcept nogil:
    """Whatever keeps a scan from going on here is damage: the disk gives no better reason."""
    cdef char* message = NULL
    rocksdb_iter_get_error(scan, &message)
    if message == NULL:
        return False
    rocksdb_free(message)
    return True


cdef void _write(
        Store* sound, rocksdb_writebatch_t* batch, rocksdb_writeoptions_t* patient, char** message) noexcept nogil:
    rocksdb_write(sound.db, patient, batch, message)
    batch_clear(batch)


# --- the exchange ------------------------------------------------------------------------

cdef void salvage_begin(const char* directory) noexcept nogil:
    _remove(directory, "rocksdb.copying")


cdef int salvage_commit(const char* directory, StoreError* error) noexcept nogil:
    cdef char copying[PATH_BYTES]
    cdef char salvaged[PATH_BYTES]
    snprintf(copying, PATH_BYTES, "%s/rocksdb.copying", directory)
    snprintf(salvaged, PATH_BYTES, "%s/rocksdb.salvaged", directory)
    if rename(copying, salvaged) != 0:
        return store_failed(error, STORE_FAILED, "cannot rename rocksdb.copying: %s", strerror(errno))
    _sync_directory(directory)
    return salvage_finish(directory, error)


cdef int salvage_finish(const char* directory, StoreError* error) noexcept nogil:
    cdef char salvaged[PATH_BYTES]
    cdef char damaged[PATH_BYTES]
    cdef char path[PATH_BYTES]
    snprintf(salvaged, PATH_BYTES, "%s/rocksdb.salvaged", directory)
    snprintf(damaged, PATH_BYTES, "%s/rocksdb.damaged", directory)
    snprintf(path, PATH_BYTES, "%s/rocksdb", directory)
    if access(salvaged, 0) != 0:
        return STORE_OK
    if access(path, 0) == 0:
        _remove(directory, "rocksdb.damaged")       # of an earlier time; only the last one is kept
        if rename(path, damaged) != 0:
            return store_failed(error, STORE_FAILED, "cannot set the damaged store aside: %s", strerror(errno))
    if rename(salvaged, path) != 0:
        return store_failed(error, STORE_FAILED, "cannot take the salvaged store into use: %s", strerror(errno))
    snprintf(path, PATH_BYTES, "%s/salvage", directory)
    unlink(path)
    _sync_directory(directory)
    return STORE_OK


cdef void _remove(const char* directory, const char* name) noexcept nogil:
    """A directory of plain files, with all that is in it."""
    cdef char path[PATH_BYTES]
    cdef char inside[PATH_BYTES + 300]
    cdef dirent_t* entry
    cdef DIR* listing
    snprintf(path, PATH_BYTES, "%s/%s", directory, name)
    listing = opendir(path)
    if listing == NULL:
        return
    while True:
        entry = readdir(listing)
        if entry == NULL:
            break
        if strcmp(entry.d_name, ".") != 0 and strcmp(entry.d_name, "..") != 0:
            snprintf(inside, sizeof(inside), "%s/%s", <char*>path, <char*>entry.d_name)
            unlink(inside)
    closedir(listing)
    rmdir(path)


cdef void _sync_directory(const char* directory) noexcept nogil:
    cdef int fd = c_open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if fd >= 0:
        fsync(fd)
        c_close(fd)


cdef void salvage_ask(const char* directory) noexcept nogil:
    cdef char path[PATH_BYTES]
    cdef int fd
    snprintf(path, PATH_BYTES, "%s/salvage", directory)
    fd = c_open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    if fd >= 0:
        c_close(fd)


cdef bint salvage_is_asked(const char* directory) noexcept nogil:
    cdef char path[PATH_BYTES]
    snprintf(path, PATH_BYTES, "%s/salvage", directory)
    return access(path, 0) == 0
