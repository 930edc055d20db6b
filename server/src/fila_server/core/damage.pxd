"""Going on behind a damaged block of a table."""

from fila_server.core.rocksdb cimport rocksdb_iterator_t


# `last` is the last key that was read, or the one sought. STORE_OK with the scan on the first key behind the
# block, or at the end; STORE_DAMAGED when nothing readable follows.
cdef int seek_behind_damage(rocksdb_iterator_t* scan, const char* last, size_t last_bytes) noexcept nogil
