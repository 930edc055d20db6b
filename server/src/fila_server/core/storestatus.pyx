"""How the store answers; see storestatus.pxd. RocksDB's C API has texts and no codes, so texts are read here."""

from libc.stdio cimport snprintf
from libc.string cimport strstr

from fila_server.core.rocksdb cimport rocksdb_free


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
                              "the storage engine failed; check the disk, then restart the server (%s)", message)
    rocksdb_free(message)
    return status
