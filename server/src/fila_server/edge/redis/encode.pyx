"""The functions at the end are Python's."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memchr, memcmp, strlen

from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport INVALID_ARGUMENT, RESOURCE_EXHAUSTED
from fila_server.core.protocol.protobuf cimport FIXED32, FIXED64, LEN, VARINT
from fila_server.core.structures.buffer cimport (
    Cursor, buffer_free, buffer_init, buffer_reserve, put_bytes, put_u8, take_slice, take_varint,
)

cdef enum:
    ERROR_TEXT_MAX = 512        # longer texts only repeat what the client sent
    RETRY_MS = 100
    RETRY_QUEUE_MS = 1000
    RETRY_DISK_MS = 5000


# --- errors ------------------------------------------------------------------------------------

cdef void put_error(Buffer* to, const char* prefix, const char* text, size_t length) noexcept nogil:
    cdef size_t i
    cdef uint8_t c
    length = min(length, <size_t> ERROR_TEXT_MAX)
    put_u8(to, c"-")
    put_bytes(to, prefix, strlen(prefix))
    put_u8(to, c" ")
    buffer_reserve(to, length + 2)
    for i in range(length):
        c = <uint8_t> text[i]
        if 0x80 <= c < 0xC0:
            continue                # the rest of a character that is a question mark already
        to.data[to.length] = <char> (c if 0x20 <= c <= 0x7E else <uint8_t> c"?")
        to.length += 1
    put_bytes(to, b"\r\n", 2)


cdef bint _is(Slice text, const char* word) noexcept nogil:
    return text.length == strlen(word) and memcmp(text.at, word, text.length) == 0


cdef const char* _prefix_of(int32_t code, Slice reason) noexcept nogil:
    if _is(reason, b"QUEUE_NOT_FOUND"):
        return b"QNF"
    if _is(reason, b"CHANNEL_NOT_FOUND"):
        return b"CNF"
    if _is(reason, b"QUEUE_EXISTS"):
        return b"QAE"
    if _is(reason, b"CHANNEL_EXISTS"):
        return b"CAE"
    if _is(reason, b"PERMISSION_DENIED"):
        return b"NOPERM"
    if _is(reason, b"UNAUTHENTICATED"):
        return b"NOAUTH"
    if code == INVALID_ARGUMENT:
        return b"IPA"
    return b"ERR"


cdef const char* _step_of(Slice reason) noexcept nogil:
    """What to do next, where the broker's own advice names calls that this protocol does not have."""
    if _is(reason, b"QUEUE_NOT_FOUND"):
        return b"SETNX queue channel makes both"
    if _is(reason, b"CHANNEL_NOT_FOUND"):
        return b"SETNX queue channel makes it"
    if _is(reason, b"QUEUE_EXISTS"):
        return b"SETNX queue channel adds a channel to it"
    return NULL


cdef void put_refusal(
        Buffer* to, int32_t code, Slice message, Slice reason, int32_t retry_ms) noexcept nogil:
    cdef const char* step = _step_of(reason)
    cdef const void* advice
    cdef char more[64]
    cdef Buffer text
    buffer_init(&text)
    if step != NULL:
        advice = memchr(message.at, c";", message.length)
        if advice != NULL:
            message.length = <uint32_t> (<const char*> advice - message.at)
    put_bytes(&text, message.at, message.length)
    if step != NULL:
        put_bytes(&text, b"; ", 2)
        put_bytes(&text, step, strlen(step))
    if retry_ms > 0:
        snprintf(more, sizeof(more), b"; try again in %d ms", <int> retry_ms)
        put_bytes(&text, more, strlen(more))
    put_error(to, _prefix_of(code, reason), text.data, text.length)
    buffer_free(&text)


cdef int32_t retry_ms_of(int32_t code, Slice reason) noexcept nogil:
    if code != RESOURCE_EXHAUSTED:
        return 0
    if _is(reason, b"DISK_FLOOR"):
        return RETRY_DISK_MS
    if _is(reason, b"QUEUE_FULL") or _is(reason, b"HOOKS_FULL") or _is(reason, b"QUOTA_EXCEEDED"):
        return RETRY_QUEUE_MS
    return RETRY_MS


