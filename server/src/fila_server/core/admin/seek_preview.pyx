"""A frame wholly on one side of the target counts by its share's number. Walked are only the one around
it, the one in whose midst the channel's rebuild begins, and those with times to live, of which some may be
over: such messages do not come again."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.lifecycle.answers cimport answer, answer_no_channel, answer_no_queue
from fila_server.core.protocol cimport seam
from fila_server.core.protocol.commands cimport OK
from fila_server.core.protocol.protobuf cimport Fields, fields_parse, put_number_field, timestamp_ms
from fila_server.core.state.directory cimport directory_after, directory_at, queue_offset_at, queue_oldest
from fila_server.core.state.kinds cimport DONE
from fila_server.core.state.paths cimport (
    channel_find, frame_last_offset, frame_offset, queue_find, share_find,
)
from fila_server.core.state.pending cimport Expiry
from fila_server.core.state.state cimport Channel, Frame, Queue, Share
from fila_server.core.structures.buffer cimport Buffer, buffer_init
from fila_server.core.structures.maps cimport map64_get

cdef enum:
    FRAMES_PER_PART = 16384             # some milliseconds of a pass, as are as many messages


cdef bint _is_over(Queue* queue, Frame* frame, uint32_t index, int64_t now_ns) noexcept nogil:
    cdef Expiry* expiry
    if not frame.has_expiries:
        return False
    expiry = <Expiry*> map64_get(&queue.expiries, frame_offset(frame, index))
    return expiry != NULL and expiry.due_ns <= now_ns


cdef void _inside(
        Channel* channel, Frame* frame, Share* share, bint to_come, uint64_t target, int64_t now_ns,
        uint64_t* replayed, uint64_t* skipped) noexcept nogil:
    """One by one; of a frame that a rebuild has yet to take in, what lies before its start stays done."""
    cdef uint32_t i
    cdef bint done
    for i in range(frame.count):
        if to_come:
            done = frame_offset(frame, i) < channel.start_offset
        else:
            done = share == NULL or share.slots[i].state == DONE
        if frame_offset(frame, i) >= target:
            replayed[0] += done and not _is_over(channel.queue, frame, i, now_ns)
        else:
            skipped[0] += not done


cdef uint32_t _count(
        Channel* channel, Frame* frame, uint64_t target, int64_t now_ns, uint64_t* replayed,
        uint64_t* skipped) noexcept nogil:
    """How many places were looked at."""
    cdef Share* share = share_find(frame, channel)
    cdef uint64_t first = frame_offset(frame, 0)
    cdef uint64_t last = frame_last_offset(frame)
    cdef bint to_come = share == NULL and channel.rebuild_at and channel.rebuild_at <= last
    if frame.dying or not frame.revealed or (frame.only and frame.only != channel.birth):
        return 1
    if (
        first < target <= last or (to_come and first < channel.start_offset)
        or (frame.has_expiries and first >= target)
    ):
        _inside(channel, frame, share, to_come, target, now_ns, replayed, skipped)
        return frame.count
    elif first >= target:
        replayed[0] += 0 if to_come else frame.count - (share.remaining if share != NULL else 0)
    else:
        skipped[0] += frame.count if to_come else (share.remaining if share != NULL else 0)
    return 1


cdef void seek_preview(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Queue* queue
    cdef Channel* channel
    cdef Frame* frame
    cdef Buffer b
    cdef uint64_t target
    cdef uint64_t replayed = 0
    cdef uint64_t skipped = 0
    cdef uint32_t looked = 0
    cdef bint bad = False
    fields_parse(&fields, command.bytes, command.length)
    queue = queue_find(core, fields.text[seam.SEEK_PART_QUEUE])
    if queue == NULL:
        answer_no_queue(core, command)
        return
    channel = channel_find(queue, fields.text[seam.SEEK_PART_CHANNEL])
    if channel == NULL:
        answer_no_channel(core, command)
        return
    target = fields.number[seam.SEEK_PART_OFFSET]
    if fields.seen & (1 << seam.SEEK_PART_TIME):
        target = queue_offset_at(queue, timestamp_ms(fields.text[seam.SEEK_PART_TIME], &bad))
    target = max(min(target, queue.next_offset), queue_oldest(queue))
    frame = directory_at(
        &queue.directory, max(fields.number[seam.SEEK_PART_FROM_OFFSET], queue_oldest(queue)))
    while frame != NULL and looked < FRAMES_PER_PART:
        looked += _count(channel, frame, target, core.mono_ns, &replayed, &skipped)
        frame = directory_after(&queue.directory, frame)
    buffer_init(&b)
    put_number_field(&b, seam.SEEK_COUNT_OFFSET, target)
    put_number_field(&b, seam.SEEK_COUNT_REPLAYED, replayed)
    put_number_field(&b, seam.SEEK_COUNT_SKIPPED, skipped)
    put_number_field(&b, seam.SEEK_COUNT_LEASES, channel.in_flight)
    put_number_field(&b, seam.SEEK_COUNT_FROM_OFFSET, frame_offset(frame, 0) if frame != NULL else 0)
    answer(core, command.token, OK, &b, False)
