"""Reading and writing `fila.v1`; see protobuf.pxd.

The wire format is Protocol Buffers' (protobuf.dev/programming-guides/encoding): a message
may repeat a scalar field, then the last one counts, and two pieces of one sub-message merge,
which is why a dead letter's metadata can stand in its stored bytes and the rest of the
metadata be written behind them at delivery.
"""

from libc.string cimport memcmp, memcpy, memset, strlen

from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport ACK, NACK, PURGE_QUEUE
from fila_server.core.structures.buffer cimport (
    buffer_reserve, put_bytes, put_slice, put_u8, put_varint, varint_size,
)

cdef enum:
    NAME_BYTES_MAX = 255            # 251 and `.dlq`; the edge holds new names to 251


# --- reading -----------------------------------------------------------------------------

cdef bint fields_parse(Fields* fields, const char* bytes, size_t length) noexcept nogil:
    """Fill `fields` from a request; False when the bytes are no message."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    memset(fields, 0, sizeof(Fields))
    c.at, c.end, c.bad = bytes, bytes + length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field < 16:
            fields.text[field] = text
            fields.number[field] = number
            fields.seen |= <uint32_t> 1 << field
    return not c.bad


cdef int channel_field(int32_t kind) noexcept nogil:
    if kind == ACK:
        return v1.ACK_REQUEST_CHANNEL
    if kind == NACK:
        return v1.NACK_REQUEST_CHANNEL
    if kind == PURGE_QUEUE:
        return v1.PURGE_QUEUE_REQUEST_CHANNEL
    return v1.LEASE_REQUEST_CHANNEL     # as in all others


cdef bint utf8_valid(const char* at, size_t length) noexcept nogil:
    """RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF."""
    cdef const uint8_t* p = <const uint8_t*> at
    cdef const uint8_t* end = p + length
    cdef uint64_t eight
    while p < end:
        if end - p >= 8:
            memcpy(&eight, p, 8)
            if eight & <uint64_t> 0x8080808080808080 == 0:
                p += 8
                continue
        if p[0] < 0x80:
            p += 1
        elif p[0] < 0xC2:
            return False
        elif p[0] < 0xE0:
            if end - p < 2 or p[1] & 0xC0 != 0x80:
                return False
            p += 2
        elif p[0] < 0xF0:
            if end - p < 3 or p[1] & 0xC0 != 0x80 or p[2] & 0xC0 != 0x80:
                return False
            if (p[0] == 0xE0 and p[1] < 0xA0) or (p[0] == 0xED and p[1] > 0x9F):
                return False
            p += 3
        elif p[0] < 0xF5:
            if end - p < 4 or p[1] & 0xC0 != 0x80 or p[2] & 0xC0 != 0x80 or p[3] & 0xC0 != 0x80:
                return False
            if (p[0] == 0xF0 and p[1] < 0x90) or (p[0] == 0xF4 and p[1] > 0x8F):
                return False
            p += 4
        else:
            return False
    return True


cdef bint name_valid(Slice name) noexcept nogil:
    """1..255 bytes of [A-Za-z0-9._-], not starting with a dot."""
    cdef uint32_t i
    cdef uint8_t ch
    if name.length == 0 or name.length > NAME_BYTES_MAX or name.at[0] == c'.':
        return False
    for i in range(name.length):
        ch = <uint8_t> name.at[i]
        if not (
            (ch >= c'a' and ch <= c'z') or (ch >= c'A' and ch <= c'Z') or (ch >= c'0' and ch <= c'9')
            or ch == c'.' or ch == c'_' or ch == c'-'
        ):
            return False
    return True


cdef uint8_t NIBBLES[256]           # what a hexadecimal digit stands for, in either case; 0xFF: it is none


cdef void _fill_nibbles() noexcept:
    cdef int i
    memset(NIBBLES, 0xFF, sizeof(NIBBLES))
    for i in range(16):
        NIBBLES[<uint8_t> b"0123456789abcdef"[i]] = <uint8_t> i
        NIBBLES[<uint8_t> b"0123456789ABCDEF"[i]] = <uint8_t> i


_fill_nibbles()


cdef inline uint64_t _digits(const char* at, int count, uint8_t* seen) noexcept nogil:
    """`seen` gets a bit above the low four where one of them is no digit."""
    cdef uint64_t value = 0
    cdef uint8_t digit
    cdef int i
    for i in range(count):
        digit = NIBBLES[<uint8_t> at[i]]
        seen[0] |= digit
        value = (value << 4) | digit
    return value


cdef bint uuid_parse(Slice text, uint64_t* high, uint64_t* low) noexcept nogil:
    cdef const char* at = text.at
    cdef uint64_t parts[2]
    cdef uint8_t seen = 0
    if text.length != 36 or at[8] != c'-' or at[13] != c'-' or at[18] != c'-' or at[23] != c'-':
        return False
    parts[0] = (
        (_digits(at, 8, &seen) << 32) | (_digits(at + 9, 4, &seen) << 16) | _digits(at + 14, 4, &seen)
    )
    parts[1] = (_digits(at + 19, 4, &seen) << 48) | _digits(at + 24, 12, &seen)
    if seen > 15:
        return False
    high[0], low[0] = parts[0], parts[1]
    return True


cdef int64_t timestamp_ms(Slice text, bint* bad) noexcept nogil:
    """A google.protobuf.Timestamp in ms since the epoch; `bad` outside years 1 to 9999."""
    cdef Fields fields
    cdef int64_t seconds
    cdef uint64_t nanos
    if not fields_parse(&fields, text.at, text.length):
        bad[0] = True
        return 0
    seconds = <int64_t> fields.number[v1.TIMESTAMP_SECONDS]
    nanos = fields.number[v1.TIMESTAMP_NANOS]
    if seconds < -<int64_t> 62135596800 or seconds > <int64_t> 253402300799 or nanos > 999999999:
        bad[0] = True
        return 0
    return seconds * 1000 + <int64_t> (nanos // 1000000)


cdef bint next_header(Cursor* c, Slice* name, Slice* value) noexcept nogil:
    """The next header of a stored body; False at the end."""
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef Cursor entry
    while next_field(c, &field, &kind, &text, &number):
        if field == v1.ENQUEUE_MESSAGE_HEADERS and kind == LEN:
            entry.at, entry.end, entry.bad = text.at, text.at + text.length, False
            name.length = value.length = 0
            while next_field(&entry, &field, &kind, &text, &number):
                if field == MAP_KEY:
                    name[0] = text
                elif field == MAP_VALUE:
                    value[0] = text
            return True
    return False


cdef bint header_find(const char* body, uint32_t length, Slice name, Slice* value) noexcept nogil:
    """Find a header in a body that item_parse accepted. A repeated one: the last, as in a map."""
    cdef Cursor c
    cdef Slice found
    cdef Slice here
    cdef bint any = False
    c.at, c.end, c.bad = body, body + length, False
    while next_header(&c, &found, &here):
        if found.length == name.length and memcmp(found.at, name.at, name.length) == 0:
            value[0] = here
            any = True
    return any


# --- writing -----------------------------------------------------------------------------

cdef void put_tag(Buffer* b, uint32_t field, uint32_t kind) noexcept nogil:
    put_varint(b, (field << 3) | kind)


cdef void put_text_field(Buffer* b, uint32_t field, Slice text) noexcept nogil:
    buffer_reserve(b, 12 + text.length)
    put_varint(b, (field << 3) | LEN)
    put_varint(b, text.length)
    put_slice(b, text)


cdef void put_priority_field(Buffer* b, uint32_t field, uint32_t priority) noexcept nogil:
    if priority != PRIORITY_USUAL:
        put_tag(b, field, VARINT)
        put_varint(b, priority)


cdef void put_number_field(Buffer* b, uint32_t field, uint64_t number) noexcept nogil:
    """A scalar; zero is the default and is not written."""
    if number:
        put_varint(b, (field << 3) | VARINT)
        put_varint(b, number)


cdef void put_double_field(Buffer* b, uint32_t field, double number) noexcept nogil:
    if number != 0:
        put_varint(b, (field << 3) | FIXED64)
        put_bytes(b, &number, 8)        # little-endian, as the wire; checked at import


cdef void put_timestamp_field(Buffer* b, uint32_t field, int64_t ms) noexcept nogil:
    cdef uint64_t seconds
    cdef uint64_t nanos
    cdef size_t size
    if ms <= 0:
        return
    seconds = <uint64_t> (ms // 1000)
    nanos = <uint64_t> (ms % 1000) * 1000000
    size = 1 + varint_size(seconds) + (1 + varint_size(nanos) if nanos else 0)
    buffer_reserve(b, 24)
    put_varint(b, (field << 3) | LEN)
    put_varint(b, size)
    put_number_field(b, v1.TIMESTAMP_SECONDS, seconds)
    put_number_field(b, v1.TIMESTAMP_NANOS, nanos)


cdef inline void _write_digits(char* to, uint64_t value, int count) noexcept nogil:
    cdef const char* digits = b"0123456789abcdef"
    cdef int i
    for i in range(count):
        to[i] = digits[(value >> (4 * (count - 1 - i))) & 15]


cdef void put_uuid(Buffer* b, uint64_t high, uint64_t low) noexcept nogil:
    """RFC 9562's text form, 36 bytes."""
    cdef char* to
    buffer_reserve(b, 36)
    to = b.data + b.length
    to[8] = to[13] = to[18] = to[23] = c'-'
    _write_digits(to, high >> 32, 8)
    _write_digits(to + 9, high >> 16, 4)
    _write_digits(to + 14, high, 4)
    _write_digits(to + 19, low >> 48, 4)
    _write_digits(to + 24, low, 12)
    b.length += 36


