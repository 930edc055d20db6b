"""Consumers stand on their channel's two circles, those here and those away; the oldest of both are
kept by number.
"""

from libc.stdint cimport UINT64_MAX, uint32_t
from libc.stdlib cimport free

from fila_server.core.index.holders cimport holder_room
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel
from fila_server.core.protocol cimport v1
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
    put_number_field(&row, v1.CONSUMER_INFO_CONSUMER_ID, consumer.number)
    if consumer.name.length:
        put_text_field(&row, v1.CONSUMER_INFO_NAME, _text(&consumer.name))
    if consumer.peer.length:
        put_text_field(&row, v1.CONSUMER_INFO_PEER, _text(&consumer.peer))
    put_text_field(&row, v1.CONSUMER_INFO_CHANNEL, channel)
    put_number_field(&row, v1.CONSUMER_INFO_HELD, consumer.in_flight)
    put_number_field(&row, v1.CONSUMER_INFO_BEGUN, consumer.begun)
    put_number_field(&row, v1.CONSUMER_INFO_RETURNED_TOTAL, consumer.returned)
    put_number_field(&row, v1.CONSUMER_INFO_HANDLING_TIME_US, consumer.handling_us)
    put_number_field(&row, v1.CONSUMER_INFO_WINDOW, consumer.limit)
    put_number_field(&row, v1.CONSUMER_INFO_TRACKS_BEGUN, consumer.tracks_begun)
    put_timestamp_field(&row, v1.CONSUMER_INFO_CONNECTED_AT, consumer.opened_ms)
    put_number_field(&row, v1.CONSUMER_INFO_AWAY, consumer.away)
    put_number_field(&row, v1.CONSUMER_INFO_AT_QUOTA, holder_room(consumer.holder) == 0)
    put_nested(b, v1.LIST_CONSUMERS_RESPONSE_CONSUMERS, &row)
    buffer_free(&row)


cdef void roster_command(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Channel* channel = queue.channels
    cdef Channel* only = NULL
    cdef Ranked* rows
    cdef uint32_t count = 0
    cdef uint32_t i
    cdef Buffer b
    if fields.text[v1.LIST_CONSUMERS_REQUEST_CHANNEL].length:
        only = channel_find(queue, fields.text[v1.LIST_CONSUMERS_REQUEST_CHANNEL])
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
