"""Reads the write-ahead log before RocksDB does, to know what RocksDB will skip."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from fila_server.core.storage.families cimport WalReport

cdef enum:
    HEADER_BYTES = 7            # of a fragment: checksum u32 | length u16 | type u8

cdef enum:                      # types of fragments
    UNWRITTEN = 0               # zeros: room set aside for the file and never used
    WHOLE = 1
    FIRST = 2
    MIDDLE = 3
    LAST = 4

# Adds to the report; what is unreadable is damage, and no failure of the scan. Logs older than `oldest_log`
# are in tables. `first` is the number of the first record that must be there, 0 when that is not known; all
# up to `synced` must be.
cdef void scan_wal(
    const char* directory, int64_t oldest_log, uint64_t first, uint64_t synced,
    WalReport* report) noexcept nogil
# The numbers of the log files, oldest first, malloc'd; NULL when there is none.
cdef int64_t* log_numbers(const char* directory, int* count) noexcept nogil
# Makes batches unreadable from their beginning whose end is damaged, and all of a file from a batch on that
# was there before: for one of the first, RocksDB refuses the log, and at the others it may abort the process.
cdef void leave_out_bad_batches(const char* directory, int64_t oldest_log, uint64_t first) noexcept nogil
# Moves to the next fragment of a file of this format and returns its length; -1 at the end, and where one is
# damaged.
cdef int64_t fragment_bytes(const uint8_t* content, int64_t byte_count, int64_t* at) noexcept nogil
# Whether each fragment of a log of the same format (the MANIFEST's) passes its checksum.
cdef bint is_whole_log(uint8_t* content, int64_t byte_count) noexcept nogil
