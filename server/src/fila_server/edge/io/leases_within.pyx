from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint32_t, uint64_t

from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport CANCEL, CONSUME_OPEN, SESSION_OPEN
from fila_server.core.protocol.protobuf cimport LEN, Fields, fields_parse, next_field, put_tag
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, put_bytes, put_varint,
)
from fila_server.edge.io.posting cimport post_surely


cdef uint64_t _lease_of(Slice message) noexcept nogil:
    cdef Fields fields
    cdef Slice text
    if not fields_parse(&fields, message.at, message.length):
        return 0
    text = fields.text[v1.MESSAGE_METADATA]
    if not fields_parse(&fields, text.at, text.length):
        return 0
    return fields.number[v1.MESSAGE_METADATA_LEASE_ID]


cdef uint32_t _collect(Buffer* ids, Slice messages, uint32_t field_max) noexcept nogil:
    """The lease ids of the messages in fields up to `field_max`, as they stand in memory."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef uint64_t lease_id
    cdef uint32_t count = 0
    c.at, c.end, c.bad = messages.at, messages.at + messages.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if kind == LEN and field <= field_max:
            lease_id = _lease_of(text)
            if lease_id:
                put_bytes(ids, &lease_id, sizeof(lease_id))
                count += 1
    return count


cdef uint32_t leases_settle(Buffer* to, const char* payload, size_t length, int32_t kind) noexcept nogil:
    cdef Buffer ids
    cdef Buffer packed
    cdef Slice messages
    cdef Fields fields
    cdef uint32_t count, i
    messages.at, messages.length = payload, <uint32_t> length
    if kind == SESSION_OPEN:
        if not fields_parse(&fields, payload, length):
            return 0
        messages = fields.text[v1.CONSUME_SESSION_RESPONSE_DELIVERY]
    buffer_init(&ids)
    buffer_init(&packed)
    # A stream's answer has one message or several; the others have several, in their only field.
    count = _collect(
        &ids, messages,
        v1.CONSUME_RESPONSE_MESSAGES if kind == CONSUME_OPEN else v1.LEASE_RESPONSE_MESSAGES)
    for i in range(count):
        put_varint(&packed, (<uint64_t*> ids.data)[count - 1 - i])
    if count:
        put_tag(to, v1.SETTLE_LEASE_IDS, LEN)
        put_varint(to, packed.length)
        put_bytes(to, packed.data, packed.length)
    buffer_free(&ids)
    buffer_free(&packed)
    return count


cdef void leases_give_back(IoThread* io, const char* payload, size_t length, int32_t kind) noexcept nogil:
    cdef Buffer settle
    buffer_init(&settle)
    if leases_settle(&settle, payload, length, kind):
        post_surely(io, CANCEL, 0, settle.data, settle.length)
    buffer_free(&settle)
