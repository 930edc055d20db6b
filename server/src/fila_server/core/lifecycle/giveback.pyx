"""The slot's old position puts it where it stood; what comes back often is told of once."""

from libc.stdint cimport uint64_t

from fila_server.core.formats.state_records cimport state_record_returned
from fila_server.core.history.decisions cimport RETURNED, lease_decided, slot_ends
from fila_server.core.index.delays cimport message_is_over
from fila_server.core.index.leases cimport MARK_RETURNED, group_mark
from fila_server.core.index.slots cimport slot_count, slot_ready
from fila_server.core.lifecycle.ending cimport lease_end, slot_replaced
from fila_server.core.lifecycle.failure cimport slot_expire
from fila_server.core.lifecycle.revoked cimport KEEPS_RETURNING, notice
from fila_server.core.scheduling.allowances cimport rate_limit_refund
from fila_server.core.scheduling.clocks cimport cost_returned
from fila_server.core.scheduling.flows cimport flow_find
from fila_server.core.scheduling.tokens cimport slot_refund
from fila_server.core.state.kinds cimport BEGUN_ONCE, DONE, RECORDED, RECORDED_RETURN, RETURNED_ONCE
from fila_server.core.state.paths cimport (
    entry_cost, entry_of, flow_first_turn, frame_offset, key_committed, lease_is_gone, share_of, slot_returns,
)
from fila_server.core.state.pending cimport FirstTurn
from fila_server.core.state.state cimport Channel, Entry, Flow, Slot
from fila_server.core.structures.ring cimport ring_refund

cdef enum:
    RETURNS_REPORTED = 10
    NOTICED_EVERY_MS = 1000


cdef void _mark(Slot* slot, bint begun) noexcept nogil:
    """Its next delivery says that it came back, and whether somebody had begun it."""
    if begun:
        slot.marks |= BEGUN_ONCE
    if slot.marks <= 0xFF - RETURNED_ONCE:
        slot.marks += RETURNED_ONCE


cdef void lease_return(Core* core, Lease* lease, int how) noexcept nogil:
    """Back to its old place, with the attempts it had. What it cost comes back up to one grant, its tokens
    only where nobody can have used them: what was not written, and what the consumer says it has not looked
    at."""
    cdef Slot* slot = lease.slot
    cdef Entry* entry = entry_of(slot)
    cdef Channel* channel = share_of(slot).channel
    cdef Flow* flow = flow_find(entry.key, channel)
    cdef uint64_t lease_id = lease.lease_id
    cdef bint committed = lease.committed
    cdef FirstTurn* first
    cdef bint begun_first = lease.begun and not slot.marks & BEGUN_ONCE
    cdef bint is_replaced = lease.successor != NULL
    if lease_is_gone(lease):
        lease_decided(core, RETURNED, lease, NULL, 0)
        lease_end(core, lease)
        slot_ends(core, slot)
        slot_count(core, slot, DONE)
        return
    if lease.consumer != NULL:
        lease.consumer.returned += 1
    if how != UNWRITTEN:
        _mark(slot, lease.begun)
    lease_decided(core, RETURNED, lease, NULL, 0)
    # Others of its record may live on, and it must not come back with them.
    group_mark(core, lease.group, lease.lease_id, MARK_RETURNED)
    lease_end(core, lease)
    # One that failed before says so by its attempts. One that was enqueued with a delay has its place in its
    # record, and forgets over a restart that it came back.
    if how != UNWRITTEN and not is_replaced and (
        not slot.marks & RECORDED or begun_first and slot.marks & RECORDED_RETURN
    ):
        state_record_returned(core, slot, lease_id)
    if how != MAY_BE_SEEN:
        slot_refund(core, slot, flow)
        if committed and key_committed(flow.key) != NULL:
            rate_limit_refund(core, &key_committed(flow.key).limit)
    if message_is_over(core, slot):
        channel.queue.counters.ttl_dropped += 1
        slot_expire(core, slot)
    elif is_replaced:
        slot_replaced(core, slot)
    else:
        slot_ready(core, slot, True)
    cost_returned(core, flow, entry_cost(entry))
    if committed:
        first = flow_first_turn(flow)
        if first != NULL:
            ring_refund(channel.committed, &first.turn, entry_cost(entry))
    elif flow.joined or flow.parked:
        ring_refund(&channel.ring, &flow.turn, entry_cost(entry))
    if slot_returns(slot) == RETURNS_REPORTED and core.wall_ms - channel.noticed_ms >= NOTICED_EVERY_MS:
        channel.noticed_ms = core.wall_ms
        notice(core, KEEPS_RETURNING, channel.queue, channel, frame_offset(share_of(slot).frame, slot.index))
    channel.returned += 1
    channel.queue.counters.returned += 1
