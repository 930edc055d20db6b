"""CRC-32C by the processor's instruction, for our own checks and for RocksDB's."""

from libc.stdint cimport uint32_t, uint8_t

cdef uint32_t crc32c(const uint8_t* content, size_t byte_count) noexcept nogil