cdef void put_failure(Buffer* to, int32_t code, const char* item, size_t length) noexcept nogil:
    cdef Slice status
    cdef Slice reason
    status.at, status.length = item, <uint32_t> length
    reason = _submessage(status, v1.ITEM_STATUS_REASON)
    put_refusal(to, code, _submessage(status, v1.ITEM_STATUS_MESSAGE), reason, retry_ms_of(code, reason))


cdef void put_status(Buffer* to, Slice status) noexcept nogil:
    put_refusal(
        to, <int32_t> _number_field(status, v1.ITEM_STATUS_CODE), _submessage(status, v1.ITEM_STATUS_MESSAGE),
        _submessage(status, v1.ITEM_STATUS_REASON), 0)


cdef bint is_nowhere(Slice status) noexcept nogil:
    cdef Slice reason = _submessage(status, v1.ITEM_STATUS_REASON)
    return _is(reason, b"QUEUE_NOT_FOUND") or _is(reason, b"CHANNEL_NOT_FOUND")


# --- answers -----------------------------------------------------------------------------------

cdef bint put_pushed(Buffer* to, const char* answer, size_t length, uint32_t count) noexcept nogil:
    cdef Cursor c = _cursor(answer, length)
    cdef Slice result, status
    cdef uint32_t seen = 0
    buffer_reserve(to, 4 * <size_t> count)
    while _next_message(&c, v1.ENQUEUE_BATCH_RESPONSE_RESULTS, &result):
        seen += 1
        status = _submessage(result, v1.ENQUEUE_RESULT_ERROR)
        if _number_field(status, v1.ITEM_STATUS_CODE) == 0:       # absent, or present and ok
            put_bytes(to, b":1\r\n", 4)
        else:
            put_status(to, status)
    return not c.bad and seen == count


cdef bint put_pushed_many(Buffer* to, const char* answer, size_t length, uint32_t count) noexcept nogil:
    """`:N`, or the first error that says why nothing was pushed: its neighbours' only say that it was."""
    cdef Cursor c = _cursor(answer, length)
    cdef Slice result, status
    cdef Slice why
    cdef uint32_t seen = 0
    why.at, why.length = answer, 0
    while _next_message(&c, v1.ENQUEUE_BATCH_RESPONSE_RESULTS, &result):
        seen += 1
        status = _submessage(result, v1.ENQUEUE_RESULT_ERROR)
        if _number_field(status, v1.ITEM_STATUS_CODE) == 0:
            continue
        if why.length == 0:
            why = status
        if not _is(_submessage(status, v1.ITEM_STATUS_REASON), b"NEIGHBOUR_REFUSED"):
            put_status(to, status)
            return True
    if why.length:
        put_status(to, why)
        return True
    if c.bad or seen != count:
        return False
    put_integer(to, count)
    return True


cdef bint put_leased(Buffer* to, const char* answer, size_t length) noexcept nogil:
    cdef Cursor c = _cursor(answer, length)
    cdef Slice message, metadata, payload
    cdef int64_t count = 0
    while _next_message(&c, v1.LEASE_RESPONSE_MESSAGES, &message):
        count += 1
    if c.bad:
        return False
    # Three numbers of at most 20 digits and their signs and line ends around each payload.
    buffer_reserve(to, length + 80 * <size_t> count + 24)
    _put_number(to, c"*", count)
    c = _cursor(answer, length)
    while _next_message(&c, v1.LEASE_RESPONSE_MESSAGES, &message):
        payload = _submessage(message, v1.MESSAGE_PAYLOAD)
        metadata = _submessage(message, v1.MESSAGE_METADATA)
        put_bytes(to, b"*3\r\n", 4)
        _put_number(to, c":", <int64_t> _number_field(metadata, v1.MESSAGE_METADATA_OFFSET))
        _put_number(to, c":", <int64_t> _number_field(metadata, v1.MESSAGE_METADATA_LEASE_ID))
        _put_number(to, c"$", payload.length)
        put_bytes(to, payload.at, payload.length)
        put_bytes(to, b"\r\n", 2)
    return True


