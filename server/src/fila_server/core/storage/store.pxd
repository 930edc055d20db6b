"""The disk, as the core sees it: thirteen column families, atomic batches, one sync.

    scheduler thread    store_write(batch)           into memory and the OS, never waits
    commit thread       store_sync()                 the write-ahead log (WAL) to the disk
    reader thread       store_snapshot, store_iterate, store_get

A batch is applied whole or not at all; it survives `kill -9` once store_write returned,
and a power cut once a store_sync that began after it has returned. All three threads may
call at the same time: RocksDB locks inside, and nothing here adds state to that.

No function raises or needs the GIL. Each answers with a StoreStatus, and whatever is not
STORE_OK leaves a sentence in the caller's own StoreError saying what happened and what to
do. (One per thread, so that two threads that fail together don't write one buffer.)
"""

from libc.stdint cimport uint64_t

from fila_server.core.storage.families cimport Store
from fila_server.core.storage.rocksdb cimport *
from fila_server.core.storage.status cimport StoreError

# --- write (scheduler thread) ----------------------------------------------------------
cdef inline rocksdb_writebatch_t* batch_new() noexcept nogil:
    return rocksdb_writebatch_create()

cdef inline void batch_free(rocksdb_writebatch_t* batch) noexcept nogil:
    rocksdb_writebatch_destroy(batch)

cdef inline void batch_clear(rocksdb_writebatch_t* batch) noexcept nogil:
    rocksdb_writebatch_clear(batch)

cdef inline int batch_count(rocksdb_writebatch_t* batch) noexcept nogil:        # puts and deletes in it
    return rocksdb_writebatch_count(batch)

cdef inline size_t batch_bytes(rocksdb_writebatch_t* batch) noexcept nogil:
    cdef size_t size = 0
    rocksdb_writebatch_data(batch, &size)
    return size

cdef inline void batch_put(
        Store* store, rocksdb_writebatch_t* batch, int family,
        const char* key, size_t key_bytes, const char* value, size_t value_bytes) noexcept nogil:
    rocksdb_writebatch_put_cf(batch, store.family[family], key, key_bytes, value, value_bytes)

# The value is the parts one after the other: a record header and spliced payloads need no buffer of their
# own.
cdef inline void batch_put_parts(
        Store* store, rocksdb_writebatch_t* batch, int family, const char* key, size_t key_bytes,
        int part_count, const char** parts, const size_t* part_bytes) noexcept nogil:
    rocksdb_writebatch_putv_cf(
        batch, store.family[family], 1, &key, &key_bytes, part_count, <const char* const*>parts, part_bytes)

cdef inline void batch_delete(
        Store* store, rocksdb_writebatch_t* batch, int family, const char* key,
        size_t key_bytes) noexcept nogil:
    rocksdb_writebatch_delete_cf(batch, store.family[family], key, key_bytes)

# [first, end): `end` itself stays. For whole queues; one record at a time is cheaper by batch_delete.
cdef inline void batch_delete_range(
        Store* store, rocksdb_writebatch_t* batch, int family,
        const char* first, size_t first_bytes, const char* end, size_t end_bytes) noexcept nogil:
    rocksdb_writebatch_delete_range_cf(batch, store.family[family], first, first_bytes, end, end_bytes)

# The batch may be cleared and used again whatever the answer.
cdef int store_write(Store* store, rocksdb_writebatch_t* batch, StoreError* error) noexcept nogil
# Fills a block of the WAL with nothing: one damaged block then can't take both what was written before and
# what is written after. Costs 32 KiB of WAL; for the few records whose two copies must not be lost together.
cdef int store_part_log(Store* store, StoreError* error) noexcept nogil

# --- sync (commit thread) --------------------------------------------------------------
cdef int store_sync(Store* store, StoreError* error) noexcept nogil

# --- read (any thread) -----------------------------------------------------------------
# *value is a malloc'd copy (free() it; not NULL even when empty), or NULL unless STORE_OK.
cdef int store_get(
    Store* store, int family, const char* key, size_t key_bytes,
    char** value, size_t* value_bytes, StoreError* error) noexcept nogil
