"""Consumers stand on their channel's two circles, those here and those away; the oldest of both are
kept by number.
"""

from libc.stdint cimport UINT64_MAX, uint32_t
from libc.stdlib cimport free

from fila_server.core.index.holders cimport holder_room
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel
from fila_server.core.protocol.commands cimport OK
from fila_server.core.protocol.protobuf cimport (
    put_nested, put_number_field, put_text_field, put_timestamp_field,
)
from fila_server.core.state.kinds cimport PULL
from fila_server.core.state.paths cimport channel_find
from fila_server.core.state.state cimport Channel, Consumer
from fila_server.core.structures.buffer cimport Buffer, Slice, buffer_free, buffer_init, must_malloc
from fila_server.core.structures.ranking cimport Ranked, keep_largest, largest_first

cdef enum:
    CONSUMERS_MAX = 10000           # the oldest; one connection has as many streams at most


cdef void _gather(Consumer* first, Ranked* rows, uint32_t* count) noexcept nogil:
    """Numbers only grow, so the oldest have the lowest."""
    cdef Consumer* consumer = first
    while consumer != NULL:
        if consumer.kind != PULL:
            keep_largest(rows, count, CONSUMERS_MAX, consumer, UINT64_MAX - consumer.number)
        consumer = consumer.next if consumer.next != first else NULL


cdef Slice _text(const Buffer* b) noexcept nogil:
    cdef Slice s
    s.at, s.length = b.data, <uint32_t> b.length
    return s


cdef void _put(Buffer* b, Consumer* consumer) noexcept nogil:
    cdef Buffer row
    cdef Slice channel
    channel.at, channel.length = consumer.channel.text.bytes, consumer.channel.text.length
    buffer_init(&row)
    put_number_field(&row, 1, consumer.number)
    if consumer.name.length:
        put_text_field(&row, 2, _text(&consumer.name))
    if consumer.peer.length:
        put_text_field(&row, 3, _text(&consumer.peer))
    put_text_field(&row, 4, channel)
    put_number_field(&row, 5, consumer.in_flight)
    put_number_field(&row, 6, consumer.begun)
    put_number_field(&row, 7, consumer.returned)
    put_number_field(&row, 8, consumer.handling_us)
    put_number_field(&row, 9, consumer.limit)
    put_number_field(&row, 10, consumer.tracks_begun)
    put_timestamp_field(&row, 11, consumer.opened_ms)
    put_number_field(&row, 12, consumer.away)
    put_number_field(&row, 13, holder_room(consumer.holder) == 0)
    put_nested(b, 1, &row)
    buffer_free(&row)


cdef void roster_command(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Channel* channel = queue.channels
    cdef Channel* only = NULL
    cdef Ranked* rows
    cdef uint32_t count = 0
    cdef uint32_t i
    cdef Buffer b
    if fields.text[2].length:
        only = channel_find(queue, fields.text[2])
        if only == NULL:
            answer_no_channel(core, command)
            return
    rows = <Ranked*> must_malloc(CONSUMERS_MAX * sizeof(Ranked))
    while channel != NULL:
        if only == NULL or channel == only:
            _gather(channel.turn, rows, &count)
            _gather(channel.away, rows, &count)
        channel = channel.next
    largest_first(rows, count)
    buffer_init(&b)
    for i in range(count):
        _put(&b, <Consumer*> rows[i].what)
    free(rows)
    answer(core, command.token, OK, &b, False)
