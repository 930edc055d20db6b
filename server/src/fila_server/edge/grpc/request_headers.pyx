from libc.stddef cimport size_t
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t
from libc.string cimport memcmp, strlen

from fila_server.core.protocol.commands cimport (
    ACK, ACK_BATCH, CANCEL_MESSAGES, CONSUME_OPEN, ENQUEUE, ENQUEUE_BATCH, ENQUEUE_STREAM, EXTEND_LEASE,
    LEASE, NACK, NACK_BATCH, SESSION_OPEN,
)
from fila_server.core.structures.buffer cimport Buffer, put_bytes
from fila_server.edge.call_limits import HEALTH
from fila_server.edge.io.bridge cimport header_put
from fila_server.edge.io.callers cimport caller_of
from fila_server.edge.io.iothread cimport (
    CONSUMER, DEFLATE, GZIP, IDENTITY, PRODUCER, PULL, SESSION_CONSUMER, TIMEOUT_MALFORMED, TO_PYTHON, UNARY,
    UNKNOWN_ENCODING, Method, Shape,
)

cdef enum:
    TIMEOUT_DIGITS_MAX = 8
    TRACE_BYTES_MAX = 1024

cdef const char* GRPC_TYPE = b"application/grpc"
cdef bytes _health = HEALTH.encode()            # kept, for it owns the characters
cdef const char* HEALTH_PATH = _health
cdef size_t HEALTH_LENGTH = len(_health)


# --- methods that go to the scheduler without Python -----------------------------------------

cdef enum:
    METHODS = 12

cdef const char* SERVICE = b"/fila.v1.FilaService/"
cdef enum:
    SERVICE_LENGTH = 21

cdef Method _methods[METHODS]


cdef void _method(
        uint32_t at, const char* path, int32_t kind, Shape shape, bint refused_when_unread) noexcept:
    _methods[at].path = path
    _methods[at].path_length = <uint32_t> strlen(path)
    _methods[at].kind = kind
    _methods[at].shape = shape
    _methods[at].refused_when_unread = refused_when_unread


# An enqueue's answer is small, and a pull's is counted before it is given: neither makes the unread more.
_method(0, b"/fila.v1.FilaService/Enqueue", ENQUEUE, UNARY, False)
_method(1, b"/fila.v1.FilaService/Ack", ACK, UNARY, True)
_method(2, b"/fila.v1.FilaService/EnqueueBatch", ENQUEUE_BATCH, UNARY, True)
_method(3, b"/fila.v1.FilaService/AckBatch", ACK_BATCH, UNARY, True)
_method(4, b"/fila.v1.FilaService/Lease", LEASE, PULL, False)
_method(5, b"/fila.v1.FilaService/EnqueueStream", ENQUEUE_STREAM, PRODUCER, False)
_method(6, b"/fila.v1.FilaService/Consume", CONSUME_OPEN, CONSUMER, False)
_method(7, b"/fila.v1.FilaService/ConsumeSession", SESSION_OPEN, SESSION_CONSUMER, False)
_method(8, b"/fila.v1.FilaService/Nack", NACK, UNARY, True)
_method(9, b"/fila.v1.FilaService/NackBatch", NACK_BATCH, UNARY, True)
_method(10, b"/fila.v1.FilaService/ExtendLease", EXTEND_LEASE, UNARY, True)
_method(11, b"/fila.v1.FilaService/CancelMessages", CANCEL_MESSAGES, UNARY, True)


cdef const Method* _method_find(const char* path, size_t length) noexcept nogil:
    cdef uint32_t i
    if length <= SERVICE_LENGTH or memcmp(path, SERVICE, SERVICE_LENGTH) != 0:
        return NULL
    for i in range(METHODS):
        if length == _methods[i].path_length and memcmp(
                path + SERVICE_LENGTH, _methods[i].path + SERVICE_LENGTH, length - SERVICE_LENGTH) == 0:
            return &_methods[i]
    return NULL


# --- headers ---------------------------------------------------------------------------------