cdef void put_message(Buffer* b, uint32_t field, const View* view, Buffer* tail) noexcept nogil:
    """A Message as field `field`: id, the stored bytes as they are, then what the broker knows."""
    cdef uint32_t i
    cdef size_t metadata_at, size
    # What comes behind the body is built first, in `tail`, since its size is needed up front.
    tail.length = 0
    put_text_field(tail, v1.MESSAGE_METADATA_FAIRNESS_KEY, view.fairness_key)
    put_number_field(tail, v1.MESSAGE_METADATA_WEIGHT, view.weight)
    for i in range(view.throttle_count):
        put_text_field(tail, v1.MESSAGE_METADATA_THROTTLE_KEYS, view.throttle[i])
    put_number_field(tail, v1.MESSAGE_METADATA_ATTEMPT_COUNT, view.attempts)
    put_text_field(tail, v1.MESSAGE_METADATA_QUEUE_ID, view.queue)
    put_number_field(tail, v1.MESSAGE_METADATA_OFFSET, view.offset)
    put_number_field(tail, v1.MESSAGE_METADATA_LEASE_ID, view.lease_id)
    put_double_field(tail, v1.MESSAGE_METADATA_COST, view.cost / 1000.0)
    put_text_field(tail, v1.MESSAGE_METADATA_CHANNEL, view.channel)
    put_number_field(tail, v1.MESSAGE_METADATA_REDELIVERED, view.redelivered)
    put_number_field(tail, v1.MESSAGE_METADATA_CAME_BACK, view.came_back)
    put_priority_field(tail, v1.MESSAGE_METADATA_PRIORITY, view.priority)
    metadata_at = tail.length
    put_timestamp_field(tail, v1.MESSAGE_TIMESTAMPS_ENQUEUED_AT, view.enqueued_ms)
    put_timestamp_field(tail, v1.MESSAGE_TIMESTAMPS_LEASED_AT, view.leased_ms)
    put_timestamp_field(tail, v1.MESSAGE_TIMESTAMPS_LEASE_EXPIRES_AT, view.expires_ms)
    put_timestamp_field(tail, v1.MESSAGE_TIMESTAMPS_APPENDED_AT, view.appended_ms)
    put_timestamp_field(tail, v1.MESSAGE_TIMESTAMPS_DUE_AT, view.due_ms)
    size = (
        38 + view.body_length
        + 1 + varint_size(metadata_at) + metadata_at
        + 1 + varint_size(tail.length - metadata_at) + (tail.length - metadata_at)
    )
    buffer_reserve(b, size + 16)
    put_varint(b, (field << 3) | LEN)
    put_varint(b, size)
    put_u8(b, v1.MESSAGE_ID << 3 | LEN)
    put_u8(b, 36)
    put_uuid(b, view.id_high, view.id_low)
    put_bytes(b, view.body, view.body_length)
    put_u8(b, v1.MESSAGE_METADATA << 3 | LEN)
    put_varint(b, metadata_at)
    put_bytes(b, tail.data, metadata_at)
    put_u8(b, v1.MESSAGE_TIMESTAMPS << 3 | LEN)
    put_varint(b, tail.length - metadata_at)
    put_bytes(b, tail.data + metadata_at, tail.length - metadata_at)


