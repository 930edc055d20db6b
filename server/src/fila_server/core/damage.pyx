"""Going on behind a damaged block of a table.

RocksDB ends a scan at a block that fails its checksum, and nobody knows the first key behind
it. So keys are tried: the last good one plus 1, 2, 4, ..., as a big-endian number. Every key
inside the block meets the damage again and every key behind it does not; doubling finds one
behind it, and halving the last step finds the nearest.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from fila_server.core.rocksdb cimport *
from fila_server.core.storestatus cimport STORE_DAMAGED, STORE_OK, store_classify

cdef enum:
    KEY_BYTES_MAX = 1024        # twice the longest key of any family


cdef int seek_behind_damage(rocksdb_iterator_t* scan, const char* last, size_t last_bytes) noexcept nogil:
    cdef char key[KEY_BYTES_MAX]
    cdef int step = 0
    cdef int status = STORE_DAMAGED
    if last_bytes > KEY_BYTES_MAX:
        return STORE_DAMAGED
    while status == STORE_DAMAGED and step < 8 * <int>last_bytes:
        memcpy(key, last, last_bytes)
        if not _add_power_of_two(key, last_bytes, step):
            break
        rocksdb_iter_seek(scan, key, last_bytes)
        status = STORE_OK if rocksdb_iter_valid(scan) else _quiet_status(scan)
        step += 1
    if status == STORE_OK and step > 1:
        memcpy(key, last, last_bytes)
        _add_power_of_two(key, last_bytes, step - 2)        # the largest sum known to be inside
        _seek_nearest(scan, key, last_bytes, step - 3)
        status = STORE_OK if rocksdb_iter_valid(scan) else _quiet_status(scan)
    return status


cdef void _seek_nearest(rocksdb_iterator_t* scan, char* inside, size_t key_bytes, int step) noexcept nogil:
    """Raise `inside` as far as it stays in the damage, then seek to the key after it."""
    cdef char saved[KEY_BYTES_MAX]
    while step >= 0:
        memcpy(saved, inside, key_bytes)
        _add_power_of_two(inside, key_bytes, step)
        rocksdb_iter_seek(scan, inside, key_bytes)
        if rocksdb_iter_valid(scan) or _quiet_status(scan) == STORE_OK:
            memcpy(inside, saved, key_bytes)
        step -= 1
    _add_power_of_two(inside, key_bytes, 0)
    rocksdb_iter_seek(scan, inside, key_bytes)


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


cdef int _quiet_status(rocksdb_iterator_t* scan) noexcept nogil:
    cdef char* message = NULL
    rocksdb_iter_get_error(scan, &message)
    return STORE_OK if message == NULL else store_classify(NULL, message)