cdef inline bint _is(const char* at, size_t length, const char* word) noexcept nogil:
    return length == strlen(word) and memcmp(at, word, length) == 0


cdef int64_t _timeout_ns(const char* at, size_t length) noexcept nogil:
    """`grpc-timeout`: up to eight digits and a unit; 0 for so long that it is no deadline."""
    cdef int64_t number = 0
    cdef int64_t unit_ns
    cdef size_t i = 0
    while i < length and i < TIMEOUT_DIGITS_MAX and b"0" <= at[i] <= b"9":
        number = number * 10 + (at[i] - 0x30)
        i += 1
    if i == 0 or i + 1 != length:
        return TIMEOUT_MALFORMED
    if at[i] == b"H":
        unit_ns = 3600 * <int64_t> 1000000000
    elif at[i] == b"M":
        unit_ns = 60 * <int64_t> 1000000000
    elif at[i] == b"S":
        unit_ns = 1000000000
    elif at[i] == b"m":
        unit_ns = 1000000
    elif at[i] == b"u":
        unit_ns = 1000
    elif at[i] == b"n":
        unit_ns = 1
    else:
        return TIMEOUT_MALFORMED
    if number > INT64_MAX // 4 // unit_ns:
        return 0                    # thousands of years
    return number * unit_ns if number else 1


cdef void _keep(Buffer* to, const char* at, size_t length) noexcept nogil:
    if length <= TRACE_BYTES_MAX:
        to.length = 0
        put_bytes(to, at, length)


cdef inline bint _is_reported(const Call* call, const char* name, size_t name_length) noexcept nogil:
    """Of whom nothing is asked nothing is kept but the method: a header that was sent once is named by a byte
    of each later call (HPACK), or many times in one, and would be kept each time. What the answer might be
    compressed with does not matter: it is a few bytes."""
    return _is(name, name_length, b":path") or (not call.is_open_to_all and name[0] != b":")


cdef void header_take(
        Call* call, const char* name, size_t name_length, const char* value, size_t length) noexcept nogil:
    if name_length == 0:
        return
    if _is(name, name_length, b":path"):
        call.method = _method_find(value, length)
        call.shape = call.method.shape if call.method != NULL else TO_PYTHON
        call.is_open_to_all = length > HEALTH_LENGTH and memcmp(value, HEALTH_PATH, HEALTH_LENGTH) == 0
    elif _is(name, name_length, b":method"):
        call.is_post = _is(value, length, b"POST")
        call.is_head = _is(value, length, b"HEAD")
    elif _is(name, name_length, b"content-type"):
        # "application/grpc", or that with "+proto", "+json" or a parameter behind it.
        call.has_content_type = (
            length >= 16 and memcmp(value, GRPC_TYPE, 16) == 0
            and (length == 16 or value[16] == b"+" or value[16] == b";"))
    elif _is(name, name_length, b"te"):
        call.has_te = _is(value, length, b"trailers")
    elif _is(name, name_length, b"authorization") and not call.has_key:
        call.has_key = True
        call.caller = caller_of(call.connection, value, length)
        if call.caller == 0 and call.shape != TO_PYTHON:
            # Python says what is wrong with it.
            header_put(&call.metadata, name, name_length, value, length)
    elif _is(name, name_length, b"grpc-timeout"):
        call.timeout_ns = _timeout_ns(value, length)
    elif _is(name, name_length, b"grpc-encoding"):
        if _is(value, length, b"identity"):
            call.encoding = IDENTITY
        elif _is(value, length, b"gzip"):
            call.encoding = GZIP
        elif _is(value, length, b"deflate"):
            call.encoding = DEFLATE
        else:
            call.encoding = UNKNOWN_ENCODING
    elif call.method != NULL and call.method.kind == ENQUEUE:
        if _is(name, name_length, b"traceparent"):
            _keep(&call.traceparent, value, length)
        elif _is(name, name_length, b"tracestate"):
            _keep(&call.tracestate, value, length)
    if call.shape == TO_PYTHON and _is_reported(call, name, name_length):
        header_put(&call.metadata, name, name_length, value, length)
