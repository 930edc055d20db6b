"""Scans that go on behind a damaged block of a table: for recovery, and for copying a damaged store.

    damage_scan_begin(&scan, store, INDEX)
    while damage_scan_valid(&scan):
        key = scan_key(scan.iterator, &key_bytes)       # as with a plain scan; until the next move
        ...
        damage_scan_next(&scan)
    lost_ranges += scan.gaps
    damage_scan_end(&scan)
"""

from libc.stdint cimport int64_t

from fila_server.core.storage.families cimport Store
from fila_server.core.storage.rocksdb cimport (
    rocksdb_column_family_handle_t, rocksdb_iterator_t, rocksdb_readoptions_t, rocksdb_t,
)

cdef enum:
    KEY_BYTES_MAX = 1024        # twice the longest key of any family
    TABLE_NAME_BYTES = 64

cdef struct Scanned:                            # what a new iterator is made of
    rocksdb_t* db
    rocksdb_readoptions_t* options
    rocksdb_column_family_handle_t* family

cdef struct DamageScan:
    rocksdb_iterator_t* iterator                # NULL when nothing readable follows
    int64_t gaps                                # damaged places stepped over so far
    Scanned scanned
    Store* store
    size_t last_bytes                           # the last key that was read
    char last[KEY_BYTES_MAX]
    char table[TABLE_NAME_BYTES]                # whose block ended the scan last, or empty


cdef void damage_scan_begin(DamageScan* scan, Store* store, int family) noexcept nogil      # on the first key
# on the first key that is not below this one
cdef void damage_scan_from(
    DamageScan* scan, Store* store, int family, const char* key, size_t key_bytes) noexcept nogil
cdef bint damage_scan_valid(DamageScan* scan) noexcept nogil        # False only at the end of the family
cdef void damage_scan_next(DamageScan* scan) noexcept nogil
# Leaves the note that the next start copies the store, if there was a gap.
cdef void damage_scan_end(DamageScan* scan) noexcept nogil

# `last` is the last key that was read, or the one sought. Returns a new scan on the first key behind the
# block, or at the end of the family (then not valid, without an error); NULL when nothing readable follows.
cdef rocksdb_iterator_t* scan_behind_damage(
    const Scanned* scanned, const char* last, size_t last_bytes) noexcept nogil

# RocksDB's texts name the file they are about: ".../000035.sst". False, and an empty name, without one.
cdef bint table_named_in(const char* message, char* name) noexcept nogil
