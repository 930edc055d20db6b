"""What keeps the disk small and safe while nobody waits for it; the map is in reclaim.pxd.

How disk comes back. A frame's payload lies in a blob file, its key and the note that it was
deleted in small tables. Compacting the tables drops key and note together and counts the
payload as garbage; a blob file that is all garbage is removed at once. Frames die nearly in
the order they came, so that is the usual end of a blob file, and no payload is ever copied.

A few live frames can pin many files, though. Only when that wastes too much are live payloads
copied out of the oldest files. RocksDB could do it by itself in each compaction, but then
copies two thirds of everything that waits, over and over (measured: docs/durability.md).
"""

from libc.string cimport memset

from fila_server.core.storage.disk cimport disk_has_room
from fila_server.core.storage.families cimport FAMILY_COUNT, FRAMES
from fila_server.core.storage.log_note cimport lognote_write
from fila_server.core.storage.manifest_copy cimport manifest_copy_update
from fila_server.core.storage.posix cimport c_close, c_write
from fila_server.core.storage.rocksdb cimport *
from fila_server.core.storage.status cimport STORE_FAILED, STORE_OK
from fila_server.core.storage.store cimport store_compact, store_compact_cancel, store_flush, store_wal_bytes
from fila_server.core.structures.atomics cimport atomic_load, count_load

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_attr_t:
        pass
    int pthread_create(
        pthread_t* thread, const pthread_attr_t* attr, void* (*start)(void*) noexcept nogil, void* arg)
    int pthread_join(pthread_t thread, void** result)

cdef extern from "<poll.h>" nogil:
    enum:
        POLLIN
    cdef struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd* fds, unsigned long count, int timeout_ms)

cdef extern from "<sys/eventfd.h>" nogil:
    enum:
        EFD_CLOEXEC
    int eventfd(unsigned int initval, int flags)

cdef extern from "<malloc.h>" nogil:
    int malloc_trim(size_t pad)

cdef enum:
    ROUND_MS = 1000
    TRIM_EVERY_ROUNDS = 10
    TRIM_ANYWAY_ROUNDS = 600
    QUIET_WAL_BYTES = 33554432
    FORCE = 2               # of bottommost_level_compaction


# --- giving disk back --------------------------------------------------------------------

cdef int64_t _frames_property(Store* store, const char* property) noexcept nogil:
    cdef uint64_t value = 0
    rocksdb_property_int_cf(store.db, store.family[FRAMES], property, &value)
    return <int64_t>value


cdef int64_t _frames_bytes(Store* store) noexcept nogil:
    """Disk taken by FRAMES, what is kept for open scans and snapshots not counted."""
    return (_frames_property(store, "rocksdb.live-sst-files-size")
            + _frames_property(store, "rocksdb.live-blob-file-size"))


cdef bint _is_too_much(Store* store, int64_t live_bytes) noexcept nogil:
    return _frames_bytes(store) > live_bytes + live_bytes // 2 + RECLAIM_SLACK_BYTES


cdef int reclaim_frames(Upkeep* upkeep, int64_t live_bytes, StoreError* error) noexcept nogil:
    cdef Store* store = upkeep.store
    cdef int status
    if not _is_too_much(store, live_bytes):
        return STORE_OK
    upkeep.reclaim_count += 1
    status = store_compact(store, FRAMES, NULL, 0, NULL, 0, error)
    if status != STORE_OK or not _is_too_much(store, live_bytes):
        return status
    if _frames_property(store, "rocksdb.live-blob-file-garbage-size") == 0:
        return STORE_OK         # the rest is newer than `live_bytes`, or held by an open snapshot
    if not _has_room_to_rewrite(upkeep, live_bytes):
        return STORE_OK         # it comes back when acks have made room; a full disk would be worse
    upkeep.rewrite_count += 1
    status = _set_blob_rewriting(store, True, error)
    if status == STORE_OK:
        _compact_all_levels(store)
        _set_blob_rewriting(store, False, error)
    return status


cdef void _compact_all_levels(Store* store) noexcept nogil:
    """By itself RocksDB leaves the last level alone, and there the live frames' references are."""
    cdef rocksdb_compactoptions_t* options = rocksdb_compactoptions_create()
    rocksdb_compactoptions_set_exclusive_manual_compaction(options, 0)
    rocksdb_compactoptions_set_bottommost_level_compaction(options, FORCE)
    rocksdb_compact_range_cf_opt(store.db, store.family[FRAMES], options, NULL, 0, NULL, 0)
    rocksdb_compactoptions_destroy(options)


cdef bint _has_room_to_rewrite(Upkeep* upkeep, int64_t live_bytes) noexcept nogil:
    """A rewrite needs the live bytes once more before the old files go."""
    return upkeep.disk == NULL or disk_has_room(upkeep.disk, live_bytes)


