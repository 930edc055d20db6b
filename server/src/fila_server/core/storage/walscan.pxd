"""Reads the write-ahead log before RocksDB does, to know what RocksDB will skip."""

from libc.stdint cimport int64_t, uint8_t

from fila_server.core.storage.families cimport WalReport

# Fills the report; what is unreadable is damage, and no failure of the scan.
cdef void scan_wal(const char* directory, WalReport* report) noexcept nogil
# Makes batches unreadable from their beginning whose end is damaged: for one, RocksDB refuses the log.
cdef void leave_out_cut_batches(const char* directory) noexcept nogil
# Whether each fragment of a log of the same format (the MANIFEST's) passes its checksum.
cdef bint is_whole_log(uint8_t* content, int64_t byte_count) noexcept nogil