cdef inline const rocksdb_snapshot_t* store_snapshot(Store* store) noexcept nogil:
    return rocksdb_create_snapshot(store.db)

cdef inline void store_snapshot_release(Store* store, const rocksdb_snapshot_t* snapshot) noexcept nogil:
    rocksdb_release_snapshot(store.db, snapshot)

# The same as store_get on a snapshot, several keys at a time: the reader thread's call.
# values[i] is NULL and statuses[i] tells why where a key could not be read.
cdef int store_get_many(
    Store* store, int family, const rocksdb_snapshot_t* snapshot, int count,
    const char** keys, const size_t* key_bytes,
    char** values, size_t* value_bytes, int* statuses, StoreError* error) noexcept nogil
# A scan in key order; not positioned yet. Snapshot NULL = the present moment. Keep it short-lived:
# an open scan or snapshot keeps what is deleted meanwhile on the disk.
cdef rocksdb_iterator_t* store_iterate(
    Store* store, int family, const rocksdb_snapshot_t* snapshot) noexcept nogil
cdef inline void scan_seek_first(rocksdb_iterator_t* scan) noexcept nogil:
    rocksdb_iter_seek_to_first(scan)

cdef inline void scan_seek(rocksdb_iterator_t* scan, const char* key, size_t key_bytes) noexcept nogil:
    rocksdb_iter_seek(scan, key, key_bytes)

cdef inline bint scan_valid(rocksdb_iterator_t* scan) noexcept nogil:
    return rocksdb_iter_valid(scan) != 0

cdef inline void scan_next(rocksdb_iterator_t* scan) noexcept nogil:
    rocksdb_iter_next(scan)

# Key and value stand until the next move.
cdef inline const char* scan_key(rocksdb_iterator_t* scan, size_t* key_bytes) noexcept nogil:
    return rocksdb_iter_key(scan, key_bytes)

cdef inline const char* scan_value(rocksdb_iterator_t* scan, size_t* value_bytes) noexcept nogil:
    return rocksdb_iter_value(scan, value_bytes)

# Ask when a scan is no longer valid: the end, or STORE_DAMAGED. A block that fails its checksum ends a plain
# scan; for one that goes on behind it, as recovery has to, see past_damage.pxd.
cdef int scan_status(Store* store, rocksdb_iterator_t* scan, StoreError* error) noexcept nogil
cdef inline void scan_free(rocksdb_iterator_t* scan) noexcept nogil:
    rocksdb_iter_destroy(scan)

# --- what it holds, and giving it back -------------------------------------------------
cdef uint64_t store_memtable_bytes(Store* store) noexcept nogil
cdef uint64_t store_cache_bytes(Store* store) noexcept nogil
cdef uint64_t store_table_bytes(Store* store) noexcept nogil        # tables and blob files
cdef uint64_t store_wal_bytes(Store* store) noexcept nogil
# every file of the store, ballast not counted
cdef uint64_t store_disk_bytes(Store* store) noexcept nogil
# The last write failed for lack of space or worse. A full disk heals by itself: try a write again each second
# or so.
cdef bint store_is_stopped(Store* store) noexcept nogil
# Rewrites the range so that what was deleted leaves the disk. Blocks the caller, no other thread:
# for a background thread, after a purge or a deleted queue. NULL, 0 = from the start / to the end.
cdef int store_compact(
    Store* store, int family, const char* first, size_t first_bytes,
    const char* end, size_t end_bytes, StoreError* error) noexcept nogil
# Ends a store_compact that runs in another thread (before store_close), and refuses later ones.
cdef void store_compact_cancel(Store* store) noexcept nogil
cdef void store_compact_again(Store* store) noexcept nogil
# Writes the family's memtables to tables now and waits. For tests and for a full WAL; not for the scheduler.
cdef int store_flush(Store* store, int family, StoreError* error) noexcept nogil