cdef int _set_blob_rewriting(Store* store, bint on, StoreError* error) noexcept nogil:
    cdef const char* name = "enable_blob_garbage_collection"
    cdef const char* value = "true" if on else "false"
    cdef char* message = NULL
    rocksdb_set_options_cf(store.db, store.family[FRAMES], 1, &name, &value, &message)
    if message == NULL:
        return STORE_OK
    rocksdb_free(message)
    if error != NULL:
        error.status = STORE_FAILED
    return STORE_FAILED


# --- the thread --------------------------------------------------------------------------

cdef uint64_t _memtable_bytes(Store* store) noexcept nogil:
    cdef uint64_t total = 0
    cdef uint64_t value
    cdef int family
    for family in range(FAMILY_COUNT):
        value = 0
        rocksdb_property_int_cf(store.db, store.family[family], "rocksdb.cur-size-all-mem-tables", &value)
        total += value
    return total


cdef int upkeep_round(Upkeep* upkeep) noexcept nogil:
    upkeep.memtable_bytes = _memtable_bytes(upkeep.store)
    manifest_copy_update(upkeep.store.directory)
    lognote_write(upkeep.store)
    _tidy_when_quiet(upkeep)
    return reclaim_frames(upkeep, <int64_t> atomic_load(<uint64_t*> &upkeep.live_frame_bytes), &upkeep.error)


cdef void _tidy_when_quiet(Upkeep* upkeep) noexcept nogil:
    """When nothing was written for a round, a long WAL is turned into (small) tables: memory and disk come
    back, and a start finds little to replay."""
    cdef uint64_t writes = count_load(&upkeep.store.counters.writes)
    cdef int family
    if writes == upkeep.writes_seen and writes != upkeep.writes_tidied:
        if store_wal_bytes(upkeep.store) > QUIET_WAL_BYTES:
            for family in range(FAMILY_COUNT):
                store_flush(upkeep.store, family, &upkeep.error)
        upkeep.writes_tidied = writes
    _give_memory_back(upkeep, writes)
    upkeep.writes_seen = writes


cdef void _give_memory_back(Upkeep* upkeep, uint64_t writes) noexcept nogil:
    """What was freed since the last time goes back to the system: the allocator keeps pages between pieces
    that live on. It holds its locks meanwhile, some milliseconds a hundred megabytes, so only after a second
    without a write, or when much was freed, and at most every TRIM_EVERY_ROUNDS; where messages flow all the
    time, once in TRIM_ANYWAY_ROUNDS, since what is kept between pieces grows for hours."""
    cdef uint64_t connections = atomic_load(&upkeep.connections_freed)
    cdef int64_t held = <int64_t> atomic_load(<uint64_t*> &upkeep.held_bytes)
    cdef int64_t freed
    upkeep.rounds += 1
    upkeep.held_bytes_most = max(upkeep.held_bytes_most, held)
    if upkeep.rounds < upkeep.trim_after:
        return
    if writes == upkeep.writes_trimmed and connections == upkeep.connections_freed_trimmed:
        return
    freed = upkeep.held_bytes_most - held
    freed += <int64_t> (connections - upkeep.connections_freed_trimmed) * CONNECTION_BYTES
    if (
        writes != upkeep.writes_seen and freed < max(held // 4, <int64_t> RELEASED_BYTES_MIN)
        and upkeep.rounds < upkeep.trim_after - TRIM_EVERY_ROUNDS + TRIM_ANYWAY_ROUNDS
    ):
        return
    malloc_trim(0)
    upkeep.trim_count += 1
    upkeep.writes_trimmed, upkeep.connections_freed_trimmed = writes, connections
    upkeep.held_bytes_most = held
    upkeep.trim_after = upkeep.rounds + TRIM_EVERY_ROUNDS


cdef void* _run(void* argument) noexcept nogil:
    cdef Upkeep* upkeep = <Upkeep*>argument
    cdef pollfd stop
    stop.fd = upkeep.stop_fd
    stop.events = POLLIN
    while poll(&stop, 1, ROUND_MS) <= 0:        # a round each second, until told to stop
        upkeep_round(upkeep)
    return NULL


cdef int upkeep_start(Upkeep* upkeep, Store* store, Disk* disk) noexcept nogil:
    memset(upkeep, 0, sizeof(Upkeep))
    upkeep.store = store
    upkeep.disk = disk
    upkeep.stop_fd = eventfd(0, EFD_CLOEXEC)
    if upkeep.stop_fd < 0:
        return STORE_FAILED
    if pthread_create(&upkeep.thread, NULL, _run, upkeep) != 0:
        c_close(upkeep.stop_fd)
        return STORE_FAILED
    upkeep.running = True
    return STORE_OK


cdef void upkeep_stop(Upkeep* upkeep) noexcept nogil:
    cdef uint64_t one = 1
    if not upkeep.running:
        return
    c_write(upkeep.stop_fd, &one, sizeof(one))
    store_compact_cancel(upkeep.store)
    pthread_join(upkeep.thread, NULL)
    c_close(upkeep.stop_fd)
    upkeep.running = False
