"""The dead letter is the stored bytes with a piece of metadata behind them, which merges as protobuf
merges.
"""

from libc.stdint cimport uint64_t
from libc.string cimport strlen

from fila_server.core.index.keys cimport key_intern
from fila_server.core.lifecycle.building cimport keep_until_written, move_in
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.protobuf cimport (
    put_nested, put_number_field, put_text_field, put_timestamp_field,
)
from fila_server.core.state.paths cimport frame_enqueued_ms, frame_id
from fila_server.core.state.state cimport Entry, Queue
from fila_server.core.structures.buffer cimport Buffer, buffer_free, buffer_init, put_bytes


cdef void bury(
        Core* core, Channel* channel, Frame* frame, uint32_t index, uint32_t attempts, const char* reason,
        Slice error) noexcept nogil:
    cdef Queue* queue = channel.queue
    cdef Entry* entry = &frame.entries[index]
    cdef Queue* dlq = queue.dlq
    cdef Buffer inner
    cdef Buffer dead
    cdef Buffer body
    cdef Slice text
    cdef uint64_t high, low
    buffer_init(&inner)
    buffer_init(&dead)
    buffer_init(&body)
    text.at, text.length = queue.text.bytes, queue.text.length
    put_text_field(&dead, v1.DEAD_LETTER_SOURCE_QUEUE, text)
    text.at, text.length = channel.text.bytes, channel.text.length
    put_text_field(&dead, v1.DEAD_LETTER_SOURCE_CHANNEL, text)
    text.at, text.length = reason, <uint32_t> strlen(reason)
    put_text_field(&dead, v1.DEAD_LETTER_REASON, text)
    if error.length > LAST_ERROR_BYTES_MAX:
        error.length = utf8_cut(error, LAST_ERROR_BYTES_MAX)
    if error.length:
        put_text_field(&dead, v1.DEAD_LETTER_LAST_ERROR, error)
    put_number_field(&dead, v1.DEAD_LETTER_ATTEMPTS, attempts)
    put_timestamp_field(&dead, v1.DEAD_LETTER_AT, core.wall_ms)
    put_nested(&inner, v1.MESSAGE_METADATA_DEAD_LETTER, &dead)
    put_bytes(&body, frame.body.bytes + entry.at, entry.length)
    put_nested(&body, v1.MESSAGE_METADATA, &inner)
    frame_id(frame, index, &high, &low)
    text.at, text.length = entry.key.text.bytes, entry.key.text.length
    if entry.set != NULL:
        entry.set.refs += 1
    move_in(
        core, dlq, key_intern(core, dlq, text), entry.set, entry.cost, body.data, <uint32_t> body.length,
        high, low, frame_enqueued_ms(frame, index), NULL)
    # The bytes must outlive the building of the frame; the pass frees them after it.
    keep_until_written(core, body.data)
    buffer_free(&inner)
    buffer_free(&dead)
    queue.counters.dead_lettered += 1


cdef uint32_t utf8_cut(Slice text, uint32_t most) noexcept nogil:
    while most > 0 and <unsigned char> text.at[most] & 0xC0 == 0x80:
        most -= 1
    return most
