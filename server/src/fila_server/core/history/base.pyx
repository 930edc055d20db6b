"""A record is an input of its own: family, then key and value. Recovery has not begun, so no pass is under
way whose bounds would count."""

from libc.stdint cimport int64_t

from fila_server.core.history.inputs cimport INPUT_BASE, INPUT_BASE_ENDS, INPUT_RECORD, input_put
from fila_server.core.storage.families cimport FAMILY_COUNT, FRAMES, STAGED
from fila_server.core.storage.rocksdb cimport rocksdb_iterator_t
from fila_server.core.storage.status cimport STORE_OK
from fila_server.core.storage.store cimport (
    scan_free, scan_key, scan_next, scan_seek_first, scan_status, scan_valid, scan_value, store_iterate,
)
from fila_server.core.structures.buffer cimport Buffer, put_bytes, put_varint
from fila_server.core.threads.blocks cimport History


cdef int _family_put(Core* core, int family, StoreError* error) noexcept nogil:
    cdef History* history = core.history
    cdef rocksdb_iterator_t* scan = store_iterate(core.store, family, NULL)
    cdef Buffer* record = &history.scratch
    cdef const char* at
    cdef size_t length = 0
    cdef int status
    scan_seek_first(scan)
    while scan_valid(scan):
        record.length = 0
        at = scan_key(scan, &length)
        put_varint(record, length)
        put_bytes(record, at, length)
        at = scan_value(scan, &length)
        put_bytes(record, at, length)
        input_put(core, INPUT_RECORD, 0, family, <int64_t> record.length, 0, record.data, record.length)
        scan_next(scan)
    status = scan_status(core.store, scan, error)
    scan_free(scan)
    return status


cdef int base_put(Core* core, const char* head, size_t length, StoreError* error) noexcept nogil:
    cdef int family
    cdef int status = STORE_OK
    input_put(core, INPUT_BASE, 0, 0, 0, 0, head, length)
    for family in range(FAMILY_COUNT):
        if family != FRAMES and family != STAGED and status == STORE_OK:
            status = _family_put(core, family, error)
    if status == STORE_OK:
        input_put(core, INPUT_BASE_ENDS, 0, 0, 0, 0, NULL, 0)
    return status
