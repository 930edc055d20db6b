"""Reading and writing `fila.v1`; see protobuf.pxd.

The wire format is Protocol Buffers' (protobuf.dev/programming-guides/encoding): a message
may repeat a scalar field, then the last one counts, and two pieces of one sub-message merge,
which is why a dead letter's metadata can stand in its stored bytes and the rest of the
metadata be written behind them at delivery.
"""

from libc.string cimport memcmp, memcpy, memset, strlen

from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport ACK, NACK, PURGE_QUEUE
from fila_server.core.protocol.refusals cimport (
    REFUSED_DEDUP_KEY, REFUSED_DELAY, REFUSED_HEADER_COUNT, REFUSED_HEADER_KEY, REFUSED_HEADER_TEXT,
    REFUSED_HEADER_VALUE, REFUSED_MALFORMED, REFUSED_PAYLOAD, REFUSED_QUEUE_NAME, REFUSED_TTL,
    REFUSED_TTL_PAST, TAKEN,
)
from fila_server.core.structures.buffer cimport (
    buffer_reserve, must_malloc, put_bytes, put_slice, put_u8, put_varint, take_slice, take_varint,
    varint_size,
)

cdef enum:
    NAME_BYTES_MAX = 255            # 251 and `.dlq`; the edge holds new names to 251


# --- reading -----------------------------------------------------------------------------

cdef bint next_field(
        Cursor* c, uint32_t* field, uint32_t* kind, Slice* text, uint64_t* number) noexcept nogil:
    """Step over one field. False at the end, and with `c.bad` set where the bytes are no message."""
    cdef uint64_t tag
    if c.at >= c.end or c.bad:
        return False
    tag = take_varint(c)
    field[0] = <uint32_t> (tag >> 3)
    kind[0] = <uint32_t> (tag & 7)
    text.at = c.at
    text.length = 0
    number[0] = 0
    if tag > <uint64_t> 0xFFFFFFFF or field[0] == 0:
        c.bad = True
    elif kind[0] == VARINT:
        number[0] = take_varint(c)
    elif kind[0] == LEN:
        text[0] = take_slice(c, take_varint(c))
    elif kind[0] == FIXED64:
        text[0] = take_slice(c, 8)
        if not c.bad:
            memcpy(number, text.at, 8)
    elif kind[0] == FIXED32:
        text[0] = take_slice(c, 4)
        if not c.bad:
            memcpy(number, text.at, 4)
    else:                           # groups are not proto3
        c.bad = True
    return not c.bad


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


cdef inline int _hex(char ch) noexcept nogil:
    if ch >= c'0' and ch <= c'9':
        return ch - c'0'
    if ch >= c'a' and ch <= c'f':
        return ch - c'a' + 10
    if ch >= c'A' and ch <= c'F':
        return ch - c'A' + 10
    return -1