cdef bint count_acked(const char* answer, size_t length, int64_t* acked, Slice* refused) noexcept nogil:
    cdef Cursor c = _cursor(answer, length)
    cdef Slice status
    acked[0] = 0
    refused.at, refused.length = answer, 0
    while _next_message(&c, v1.SETTLE_BATCH_RESPONSE_RESULTS, &status):
        if _number_field(status, v1.ITEM_STATUS_CODE) == 0:
            acked[0] += 1
        elif refused.length == 0:
            refused[0] = status
    return not c.bad


# --- small parts -------------------------------------------------------------------------------

cdef void put_integer(Buffer* to, int64_t number) noexcept nogil:
    _put_number(to, c":", number)


cdef void _put_number(Buffer* b, char sign, int64_t value) noexcept nogil:
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


cdef Cursor _cursor(const char* at, size_t length) noexcept nogil:
    cdef Cursor c
    c.at = at
    c.end = at + length
    c.bad = False
    return c


cdef bint _next_message(Cursor* c, uint32_t wanted, Slice* found) noexcept nogil:
    """Go to the next length-delimited field `wanted`, skipping others; False at the end or on damage."""
    cdef uint64_t tag
    cdef uint32_t wire
    while c.at < c.end and not c.bad:
        tag = take_varint(c)
        wire = tag & 7
        if wire == LEN:
            found[0] = take_slice(c, take_varint(c))
            if tag >> 3 == wanted and not c.bad:
                return True
        else:
            _skip(c, wire)
    return False


cdef void _skip(Cursor* c, uint32_t wire) noexcept nogil:
    if wire == VARINT:
        take_varint(c)
    elif wire == FIXED64:
        take_slice(c, 8)
    elif wire == FIXED32:
        take_slice(c, 4)
    else:
        c.bad = True


cdef Slice _submessage(Slice outer, uint32_t field) noexcept nogil:
    """The length-delimited `field` of a message; length 0 when it is not there."""
    cdef Cursor c = _cursor(outer.at, outer.length)
    cdef Slice found, none
    none.at = outer.at
    none.length = 0
    return found if _next_message(&c, field, &found) else none


cdef uint64_t _number_field(Slice outer, uint32_t field) noexcept nogil:
    cdef Cursor c = _cursor(outer.at, outer.length)
    cdef uint64_t tag, value
    while c.at < c.end and not c.bad:
        tag = take_varint(&c)
        if (tag & 7) == LEN:
            take_slice(&c, take_varint(&c))
        elif (tag & 7) == VARINT:
            value = take_varint(&c)
            if tag >> 3 == field and not c.bad:
                return value
        else:
            _skip(&c, tag & 7)
    return 0


# --- for Python --------------------------------------------------------------------------------

cdef bytes _taken(Buffer* b):
    try:
        return PyBytes_FromStringAndSize(b.data, b.length)
    finally:
        buffer_free(b)


cdef Slice _slice(bytes text) noexcept:
    cdef Slice s
    s.at, s.length = PyBytes_AS_STRING(text), <uint32_t> PyBytes_GET_SIZE(text)
    return s


def error_reply(str prefix, str text):
    """Return `-PREFIX text`, one line whatever the text holds."""
    cdef bytes word = prefix.encode("ascii")
    cdef bytes words = text.encode("utf-8", "replace")
    cdef Buffer b
    buffer_init(&b)
    put_error(&b, PyBytes_AS_STRING(word), PyBytes_AS_STRING(words), PyBytes_GET_SIZE(words))
    return _taken(&b)


def status_reply(int code, str message, str reason):
    """Return the error reply for an ItemStatus."""
    cdef bytes words = message.encode("utf-8", "replace")
    cdef bytes why = reason.encode("utf-8", "replace")
    cdef Buffer b
    buffer_init(&b)
    put_refusal(&b, code, _slice(words), _slice(why), 0)
    return _taken(&b)
