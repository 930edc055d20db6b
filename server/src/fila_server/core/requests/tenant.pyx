"""A frame's bytes are copied once, behind what the client sent, and its messages then lie there."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free

from fila_server.core.protocol cimport v1
from fila_server.core.protocol.protobuf cimport (
    LEN, MAP_KEY, MAP_VALUE, Fields, Item, fields_parse, next_field,
)
from fila_server.core.requests.parse cimport spare_adopt
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, buffer_free, buffer_init, must_malloc, put_bytes, put_slice, put_u8, put_varint,
    varint_size,
)

cdef enum:
    TENANT_HEADER_LENGTH = 11
    TENANT_LETTERS_LENGTH = 10

# The header that binds a stored message to its tenant (see lifecycle/routing.pyx). A repeated header's last
# value counts, and this one is put behind all that the client sent.
cdef const char* TENANT_HEADER = "fila-tenant"
cdef const char* TENANT_LETTERS = "filatenant"


cdef bint _says_tenant(Slice entry) noexcept nogil:
    """Whether a header could pass for the tenant's: many programs compare names in one case, take `_` for `-`
    as CGI does, or trim blanks. So its ASCII letters and digits alone count, until one differs."""
    cdef Fields fields
    cdef uint32_t i, met = 0
    cdef uint8_t letter
    if not fields_parse(&fields, entry.at, entry.length):
        return False
    for i in range(fields.text[MAP_KEY].length):
        letter = <uint8_t> fields.text[MAP_KEY].at[i]
        if 0x41 <= letter <= 0x5A:
            letter |= 0x20
        if not (0x61 <= letter <= 0x7A or 0x30 <= letter <= 0x39):
            continue
        if met == TENANT_LETTERS_LENGTH or letter != <uint8_t> TENANT_LETTERS[met]:
            return False
        met += 1
    return met == TENANT_LETTERS_LENGTH


cdef void _put_body(Buffer* to, const char* body, Item* item) noexcept nogil:
    """The message's headers and payload as they are, but for headers that would pass for its tenant's."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef uint64_t number
    cdef Slice text
    cdef const char* began
    c.at, c.end, c.bad = body + item.at, body + item.at + item.length, False
    began = c.at
    while next_field(&c, &field, &kind, &text, &number):
        if field == v1.ENQUEUE_MESSAGE_HEADERS and kind == LEN and _says_tenant(text):
            item.header_count -= 1
        else:
            put_bytes(to, began, c.at - began)
        began = c.at


cdef void tenant_dedup_key(Buffer* to, Slice tenant, Slice key) noexcept nogil:
    put_u8(to, 0xFF)
    put_slice(to, tenant)
    put_u8(to, 0xFF)
    put_slice(to, key)


cdef void tenant_bind(Command* command, Slice tenant) noexcept nogil:
    cdef Buffer spare
    cdef Item* item
    cdef uint32_t i
    cdef uint32_t entry = <uint32_t> (
        2 + TENANT_HEADER_LENGTH + 1 + varint_size(tenant.length) + tenant.length)
    cdef size_t began
    cdef uint32_t base = command.length
    cdef uint32_t* dedup_at = <uint32_t*> must_malloc(command.count * sizeof(uint32_t))
    command.sees_a_part = True
    buffer_init(&spare)
    for i in range(command.count):
        item = &command.items[i]
        dedup_at[i] = 0
        if item.refused:
            continue
        if item.options != NULL and item.options.dedup_key.length:
            dedup_at[i] = base + <uint32_t> spare.length
            tenant_dedup_key(&spare, tenant, item.options.dedup_key)
        # Its body may lie in the frame, or behind it already: both are below `base`.
        began = spare.length
        _put_body(&spare, command.bytes, item)
        item.at = base + <uint32_t> began
        put_u8(&spare, v1.ENQUEUE_MESSAGE_HEADERS << 3 | LEN)
        put_varint(&spare, entry)
        put_u8(&spare, MAP_KEY << 3 | LEN)
        put_u8(&spare, TENANT_HEADER_LENGTH)
        put_bytes(&spare, TENANT_HEADER, TENANT_HEADER_LENGTH)
        put_u8(&spare, MAP_VALUE << 3 | LEN)
        put_varint(&spare, tenant.length)
        put_slice(&spare, tenant)
        item.length = base + <uint32_t> spare.length - item.at
        item.header_count += 1
    if spare.length:
        spare_adopt(command, &spare)
    for i in range(command.count):
        if dedup_at[i]:
            item = &command.items[i]
            item.options.dedup_key.at = command.bytes + dedup_at[i]
            item.options.dedup_key.length += tenant.length + 2
    free(dedup_at)
    buffer_free(&spare)
