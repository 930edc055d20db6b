from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, strlen

from fila_server.core.protocol cimport v1
from fila_server.core.protocol.protobuf cimport (
    LEN, MAP_KEY, MAP_VALUE, Fields, fields_parse, next_field, put_nested, put_text_field,
)
from fila_server.core.protocol.traceparent cimport TraceContext, traceparent_parse
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, buffer_reserve, put_bytes,
)

cdef enum:
    # what W3C asks everybody to carry; more is left behind rather than refused
    TRACESTATE_BYTES_MAX = 512

cdef const char* TRACEPARENT = b"traceparent"
cdef const char* TRACESTATE = b"tracestate"


cdef bint _is(Slice text, const char* word) noexcept nogil:
    return text.length == strlen(word) and memcmp(text.at, word, text.length) == 0


cdef void _put_header(Buffer* to, const char* name, const Buffer* value) noexcept nogil:
    cdef Buffer entry
    cdef Slice text
    buffer_init(&entry)
    text.at, text.length = name, <uint32_t> strlen(name)
    put_text_field(&entry, MAP_KEY, text)
    text.at, text.length = value.data, <uint32_t> value.length
    put_text_field(&entry, MAP_VALUE, text)
    put_nested(to, v1.ENQUEUE_REQUEST_HEADERS, &entry)
    buffer_free(&entry)


cdef bint trace_put(
        Buffer* to, const Call* call, const char* request, size_t length,
        uint32_t headers_max) noexcept nogil:
    cdef Cursor c
    cdef Fields entry
    cdef uint32_t field, kind
    cdef uint32_t headers = 0
    cdef Slice text
    cdef uint64_t number
    cdef const char* before
    # in front of the first header or the payload: one run of bytes
    cdef const char* at = request + length
    cdef bint has_state = False
    cdef TraceContext context
    if not traceparent_parse(call.traceparent.data, call.traceparent.length, &context):
        return False
    c.at, c.end, c.bad = request, request + length, False
    before = c.at
    while next_field(&c, &field, &kind, &text, &number):
        if (field == v1.ENQUEUE_REQUEST_HEADERS or field == v1.ENQUEUE_REQUEST_PAYLOAD) and before < at:
            at = before
        if field == v1.ENQUEUE_REQUEST_HEADERS and kind == LEN:
            headers += 1
            if fields_parse(&entry, text.at, text.length):
                if _is(entry.text[MAP_KEY], TRACEPARENT):
                    return False
                has_state = has_state or _is(entry.text[MAP_KEY], TRACESTATE)
        before = c.at
    if c.bad or headers >= headers_max:
        return False                # the core says what is wrong with it
    buffer_reserve(to, length + call.traceparent.length + call.tracestate.length + 64)
    put_bytes(to, request, at - request)
    _put_header(to, TRACEPARENT, &call.traceparent)
    if 0 < call.tracestate.length <= TRACESTATE_BYTES_MAX and not has_state and headers + 1 < headers_max:
        _put_header(to, TRACESTATE, &call.tracestate)
    put_bytes(to, at, request + length - at)
    return True
