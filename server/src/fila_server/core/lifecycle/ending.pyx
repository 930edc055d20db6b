"""Records go into the pass's batch; a share is
written once a pass, however many acks it saw."""

from libc.stdlib cimport free

from fila_server.core.formats.records cimport (
    frame_record_delete, lease_extension_delete, settled_record_delete, settled_record_put,
)
from fila_server.core.formats.state_records cimport state_record_delete
from fila_server.core.history.decisions cimport DROPPED, RETURNED, ending_is, lease_decided, slot_ends
from fila_server.core.index.delays cimport expiry_drop, slot_delay_end, successor_goes
from fila_server.core.index.frames cimport (
    frame_awaited, frame_finish, frame_free, frame_prefetch_key, frame_retained,
)
from fila_server.core.index.holders cimport holder_loses, holder_stop, lease_unlink
from fila_server.core.index.leases cimport group_leave, leased_id_remove
from fila_server.core.index.visits cimport visit_soon
from fila_server.core.index.slots cimport slot_count, slot_unready
from fila_server.core.lifecycle.answers cimport emit, reveal_ends
from fila_server.core.lifecycle.revoked cimport lease_revoke
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport LOST, OK
from fila_server.core.protocol.protobuf cimport put_number_field, put_text_field
from fila_server.core.scheduling.clocks cimport channel_room
from fila_server.core.scheduling.eligibility cimport channel_activate
from fila_server.core.scheduling.flows cimport flow_find, flow_holds
from fila_server.core.scheduling.tokens cimport set_freed
from fila_server.core.state.directory cimport directory_at, directory_remove, frame_index
from fila_server.core.state.kinds cimport DECIDING, DELAYED, DONE, LEASED, READY, RECORDED, RETURN_ALL
from fila_server.core.state.paths cimport entry_of, frame_offset, share_find, share_of
from fila_server.core.state.pending cimport LeaseGroup
from fila_server.core.state.state cimport Channel, Consumer, Flow, Queue
from fila_server.core.structures.buffer cimport Buffer, Slice, buffer_init
from fila_server.core.structures.maps cimport map64_get, map64_remove
from fila_server.core.structures.timers cimport timer_cancel


cdef void lease_end(Core* core, Lease* lease) noexcept nogil:
    cdef LeaseRecord kept = lease_let_go(core, lease)
    lease_forget(core, &kept)


cdef void lease_forget(Core* core, LeaseRecord* kept) noexcept nogil:
    cdef LeaseGroup* group = kept.group
    if group == NULL:
        return
    kept.group = NULL
    if kept.extended:
        lease_extension_delete(core, group, kept.lease_id)
    group_leave(core, group)


cdef LeaseRecord lease_let_go(Core* core, Lease* lease) noexcept nogil:
    cdef Slot* slot = lease.slot
    cdef LeaseRecord kept
    cdef Consumer* consumer = lease.consumer
    cdef Flow* flow = flow_find(entry_of(slot).key, share_of(slot).channel)
    kept.group, kept.lease_id, kept.extended = lease.group, lease.lease_id, lease.extended
    frame_prefetch_key(share_of(slot).frame, slot.index)
    timer_cancel(&core.timers, &lease.timer)
    if consumer != NULL:
        lease_unlink(lease)
        if consumer.holder != NULL and consumer.holder.stopped != NULL and not consumer.away:
            holder_stop(consumer)       # else it took what it gave back before who waits for that is woken
        else:
            channel_room(core, consumer.channel, True)
            if consumer.channel.ready:
                channel_activate(core, consumer.channel)
    if not lease.begun:
        share_of(slot).channel.unbegun -= 1
    if share_of(slot).frame.own_ids != NULL:
        leased_id_remove(core, lease)
    if lease.delivery != NULL:
        lease.delivery.leases[lease.at] = NULL
    if lease.successor != NULL:
        successor_goes(core, lease)
    holder_loses(core, lease)
    map64_remove(&core.leases, lease.lease_id)
    slot.owner = NULL
    flow_holds(core, flow, -1)
    if lease.is_limited:
        set_freed(core, entry_of(slot).set)
    free(lease)
    return kept


cdef void share_dirty(Core* core, Share* share) noexcept nogil:
    if not share.dirty and not share.channel.gone:
        share.dirty = True
        share.next_dirty = core.dirty_shares
        core.dirty_shares = share


cdef void slot_detach(Core* core, Slot* slot) noexcept nogil:
    """Out of whatever it stands in: fifo, delay, lease, decision. The
    caller gives it its next state at once."""
    cdef Flow* flow
    if slot.state == READY:
        slot_unready(core, slot)
    elif slot.state == DELAYED:
        slot_delay_end(core, slot)
    elif slot.state == LEASED and slot.owner != NULL:
        lease_decided(core, RETURNED, <Lease*> slot.owner, NULL, 0)
        lease_revoke(core, <Lease*> slot.owner)
        lease_end(core, <Lease*> slot.owner)
    elif slot.state == DECIDING and slot.owner != NULL:
        slot.owner = NULL               # the decision finds nobody to decide for
        flow = flow_find(entry_of(slot).key, share_of(slot).channel)
        flow_holds(core, flow, -1)


cdef void slot_stop(Core* core, Slot* slot) noexcept nogil:
    """The channel wants it no more. Nothing of it is stored."""
    slot_detach(core, slot)
    slot_ends(core, slot)
    slot_count(core, slot, DONE)


