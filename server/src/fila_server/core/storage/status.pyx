"""How the store answers; see status.pxd. RocksDB's C API has texts and no codes, so texts are read here."""

from libc.stdio cimport snprintf
from libc.string cimport memcpy, strstr

from fila_server.core.storage.rocksdb cimport rocksdb_free

cdef extern from *:
    """
    static int fila_claim(int *p) {
        int none = 0;
        return __atomic_compare_exchange_n(p, &none, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    #define fila_reported_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
    #define fila_reported_load(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
    """
    bint fila_claim(int* p) nogil
    void fila_reported_store(int* p, int v) nogil
    int fila_reported_load(int* p) nogil

cdef enum:
    REPORTED = 2            # StoreFailure.state; 1 while the sentence is being copied


cdef int store_failed(StoreError* error, int status, const char* text, const char* detail) noexcept nogil:
    if error != NULL:
        error.status = status
        snprintf(error.text, STORE_ERROR_BYTES, text, detail)
    return status


cdef int store_classify(StoreError* error, char* message) noexcept nogil:
    cdef int status
    if strstr(message, "Result incomplete") == message:
        status = store_failed(error, STORE_STALLED,
                              "the disk is slower than what comes in; send again later (%s)", message)
    elif strstr(message, "No space left") != NULL or strstr(message, "Space limit") != NULL:
        status = store_failed(error, STORE_FULL,
                              "the disk is full; make room and writes go on by themselves (%s)", message)
    elif strstr(message, "Corruption") == message:
        status = store_failed(error, STORE_DAMAGED,
                              "a stored block fails its checksum; what is in it is lost (%s)", message)
    else:
        status = store_failed(error, STORE_FAILED,
                              "the storage engine failed; check the disk, then restart the server (%s)",
                              message)
    rocksdb_free(message)
    return status


cdef int store_classify_read(StoreError* error, char* message) noexcept nogil:
    cdef int status
    if strstr(message, "Corruption") == message or _may_pass(message):
        return store_classify(error, message)
    status = store_failed(
        error, STORE_DAMAGED,
        "a stored block cannot be read, or its file is gone; what is in it is lost (%s)", message)
    rocksdb_free(message)
    return status


cdef bint _may_pass(const char* message) noexcept nogil:
    """Whether it is the process that is in trouble just now, and not the disk."""
    return (
        strstr(message, "Result incomplete") == message or strstr(message, "Too many open files") != NULL
        or strstr(message, "Cannot allocate memory") != NULL
        or strstr(message, "Resource temporarily") != NULL
        or strstr(message, "Interrupted") != NULL or strstr(message, "Shutdown in progress") == message
    )


cdef void failure_report(StoreFailure* failure, const StoreError* error) noexcept nogil:
    if fila_claim(&failure.state):
        memcpy(&failure.error, error, sizeof(StoreError))
        fila_reported_store(&failure.state, REPORTED)


cdef bint failure_is_reported(StoreFailure* failure) noexcept nogil:
    return fila_reported_load(&failure.state) == REPORTED
