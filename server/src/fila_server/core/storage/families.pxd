"""The store's tables and what is known of it: families, settings, the reports of an opening, the handle."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from fila_server.core.storage.rocksdb cimport (
    rocksdb_cache_t, rocksdb_column_family_handle_t, rocksdb_options_t, rocksdb_readoptions_t, rocksdb_t,
    rocksdb_writebatch_t, rocksdb_writeoptions_t,
)

cdef enum:                  # families: the numbers index Store.family; on disk the names count
    META = 0                # one record each: format, reservations; the reservations once more in SETTLED
    FRAMES = 1              # queue | first offset             payload bytes of one frame
    INDEX = 2               # queue | first offset             per message: routing, size, times
    SETTLED = 3             # queue | channel | first offset   what the channel is
                            # done with; QUEUES and META once more
    LEASES = 4              # queue | channel | frame sent     offset, lease id, expiry
    STATES = 5              # queue | channel | ...            attempts, delays, positions
    QUEUES = 6              # queue                            its configuration
    KEYS = 7                # queue | fairness key             weight, pause, cap
    CONFIG = 8              # runtime configuration
    BUCKETS = 9             # throttle key                     rate, burst
    DEDUP = 10              # queue | dedup key                the first message's id
    SINKS = 11              # sink | ...                       sinks, what is staged, what is published
    STAGED = 12             # sink | serial                    staged messages
    ACCESS = 13             # keys, their principals and grants; what they are made of: fila_server/access
    AUDIT = 14              # sequence number             what an admin did, the newest AUDIT_MAX
    KEPT = 15               # what operators' calls keep: versions of queues' settings, long operations
    FAMILY_COUNT = 16

cdef inline bint only_returns(int family) noexcept nogil:
    """What is lost of these families loses no message: it only brings some back that were done, leased,
    delayed or tried before."""
    return family == SETTLED or family == LEASES or family == STATES


cdef enum:
    STORE_FORMAT = 2        # of the whole directory; raise it when an older server must not open it

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
    int64_t logs_missing            # files that are gone with something that was answered and is in no table
    int64_t logs_unsynced           # files that are gone with nothing that is known to have been answered
    int64_t notes_missing           # 1 = what the log must hold is not known, see log_note.pxd
    int64_t noted_ms                # wall clock: what was answered later, the note does not know; 0 = no note
    int64_t first_lost_sequence     # of RocksDB's sequence numbers, 0 when nothing was lost
    char first_damaged_file[64]

# when a damaged store was copied; records may be lost, deleted ones may be back
cdef struct SalvageReport:
    int64_t records                 # copied
    int64_t gaps                    # unreadable blocks stepped over
    int64_t tables_lost             # tables that could not be opened at all
    int64_t acks_lost               # of both, those of families that only bring messages back

cdef struct StoreCounters:          # written by the thread that calls; read for metrics, may be a little old
    uint64_t writes
    uint64_t bytes_written
    uint64_t syncs
    uint64_t stalled                # writes refused because tables or compaction lag
    uint64_t full                   # writes refused for lack of space
    uint64_t failed
    uint64_t damaged_reads

cdef enum:
    NOTED_LOGS_MAX = 64

cdef struct LogBegin:
    int64_t log                     # the file's number
    uint64_t first                  # its first record's, 0 = none yet

cdef struct Store "fila_store":
    rocksdb_t* db
    rocksdb_column_family_handle_t* family[FAMILY_COUNT]
    rocksdb_writeoptions_t* write_options       # no sync, no slow-down
    rocksdb_readoptions_t* read_options
    rocksdb_readoptions_t* scan_options         # long scans: read ahead, leave the cache alone
    rocksdb_options_t* options[FAMILY_COUNT]
    rocksdb_cache_t* cache
    int lock_fd
    bint created                                # by this open
    int64_t healed_bytes                        # of RocksDB's table of contents, from its
                                                # mirror; nothing is lost by it
    SalvageReport salvage                       # of this open; all zero unless the store had to be copied
    bint rebuilt                                # the table of contents was lost; payloads
                                                # in blob files are, too
    bint format_rewritten                       # the format file could not be read; the record in META could
    uint64_t synced                             # RocksDB's number of a record that is on the disk for certain
    uint64_t promised                           # the same, as the last note of the run before says
    uint64_t noted_synced                       # the last note of this run, see log_note.pxd
    LogBegin noted[NOTED_LOGS_MAX]
    int noted_count
    int noted_place                             # of the next one
    rocksdb_writebatch_t* parting               # see store_part_log
    bint stopped                                # the last write failed, other than by a stall
    bint muted                                  # a replay's: what is written goes nowhere
    uint32_t calls                              # writes since the pass began, and, of a muted store, the
    int32_t reported[4]                         # status of each that was not STORE_OK
    WalReport wal                               # of this open
    StoreCounters counters
    char directory[4096]
