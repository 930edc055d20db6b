# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Answers in, replies out: the half of the Redis edge that runs per message. Other half: codec.pyx.

    EnqueueBatchResponse ──► :1 :1 :1              one reply a push, each with its own error
    LeaseResponse ─────────► *2 [id, ticket, body] [id, ticket, body]
    SettleBatchResponse ───► :n

The core's answers are read in place; unknown fields are skipped, so a newer core may add some.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, buffer_reserve, put_bytes, put_u8, take_slice,
    take_varint,
)

from fila_server.edges.redis.replies import status_reply


def push_replies(bytes response, int32_t count):
    """EnqueueBatchResponse of merged pushes -> one reply a push: `:1` or its own error."""
    cdef Cursor c = _cursor(response)
    cdef Slice result, status
    cdef Buffer b
    cdef int32_t seen = 0
    buffer_init(&b)
    try:
        buffer_reserve(&b, 4 * count)
        while _next_message(&c, 1, &result):
            seen += 1
            status = _submessage(result, 3)
            if _number_field(status, 1) == 0:      # absent, or present and ok
                put_bytes(&b, b":1\r\n", 4)
                continue
            line = _status_line(status)
            put_bytes(&b, PyBytes_AS_STRING(line), PyBytes_GET_SIZE(line))
        if c.bad or seen != count:
            raise ValueError(f"the core answered {seen} of {count} pushes")
        return PyBytes_FromStringAndSize(b.data, b.length)
    finally:
        buffer_free(&b)


def push_many_reply(bytes response, int32_t count):
    """EnqueueBatchResponse of one push -> `:N`, or the first error: then nothing was pushed."""
    cdef Cursor c = _cursor(response)
    cdef Slice result, status
    cdef int32_t seen = 0
    while _next_message(&c, 1, &result):
        seen += 1
        status = _submessage(result, 3)
        if _number_field(status, 1) != 0:
            return _status_line(status)
    if c.bad or seen != count:
        raise ValueError(f"the core answered {seen} of {count} messages")
    return b":%d\r\n" % count


def lease_reply(bytes response):
    """LeaseResponse -> array of [id, ticket, body]; `*0` when it is empty."""
    cdef Cursor c = _cursor(response)
    cdef Slice message, metadata, payload
    cdef Buffer b
    cdef int64_t count = 0
    while _next_message(&c, 1, &message):
        count += 1
    buffer_init(&b)
    try:
        # Three numbers of at most 20 digits and their signs and line ends around each payload.
        buffer_reserve(&b, PyBytes_GET_SIZE(response) + 80 * count + 24)
        _put_number(&b, c"*", count)
        c = _cursor(response)
        while _next_message(&c, 1, &message):
            payload = _submessage(message, 3)
            metadata = _submessage(message, 4)
            put_bytes(&b, b"*3\r\n", 4)
            _put_number(&b, c":", <int64_t> _number_field(metadata, 6))
            _put_number(&b, c":", <int64_t> _number_field(metadata, 7))
            _put_number(&b, c"$", payload.length)
            put_bytes(&b, payload.at, payload.length)
            put_bytes(&b, b"\r\n", 2)
        if c.bad:
            raise ValueError("the core sent a LeaseResponse that does not parse")
        return PyBytes_FromStringAndSize(b.data, b.length)
    finally:
        buffer_free(&b)


def count_settled(bytes response):
    """SettleBatchResponse -> (how many were acked, (code, message, reason) of the first refused or None)."""
    cdef Cursor c = _cursor(response)
    cdef Slice status
    cdef int64_t acked = 0
    refused = None
    while _next_message(&c, 1, &status):
        if _number_field(status, 1) == 0:
            acked += 1
        elif refused is None:
            refused = _status(status)
    if c.bad:
        raise ValueError("the core sent a SettleBatchResponse that does not parse")
    return acked, refused


# --- small parts --------------------------------------------------------------------------

cdef void _put_number(Buffer* b, char sign, int64_t value) noexcept:
    """A RESP header or integer: `sign`, decimal, CRLF."""
    cdef char[24] digits
    cdef int at = 24
    cdef uint64_t left = <uint64_t> value if value >= 0 else 0 - <uint64_t> value
    while True:
        at -= 1
        digits[at] = <char> (48 + left % 10)
        left //= 10
        if left == 0:
            break
    put_u8(b, <uint8_t> sign)
    if value < 0:
        put_u8(b, 45)
    put_bytes(b, &digits[at], 24 - at)
    put_bytes(b, b"\r\n", 2)

cdef Cursor _cursor(bytes data) noexcept:
    cdef Cursor c
    c.at = PyBytes_AS_STRING(data)
    c.end = c.at + PyBytes_GET_SIZE(data)
    c.bad = False
    return c

cdef bint _next_message(Cursor* c, uint32_t wanted, Slice* found) noexcept:
    """Go to the next length-delimited field `wanted`, skipping others; False at the end or on damage."""
    cdef uint64_t tag
    cdef uint32_t wire
    while c.at < c.end and not c.bad:
        tag = take_varint(c)
        wire = tag & 7
        if wire == 2:
            found[0] = take_slice(c, take_varint(c))
            if tag >> 3 == wanted and not c.bad:
                return True
        else:
            _skip(c, wire)
    return False

cdef void _skip(Cursor* c, uint32_t wire) noexcept:
    if wire == 0:
        take_varint(c)
    elif wire == 1:
        take_slice(c, 8)
    elif wire == 5:
        take_slice(c, 4)
    else:
        c.bad = True

cdef Slice _submessage(Slice outer, uint32_t field) noexcept:
    """The length-delimited `field` of a message; length 0 when it is not there."""
    cdef Cursor c
    cdef Slice found, none
    c.at = outer.at
    c.end = outer.at + outer.length
    c.bad = False
    none.at = outer.at
    none.length = 0
    return found if _next_message(&c, field, &found) else none

cdef uint64_t _number_field(Slice outer, uint32_t field) noexcept:
    cdef Cursor c
    cdef uint64_t tag, value
    c.at = outer.at
    c.end = outer.at + outer.length
    c.bad = False
    while c.at < c.end and not c.bad:
        tag = take_varint(&c)
        if (tag & 7) == 2:
            take_slice(&c, take_varint(&c))
        elif (tag & 7) == 0:
            value = take_varint(&c)
            if tag >> 3 == field and not c.bad:
                return value
        else:
            _skip(&c, tag & 7)
    return 0

cdef tuple _status(Slice status):
    cdef Slice message = _submessage(status, 2)
    cdef Slice reason = _submessage(status, 3)
    return (<int> _number_field(status, 1), message.at[:message.length].decode("utf-8", "replace"),
            reason.at[:reason.length].decode("utf-8", "replace"))

cdef bytes _status_line(Slice status):
    code, message, reason = _status(status)
    return status_reply(code, message, reason)
