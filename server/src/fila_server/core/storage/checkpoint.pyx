"""RocksDB makes it; while it does, it deletes no file, and writes go on."""

from libc.stdint cimport UINT64_MAX

from fila_server.core.storage.rocksdb cimport (
    rocksdb_checkpoint_create, rocksdb_checkpoint_object_create, rocksdb_checkpoint_object_destroy,
    rocksdb_checkpoint_t,
)
from fila_server.core.storage.status cimport STORE_FULL, STORE_OK, store_classify, store_failed
from fila_server.core.structures.atomics cimport flag_load


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
