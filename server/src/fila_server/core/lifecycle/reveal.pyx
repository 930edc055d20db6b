"""Channels remember the number of the last reveal that came by, so the walk over them can stop anywhere."""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.formats.records cimport ArrivalTimes, Times, times_of
from fila_server.core.history.decisions cimport ENQUEUED, REDRIVEN, Detail, slot_decided
from fila_server.core.index.ages cimport frame_delayed
from fila_server.core.index.delays cimport expiry_add, replacing_add, slot_delay
from fila_server.core.index.frames cimport frame_finish, frame_recount, frame_retained, share_new
from fila_server.core.index.visits cimport visit_soon
from fila_server.core.index.slots cimport slot_ready, slot_unplaced
from fila_server.core.state.paths cimport frame_offset, share_of
from fila_server.core.state.pending cimport Replacing
from fila_server.core.state.state cimport Channel, Queue, Share, Slot


cdef inline int64_t _left_ms(Core* core, ArrivalTimes* arrival, int64_t end_ms) noexcept nogil:
    """How long from now: the clock that is never set says what has passed since the frame was built."""
    return end_ms - arrival.wall_ms - (core.mono_ns - arrival.mono_ns) // 1000000


cdef void _reveal_instead(
        Core* core, Slot* slot, ArrivalTimes* arrival, const Times* times) noexcept nogil:
    """Of another message: it is placed before anything else looks at it (lifecycle/replacing.pyx)."""
    cdef Share* share = share_of(slot)
    cdef Replacing replacing
    memset(&replacing, 0, sizeof(Replacing))
    slot_unplaced(slot)
    replacing.queue_number, replacing.channel_number = share.channel.queue.number, share.channel.number
    replacing.offset, replacing.before = frame_offset(share.frame, slot.index), times.replaces
    replacing.due_ms = times.deliver_at_ms
    if replacing.due_ms:
        replacing.due_ns = core.mono_ns + _left_ms(core, arrival, replacing.due_ms) * 1000000
    replacing_add(core, &replacing)
    if times.behind:                    # the one that it replaces, and that waited for this one, may be done
        replacing.before = times.behind
        replacing_add(core, &replacing)


cdef void _reveal_to(Core* core, Frame* frame, Channel* channel) noexcept nogil:
    """A channel's share of a frame that has become visible."""
    cdef ArrivalTimes* arrival = <ArrivalTimes*> frame.times
    cdef Times* times = times_of(arrival) if arrival != NULL else NULL
    cdef Share* share = share_new(core, frame, channel)
    cdef Slot* slot
    cdef uint32_t i
    cdef Detail detail
    # What was moved into a queue that is no dead-letter queue came back from one.
    cdef int kind = ENQUEUED if frame.own_ids == NULL or channel.queue.is_dlq else REDRIVEN
    memset(&detail, 0, sizeof(Detail))
    for i in range(frame.count):
        if frame_offset(frame, i) < channel.start_offset:
            continue
        slot = &share.slots[i]
        share.remaining += 1
        detail.replaces = times[i].replaces if times != NULL else 0
        slot_decided(core, kind, slot, &detail)
        if times != NULL and times[i].replaces:
            _reveal_instead(core, slot, arrival, &times[i])
        elif times != NULL and times[i].deliver_at_ms:
            slot_delay(core, slot, times[i].deliver_at_ms, _left_ms(core, arrival, times[i].deliver_at_ms))
        elif channel.rebuild_at:
            slot_unplaced(slot)         # older ones are still to be placed; the rebuild comes by
        else:
            slot_ready(core, slot, False)
    if channel.rebuild_at == 0:
        channel.placed_to = frame_offset(frame, frame.count - 1)


cdef void _begin(Core* core, Frame* frame) noexcept nogil:
    cdef Queue* queue = frame.queue
    cdef ArrivalTimes* arrival = <ArrivalTimes*> frame.times
    cdef Times* times
    cdef uint32_t i
    frame.revealing = True
    queue.reveals += 1
    if arrival == NULL:
        return
    times = times_of(arrival)
    for i in range(frame.count):
        if times[i].expires_ms:
            frame.has_expiries = True
            expiry_add(
                core, queue, frame_offset(frame, i), times[i].expires_ms,
                _left_ms(core, arrival, times[i].expires_ms))
        if times[i].deliver_at_ms:
            frame_delayed(core, frame, i, times[i].deliver_at_ms)


cdef bint frame_reveal(Core* core, Frame* frame, uint64_t until) noexcept nogil:
    """A thousand channels have a thousand times its messages, so it
    goes on from pass to pass, channel by channel.

    One frame of a queue is revealed at a time, so a channel that remembers the number of the last reveal
    knows whether this one came by; a channel that is made or starts anew in between does not. Until the last
    one the frame counts as awaited, whatever its first channels have done with it.
    """
    cdef Queue* queue = frame.queue
    cdef Channel* channel = queue.channels
    if not frame.revealing:
        _begin(core, frame)
    while channel != NULL:
        if channel.reveal == queue.reveals:
            channel = channel.next
            continue
        if core.counters.work >= until:
            return False
        channel.reveal = queue.reveals
        # A channel made meanwhile starts behind this frame; one that was told to start at or before it while
        # it was on its way takes it in with its rebuild.
        if (
            (frame.only == 0 or frame.only == channel.birth)
            and frame_offset(frame, frame.count - 1) >= channel.start_offset
            and (channel.rebuild_at == 0 or frame.first_offset >= channel.log_below)
        ):
            _reveal_to(core, frame, channel)
        channel = channel.next
    free(frame.times)
    frame.times = NULL
    frame.revealing = False
    frame.revealed = True
    visit_soon(core, queue)
    queue.arriving -= frame.count
    queue.arriving_durable -= frame.durable
    if (
        queue.channel_count != 1 or frame.only or queue.channels.start_offset > frame.first_offset
        or frame.tallies != NULL        # another channel had it, and was deleted while it was being revealed
    ):
        frame_recount(core, frame)
    if frame.live == 0 and not frame_retained(core, frame):
        frame_finish(core, frame)
    return True
