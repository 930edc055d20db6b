"""The list is in the order of offsets within a queue, so the second of two replacements finds the first one
placed."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from fila_server.core.formats.state_records cimport (
    place_given_up, place_taken, state_record_delete, state_record_held, state_record_in_place,
    state_record_ready,
)
from fila_server.core.index.delays cimport slot_delay, slot_delay_end, slot_hold, slot_hold_behind
from fila_server.core.index.slots cimport slot_ready, slot_unready
from fila_server.core.lifecycle.ending cimport slot_at, slot_replaced
from fila_server.core.scheduling.flows cimport flow_of
from fila_server.core.state.kinds cimport DECIDING, DELAYED, DONE, LEASED, READY, RECORDED, UNPLACED
from fila_server.core.state.paths cimport entry_of, frame_offset, share_of
from fila_server.core.state.pending cimport Decision, Replacing
from fila_server.core.state.state cimport Channel, Delay, Lease, Slot
from fila_server.core.structures.maps cimport map64_put

cdef enum:
    KEPT_MAX = 4096                 # rows of a pass that had many; the array is not kept for the next


cdef bint _has_place(Slot* old) noexcept nogil:
    """Where it stands, or would stand again, others of its key stand before and behind it."""
    if old.state == READY:
        return True
    if old.state == DELAYED:
        return (<Delay*> old.owner).keeps_place
    return old.state == DECIDING and share_of(old).channel.queue.policy.in_order


cdef void _stand(Core* core, Slot* slot, int64_t position, uint64_t place) noexcept nogil:
    """Ready, in the place of another one."""
    cdef Channel* channel = share_of(slot).channel
    if slot.state == READY:             # recovery placed it by its own offset
        slot_unready(core, slot)
    slot.place.position = position
    map64_put(&channel.places, frame_offset(share_of(slot).frame, slot.index), <void*> place)
    slot_ready(core, slot, True)
    state_record_in_place(core, slot)


cdef void _arrives(Core* core, Slot* slot) noexcept nogil:
    """Counted here where it does not become ready at once."""
    flow_of(core, entry_of(slot).key, share_of(slot).channel).arrived += slot.state == UNPLACED


cdef void _go(Core* core, Slot* slot, const Replacing* r) noexcept nogil:
    """Nobody stands before it any more."""
    if slot.state == UNPLACED and r.due_ms:
        _arrives(core, slot)
        slot_delay(core, slot, r.due_ms, (r.due_ns - core.mono_ns) // 1000000)
    elif slot.state == UNPLACED and share_of(slot).channel.rebuild_at == 0:
        slot_ready(core, slot, False)   # else the rebuild comes by


cdef void _release(Core* core, Slot* slot, const Replacing* r) noexcept nogil:
    """It was held behind a lease, and that has ended."""
    cdef Delay* delay = <Delay*> slot.owner
    cdef Channel* channel = share_of(slot).channel
    cdef int64_t position = slot.place.position
    delay.before = 0
    if delay.timer.at:                  # its own delay goes on, as its frame tells it
        state_record_delete(core, slot)
        return
    slot_delay_end(core, slot)
    if r.place:
        _stand(core, slot, position, r.place)
        return
    slot_ready(core, slot, False)
    channel.requeue_seq += 1
    state_record_ready(core, slot, channel.placed_to, channel.requeue_seq, core.next_lease_id - 1)


cdef void _hold(
        Core* core, Slot* slot, Lease* lease, uint64_t before, int64_t position,
        const Replacing* r) noexcept nogil:
    """Behind a lease, alone. One that has a delay of its own takes no place over."""
    if lease.successor != NULL and lease.successor.slot != slot:
        slot_replaced(core, lease.successor.slot)
    if slot.state == READY:
        slot_unready(core, slot)
    if r.due_ms:
        _go(core, slot, r)
    else:
        _arrives(core, slot)
    slot.place.position = position if slot.state != DELAYED or (<Delay*> slot.owner).due_ms == 0 else 0
    slot_hold(core, slot, before)
    slot_hold_behind(slot, lease)
    state_record_held(core, slot, before)


cdef void _replace(Core* core, Slot* slot, Slot* old, const Replacing* r) noexcept nogil:
    """It has not been delivered, and the one before it is not done."""
    cdef bint is_placed = _has_place(old) and slot.state in (UNPLACED, READY) and r.due_ms == 0
    cdef int64_t position = old.place.position
    cdef Delay* delay = <Delay*> old.owner if old.state == DELAYED else NULL
    cdef Lease* lease = NULL
    cdef uint64_t before = r.before
    cdef uint64_t place
    if old.state == LEASED:
        lease = <Lease*> old.owner
    elif delay != NULL and delay.behind != NULL:
        lease, before = delay.behind, delay.before
        position = lease.slot.place.position
        slot_replaced(core, old)
    if lease != NULL:
        _hold(core, slot, lease, before, position, r)
        return
    if share_of(slot).channel.rebuild_at:
        is_placed = False
    place = place_taken(old) if is_placed else 0
    slot_replaced(core, old)
    if is_placed:
        _stand(core, slot, position, place)
    elif _is_held(slot):                # damage took the lease
        _release(core, slot, r)
    else:
        _go(core, slot, r)


cdef bint _is_dying(Slot* old) noexcept nogil:
    """Its dead letter waits for its bytes alone."""
    return old.state == DECIDING and old.owner != NULL and (<Decision*> old.owner).reason != NULL


cdef bint _is_held(Slot* slot) noexcept nogil:
    return slot.state == DELAYED and (<Delay*> slot.owner).before != 0


cdef void _resolve(Core* core, const Replacing* r) noexcept nogil:
    cdef Slot* slot = slot_at(core, r.queue_number, r.channel_number, r.offset)
    cdef Slot* old = slot_at(core, r.queue_number, r.channel_number, r.before) if r.before else NULL
    cdef bint is_fresh
    if slot == NULL or share_of(slot).channel.gone:
        return
    core.counters.work += 1
    is_fresh = _is_held(slot) or (slot.state in (UNPLACED, READY, DELAYED) and not slot.marks & RECORDED)
    if not is_fresh:
        if r.place:                     # it ended in the same pass as that lease
            place_given_up(core, share_of(slot).channel, r.place)
        if old != NULL and old.state in (READY, DELAYED, UNPLACED):
            slot_replaced(core, old)    # damage took the record of its end
    elif _is_held(slot) and (<Delay*> slot.owner).behind != NULL:
        # It waits for one lease. After a seek, or damage, another earlier one may stand beside that.
        if old != NULL and old.state in (READY, DELAYED, UNPLACED):
            slot_replaced(core, old)
    elif old != NULL and old.state != DONE and not _is_dying(old):
        _replace(core, slot, old, r)
    elif not _is_held(slot):
        _go(core, slot, r)
    else:
        _release(core, slot, r)


cdef void replacings_turn(Core* core) noexcept nogil:
    cdef uint32_t i = 0
    while i < core.replacings.count:
        _resolve(core, &core.replacings.rows[i])
        i += 1
    core.replacings.count = 0
    if core.replacings.capacity > KEPT_MAX:
        free(core.replacings.rows)
        core.replacings.rows, core.replacings.capacity = NULL, 0
