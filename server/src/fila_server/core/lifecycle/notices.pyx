"""An event to the edge, as a script's is; nobody waits for it."""

from fila_server.core.lifecycle.answers cimport emit
from fila_server.core.protocol cimport seam
from fila_server.core.protocol.commands cimport NOTICE, OK
from fila_server.core.protocol.protobuf cimport put_number_field, put_text_field
from fila_server.core.structures.buffer cimport Buffer, Slice, buffer_init


cdef void notice_of(Core* core, int what, Slice name, uint64_t number) noexcept nogil:
    cdef Buffer payload
    buffer_init(&payload)
    put_number_field(&payload, seam.NOTICE_WHAT, <uint64_t> what)
    put_text_field(&payload, seam.NOTICE_QUEUE, name)
    put_number_field(&payload, seam.NOTICE_NUMBER, number)
    emit(core, 0, NOTICE, OK, &payload, False)


cdef void notice(Core* core, int what, Queue* queue, Channel* channel, uint64_t number) noexcept nogil:
    cdef Buffer payload
    cdef Slice text
    buffer_init(&payload)
    put_number_field(&payload, seam.NOTICE_WHAT, <uint64_t> what)
    text.at, text.length = queue.text.bytes, queue.text.length
    put_text_field(&payload, seam.NOTICE_QUEUE, text)
    if channel != NULL:
        text.at, text.length = channel.text.bytes, channel.text.length
        put_text_field(&payload, seam.NOTICE_CHANNEL, text)
    put_number_field(&payload, seam.NOTICE_NUMBER, number)
    emit(core, 0, NOTICE, OK, &payload, False)
