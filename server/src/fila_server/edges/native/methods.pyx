"""See methods.pxd."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memcmp, strlen

from fila_server.core.protocol.commands cimport (
    ACK, ACK_BATCH, CONSUME_OPEN, ENQUEUE, ENQUEUE_BATCH, ENQUEUE_STREAM, EXTEND_LEASE, LEASE, NACK,
    NACK_BATCH, SESSION_OPEN,
)
from fila_server.edges.native.iothread cimport CONSUMER, PRODUCER, PULL, SESSION_CONSUMER, UNARY, Shape

cdef enum:
    METHODS = 11

cdef const char* SERVICE = b"/fila.v1.FilaService/"
cdef enum:
    SERVICE_LENGTH = 21

cdef Method _methods[METHODS]


cdef void _put(uint32_t at, const char* path, int32_t kind, Shape shape, bint refused_when_unread) noexcept:
    _methods[at].path = path
    _methods[at].path_length = <uint32_t> strlen(path)
    _methods[at].kind = kind
    _methods[at].shape = shape
    _methods[at].refused_when_unread = refused_when_unread


# An enqueue's answer is small, and a pull's is counted before it is given: neither makes the unread more.
_put(0, b"/fila.v1.FilaService/Enqueue", ENQUEUE, UNARY, False)
_put(1, b"/fila.v1.FilaService/Ack", ACK, UNARY, True)
_put(2, b"/fila.v1.FilaService/EnqueueBatch", ENQUEUE_BATCH, UNARY, True)
_put(3, b"/fila.v1.FilaService/AckBatch", ACK_BATCH, UNARY, True)
_put(4, b"/fila.v1.FilaService/Lease", LEASE, PULL, False)
_put(5, b"/fila.v1.FilaService/EnqueueStream", ENQUEUE_STREAM, PRODUCER, False)
_put(6, b"/fila.v1.FilaService/Consume", CONSUME_OPEN, CONSUMER, False)
_put(7, b"/fila.v1.FilaService/ConsumeSession", SESSION_OPEN, SESSION_CONSUMER, False)
_put(8, b"/fila.v1.FilaService/Nack", NACK, UNARY, True)
_put(9, b"/fila.v1.FilaService/NackBatch", NACK_BATCH, UNARY, True)
_put(10, b"/fila.v1.FilaService/ExtendLease", EXTEND_LEASE, UNARY, True)


cdef const Method* method_find(const char* path, size_t length) noexcept nogil:
    cdef uint32_t i
    if length <= SERVICE_LENGTH or memcmp(path, SERVICE, SERVICE_LENGTH) != 0:
        return NULL
    for i in range(METHODS):
        if length == _methods[i].path_length and memcmp(
                path + SERVICE_LENGTH, _methods[i].path + SERVICE_LENGTH, length - SERVICE_LENGTH) == 0:
            return &_methods[i]
    return NULL