cdef void put_status(Buffer* b, int32_t code, const char* message, const char* reason) noexcept nogil:
    """An ItemStatus."""
    cdef Slice s
    put_number_field(b, v1.ITEM_STATUS_CODE, <uint64_t> code)
    s.at, s.length = message, <uint32_t> strlen(message)
    if s.length:
        put_text_field(b, v1.ITEM_STATUS_MESSAGE, s)
    s.at, s.length = reason, <uint32_t> strlen(reason)
    if s.length:
        put_text_field(b, v1.ITEM_STATUS_REASON, s)


cdef void put_status_field(
        Buffer* b, uint32_t field, int32_t code, const char* message, const char* reason) noexcept nogil:
    cdef size_t m = strlen(message)
    cdef size_t r = strlen(reason)
    cdef size_t size = (
        (1 + varint_size(<uint64_t> code) if code else 0)
        + (1 + varint_size(m) + m if m else 0) + (1 + varint_size(r) + r if r else 0)
    )
    put_tag(b, field, LEN)
    put_varint(b, size)
    put_status(b, code, message, reason)


cdef void put_nested(Buffer* b, uint32_t field, const Buffer* inner) noexcept nogil:
    put_tag(b, field, LEN)
    put_varint(b, inner.length)
    put_bytes(b, inner.data, inner.length)
