"""A message's state is changed in one place, slot_count, which keeps every total in step with it."""

from libc.stdint cimport uint32_t, uint8_t

from fila_server.core.index.ages cimport slot_waits, waiting_begins, waiting_ends
from fila_server.core.protocol.protobuf cimport PRIORITY_USUAL
from fila_server.core.scheduling.clocks cimport clock_note, flow_emptied, flow_fills
from fila_server.core.scheduling.eligibility cimport channel_activate, flow_again
from fila_server.core.scheduling.flows cimport flow_find, flow_of, flow_reconsider, subqueue_free, subqueue_of
from fila_server.core.scheduling.tokens cimport subqueue_changed
from fila_server.core.scheduling.waiters cimport subqueue_counts
from fila_server.core.scheduling.waits cimport sub_gains, sub_loses, wait_begins
from fila_server.core.state.kinds cimport DECIDING, DELAYED, DONE, LEASED, PARKED_THROTTLED, READY, UNPLACED
from fila_server.core.state.paths cimport entry_priority, flow_is_in_order, share_of
from fila_server.core.state.state cimport Channel, Entry, Flow, Frame, Queue, Share, Subqueue
from fila_server.core.structures.counters cimport Tally
from fila_server.core.structures.fifo cimport Fifo, Placed, fifo_append, fifo_first, fifo_remove, fifo_return
from fila_server.core.structures.ring cimport DEFERRED


cdef inline bint _is_pending(int state) noexcept nogil:
    return state == READY or state == DELAYED


cdef inline bint _is_in_flight(int state) noexcept nogil:
    return state == LEASED or state == DECIDING


cdef void slot_count(Core* core, Slot* slot, int state) noexcept nogil:
    """Move a slot to `state` and count: for its channel, and for the queue, where a message counts once."""
    cdef Share* share = share_of(slot)
    cdef Channel* channel = share.channel
    cdef Queue* queue = channel.queue
    cdef Tally* tally
    cdef int before = slot.state
    cdef bint others_pending = False
    cdef bint others_in_flight = False
    core.counters.work += 1
    if before == READY:
        channel.ready -= 1
    elif before == DELAYED:
        channel.delayed -= 1
    elif _is_in_flight(before):
        channel.in_flight -= 1
    if state == READY:
        channel.ready += 1
    elif state == DELAYED:
        channel.delayed += 1
    elif _is_in_flight(state):
        channel.in_flight += 1
    if slot_waits(slot, before) != slot_waits(slot, state):
        if slot_waits(slot, state):
            waiting_begins(slot)
        else:
            waiting_ends(slot)
    slot.state = <uint8_t> state
    if share.frame.tallies != NULL:
        tally = &share.frame.tallies[slot.index]
        tally.pending += _is_pending(state)
        tally.pending -= _is_pending(before)
        tally.in_flight += _is_in_flight(state)
        tally.in_flight -= _is_in_flight(before)
        tally.undone += state != DONE
        tally.undone -= before != DONE
        others_pending = tally.pending > _is_pending(state)
        others_in_flight = tally.in_flight > _is_in_flight(state)
    if not others_pending:
        if _is_pending(state) and not _is_pending(before):
            queue.depth += 1
        elif _is_pending(before) and not _is_pending(state):
            queue.depth -= 1
    if not others_in_flight:
        if _is_in_flight(state) and not _is_in_flight(before):
            queue.in_flight += 1
        elif _is_in_flight(before) and not _is_in_flight(state):
            queue.in_flight -= 1


cdef void slot_unplaced(Slot* slot) noexcept nogil:
    cdef Frame* frame = share_of(slot).frame
    if slot.state == DONE and frame.tallies != NULL:
        frame.tallies[slot.index].undone += 1
    slot.state = UNPLACED


cdef inline bint _is_first(Flow* flow, Slot* slot) noexcept nogil:
    """Of what may go of a flow that has sub-queues. One with a new position is where its priority says so."""
    cdef Placed* plain = fifo_first(&flow.fifo)
    cdef Subqueue* sub
    if flow.subqueues == NULL or flow.subqueues.eligible == NULL:
        return False
    sub = <Subqueue*> flow.subqueues.eligible
    if plain == NULL or sub.node.rank < plain.position:
        return fifo_first(&sub.fifo) == &slot.place
    return plain == &slot.place


cdef void slot_ready(Core* core, Slot* slot, bint old_place) noexcept nogil:
    """Make a message deliverable: at the back with a new position, or at its old place."""
    cdef Share* share = share_of(slot)
    cdef Channel* channel = share.channel
    cdef Entry* entry = &share.frame.entries[slot.index]
    cdef Flow* flow = flow_of(core, entry.key, channel)
    cdef uint32_t priority = entry_priority(entry)
    cdef Subqueue* sub
    cdef Fifo* fifo
    cdef bint was_delayed = slot.state == DELAYED
    flow.arrived += slot.state == DONE or slot.state == UNPLACED
    flow_fills(core, flow)
    slot_count(core, slot, READY)
    if not old_place:
        slot.place.position = channel.next_position
        channel.next_position += 1
    if channel.queue.is_dlq or entry.set == NULL and priority == PRIORITY_USUAL:
        slot.owner = NULL
        fifo = &flow.fifo
        sub = NULL
    else:
        sub = subqueue_of(core, flow, entry.set, priority)
        slot.owner = sub
        fifo = &sub.fifo
        subqueue_counts(sub, 1)
    if old_place:
        fifo_return(fifo, &slot.place)
    else:
        fifo_append(fifo, &slot.place)
    wait_begins(core, slot, flow, sub, was_delayed)
    if sub != NULL:
        sub_gains(core, slot, sub)
        subqueue_changed(core, sub)
    flow.backlog += 1
    if flow.joined:
        if old_place or _is_first(flow, slot):
            flow_again(flow)            # it stands before what the flow saves for
        channel_activate(core, channel)
    else:
        flow_reconsider(core, flow)


cdef void slot_unready(Core* core, Slot* slot) noexcept nogil:
    """Take a ready message out of its fifo; the caller gives it its next state at once."""
    cdef Share* share = share_of(slot)
    cdef Entry* entry = &share.frame.entries[slot.index]
    cdef Flow* flow = flow_find(entry.key, share.channel)
    cdef Subqueue* sub = <Subqueue*> slot.owner
    cdef Fifo* fifo = &flow.fifo if sub == NULL else &sub.fifo
    clock_note(core, flow)
    # purged or expired, it may be what the flow saves for
    if (
        (flow.turn.place == DEFERRED or share.channel.committed != NULL)
        and fifo_first(fifo) == &slot.place
    ):
        flow_again(flow)
    if sub != NULL:
        sub_loses(core, slot, sub)
    fifo_remove(fifo, &slot.place)
    if sub != NULL:
        subqueue_counts(sub, -1)
        if fifo_first(fifo) == NULL:
            subqueue_free(core, sub)
        else:
            subqueue_changed(core, sub)
    slot.owner = NULL
    flow.backlog -= 1
    flow_emptied(flow)
    # Purged or expired in a line, it may be what the next one of its key waited for.
    if flow.backlog == 0 or flow.parked == PARKED_THROTTLED and flow_is_in_order(flow):
        flow_reconsider(core, flow)
