"""See reveal.pxd. A message is revealed once its enqueue is durable (or, under `os`, written)."""

from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.buffer cimport must_malloc
from fila_server.core.flows cimport flow_of
from fila_server.core.frames cimport (
    frame_enqueued_ms, frame_finish, frame_offset, frame_recount, frame_retained, share_new, share_of,
)
from fila_server.core.maps cimport map64_get, map64_put, map64_remove
from fila_server.core.records cimport Times
from fila_server.core.slots cimport slot_count, slot_ready, slot_unplaced
from fila_server.core.state cimport Channel, DELAYED, DONE, Delay, Flow, Share, Slot, TIMER_DELAY, TIMER_EXPIRY
from fila_server.core.waiting cimport Extra
from fila_server.core.timers cimport timer_cancel, timer_set
from fila_server.core.waits cimport flow_fills


cdef int64_t TIMER_REACH_MS = <int64_t> 30 * 86400000
cdef int64_t LEFT_MS_MAX = <int64_t> 100 * 365 * 86400000       # in nanoseconds it fits 63 bits


cdef int64_t timer_step_ns(int64_t wait_ms, bint* far) noexcept nogil:
    far[0] = wait_ms > TIMER_REACH_MS
    if far[0]:
        wait_ms = TIMER_REACH_MS
    return wait_ms * 1000000 if wait_ms > 0 else 0


cdef void slot_delay(Core* core, Slot* slot, int64_t due_ms, int64_t longest_ms) noexcept nogil:
    """Pending, but not ready until `due_ms` on the wall clock, or until `longest_ms` from now, whichever is sooner:
    a wall clock that was set back while the broker was down must not make a delay longer than it ever was."""
    cdef Delay* delay = <Delay*> must_malloc(sizeof(Delay))
    cdef Share* share = share_of(slot)
    cdef Flow* flow = flow_of(core, share.frame.entries[slot.index].key, share.channel)
    memset(delay, 0, sizeof(Delay))
    delay.timer.kind = TIMER_DELAY
    delay.slot = slot
    delay.due_ms = due_ms
    slot_count(core, slot, DELAYED)
    slot.owner = delay
    flow_fills(core, flow)
    flow.delayed += 1
    timer_set(&core.timers, &delay.timer, core.mono_ns + timer_step_ns(min(due_ms - core.wall_ms, longest_ms), &delay.far))


cdef void extra_add(Core* core, Queue* queue, uint64_t offset, int64_t expires_ms, int64_t longest_ms) noexcept nogil:
    """A time to live until `expires_ms` on the wall clock, or for `longest_ms` from now, whichever is sooner: it runs on
    the monotonic clock, and a wall clock that was set back while the broker was down does not make it longer."""
    cdef Extra* extra = <Extra*> must_malloc(sizeof(Extra))
    cdef int64_t left_ms = expires_ms - core.wall_ms
    if longest_ms > 0:                  # not where the clock was far off when the message came: its time is not known
        left_ms = min(left_ms, longest_ms)
    left_ms = max(<int64_t> 0, min(left_ms, LEFT_MS_MAX))
    memset(extra, 0, sizeof(Extra))
    extra.timer.kind = TIMER_EXPIRY
    extra.queue_number = queue.number
    extra.offset = offset
    extra.expires_ms = expires_ms
    map64_put(&queue.extras, offset, extra)
    extra.due_ns = core.mono_ns + left_ms * 1000000
    timer_set(&core.timers, &extra.timer, core.mono_ns + timer_step_ns(left_ms, &extra.far))


cdef bint message_is_over(Core* core, Slot* slot) noexcept nogil:
    cdef Frame* frame = share_of(slot).frame
    cdef Extra* extra
    if not frame.has_extras:
        return False
    extra = <Extra*> map64_get(&frame.queue.extras, frame_offset(frame, slot.index))
    return extra != NULL and (extra.timer.at == 0 or extra.due_ns <= core.mono_ns)


cdef void extra_drop(Core* core, Queue* queue, uint64_t offset) noexcept nogil:
    cdef Extra* extra = <Extra*> map64_remove(&queue.extras, offset)
    if extra != NULL:
        timer_cancel(&core.timers, &extra.timer)
        free(extra)


cdef void _reveal_to(Core* core, Frame* frame, Channel* channel) noexcept nogil:
    """A channel's share of a frame that has become visible."""
    cdef Times* times = <Times*> frame.times
    cdef Share* share = share_new(core, frame, channel)
    cdef Slot* slot
    cdef uint32_t i
    for i in range(frame.count):
        if frame_offset(frame, i) < channel.start_offset:
            continue
        slot = &share.slots[i]
        share.remaining += 1
        if times != NULL and times[i].deliver_at_ms:
            slot_delay(core, slot, times[i].deliver_at_ms, times[i].deliver_at_ms - core.wall_ms)
        elif channel.rebuild_at:
            slot_unplaced(slot)         # older ones are still to be placed; the rebuild comes by
        else:
            slot_ready(core, slot, False)
    if channel.rebuild_at == 0:
        channel.placed_to = frame_offset(frame, frame.count - 1)


cdef void _begin(Core* core, Frame* frame) noexcept nogil:
    cdef Queue* queue = frame.queue
    cdef Times* times = <Times*> frame.times
    cdef uint32_t i
    frame.revealing = True
    queue.reveals += 1
    if times == NULL:
        return
    for i in range(frame.count):
        if times[i].expires_ms:
            frame.has_extras = True
            extra_add(
                core, queue, frame_offset(frame, i), times[i].expires_ms,
                times[i].expires_ms - frame_enqueued_ms(frame, i))


cdef bint frame_reveal(Core* core, Frame* frame, uint64_t until) noexcept nogil:
    """A thousand channels have a thousand times its messages, so it goes on from pass to pass, channel by channel.

    One frame of a queue is revealed at a time, so a channel that remembers the number of the last reveal knows
    whether this one came by; a channel that is made or starts anew in between does not. Until the last one the frame
    counts as awaited, whatever its first channels have done with it.
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
    queue.arriving -= frame.count
    queue.arriving_durable -= frame.durable
    if queue.channel_count != 1 or frame.only or queue.channels.start_offset > frame.first_offset:
        frame_recount(core, frame)
    if frame.live == 0 and not frame_retained(core, frame):
        frame_finish(core, frame)
    return True
