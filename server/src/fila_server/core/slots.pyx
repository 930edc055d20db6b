"""See slots.pxd."""

from libc.stdint cimport uint8_t

from fila_server.core.drr cimport WAITING, ring_again
from fila_server.core.flows cimport (
    channel_activate, flow_find, flow_of, flow_reconsider, subqueue_free, subqueue_of, subqueue_rank,
)
from fila_server.core.frames cimport share_of
from fila_server.core.state cimport (
    Channel, DECIDING, DELAYED, Entry, Fifo, Flow, LEASED, Queue, READY, Share, Subqueue,
)
from fila_server.core.waits cimport flow_emptied, flow_fills, waits_note


# --- fifos ---------------------------------------------------------------------------------

cdef void _fifo_append(Fifo* fifo, Slot* slot) noexcept nogil:
    slot.next = NULL
    slot.prev = fifo.tail
    if fifo.tail != NULL:
        fifo.tail.next = slot
    else:
        fifo.head = slot
    fifo.tail = slot


cdef void _fifo_insert(Fifo* fifo, Slot* slot) noexcept nogil:
    """By position. What comes back to its old place was near the front, and near what came back before it, in
    either order: the search begins where the last one ended, or at the front where that is nearer to the place."""
    cdef Slot* after = fifo.hint if fifo.hint != NULL else fifo.head
    if fifo.head != NULL and slot.position < fifo.head.position:
        after = fifo.head
    while after != NULL and after.position < slot.position:
        after = after.next
    while after != NULL and after.prev != NULL and after.prev.position > slot.position:
        after = after.prev
    fifo.hint = slot
    if after == NULL:
        _fifo_append(fifo, slot)
        return
    slot.next = after
    slot.prev = after.prev
    if after.prev != NULL:
        after.prev.next = slot
    else:
        fifo.head = slot
    after.prev = slot


cdef void _fifo_remove(Fifo* fifo, Slot* slot) noexcept nogil:
    if fifo.hint == slot:
        fifo.hint = slot.next if slot.next != NULL else slot.prev
    if slot.prev != NULL:
        slot.prev.next = slot.next
    else:
        fifo.head = slot.next
    if slot.next != NULL:
        slot.next.prev = slot.prev
    else:
        fifo.tail = slot.prev
    slot.next = slot.prev = NULL


# --- states --------------------------------------------------------------------------------

cdef inline bint _is_pending(int state) noexcept nogil:
    return state == READY or state == DELAYED


cdef inline bint _is_in_flight(int state) noexcept nogil:
    return state == LEASED or state == DECIDING


cdef void slot_count(Core* core, Slot* slot, int state) noexcept nogil:
    """Move a slot to `state` and count: for its channel, and for the queue, where a message counts once."""
    cdef Share* share = share_of(slot)
    cdef Channel* channel = share.channel
    cdef Queue* queue = channel.queue
    cdef Share* other
    cdef int before = slot.state
    cdef bint others_pending = False
    cdef bint others_in_flight = False
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
    slot.state = <uint8_t> state
    if queue.channel_count > 1:
        other = share.frame.shares
        while other != NULL:
            if other != share:
                others_pending = others_pending or _is_pending(other.slots[slot.index].state)
                others_in_flight = others_in_flight or _is_in_flight(other.slots[slot.index].state)
            other = other.next_of_frame
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


cdef void slot_ready(Core* core, Slot* slot, bint old_place) noexcept nogil:
    """Make a message deliverable: at the back with a new position, or at its old place."""
    cdef Share* share = share_of(slot)
    cdef Channel* channel = share.channel
    cdef Entry* entry = &share.frame.entries[slot.index]
    cdef Flow* flow = flow_of(core, entry.key, channel)
    cdef Subqueue* sub
    cdef Fifo* fifo
    flow_fills(core, flow)
    slot_count(core, slot, READY)
    if not old_place:
        slot.position = channel.next_position
        channel.next_position += 1
    if entry.set == NULL or channel.queue.is_dlq:
        slot.owner = NULL
        fifo = &flow.fifo
        sub = NULL
    else:
        sub = subqueue_of(core, flow, entry.set)
        slot.owner = sub
        fifo = &sub.fifo
        sub.count += 1
        if sub.line != NULL:
            flow.held += 1
    if old_place:
        _fifo_insert(fifo, slot)
    else:
        _fifo_append(fifo, slot)
    if sub != NULL:
        subqueue_rank(sub)
    flow.backlog += 1
    if flow.joined:
        if old_place:
            ring_again(&channel.ring, &flow.turn)       # it stands before what the flow saves for
        channel_activate(core, channel)
    else:
        flow_reconsider(core, flow)


cdef void slot_unready(Core* core, Slot* slot) noexcept nogil:
    """Take a ready message out of its fifo; the caller gives it its next state at once."""
    cdef Share* share = share_of(slot)
    cdef Entry* entry = &share.frame.entries[slot.index]
    cdef Flow* flow = flow_find(entry.key, share.channel)
    cdef Subqueue* sub = <Subqueue*> slot.owner
    waits_note(core, flow)
    if flow.turn.place == WAITING and slot.prev == NULL:    # purged or expired, it may be what the flow saves for
        ring_again(&share.channel.ring, &flow.turn)
    if sub == NULL:
        _fifo_remove(&flow.fifo, slot)
    else:
        _fifo_remove(&sub.fifo, slot)
        sub.count -= 1
        if sub.line != NULL:
            flow.held -= 1
        if sub.fifo.head == NULL:
            subqueue_free(core, sub)
        else:
            subqueue_rank(sub)
    slot.owner = NULL
    flow.backlog -= 1
    flow_emptied(flow)
    if flow.backlog == 0:
        flow_reconsider(core, flow)