cdef void slot_done(Core* core, Slot* slot) noexcept nogil:
    """This channel is done with the message."""
    cdef Share* share = share_of(slot)
    cdef Frame* frame = share.frame
    slot_stop(core, slot)
    if slot.marks & RECORDED:
        state_record_delete(core, slot)
    share.remaining -= 1
    share_dirty(core, share)
    entry_unwanted(core, frame, slot.index)


cdef bint slot_cancel(Core* core, Slot* slot) noexcept nogil:
    cdef Lease* lease = <Lease*> slot.owner if slot.state == LEASED else NULL
    cdef bint is_held = lease != NULL and not (
        lease.consumer != NULL and lease.consumer.fate == RETURN_ALL)       # it let go of it
    share_of(slot).channel.queue.counters.cancelled += 1
    share_of(slot).channel.touched_ms = core.wall_ms
    ending_is(core, DROPPED, b"cancelled", 0, 0)
    core.revoking = b"CANCELLED"
    slot_done(core, slot)
    core.revoking = NULL
    return is_held


cdef void slot_replaced(Core* core, Slot* slot) noexcept nogil:
    share_of(slot).channel.queue.counters.replaced += 1
    ending_is(core, DROPPED, b"replaced", 0, 0)
    slot_done(core, slot)


cdef void entry_unwanted(Core* core, Frame* frame, uint32_t index) noexcept nogil:
    """A channel lost interest in this message; count it out when it was the last one."""
    if frame.tallies != NULL:
        if frame.tallies[index].undone:
            return
    elif frame.shares.slots[index].state != DONE:
        return
    if frame_awaited(core, frame):
        return
    frame.live -= 1
    frame.live_bytes -= frame.entries[index].length
    if not frame.dying:
        frame.queue.unwanted_bytes += frame.entries[index].length
        visit_soon(core, frame.queue)


cdef void settled_flush(Core* core) noexcept nogil:
    cdef Share* share = core.dirty_shares
    cdef Share* following
    cdef Frame* frame
    cdef Frame* next_frame
    core.dirty_shares = NULL
    while share != NULL:
        following = share.next_dirty
        share.dirty = False
        share.next_dirty = NULL
        frame = share.frame
        if frame.live == 0 and not frame_retained(core, frame):
            frame_finish(core, frame)
        elif not frame.dying:
            settled_record_put(core, share)
        share = following
    frame = core.dying
    core.dying = NULL
    while frame != NULL:
        next_frame = frame.next_dying
        _frame_delete(core, frame)
        frame = next_frame


cdef void _frame_delete(Core* core, Frame* frame) noexcept nogil:
    """Off the disk and out of memory. A frame that is dropped
    unfinished had its slots ended by the caller."""
    cdef Queue* queue = frame.queue
    cdef Share* share = frame.shares
    cdef uint32_t i
    if not frame.revealed:              # lost to damage before all its channels had it
        reveal_ends(core, frame)
        queue.arriving -= frame.count
        queue.arriving_durable -= frame.durable
        free(frame.times)
    if frame.has_expiries:
        for i in range(frame.count):
            expiry_drop(core, queue, frame_offset(frame, i))
    frame_record_delete(core, frame)
    while share != NULL:
        if share.recorded:
            settled_record_delete(core, queue.number, share.channel.number, frame.first_offset)
        share = share.next_of_frame
    directory_remove(&queue.directory, frame)
    frame_free(core, frame)


cdef void _report_lost(Core* core, Frame* frame) noexcept nogil:
    cdef Buffer event
    cdef Slice name
    buffer_init(&event)
    name.at, name.length = frame.queue.text.bytes, frame.queue.text.length
    put_text_field(&event, v1.READ_LOG_REQUEST_QUEUE, name)
    put_number_field(&event, v1.READ_LOG_REQUEST_FROM_OFFSET, frame_offset(frame, 0))
    put_number_field(&event, v1.READ_LOG_REQUEST_TO_OFFSET, frame_offset(frame, frame.count - 1))
    emit(core, frame.live, LOST, OK, &event, False)


cdef void frame_lost(Core* core, Frame* frame) noexcept nogil:
    """Its bytes are damaged or gone: what is left of it is dropped, counted and reported."""
    cdef Share* share = frame.shares
    cdef Slot* slot
    cdef uint32_t i
    core.counters.lost_ranges += 1
    core.counters.lost_messages += frame.live
    _report_lost(core, frame)
    while share != NULL:
        for i in range(frame.count):
            slot = &share.slots[i]
            if slot.state != DONE:
                ending_is(core, DROPPED, b"damaged", 0, 0)
                slot_done(core, slot)
        share = share.next_of_frame
    frame_finish(core, frame)


cdef Channel* _by_number(Channel* channel, uint64_t number) noexcept nogil:
    while channel != NULL and channel.number != number:
        channel = channel.next
    return channel


cdef Slot* slot_at(
        Core* core, uint64_t queue_number, uint64_t channel_number, uint64_t offset) noexcept nogil:
    """The slot of a message in a channel, or NULL: the message, the channel or the queue may be gone."""
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, queue_number)
    cdef Channel* channel
    cdef Frame* frame
    cdef Share* share
    cdef uint32_t i
    if queue == NULL:
        return NULL
    channel = _by_number(queue.channels, channel_number)
    if channel == NULL:
        channel = _by_number(queue.gone, channel_number)
    frame = directory_at(&queue.directory, offset)
    if channel == NULL or frame == NULL:
        return NULL
    share = share_find(frame, channel)
    if share == NULL:
        return NULL
    i = frame_index(frame, offset)
    return &share.slots[i] if i < frame.count else NULL
