"""One thread that sleeps a tenth of a second between looks; what it finds is one word that a pass reads."""

from libc.stdint cimport uint64_t
from libc.stdio cimport snprintf

from fila_server.core.storage.data_directory cimport (
    directory_changed_ns, directory_is_gone, directory_newest_log,
)
from fila_server.core.storage.disk cimport disk_check, disk_restore_ballast
from fila_server.core.storage.posix cimport c_close, c_write
from fila_server.core.storage.status cimport (
    STORE_ERROR_BYTES, STORE_FAILED, STORE_GONE, STORE_OK, StoreError, failure_report,
)
from fila_server.core.structures.atomics cimport atomic_store

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

cdef enum:
    LOOK_MS = 100
    ROUNDS_PER_BALLAST = 10     # taking the ballast back is tried once a second


cdef void watch_begin(
        Watch* watch, Store* store, StoreFailure* failure, uint64_t* level,
        uint64_t* free_bytes) noexcept nogil:
    cdef int64_t oldest
    watch.store = store
    watch.failure = failure
    watch.level, watch.free_bytes = level, free_bytes
    watch.newest_log = directory_newest_log(store.directory, &oldest)
    _look_at_disk(watch)


cdef void _look_at_disk(Watch* watch) noexcept nogil:
    atomic_store(watch.level, <uint64_t> disk_check(&watch.disk))
    atomic_store(watch.free_bytes, <uint64_t> watch.disk.free_bytes)


cdef void watch_look(Watch* watch) noexcept nogil:
    watch.steps += 1
    if watch.steps % ROUNDS_PER_BALLAST == 0:
        disk_restore_ballast(&watch.disk)
    _look_at_disk(watch)
    _look_for_files(watch)


cdef bint _has_changed(Watch* watch) noexcept nogil:
    """Whether files may have come or gone since the last listing: nobody lists a directory ten times a second
    for nothing."""
    cdef int64_t changed_ns = directory_changed_ns(watch.store.directory)
    if changed_ns >= 0 and changed_ns == watch.changed_ns:
        if watch.is_listed:
            return False
        watch.is_listed = True
    else:
        watch.is_listed = False
    watch.changed_ns = changed_ns
    return True


cdef void _look_for_files(Watch* watch) noexcept nogil:
    cdef StoreError error
    cdef const char* gone = directory_is_gone(watch.disk.directory, watch.store.lock_fd)
    cdef int64_t newest, oldest
    if gone == NULL and _has_changed(watch):
        newest = directory_newest_log(watch.store.directory, &oldest)
        if newest < 0:
            watch.is_listed = False     # the listing failed, as without free
            return                      # descriptors: no answer is not "gone"
        if newest < watch.newest_log:
            gone = "the write-ahead log in rocksdb/"
        watch.newest_log = max(newest, watch.newest_log)
    if gone == NULL:
        return
    error.status = STORE_GONE
    snprintf(error.text, STORE_ERROR_BYTES,
             "%s was removed from the data directory %.200s while the server ran, and what was answered "
             "since may be "
             "lost. Put the directory back, or restore a copy, then start again", gone, watch.disk.directory)
    failure_report(watch.failure, &error)


cdef void* _run(void* argument) noexcept nogil:
    cdef Watch* watch = <Watch*> argument
    cdef pollfd stop
    stop.fd = watch.stop_fd
    stop.events = POLLIN
    while poll(&stop, 1, LOOK_MS) <= 0:
        watch_look(watch)
    return NULL


cdef int watch_start(Watch* watch) noexcept nogil:
    watch.stop_fd = eventfd(0, EFD_CLOEXEC)
    if watch.stop_fd < 0:
        return STORE_FAILED
    if pthread_create(&watch.thread, NULL, _run, watch) != 0:
        c_close(watch.stop_fd)
        return STORE_FAILED
    watch.running = True
    return STORE_OK


cdef void watch_stop(Watch* watch) noexcept nogil:
    cdef uint64_t one = 1
    if not watch.running:
        return
    c_write(watch.stop_fd, &one, sizeof(one))
    pthread_join(watch.thread, NULL)
    c_close(watch.stop_fd)
    watch.running = False
