"""A change is a batch of the pass, answered once it is durable; a read goes over the whole family, and the
audit is read from its newest record down."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free

from fila_server.core.lifecycle.answers cimport answer, answer_audited, answer_status
from fila_server.core.protocol cimport seam
from fila_server.core.protocol.commands cimport ACCESS_CHANGE, ACCESS_READ, INTERNAL, OK
from fila_server.core.protocol.protobuf cimport (
    Fields, fields_parse, next_field, put_nested, put_number_field, put_text_field,
)
from fila_server.core.storage.families cimport ACCESS, AUDIT, META
from fila_server.core.storage.rocksdb cimport rocksdb_iter_prev, rocksdb_iter_seek_to_last, rocksdb_iterator_t
from fila_server.core.storage.status cimport STORE_NOT_FOUND, STORE_OK, StoreError
from fila_server.core.storage.store cimport (
    batch_delete, batch_delete_range, batch_put, scan_free, scan_key, scan_next, scan_seek_first, scan_status,
    scan_valid, scan_value, store_get, store_iterate,
)
from fila_server.core.structures.buffer cimport Buffer, Cursor, Slice, buffer_free, buffer_init, read_u64be

cdef enum:
    AUDIT_PAGE_MAX = 1000
    HEAD_BYTES = 9                  # of an audit record: version, wall clock

cdef const char* MARKER = "access"      # in META
cdef const char* OWN_MARKER = "!"       # in ACCESS
cdef const char* END = "\xff"            # behind every key of ACCESS


cdef inline Slice _text(const char* at, size_t length) noexcept nogil:
    cdef Slice s
    s.at, s.length = at, <uint32_t> length
    return s


cdef void _change(Core* core, Command* command) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef Fields record
    cdef Slice name
    cdef Slice value
    cdef Buffer nothing
    fields_parse(&record, command.bytes, command.length)
    if record.number[seam.ACCESS_CHANGE_ANEW]:        # before what is put, wherever the frame says it
        batch_delete_range(core.store, core.settles, ACCESS, b"", 0, END, 1)
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == seam.ACCESS_CHANGE_RECORDS and fields_parse(&record, text.at, text.length):
            name, value = record.text[seam.ACCESS_RECORD_KEY], record.text[seam.ACCESS_RECORD_VALUE]
            if value.length:
                batch_put(
                    core.store, core.settles, ACCESS, name.at, name.length, value.at, value.length)
            else:
                batch_delete(core.store, core.settles, ACCESS, name.at, name.length)
        elif field == seam.ACCESS_CHANGE_MARKER:
            batch_put(core.store, core.settles, ACCESS, OWN_MARKER, 1, text.at, text.length)
            batch_put(core.store, core.settles, META, MARKER, 6, text.at, text.length)
        elif field == seam.ACCESS_CHANGE_AUDIT:
            core.auditing, core.auditing_token = text, command.token
    buffer_init(&nothing)
    answer_audited(core)
    answer(core, command.token, OK, &nothing, True)


cdef void _failed(Core* core, Command* command) noexcept nogil:
    cdef StoreError* error = core.error
    error.text[255] = 0
    answer_status(core, command.token, INTERNAL, error.text, b"STORE_DAMAGED")


cdef void _read(Core* core, Command* command) noexcept nogil:
    cdef rocksdb_iterator_t* scan = store_iterate(core.store, ACCESS, NULL)
    cdef Buffer buffer
    cdef Buffer record
    cdef const char* at
    cdef size_t length = 0
    cdef char* marker = NULL
    cdef int status
    buffer_init(&buffer)
    buffer_init(&record)
    scan_seek_first(scan)
    while scan_valid(scan):
        record.length = 0
        at = scan_key(scan, &length)
        put_text_field(&record, seam.ACCESS_RECORD_KEY, _text(at, length))
        at = scan_value(scan, &length)
        put_text_field(&record, seam.ACCESS_RECORD_VALUE, _text(at, length))
        put_nested(&buffer, seam.ACCESS_CHANGE_RECORDS, &record)
        scan_next(scan)
    status = scan_status(core.store, scan, core.error)
    scan_free(scan)
    buffer_free(&record)
    if status == STORE_OK:
        status = store_get(core.store, META, MARKER, 6, &marker, &length, core.error)
        if status == STORE_OK:
            put_text_field(&buffer, seam.ACCESS_CHANGE_MARKER, _text(marker, length))
        elif status == STORE_NOT_FOUND:
            status = STORE_OK
        free(marker)
    if status != STORE_OK:
        buffer_free(&buffer)
        _failed(core, command)
        return
    answer(core, command.token, OK, &buffer, False)


cdef void _audit_read(Core* core, Command* command) noexcept nogil:
    cdef rocksdb_iterator_t* scan = store_iterate(core.store, AUDIT, NULL)
    cdef Fields fields
    cdef Buffer buffer
    cdef Buffer record
    cdef const char* at
    cdef size_t length = 0
    cdef uint64_t number
    cdef uint64_t left
    fields_parse(&fields, command.bytes, command.length)
    left = min(fields.number[seam.AUDIT_PAGE_MOST] or AUDIT_PAGE_MAX, <uint64_t> AUDIT_PAGE_MAX)
    buffer_init(&buffer)
    buffer_init(&record)
    rocksdb_iter_seek_to_last(scan)
    while scan_valid(scan) and left:
        number = read_u64be(scan_key(scan, &length))
        if fields.number[seam.AUDIT_PAGE_BELOW] == 0 or number < fields.number[seam.AUDIT_PAGE_BELOW]:
            at = scan_value(scan, &length)
            record.length = 0
            put_number_field(&record, seam.AUDIT_RECORD_NUMBER, number)
            if length > HEAD_BYTES:
                put_number_field(&record, seam.AUDIT_RECORD_AT_MS, read_u64be(at + 1))
                put_text_field(&record, seam.AUDIT_RECORD_WHAT, _text(at + HEAD_BYTES, length - HEAD_BYTES))
            put_nested(&buffer, seam.AUDIT_RECORDS_RECORDS, &record)
            left -= 1
        rocksdb_iter_prev(scan)
    scan_free(scan)
    buffer_free(&record)
    answer(core, command.token, OK, &buffer, False)


cdef void access_command(Core* core, Command* command) noexcept nogil:
    if command.kind == ACCESS_CHANGE:
        _change(core, command)
    elif command.kind == ACCESS_READ:
        _read(core, command)
    else:
        _audit_read(core, command)


cdef void audit_recover(Core* core) noexcept nogil:
    cdef rocksdb_iterator_t* scan = store_iterate(core.store, AUDIT, NULL)
    cdef size_t length = 0
    rocksdb_iter_seek_to_last(scan)
    core.audit_next = 1
    if scan_valid(scan):
        core.audit_next = read_u64be(scan_key(scan, &length)) + 1
    scan_free(scan)
