"""Reads the write-ahead log before RocksDB does, to know what RocksDB will skip."""

from fila_server.core.store cimport WalReport


# Fills the report; what is unreadable is damage, and no failure of the scan.
cdef void scan_wal(const char* directory, WalReport* report) noexcept nogil
