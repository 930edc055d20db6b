"""Going on behind a damaged block of a table.

RocksDB ends a scan at a block that fails its checksum, and nobody knows the first key behind
it. So keys are tried: the last good one plus 1, 2, 4, ..., as a big-endian number. Every key
inside the block meets the damage again and every key behind it does not; doubling finds one
behind it, and halving the last step finds the nearest.

Each try takes a new iterator: one that met damage reports it again wherever it is sent next
(7.8.3, with the block still in its hands).
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset, strstr

from fila_server.core.storage.data_directory cimport salvage_ask
from fila_server.core.storage.rocksdb cimport *

cdef enum:
    KEY_BYTES_MIN = 16          # shorter keys are filled up with zeros, to have room for small steps


cdef void damage_scan_begin(DamageScan* scan, Store* store, int family) noexcept nogil:
    _begin(scan, store, family)
    rocksdb_iter_seek_to_first(scan.iterator)


cdef void damage_scan_from(
        DamageScan* scan, Store* store, int family, const char* key, size_t key_bytes) noexcept nogil:
    _begin(scan, store, family)
    scan.last_bytes = key_bytes
    memcpy(scan.last, key, key_bytes)
    rocksdb_iter_seek(scan.iterator, key, key_bytes)


cdef void _begin(DamageScan* scan, Store* store, int family) noexcept nogil:
    scan.store = store
    scan.gaps = 0
    scan.last_bytes = 0
    scan.table[0] = 0
    scan.scanned.db = store.db
    scan.scanned.options = store.scan_options
    scan.scanned.family = store.family[family]
    scan.iterator = rocksdb_create_iterator_cf(store.db, store.scan_options, store.family[family])


cdef bint damage_scan_valid(DamageScan* scan) noexcept nogil:
    cdef char* message = NULL
    while scan.iterator != NULL and not rocksdb_iter_valid(scan.iterator):
        rocksdb_iter_get_error(scan.iterator, &message)
        if message == NULL:
            return False
        # Whatever keeps a scan from going on is damage here: the disk gives no better reason.
        table_named_in(message, scan.table)
        rocksdb_free(message)
        message = NULL
        scan.gaps += 1
        rocksdb_iter_destroy(scan.iterator)
        scan.iterator = scan_behind_damage(&scan.scanned, scan.last, scan.last_bytes)
    return scan.iterator != NULL


cdef void damage_scan_next(DamageScan* scan) noexcept nogil:
    cdef const char* key = rocksdb_iter_key(scan.iterator, &scan.last_bytes)
    scan.last_bytes = min(scan.last_bytes, <size_t>KEY_BYTES_MAX)
    memcpy(scan.last, key, scan.last_bytes)
    rocksdb_iter_next(scan.iterator)


cdef void damage_scan_end(DamageScan* scan) noexcept nogil:
    if scan.iterator != NULL:
        rocksdb_iter_destroy(scan.iterator)
        scan.iterator = NULL
    if scan.gaps:
        scan.store.counters.damaged_reads += scan.gaps
        salvage_ask(scan.store.directory)


cdef rocksdb_iterator_t* scan_behind_damage(
        const Scanned* scanned, const char* last, size_t last_bytes) noexcept nogil:
    cdef char key[KEY_BYTES_MAX]
    cdef char start[KEY_BYTES_MAX]
    cdef size_t key_bytes = max(last_bytes, <size_t>KEY_BYTES_MIN)
    cdef int step = 0
    cdef rocksdb_iterator_t* scan = NULL
    if last_bytes > KEY_BYTES_MAX:
        return NULL
    memset(start, 0, sizeof(start))
    memcpy(start, last, last_bytes)
    while scan == NULL:
        memcpy(key, start, key_bytes)
        if step == 8 * <int>key_bytes or not _add_power_of_two(key, key_bytes, step):
            return NULL
        scan = _try(scanned, key, key_bytes)
        step += 1
    if step == 1:
        return scan
    memcpy(key, start, key_bytes)
    _add_power_of_two(key, key_bytes, step - 2)     # the largest sum known to be inside
    return _nearest(scanned, scan, key, key_bytes, step - 3)


cdef rocksdb_iterator_t* _nearest(
        const Scanned* scanned, rocksdb_iterator_t* found, char* inside, size_t key_bytes,
        int step) noexcept nogil:
    """Raise `inside` as far as it stays in the damage; return the last scan that got out of it."""
    cdef char higher[KEY_BYTES_MAX]
    cdef rocksdb_iterator_t* scan
    while step >= 0:
        memcpy(higher, inside, key_bytes)
        _add_power_of_two(higher, key_bytes, step)
        scan = _try(scanned, higher, key_bytes)
        if scan == NULL:
            memcpy(inside, higher, key_bytes)
        else:
            rocksdb_iter_destroy(found)
            found = scan
        step -= 1
    return found


cdef rocksdb_iterator_t* _try(const Scanned* scanned, const char* key, size_t key_bytes) noexcept nogil:
    """A scan that stands on `key` or behind it, or NULL where that is damaged."""
    cdef char* message = NULL
    cdef rocksdb_iterator_t* scan = rocksdb_create_iterator_cf(scanned.db, scanned.options, scanned.family)
    rocksdb_iter_seek(scan, key, key_bytes)
    if rocksdb_iter_valid(scan):
        return scan
    rocksdb_iter_get_error(scan, &message)
    if message == NULL:
        return scan             # the end
    rocksdb_free(message)
    rocksdb_iter_destroy(scan)
    return NULL


cdef bint _add_power_of_two(char* key, size_t key_bytes, int power) noexcept nogil:
    """Add 2**power to a big-endian number. False when it does not fit."""
    cdef int64_t at = <int64_t>key_bytes - 1 - power // 8
    cdef int carry = 1 << (power % 8)
    while at >= 0 and carry:
        carry += <uint8_t>key[at]
        key[at] = <char>(carry & 255)
        carry >>= 8
        at -= 1
    return carry == 0


cdef bint table_named_in(const char* message, char* name) noexcept nogil:
    cdef const char* end = strstr(message, ".sst")
    cdef const char* begin = end
    name[0] = 0
    if end == NULL:
        return False
    while begin > message and b"0" <= (begin - 1)[0] <= b"9" and end - begin < TABLE_NAME_BYTES - 8:
        begin -= 1
    if begin == end:
        return False
    memcpy(name, begin, end - begin + 4)
    name[end - begin + 4] = 0
    return True
