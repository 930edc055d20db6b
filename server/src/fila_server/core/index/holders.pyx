"""A holder with room again and consumers that stopped stands on a list, and is not freed while it does."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.protocol cimport seam
from fila_server.core.scheduling.clocks cimport channel_room
from fila_server.core.scheduling.eligibility cimport channel_activate
from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.maps cimport map64_get, map64_put, map64_remove


cdef void holder_join(Core* core, Consumer* consumer, const Fields* opening) noexcept nogil:
    cdef Holder* holder
    cdef uint64_t number = opening.number[seam.OPENER_PRINCIPAL]
    if number == 0:
        return
    holder = <Holder*> map64_get(&core.holders, number)
    if holder == NULL:
        holder = <Holder*> must_malloc(sizeof(Holder))
        memset(holder, 0, sizeof(Holder))
        holder.number = number
        map64_put(&core.holders, number, holder)
    holder.consumers += 1
    consumer.holder = holder
    holder_bound(core, holder, <uint32_t> opening.number[seam.OPENER_MOST])
    if holder.stopped != NULL and holder.most:
        holder_stop(consumer)       # else who asks beside each ack took every place before who waits for it


cdef void _forget_if_unused(Core* core, Holder* holder) noexcept nogil:
    if holder.consumers == 0 and holder.in_flight == 0 and holder.refused == 0 and not holder.waking:
        map64_remove(&core.holders, holder.number)
        free(holder)


cdef void holder_unstop(Consumer* consumer) noexcept nogil:
    cdef Holder* holder = consumer.holder
    if consumer.next_stopped == NULL:
        return
    if consumer.next_stopped == consumer:
        holder.stopped = NULL
    else:
        consumer.prev_stopped.next_stopped = consumer.next_stopped
        consumer.next_stopped.prev_stopped = consumer.prev_stopped
        if holder.stopped == consumer:
            holder.stopped = consumer.next_stopped
    consumer.next_stopped = consumer.prev_stopped = NULL


cdef void holder_leave(Core* core, Consumer* consumer) noexcept nogil:
    cdef Holder* holder = consumer.holder
    if holder == NULL:
        return
    holder_unstop(consumer)
    consumer.holder = NULL
    holder.consumers -= 1
    _forget_if_unused(core, holder)


cdef void holder_takes(Holder* holder, Lease* lease) noexcept nogil:
    lease.holder = holder
    if holder != NULL:
        holder.in_flight += 1


cdef void holder_loses(Core* core, Lease* lease) noexcept nogil:
    cdef Holder* holder = lease.holder
    if holder == NULL:
        return
    lease.holder = NULL
    holder.in_flight -= 1
    _wake_later(core, holder)
    _forget_if_unused(core, holder)


cdef void holder_moves(Core* core, Lease* lease, Holder* holder) noexcept nogil:
    if lease.holder != holder:
        holder_loses(core, lease)
        holder_takes(holder, lease)


cdef void holder_stop(Consumer* consumer) noexcept nogil:
    """Behind those that stopped before, so that the longest stopped is looked at first."""
    cdef Holder* holder = consumer.holder
    cdef Consumer* first = <Consumer*> holder.stopped
    if consumer.next_stopped != NULL:
        return
    if first == NULL:
        holder.stopped = consumer.next_stopped = consumer.prev_stopped = consumer
        return
    consumer.next_stopped = first
    consumer.prev_stopped = first.prev_stopped
    first.prev_stopped.next_stopped = consumer
    first.prev_stopped = consumer


cdef void _wake_later(Core* core, Holder* holder) noexcept nogil:
    if holder.waking or holder.stopped == NULL or holder_room(holder) == 0:
        return
    holder.waking = True
    holder.next_waking = NULL
    if core.waking_last == NULL:
        core.waking = holder
    else:
        core.waking_last.next_waking = holder
    core.waking_last = holder


cdef bint _wake(Core* core, Holder* holder) noexcept nogil:
    """As many of its consumers as there is room for, of those who find something ready: should these take
    nothing all the same, the next pass wakes the next. True: there is nobody left to wake, or no room."""
    cdef Consumer* consumer
    cdef uint32_t room = holder_room(holder)
    while holder.stopped != NULL and room and stage_goes_on(core):
        core.counters.work += 1
        consumer = <Consumer*> holder.stopped
        holder_unstop(consumer)
        channel_room(core, consumer.channel, True)
        if consumer.channel.ready:
            channel_activate(core, consumer.channel)
            room -= 1
    return holder.stopped == NULL or holder_room(holder) == 0


cdef bint holders_wake(Core* core) noexcept nogil:
    cdef Holder* holder = core.waking
    cdef Holder* following
    cdef Holder* last = core.waking_last
    while holder != NULL and stage_goes_on(core):
        following = holder.next_waking if holder != last else NULL
        core.waking = holder.next_waking
        if core.waking == NULL:
            core.waking_last = NULL
        holder.waking = False
        if _wake(core, holder):
            _forget_if_unused(core, holder)
        else:
            _wake_later(core, holder)       # behind the others
        holder = following
    return core.waking != NULL


cdef void holder_bound(Core* core, Holder* holder, uint32_t most) noexcept nogil:
    holder.most = most
    _wake_later(core, holder)


cdef void holder_reported(Core* core, Holder* holder) noexcept nogil:
    holder.refused = 0
    _forget_if_unused(core, holder)


cdef void lease_unlink(Lease* lease) noexcept nogil:
    cdef Consumer* consumer = lease.consumer
    if lease.prev != NULL:
        lease.prev.next = lease.next
    else:
        consumer.leases = lease.next
    if lease.next != NULL:
        lease.next.prev = lease.prev
    consumer.in_flight -= 1
    consumer.begun -= lease.begun
    if lease.delivery != NULL:
        lease.delivery.leases[lease.at] = NULL
        lease.delivery = NULL
