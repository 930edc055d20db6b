"""A timer reaches 30 days; what lies farther off goes there in steps."""

from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.formats.state_records cimport place_taken
from fila_server.core.history.decisions cimport DELAYED_FOR, Detail, slot_decided
from fila_server.core.index.slots cimport slot_count
from fila_server.core.scheduling.clocks cimport clock_note, flow_emptied, flow_fills
from fila_server.core.scheduling.allowances cimport retry_begins, retry_ends
from fila_server.core.scheduling.flows cimport flow_find, flow_of, flow_reconsider
from fila_server.core.scheduling.waits cimport wait_delayed
from fila_server.core.state.kinds cimport DELAYED, DONE, TIMER_DELAY, TIMER_EXPIRY
from fila_server.core.state.paths cimport entry_of, frame_offset, share_of
from fila_server.core.state.pending cimport Expiry, Replacings
from fila_server.core.state.state cimport Delay, Flow, Frame, Share
from fila_server.core.structures.buffer cimport must_malloc, must_realloc
from fila_server.core.structures.maps cimport map64_get, map64_put, map64_remove
from fila_server.core.structures.timers cimport timer_cancel, timer_set

cdef int64_t TIMER_REACH_MS = <int64_t> 30 * 86400000
cdef int64_t LEFT_MS_MAX = <int64_t> 100 * 365 * 86400000       # in nanoseconds it fits 63 bits


cdef int64_t timer_step_ns(int64_t wait_ms, bint* far) noexcept nogil:
    far[0] = wait_ms > TIMER_REACH_MS
    if far[0]:
        wait_ms = TIMER_REACH_MS
    return wait_ms * 1000000 if wait_ms > 0 else 0


cdef Delay* _delay_new(Core* core, Slot* slot, int64_t due_ms) noexcept nogil:
    cdef Delay* delay = <Delay*> must_malloc(sizeof(Delay))
    cdef Share* share = share_of(slot)
    cdef Flow* flow = flow_of(core, share.frame.entries[slot.index].key, share.channel)
    memset(delay, 0, sizeof(Delay))
    delay.timer.kind = TIMER_DELAY
    delay.slot = slot
    delay.due_ms = due_ms
    flow.arrived += slot.state == DONE
    slot_count(core, slot, DELAYED)
    slot.owner = delay
    flow_fills(core, flow)
    flow.delayed += 1
    wait_delayed(core, slot)
    return delay


cdef void slot_delay(Core* core, Slot* slot, int64_t due_ms, int64_t left_ms) noexcept nogil:
    """Pending, but not ready for `left_ms` from now, on the monotonic clock. `due_ms`, on the wall clock, is
    for the record and for a start, which has no other clock to go by."""
    cdef Delay* delay = _delay_new(core, slot, due_ms)
    cdef Detail detail
    memset(&detail, 0, sizeof(Detail))
    detail.held_ms = <int> max(<int64_t> 0, min(left_ms, <int64_t> 0x7FFFFFFF))
    slot_decided(core, DELAYED_FOR, slot, &detail)
    timer_set(
        &core.timers, &delay.timer,
        core.mono_ns + timer_step_ns(left_ms, &delay.far))


cdef void slot_delay_retry(Core* core, Slot* slot, int64_t due_ms, int64_t left_ms) noexcept nogil:
    cdef Flow* flow
    slot_delay(core, slot, due_ms, left_ms)
    (<Delay*> slot.owner).keeps_place = True
    flow = flow_find(entry_of(slot).key, share_of(slot).channel)
    retry_begins(core, flow)
    flow_reconsider(core, flow)


cdef void slot_hold(Core* core, Slot* slot, uint64_t before) noexcept nogil:
    if slot.state != DELAYED:
        _delay_new(core, slot, 0)
    (<Delay*> slot.owner).before = before


cdef void slot_hold_behind(Slot* slot, Lease* lease) noexcept nogil:
    cdef Delay* delay = <Delay*> slot.owner
    delay.behind = lease
    lease.successor = delay


cdef void replacing_add(Core* core, const Replacing* replacing) noexcept nogil:
    cdef Replacings* all = &core.replacings
    if all.count == all.capacity:
        all.capacity = all.capacity * 2 + 16
        all.rows = <Replacing*> must_realloc(all.rows, all.capacity * sizeof(Replacing))
    all.rows[all.count] = replacing[0]
    all.count += 1


cdef void successor_goes(Core* core, Lease* lease) noexcept nogil:
    cdef Slot* slot = lease.successor.slot
    cdef Share* share = share_of(slot)
    cdef Replacing replacing
    memset(&replacing, 0, sizeof(Replacing))
    replacing.queue_number, replacing.channel_number = share.channel.queue.number, share.channel.number
    replacing.offset = frame_offset(share.frame, slot.index)
    if slot.place.position:             # it has no delay of its own: it has that one's place
        replacing.place = place_taken(lease.slot)
    lease.successor.behind = NULL
    lease.successor = NULL
    replacing_add(core, &replacing)


cdef void slot_delay_end(Core* core, Slot* slot) noexcept nogil:
    cdef Delay* delay = <Delay*> slot.owner
    cdef Flow* flow = flow_find(entry_of(slot).key, share_of(slot).channel)
    clock_note(core, flow)
    flow.delayed -= 1
    flow_emptied(flow)
    if delay.keeps_place:
        retry_ends(flow)
        flow_reconsider(core, flow)
    if delay.behind != NULL:
        delay.behind.successor = NULL
    timer_cancel(&core.timers, &delay.timer)
    slot.owner = NULL
    free(delay)


cdef void expiry_add(
        Core* core, Queue* queue, uint64_t offset, int64_t expires_ms, int64_t left_ms) noexcept nogil:
    """A time to live that lasts `left_ms` from now, on the monotonic clock; `expires_ms` is its end on the
    wall clock, as it is recorded."""
    cdef Expiry* expiry = <Expiry*> must_malloc(sizeof(Expiry))
    left_ms = max(<int64_t> 0, min(left_ms, LEFT_MS_MAX))
    memset(expiry, 0, sizeof(Expiry))
    expiry.timer.kind = TIMER_EXPIRY
    expiry.queue_number = queue.number
    expiry.offset = offset
    expiry.expires_ms = expires_ms
    map64_put(&queue.expiries, offset, expiry)
    expiry.due_ns = core.mono_ns + left_ms * 1000000
    timer_set(&core.timers, &expiry.timer, core.mono_ns + timer_step_ns(left_ms, &expiry.far))


cdef bint message_is_over(Core* core, Slot* slot) noexcept nogil:
    cdef Frame* frame = share_of(slot).frame
    cdef Expiry* expiry
    if not frame.has_expiries:
        return False
    expiry = <Expiry*> map64_get(&frame.queue.expiries, frame_offset(frame, slot.index))
    return expiry != NULL and (expiry.timer.at == 0 or expiry.due_ns <= core.mono_ns)


cdef void expiry_drop(Core* core, Queue* queue, uint64_t offset) noexcept nogil:
    cdef Expiry* expiry = <Expiry*> map64_remove(&queue.expiries, offset)
    if expiry != NULL:
        timer_cancel(&core.timers, &expiry.timer)
        free(expiry)
