"""See leases_within.pxd."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint32_t, uint64_t

from fila_server.core.protocol.commands cimport CANCEL, CONSUME_OPEN, SESSION_OPEN
from fila_server.core.protocol.protobuf cimport Fields, fields_parse, next_field, put_tag
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, put_bytes, put_varint,
)
from fila_server.edges.native.posting cimport post_surely

cdef enum:
    METADATA_FIELD = 4              # of Message
    LEASE_ID_FIELD = 7              # of MessageMetadata
    DELIVERY_FIELD = 2              # of ConsumeSessionResponse
    LEASE_IDS_FIELD = 2             # of Settle
    LEN = 2                         # protobuf's wire type


cdef uint64_t _lease_of(Slice message) noexcept nogil:
    cdef Fields fields
    cdef Fields metadata
    if not fields_parse(&fields, message.at, message.length):
        return 0
    if not fields_parse(&metadata, fields.text[METADATA_FIELD].at, fields.text[METADATA_FIELD].length):
        return 0
    return metadata.number[LEASE_ID_FIELD]


cdef uint32_t _collect(Buffer* ids, Slice messages, uint32_t field_max) noexcept nogil:
    """The lease ids of the messages in fields 1 to `field_max`, as they stand in memory."""
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
        messages = fields.text[DELIVERY_FIELD]
    buffer_init(&ids)
    buffer_init(&packed)
    # ConsumeResponse has one message at 1 or several at 2.
    count = _collect(&ids, messages, 2 if kind == CONSUME_OPEN else 1)
    for i in range(count):
        put_varint(&packed, (<uint64_t*> ids.data)[count - 1 - i])
    if count:
        put_tag(to, LEASE_IDS_FIELD, LEN)
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
