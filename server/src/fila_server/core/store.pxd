"""The disk, as the core sees it: eleven column families, atomic batches, one sync.

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

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from fila_server.core.rocksdb cimport *
from fila_server.core.storestatus cimport (
    STORE_DAMAGED,
    STORE_ERROR_BYTES,
    STORE_FAILED,
    STORE_FULL,
    STORE_GONE,
    STORE_IN_USE,
    STORE_NOT_FOUND,
    STORE_OK,
    STORE_STALLED,
    STORE_TOO_NEW,
    STORE_UNWRITABLE,
    StoreError,
    StoreFailure,
    StoreStatus,
    failure_is_told,
    failure_tell,
)


cdef enum:                  # families: the numbers index Store.family; on disk the names count
    META = 0                # one record each: format, reservations; the reservations once more in SETTLED
    FRAMES = 1              # queue | first offset             payload bytes of one frame
    INDEX = 2               # queue | first offset             per message: routing, size, times
    SETTLED = 3             # queue | channel | first offset   what the channel is done with; QUEUES and META once more
    LEASES = 4              # queue | channel | frame sent     offset, lease id, expiry
    STATES = 5              # queue | channel | ...            attempts, delays, positions
    QUEUES = 6              # queue                            its configuration
    KEYS = 7                # queue | fairness key             weight, pause, cap
    CONFIG = 8              # runtime configuration
    BUCKETS = 9             # throttle key                     rate, burst
    DEDUP = 10              # queue | dedup key                the first message's id
    FAMILY_COUNT = 11

cdef enum:
    STORE_FORMAT = 1        # of the whole directory; raise it when an older server must not open it

cdef struct StoreOptions:           # store_default_options fills it; why these numbers: store.pyx
    int64_t memtable_bytes          # of the FRAMES family: what dies before it is full never reaches a table
    int32_t memtable_count          # at most this many; then writes are refused (STORE_STALLED)
    int64_t wal_bytes_max           # bounds recovery: the oldest family is flushed beyond it
    int64_t block_cache_bytes
    int64_t blob_min_bytes          # values from this size on go to blob files; 0 = off
    int64_t ballast_bytes           # file given up when the disk is nearly full; 0 = none
    int32_t background_threads      # flushes and compactions together
    bint stop_on_damage             # refuse to open what lost something, instead of reporting it

cdef struct WalReport:              # what opening found in the WAL; all zero after a clean stop
    int64_t files
    int64_t bytes                   # bytes of WAL read at open
    int64_t batches                 # batches recovered
    int64_t damaged_regions         # places where bytes fail their checksum and whole batches follow
    int64_t batches_lost            # places where batches are missing between recovered ones
    int64_t records_lost            # puts and deletes in those batches
    int64_t tail_bytes_dropped      # unfinished ends of files: normal after a power cut
    int64_t records_unsynced        # missing between two files without damage: normal after a power cut
    int64_t first_sequence          # of the oldest batch, 0 when there is none
    int64_t logs_missing            # files that were deleted although something of them was in no table
    int64_t first_lost_sequence     # of RocksDB's sequence numbers, 0 when nothing was lost
    char first_damaged_file[64]

cdef struct SalvageReport:          # when a damaged store was copied; records may be lost, deleted ones may be back
    int64_t records                 # copied
    int64_t gaps                    # unreadable blocks stepped over
    int64_t tables_lost             # tables that could not be opened at all

cdef struct StoreCounters:          # written by the thread that calls; read for metrics, may be a little old
    uint64_t writes
    uint64_t bytes_written
    uint64_t syncs
    uint64_t stalled                # writes refused because tables or compaction lag
    uint64_t full                   # writes refused for lack of space
    uint64_t failed
    uint64_t damaged_reads

cdef struct Store:
    rocksdb_t* db
    rocksdb_column_family_handle_t* family[FAMILY_COUNT]
    rocksdb_writeoptions_t* write_options       # no sync, no slow-down
    rocksdb_readoptions_t* read_options
    rocksdb_readoptions_t* scan_options         # long scans: read ahead, leave the cache alone
    rocksdb_options_t* options[FAMILY_COUNT]
    rocksdb_cache_t* cache
    int lock_fd
    bint created                                # by this open
    int64_t healed_bytes                        # of RocksDB's table of contents, from its mirror; nothing is lost by it
    SalvageReport salvage                       # of this open; all zero unless the store had to be copied
    bint rebuilt                                # the table of contents was lost; payloads in blob files are, too
    bint format_rewritten                       # the format file could not be read; the record in META could
    uint64_t synced                             # RocksDB's number of a record that is on the disk for certain
    uint64_t promised                           # the same, as the last note of the run before says
    int64_t noted_log                           # the oldest log at the last note, see lognote.pxd
    int64_t noted_manifest_bytes                # and the MANIFEST's size
    rocksdb_writebatch_t* parting               # see store_part_log
    bint stopped                                # the last write failed, other than by a stall
    WalReport wal                               # of this open
    StoreCounters counters
    char directory[4096]


# --- open and close --------------------------------------------------------------------
cdef void store_default_options(StoreOptions* options) noexcept nogil
# Takes the directory for this process (lock file), creates what is missing, checks the
# format, scans the WAL, opens. On any failure everything is released again.
cdef int store_open(Store* store, const char* directory, const StoreOptions* options, StoreError* error) noexcept nogil
# Flushes nothing by itself: call store_sync first for what must survive a power cut.
cdef void store_close(Store* store) noexcept nogil

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

# The value is the parts one after the other: a record header and spliced payloads need no buffer of their own.
cdef inline void batch_put_parts(
        Store* store, rocksdb_writebatch_t* batch, int family, const char* key, size_t key_bytes,
        int part_count, const char** parts, const size_t* part_bytes) noexcept nogil:
    rocksdb_writebatch_putv_cf(
        batch, store.family[family], 1, &key, &key_bytes, part_count, <const char* const*>parts, part_bytes)

cdef inline void batch_delete(
        Store* store, rocksdb_writebatch_t* batch, int family, const char* key, size_t key_bytes) noexcept nogil:
    rocksdb_writebatch_delete_cf(batch, store.family[family], key, key_bytes)

# [first, end): `end` itself stays. For whole queues; one record at a time is cheaper by batch_delete.
cdef inline void batch_delete_range(
        Store* store, rocksdb_writebatch_t* batch, int family,
        const char* first, size_t first_bytes, const char* end, size_t end_bytes) noexcept nogil:
    rocksdb_writebatch_delete_range_cf(batch, store.family[family], first, first_bytes, end, end_bytes)

# The batch may be cleared and used again whatever the answer.
cdef int store_write(Store* store, rocksdb_writebatch_t* batch, StoreError* error) noexcept nogil
# Fills a block of the WAL with nothing: one damaged block then can't take both what was written before and what is
# written after. Costs 32 KiB of WAL; for the few records whose two copies must not be lost together.
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
# scan; for one that goes on behind it, as recovery has to, see damage.pxd.
cdef int scan_status(Store* store, rocksdb_iterator_t* scan, StoreError* error) noexcept nogil
cdef inline void scan_free(rocksdb_iterator_t* scan) noexcept nogil:
    rocksdb_iter_destroy(scan)

# --- what it holds, and giving it back -------------------------------------------------
cdef uint64_t store_memtable_bytes(Store* store) noexcept nogil
cdef uint64_t store_cache_bytes(Store* store) noexcept nogil
cdef uint64_t store_table_bytes(Store* store) noexcept nogil        # tables and blob files
cdef uint64_t store_wal_bytes(Store* store) noexcept nogil
cdef uint64_t store_disk_bytes(Store* store) noexcept nogil         # every file of the store, ballast not counted
# The last write failed for lack of space or worse. A full disk heals by itself: try a write again each second or so.
cdef bint store_is_stopped(Store* store) noexcept nogil
# Rewrites the range so that what was deleted leaves the disk. Blocks the caller, no other thread:
# for a background thread, after a purge or a deleted queue. NULL, 0 = from the start / to the end.
cdef int store_compact(
    Store* store, int family, const char* first, size_t first_bytes,
    const char* end, size_t end_bytes, StoreError* error) noexcept nogil
# Ends a store_compact that runs in another thread (before store_close), and refuses later ones.
cdef void store_compact_cancel(Store* store) noexcept nogil
# Writes the family's memtables to tables now and waits. For tests and for a full WAL; not for the scheduler.
cdef int store_flush(Store* store, int family, StoreError* error) noexcept nogil
