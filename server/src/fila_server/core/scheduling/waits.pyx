"""A wait is what each clock read when it began; its end subtracts. Messages that are known to be held are
counted by sub-queue, so that a thousand of them are one row."""

from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

from fila_server.core.history.decisions cimport RELEASED, THROTTLED, Detail, held, slot_decided
from fila_server.core.scheduling.clocks cimport no_room_ms
from fila_server.core.state.kinds cimport PARKED_PAUSED
from fila_server.core.state.paths cimport share_of, slot_cost, subqueue_waits
from fila_server.core.state.pending cimport Wait
from fila_server.core.structures.fifo cimport fifo_first


cdef inline uint32_t _stopped_ms(Core* core, Flow* flow) noexcept nogil:
    """A clock that runs while the key is paused, capped, or has used up its rate."""
    if flow.parked >= PARKED_PAUSED:
        return flow.stopped_ms + core.mono_ms - flow.stopped_since_ms
    return flow.stopped_ms


cdef inline uint32_t _waiting_ms(Core* core, Subqueue* sub) noexcept nogil:
    """A clock that runs while a message of this sub-queue stands in front of a bucket."""
    if sub == NULL:
        return 0
    return sub.waiting_ms + (core.mono_ms - sub.waiting_since_ms if subqueue_waits(sub) else 0)


cdef inline Wait* _wait(Slot* slot) noexcept nogil:
    cdef Wait* waits = share_of(slot).waits
    return &waits[slot.index] if waits != NULL else NULL


cdef void wait_begins(Core* core, Slot* slot, Flow* flow, Subqueue* sub, bint was_delayed) noexcept nogil:
    cdef Wait* wait = _wait(slot)
    if wait == NULL:
        return
    wait.delay_ms = core.mono_ms - wait.since_ms if was_delayed else 0
    wait.since_ms = core.mono_ms
    wait.no_room_ms = no_room_ms(core, flow.channel)
    wait.waiting_ms = _waiting_ms(core, sub)
    wait.stopped_ms = _stopped_ms(core, flow)


cdef void wait_delayed(Core* core, Slot* slot) noexcept nogil:
    cdef Wait* wait = _wait(slot)
    if wait != NULL:
        wait.since_ms = core.mono_ms


cdef Waited wait_of(Core* core, Slot* slot, Flow* flow, Subqueue* sub) noexcept nogil:
    cdef Wait* wait = _wait(slot)
    cdef Waited waited
    cdef uint32_t left
    memset(&waited, 0, sizeof(Waited))
    if wait == NULL:
        return waited
    left = core.mono_ms - wait.since_ms
    waited.delay_ms = <int32_t> wait.delay_ms
    if left == 0:
        return waited
    waited.throttle_ms = <int32_t> min(left, _waiting_ms(core, sub) - wait.waiting_ms)
    left -= <uint32_t> waited.throttle_ms
    waited.held_ms = <int32_t> min(left, _stopped_ms(core, flow) - wait.stopped_ms)
    left -= <uint32_t> waited.held_ms
    # With no other key on the ring there is nobody to share with.
    if flow.channel.ring.ring_count + flow.channel.ring.deferred_count <= 1:
        waited.no_consumer_ms = <int32_t> left
    else:
        waited.no_consumer_ms = <int32_t> min(left, no_room_ms(core, flow.channel) - wait.no_room_ms)
    waited.share_ms = <int32_t> left - waited.no_consumer_ms
    return waited


# --- what a bucket holds -----------------------------------------------------------------------

cdef void sub_gains(Core* core, Slot* slot, Subqueue* sub) noexcept nogil:
    cdef Detail detail
    if core.history == NULL:
        return
    sub.cost += slot_cost(slot)
    if sub.held == 0:
        return
    # Those before it wait for a token, so it does.
    sub.held += 1
    sub.held_cost += slot_cost(slot)
    memset(&detail, 0, sizeof(Detail))
    detail.bucket = &sub.held_by.text
    slot_decided(core, THROTTLED, slot, &detail)


cdef void sub_loses(Core* core, Slot* slot, Subqueue* sub) noexcept nogil:
    cdef Detail detail
    if core.history == NULL:
        return
    sub.cost -= min(sub.cost, <unsigned long> slot_cost(slot))
    if sub.held == 0:
        return
    sub.held -= 1
    sub.held_cost -= min(sub.held_cost, <unsigned long> slot_cost(slot))
    memset(&detail, 0, sizeof(Detail))
    detail.bucket = &sub.held_by.text
    detail.held_ms = wait_of(core, slot, sub.flow, sub).throttle_ms
    slot_decided(core, RELEASED, slot, &detail)


cdef void sub_is_held(Core* core, Subqueue* sub) noexcept nogil:
    if core.history == NULL or sub.count <= sub.held:
        return
    sub.held_by = sub.waiter.waiters.bucket     # one of its set's, so it lives as long as the sub-queue
    held(
        core, <Slot*> fifo_first(&sub.fifo), &sub.held_by.text, sub.count - sub.held,
        sub.cost - sub.held_cost)
    sub.held = sub.count
    sub.held_cost = sub.cost
