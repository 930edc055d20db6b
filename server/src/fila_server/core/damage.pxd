"""Going on behind a damaged block of a table."""

from fila_server.core.rocksdb cimport rocksdb_column_family_handle_t, rocksdb_iterator_t, rocksdb_readoptions_t, rocksdb_t


cdef struct Scanned:                            # what a new iterator is made of
    rocksdb_t* db
    rocksdb_readoptions_t* options
    rocksdb_column_family_handle_t* family


# `last` is the last key that was read, or the one sought. Returns a new scan on the first key behind the block,
# or at the end of the family (then not valid, without an error); NULL when nothing readable follows.
cdef rocksdb_iterator_t* scan_behind_damage(
    const Scanned* scanned, const char* last, size_t last_bytes) noexcept nogil