cdef bint uuid_parse(Slice text, uint64_t* high, uint64_t* low) noexcept nogil:
    cdef uint32_t i
    cdef int digit, digits = 0
    cdef uint64_t parts[2]
    parts[0] = parts[1] = 0
    if text.length != 36:
        return False
    for i in range(36):
        if i == 8 or i == 13 or i == 18 or i == 23:
            if text.at[i] != c'-':
                return False
            continue
        digit = _hex(text.at[i])
        if digit < 0:
            return False
        parts[digits // 16] = (parts[digits // 16] << 4) | <uint64_t> digit
        digits += 1
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
    cdef Fields entry
    while next_field(c, &field, &kind, &text, &number):
        if field == v1.ENQUEUE_MESSAGE_HEADERS and kind == LEN:
            fields_parse(&entry, text.at, text.length)
            name[0] = entry.text[MAP_KEY]
            value[0] = entry.text[MAP_VALUE]
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


cdef uint8_t _header_check(Slice entry, const Limits* limits) noexcept nogil:
    """Whether a header may be stored. Of a repeated name or value the
    last counts, but clients read them all. A header without a name is none that anybody could ask for;
    without limits it passes, since what was staged is held against no rule again."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef bint named = False
    c.at, c.end, c.bad = entry.at, entry.at + entry.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field > MAP_VALUE:
            continue
        if field == MAP_KEY:
            named = text.length > 0
        if kind != LEN:
            return REFUSED_MALFORMED
        if field == MAP_KEY and text.length > limits.header_key_bytes_max:
            return REFUSED_HEADER_KEY
        if field == MAP_VALUE and text.length > limits.header_value_bytes_max:
            return REFUSED_HEADER_VALUE
        if not utf8_valid(text.at, text.length):
            return REFUSED_HEADER_TEXT
    if c.bad:
        return REFUSED_MALFORMED
    return TAKEN if named or limits.header_key_bytes_max == <uint32_t> 0xFFFFFFFF else REFUSED_HEADER_TEXT


cdef uint8_t _options_parse(Item* item, Slice text, const Limits* limits) noexcept nogil:
    cdef Fields fields
    cdef bint bad = False
    cdef Options* o
    if not fields_parse(&fields, text.at, text.length):
        return REFUSED_MALFORMED
    if fields.seen == 0:
        return TAKEN
    if item.options == NULL:
        item.options = <Options*> must_malloc(sizeof(Options))
        memset(item.options, 0, sizeof(Options))
        item.options.delay_ms = item.options.deliver_at_ms = item.options.ttl_ms = -1
    o = item.options
    if fields.seen & (1 << v1.ENQUEUE_OPTIONS_DELAY_MS):
        if fields.number[v1.ENQUEUE_OPTIONS_DELAY_MS] > <uint64_t> 1 << 52:
            return REFUSED_DELAY
        o.delay_ms = <int64_t> fields.number[v1.ENQUEUE_OPTIONS_DELAY_MS]
    if fields.seen & (1 << v1.ENQUEUE_OPTIONS_DELIVER_AT):
        o.deliver_at_ms = timestamp_ms(fields.text[v1.ENQUEUE_OPTIONS_DELIVER_AT], &bad)
        if bad or o.deliver_at_ms < 0 or o.delay_ms > 0:
            return REFUSED_DELAY
    if fields.seen & (1 << v1.ENQUEUE_OPTIONS_TTL_MS):
        if fields.number[v1.ENQUEUE_OPTIONS_TTL_MS] == 0:
            return REFUSED_TTL_PAST
        if fields.number[v1.ENQUEUE_OPTIONS_TTL_MS] > <uint64_t> 1 << 52:
            return REFUSED_TTL
        o.ttl_ms = <int64_t> fields.number[v1.ENQUEUE_OPTIONS_TTL_MS]
    o.dedup_key = fields.text[v1.ENQUEUE_OPTIONS_DEDUP_KEY]
    if o.dedup_key.length > limits.dedup_key_bytes_max or not utf8_valid(o.dedup_key.at, o.dedup_key.length):
        return REFUSED_DEDUP_KEY
    return TAKEN


cdef void item_parse(
        Item* item, const char* frame, Slice message, Buffer* spare, uint32_t spare_base,
        const Limits* limits) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef const char* begin = NULL       # of the run of headers and payload
    cdef const char* end = NULL
    cdef const char* before
    cdef bint scattered = False
    cdef uint32_t payloads = 0
    cdef uint8_t problem, refused = TAKEN
    memset(item, 0, sizeof(Item))
    c.at, c.end, c.bad = message.at, message.at + message.length, False
    while True:
        before = c.at
        if not next_field(&c, &field, &kind, &text, &number):
            break
        if (field == v1.ENQUEUE_MESSAGE_HEADERS or field == v1.ENQUEUE_MESSAGE_PAYLOAD) and kind == LEN:
            if begin == NULL:
                begin = before
            elif before != end:
                scattered = True
            end = c.at
            if field == v1.ENQUEUE_MESSAGE_PAYLOAD:
                payloads += 1
                item.payload_length = text.length
                if text.length > limits.payload_bytes_max and refused == TAKEN:
                    refused = REFUSED_PAYLOAD
            else:
                item.header_count += item.header_count < 0xFFFF
                problem = _header_check(text, limits)
                if problem and refused == TAKEN:
                    refused = problem
        elif field == v1.ENQUEUE_MESSAGE_QUEUE and kind == LEN:
            item.queue = text
        elif field == v1.ENQUEUE_MESSAGE_OPTIONS and kind == LEN:
            problem = _options_parse(item, text, limits)
            if problem and refused == TAKEN:
                refused = problem
        elif field <= v1.ENQUEUE_MESSAGE_OPTIONS:
            c.bad = True                # a known field of a wrong type
    if c.bad:
        refused = REFUSED_MALFORMED
    elif item.header_count > limits.headers_max and refused == TAKEN:
        refused = REFUSED_HEADER_COUNT
    if item.queue.length and refused == TAKEN and not name_valid(item.queue):
        refused = REFUSED_QUEUE_NAME
    item.refused = refused
    if refused:
        return
    if begin == NULL:
        item.at = <uint32_t> (message.at - frame)
        item.length = 0
    elif not scattered and payloads <= 1:
        item.at = <uint32_t> (begin - frame)
        item.length = <uint32_t> (end - begin)
    else:
        _gather(item, message, spare, spare_base)


cdef void _gather(Item* item, Slice message, Buffer* spare, uint32_t spare_base) noexcept nogil:
    """Rewrite a body whose fields were scattered or repeated as one run: headers, then the last payload."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef Slice payload
    cdef uint64_t number
    cdef size_t from_ = spare.length
    payload.at, payload.length = NULL, 0
    c.at, c.end, c.bad = message.at, message.at + message.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == v1.ENQUEUE_MESSAGE_HEADERS:
            put_text_field(spare, v1.ENQUEUE_MESSAGE_HEADERS, text)
        elif field == v1.ENQUEUE_MESSAGE_PAYLOAD:
            payload = text
    if payload.at != NULL:
        put_text_field(spare, v1.ENQUEUE_MESSAGE_PAYLOAD, payload)
    item.at = spare_base + <uint32_t> from_
    item.length = <uint32_t> (spare.length - from_)


# --- writing -----------------------------------------------------------------------------

cdef void put_tag(Buffer* b, uint32_t field, uint32_t kind) noexcept nogil:
    put_varint(b, (field << 3) | kind)


cdef void put_text_field(Buffer* b, uint32_t field, Slice text) noexcept nogil:
    buffer_reserve(b, 12 + text.length)
    put_varint(b, (field << 3) | LEN)
    put_varint(b, text.length)
    put_slice(b, text)


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


cdef void put_uuid(Buffer* b, uint64_t high, uint64_t low) noexcept nogil:
    """RFC 9562's text form, 36 bytes."""
    cdef const char* digits = b"0123456789abcdef"
    cdef char* to
    cdef int i
    cdef uint8_t byte
    cdef size_t n = 0
    buffer_reserve(b, 36)
    to = b.data + b.length
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            to[n] = c'-'
            n += 1
        byte = <uint8_t> ((high >> (56 - 8 * i)) if i < 8 else (low >> (56 - 8 * (i - 8))))
        to[n] = digits[byte >> 4]
        to[n + 1] = digits[byte & 15]
        n += 2
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
