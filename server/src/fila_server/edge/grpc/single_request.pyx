from libc.stdint cimport uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from fila_server.core.protocol.commands cimport RESOURCE_EXHAUSTED
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.edge.io.iothread cimport PARTIAL_BYTES_MAX
from fila_server.edge.io.response cimport call_refuse


cdef void single_put(Call* call, Received* message) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    call.whole, call.whole_length = message.at, <uint32_t> message.length
    call.whole_owned = message.owned
    message.owned = NULL
    if call.whole_owned != NULL:
        io.partial_bytes += call.whole_length
    else:
        single_keep(io)
        io.unkept = call


cdef void single_take(Call* call, Received* message) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    message.at, message.length, message.owned = call.whole, call.whole_length, call.whole_owned
    if call.whole_owned != NULL:
        io.partial_bytes -= call.whole_length
    if io.unkept == call:
        io.unkept = NULL
    call.whole = call.whole_owned = NULL


cdef void single_free(Call* call) noexcept nogil:
    cdef Received message
    if call.whole != NULL:
        single_take(call, &message)
        free(message.owned)


cdef void single_keep(IoThread* io) noexcept nogil:
    cdef Call* call = io.unkept
    if call == NULL:
        return
    io.unkept = NULL
    call.whole_owned = <char*> must_malloc(call.whole_length)
    memcpy(call.whole_owned, call.whole, call.whole_length)
    call.whole = call.whole_owned
    io.partial_bytes += call.whole_length
    if io.partial_bytes > PARTIAL_BYTES_MAX:
        single_free(call)
        call_refuse(
            call, RESOURCE_EXHAUSTED,
            b"too many messages are being received at a time; send fewer at once", b"OVERLOADED")
