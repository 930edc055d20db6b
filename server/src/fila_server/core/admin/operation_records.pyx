"""A read goes down from its key or from behind its prefix and ends with the page, in records and in bytes.
A change puts into the batch of the pass; a prefix is dropped by its range."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp

from fila_server.core.lifecycle.answers cimport answer, answer_status
from fila_server.core.protocol cimport seam
from fila_server.core.protocol.commands cimport INTERNAL, OK, OPERATION_RECORDS_CHANGE
from fila_server.core.protocol.protobuf cimport Fields, fields_parse, next_field, put_nested, put_text_field
from fila_server.core.storage.families cimport KEPT
from fila_server.core.storage.rocksdb cimport (
    rocksdb_iter_prev, rocksdb_iter_seek_for_prev, rocksdb_iterator_t,
)
from fila_server.core.storage.status cimport STORE_OK, StoreError
from fila_server.core.storage.store cimport (
    batch_delete, batch_delete_range, batch_put, scan_free, scan_key, scan_status, scan_valid, scan_value,
    store_iterate,
)
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, put_slice, put_u8,
)

cdef enum:
    PAGE_MAX = 1000
    PAGE_BYTES_MAX = 8388608


cdef inline Slice _text(const char* at, size_t length) noexcept nogil:
    cdef Slice s
    s.at, s.length = at, <uint32_t> length
    return s


cdef void _behind(Buffer* end, Slice prefix) noexcept nogil:
    """A key behind all that begin so: keys are texts, and no text has a byte 0xFF."""
    end.length = 0
    put_slice(end, prefix)
    put_u8(end, 0xFF)


cdef void operation_records_put(Core* core, Command* command) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef Fields record
    cdef Slice name
    cdef Slice value
    cdef Buffer end
    buffer_init(&end)
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == seam.OPERATION_RECORDS_CHANGE_PREFIXES and text.length:
            _behind(&end, text)
            batch_delete_range(
                core.store, core.settles, KEPT, text.at, text.length, end.data, end.length)
        elif field == seam.OPERATION_RECORDS_CHANGE_RECORDS and fields_parse(&record, text.at, text.length):
            name, value = record.text[seam.ACCESS_RECORD_KEY], record.text[seam.ACCESS_RECORD_VALUE]
            if name.length == 0:
                continue
            if value.length:
                batch_put(core.store, core.settles, KEPT, name.at, name.length, value.at, value.length)
            else:
                batch_delete(core.store, core.settles, KEPT, name.at, name.length)
    buffer_free(&end)


cdef void _read(Core* core, Command* command) noexcept nogil:
    cdef rocksdb_iterator_t* scan = store_iterate(core.store, KEPT, NULL)
    cdef StoreError* error = core.error
    cdef Fields fields
    cdef Slice prefix
    cdef Buffer from_
    cdef Buffer payload
    cdef Buffer record
    cdef const char* at
    cdef size_t length = 0
    cdef uint64_t left
    fields_parse(&fields, command.bytes, command.length)
    prefix = fields.text[seam.OPERATION_RECORDS_PAGE_PREFIX]
    left = min(fields.number[seam.OPERATION_RECORDS_PAGE_MOST] or PAGE_MAX, <uint64_t> PAGE_MAX)
    buffer_init(&from_)
    buffer_init(&payload)
    buffer_init(&record)
    if fields.text[seam.OPERATION_RECORDS_PAGE_BELOW].length:
        put_slice(&from_, fields.text[seam.OPERATION_RECORDS_PAGE_BELOW])
    else:
        _behind(&from_, prefix)
    rocksdb_iter_seek_for_prev(scan, from_.data, from_.length)
    while scan_valid(scan) and left and payload.length < PAGE_BYTES_MAX:
        at = scan_key(scan, &length)
        if length < prefix.length or memcmp(at, prefix.at, prefix.length) != 0:
            break
        if length != from_.length or memcmp(at, from_.data, length) != 0:
            record.length = 0
            put_text_field(&record, seam.ACCESS_RECORD_KEY, _text(at, length))
            at = scan_value(scan, &length)
            put_text_field(&record, seam.ACCESS_RECORD_VALUE, _text(at, length))
            put_nested(&payload, seam.OPERATION_RECORDS_RECORDS, &record)
            left -= 1
        rocksdb_iter_prev(scan)
    buffer_free(&from_)
    buffer_free(&record)
    if scan_status(core.store, scan, core.error) != STORE_OK:
        scan_free(scan)
        buffer_free(&payload)
        error.text[255] = 0
        answer_status(core, command.token, INTERNAL, error.text, b"STORE_DAMAGED")
        return
    scan_free(scan)
    answer(core, command.token, OK, &payload, False)


cdef void operation_records_command(Core* core, Command* command) noexcept nogil:
    cdef Buffer nothing
    if command.kind == OPERATION_RECORDS_CHANGE:
        operation_records_put(core, command)
        buffer_init(&nothing)
        answer(core, command.token, OK, &nothing, True)
    else:
        _read(core, command)
