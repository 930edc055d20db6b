"""Channels take turns, and in each its consumers. A pick is charged to its flow, pays its buckets and
gets its lease before anything is encoded, so what is sent later, or never, is counted all the same.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from fila_server.core.formats.records cimport lease_record_put, reservation_record_put
from fila_server.core.formats.reservations cimport LEASE_IDS_RESERVED
from fila_server.core.history.decisions cimport DELIVERED, Detail, slot_decided
from fila_server.core.index.bodies cimport frame_want
from fila_server.core.index.frames cimport frame_key_near, frame_prefetch_key
from fila_server.core.index.holders cimport holder_room, holder_stop, holder_takes, lease_link
from fila_server.core.index.leases cimport group_new, leased_id_add
from fila_server.core.index.policy cimport channel_paused
from fila_server.core.index.slots cimport slot_count, slot_unready
from fila_server.core.lifecycle.sending cimport message_bytes, send_what_is_ready
from fila_server.core.scheduling.allowances cimport rate_limit_is_out, rate_limit_take
from fila_server.core.scheduling.clocks cimport channel_room, channel_served
from fila_server.core.scheduling.eligibility cimport channel_deactivate
from fila_server.core.scheduling.flows cimport (
    flow_find, flow_holds, flow_next, flow_reconsider, key_reconsider,
)
from fila_server.core.scheduling.tokens cimport channel_full, set_wake, slot_pay
from fila_server.core.scheduling.waits cimport wait_of
from fila_server.core.state.budget cimport WORK_PER_STAGE
from fila_server.core.state.kinds cimport LEASED, PULL, STREAM, TIMER_LEASE
from fila_server.core.state.paths cimport (
    entry_cost, entry_of, flow_delivers, flow_leases, frame_enqueued_ms, frame_of, key_committed,
    key_rate_limit, share_of, slot_cost,
)
from fila_server.core.state.pending cimport FirstTurn, KeyRateLimit, LeaseGroup
from fila_server.core.state.state cimport (
    Channel, Delivery, Entry, Flow, Frame, Key, Lease, Queue, Slot, Subqueue,
)
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.maps cimport map64_put
from fila_server.core.structures.prefetch cimport prefetch_cell, prefetch_lines
from fila_server.core.structures.ring cimport Ring, Turn, ring_afford, ring_charge, ring_turn
from fila_server.core.structures.timers cimport timer_set
from fila_server.core.threads.blocks cimport Waited

cdef enum:
    FRAME_BYTES_MAX = 1048576       # several frames on the way beat one long one
    PULL_BYTES_MAX = 4128768        # under 4 MiB with its metadata
    UNWRITTEN_MAX = 2
    UNWRITTEN_SINGLE_MAX = 32       # of one message each


cdef uint32_t consumer_room(Consumer* consumer) noexcept nogil:
    """How many more messages it may be given now."""
    cdef uint32_t most = UNWRITTEN_MAX
    cdef uint32_t room = holder_room(consumer.holder)
    if consumer.kind == PULL:
        return min(room, consumer.max_batch) if consumer.first == NULL else 0
    if consumer.max_batch == 1:
        most = UNWRITTEN_SINGLE_MAX
    if consumer.unwritten >= most or consumer.in_flight >= consumer.limit:
        return 0
    return min(room, consumer.limit - consumer.in_flight)


# --- picking ---------------------------------------------------------------------------------

cdef Slot* _pick(
        Core* core, Channel* channel, uint64_t room_bytes, bint first, Waited* waited,
        bint* committed) noexcept nogil:
    """The next message in the order of the rings, charged and out of its fifo; NULL when none may go or fits.
    `committed`: its key is within its committed rate."""
    cdef Ring* ring = &channel.ring
    cdef Turn* turn
    cdef Flow* flow
    cdef Slot* slot
    cdef Entry* entry
    cdef KeyRateLimit* rate_limit
    cdef Key* near
    cdef uint32_t cost
    while True:
        turn = NULL
        if channel.committed != NULL:
            ring = channel.committed
            turn = ring_turn(ring)
        if turn == NULL:
            ring = &channel.ring
            turn = ring_turn(ring)
        if turn == NULL:
            return NULL
        # With a million keys each one's lines are far from memory's caches; the next one's come meanwhile.
        prefetch_lines(<char*> turn.next - 64)      # with its Key, which it is part of
        flow = <Flow*> turn if ring == &channel.ring else <Flow*> (<FirstTurn*> turn).flow
        slot = flow_next(core, flow)
        if slot == NULL:
            flow_reconsider(core, flow)         # all of it waits in lines: off the ring
            continue
        entry = entry_of(slot)
        frame_prefetch_key(frame_of(slot), slot.index)
        near = frame_key_near(frame_of(slot), slot.index)
        if near != NULL and channel.clocks.count and not near.first.no_clock:
            prefetch_cell(&channel.clocks, &near.text)      # where clocks.pyx looks for its row
        cost = entry_cost(entry)
        if not ring_afford(ring, turn, cost):
            continue
        if not first and message_bytes(slot) > room_bytes:
            return NULL
        if core.history != NULL:
            waited[0] = wait_of(core, slot, flow, <Subqueue*> slot.owner)
        slot_pay(core, slot)
        rate_limit = key_rate_limit(flow.key)
        if rate_limit != NULL:
            rate_limit_take(core, rate_limit)
        committed[0] = ring != &channel.ring
        if committed[0]:
            rate_limit_take(core, &key_committed(flow.key).limit)
            (<FirstTurn*> turn).served += cost
        ring_charge(ring, turn, cost)
        flow.served += cost
        channel.served += cost
        flow_leases(flow)
        slot_unready(core, slot)
        if entry.set != NULL:
            set_wake(core, entry.set)
        return slot


cdef bint leases_reserve(Core* core, uint32_t count) noexcept nogil:
    """Lease ids promised on disk before they are given out, so that no power cut repeats one."""
    if core.next_lease_id + LEASE_IDS_RESERVED // 2 > core.lease_id_reserved:
        core.lease_id_reserved = core.next_lease_id + LEASE_IDS_RESERVED
        core.lease_id_epoch = core.epoch
        reservation_record_put(core, b"leases", core.lease_id_reserved)
        core.sync_wanted = True
    elif core.durable >= core.lease_id_epoch:
        core.lease_id_durable = core.lease_id_reserved
    return core.next_lease_id + count <= core.lease_id_durable


cdef Lease* _lease(
        Core* core, Slot* slot, Consumer* consumer, LeaseGroup* group, int64_t timeout_ms,
        bint committed) noexcept nogil:
    cdef Lease* lease = <Lease*> must_malloc(sizeof(Lease))
    cdef Channel* channel = consumer.channel
    cdef Flow* flow
    cdef KeyRateLimit* rate_limit
    memset(lease, 0, sizeof(Lease))
    lease.timer.kind = TIMER_LEASE
    lease.lease_id = core.next_lease_id
    core.next_lease_id += 1
    lease.slot = slot
    lease.group = group
    group.live += 1
    lease.leased_ms = core.wall_ms
    lease.expires_ms = core.wall_ms + timeout_ms
    lease.due_ns = core.mono_ns + timeout_ms * 1000000
    lease.committed = committed
    lease.begun = not consumer.tracks_begun
    lease.is_limited = entry_of(slot).set != NULL and not channel.queue.is_dlq      # as slot_pay counted it
    channel.unbegun += consumer.tracks_begun
    slot_count(core, slot, LEASED)
    slot.owner = lease
    map64_put(&core.leases, lease.lease_id, lease)
    if frame_of(slot).own_ids != NULL:
        leased_id_add(core, lease)
    timer_set(&core.timers, &lease.timer, lease.due_ns)
    if consumer.kind != PULL:
        lease_link(consumer, lease)
    holder_takes(consumer.holder, lease)
    flow = _flow(slot)
    flow_holds(core, flow, 1)
    if lease.begun:
        flow_delivers(flow)
    rate_limit = key_rate_limit(flow.key)
    if (
        (rate_limit != NULL and rate_limit_is_out(rate_limit))
        or (committed and rate_limit_is_out(&key_committed(flow.key).limit))
    ):
        key_reconsider(core, flow.key)          # in its other channels, too
    return lease


cdef inline Flow* _flow(Slot* slot) noexcept nogil:
    cdef Flow* flow = entry_of(slot).key.flows
    return (
        flow if flow.channel == share_of(slot).channel
        else flow_find(entry_of(slot).key, share_of(slot).channel)
    )


cdef void _latency(Core* core, Queue* queue, Slot* slot) noexcept nogil:
    cdef int64_t waited = core.wall_ms - frame_enqueued_ms(frame_of(slot), slot.index)
    cdef int bucket = 0
    if waited > 0:
        queue.latency.sum_ms += <uint64_t> waited
    while waited > 0 and bucket < 31:
        waited >>= 1
        bucket += 1
    core.counters.latency[bucket] += 1
    queue.latency.by_bits[bucket] += 1


cdef uint32_t _wanted(Consumer* consumer, uint32_t budget) noexcept nogil:
    """How many messages its next delivery may have."""
    cdef uint32_t wanted = consumer_room(consumer)
    if consumer.kind != PULL:
        wanted = min(wanted, <uint32_t> MESSAGES_PER_FRAME_MAX, budget)
        if consumer.kind == STREAM:
            wanted = min(wanted, consumer.max_batch)
    return <uint32_t> min(<uint64_t> wanted, consumer.channel.ready)


cdef Delivery* _delivery_new(uint32_t most) noexcept nogil:
    cdef Delivery* delivery = <Delivery*> must_malloc(sizeof(Delivery))
    memset(delivery, 0, sizeof(Delivery))
    delivery.leases = <Lease**> must_malloc(most * sizeof(void*))
    return delivery


cdef void _append(Consumer* consumer, Delivery* delivery) noexcept nogil:
    if consumer.last == NULL:
        consumer.first = delivery
    else:
        consumer.last.next = delivery
    consumer.last = delivery
    consumer.unwritten += 1


cdef void _count(Consumer* consumer, uint32_t count) noexcept nogil:
    """Leases; where nobody says what is begun, each is a delivery at once."""
    consumer.channel.leased += count
    consumer.channel.queue.counters.leased += count
    if not consumer.tracks_begun:
        consumer.channel.delivered += count
        consumer.channel.queue.counters.delivered += count


cdef uint32_t consumer_fill(Core* core, Consumer* consumer, uint32_t budget) noexcept nogil:
    """Give a consumer one Delivery of what goes next; returns how many messages."""
    cdef Channel* channel = consumer.channel
    cdef Queue* queue = channel.queue
    cdef uint32_t wanted = _wanted(consumer, budget)
    cdef uint32_t count = 0
    cdef uint64_t bytes_left = PULL_BYTES_MAX if consumer.kind == PULL else FRAME_BYTES_MAX
    cdef Delivery* delivery
    cdef LeaseGroup* group
    cdef Slot* slot
    cdef Lease* lease
    cdef Frame* frame
    cdef int64_t timeout_ms = consumer.lease_ms if consumer.lease_ms else <int64_t> queue.policy.visibility_ms
    cdef uint64_t served = channel.served
    cdef uint64_t weight = channel.weight
    cdef uint64_t first_served = 0              # of that, what went within committed rates
    cdef bint committed = False
    cdef uint64_t taken
    cdef Detail detail
    if wanted == 0 or channel_paused(channel) or not leases_reserve(core, wanted):
        return 0
    delivery = NULL
    group = NULL
    memset(&detail, 0, sizeof(Detail))
    detail.consumer = consumer.number if consumer.kind != PULL else consumer.token
    while count < wanted:
        slot = _pick(core, channel, bytes_left, count == 0, &detail.waited, &committed)
        if slot == NULL:
            break
        if delivery == NULL:
            delivery = _delivery_new(wanted)
            group = group_new(
                channel, core.next_lease_id, consumer.number if consumer.tracks_begun else 0, core.wall_ms)
        lease = _lease(core, slot, consumer, group, timeout_ms, committed)
        first_served += committed * slot_cost(slot)
        lease.delivery = delivery
        lease.at = count
        delivery.leases[count] = lease
        count += 1
        frame = frame_of(slot)
        if frame.body == NULL:
            frame_want(core, frame)
        _latency(core, queue, slot)
        slot_decided(core, DELIVERED, slot, &detail)
        taken = message_bytes(slot)
        if taken >= bytes_left:
            break
        bytes_left -= taken
    if delivery == NULL:
        return 0
    delivery.count = group.count = count
    delivery.consumer = consumer
    delivery.group = group
    channel_served(core, channel, channel.served - served, first_served, weight)
    _count(consumer, count)
    channel.touched_ms = core.wall_ms
    lease_record_put(core, queue, channel, delivery.leases, count)
    _append(consumer, delivery)
    send_what_is_ready(core, consumer)
    return count


# --- the turn of channels and consumers --------------------------------------------------------

cdef void deliver_ready(Core* core) noexcept nogil:
    cdef uint32_t budget = WORK_PER_STAGE
    cdef uint32_t got
    cdef Channel* channel
    cdef Channel* stop = NULL
    while budget and core.active != NULL:
        channel = core.active
        if channel == stop:
            break                               # a whole round and nobody took anything
        core.active = channel.next_active
        got = _channel_deliver(core, channel, &budget)
        if got:
            stop = NULL
        elif stop == NULL and channel.active:
            stop = channel
        if not channel.active and channel == stop:
            stop = NULL


cdef uint32_t _channel_deliver(Core* core, Channel* channel, uint32_t* budget) noexcept nogil:
    """One consumer's turn in one channel; takes the channel off the list when nothing can go. Who has no room
    and is passed over costs as much as a message does: where the budget ends, the next pass goes on there."""
    cdef Consumer* consumer = channel.turn
    cdef uint32_t got
    if channel.ready == 0 or consumer == NULL or channel_paused(channel):
        if consumer == NULL or channel_paused(channel):
            channel_full(core, channel)
        channel_deactivate(core, channel)
        return 0
    if channel.looked_from == NULL:
        channel.looked_from = consumer
    while budget[0]:
        channel.turn = consumer.next
        if consumer_room(consumer) and consumer.next_stopped == NULL:     # who stopped is woken in turn
            channel_room(core, channel, True)
            got = consumer_fill(core, consumer, budget[0])
            budget[0] -= min(got, budget[0])
            if got == 0 and core.next_lease_id + MESSAGES_PER_FRAME_MAX <= core.lease_id_durable:
                channel_deactivate(core, channel)       # all that is ready waits for tokens, or is paused
            return got
        if holder_room(consumer.holder) == 0:
            holder_stop(consumer)
        budget[0] -= 1
        core.counters.walked += 1
        consumer = channel.turn
        if consumer == channel.looked_from:     # all of them, and meanwhile nobody got room
            channel.looked_from = NULL
            channel_full(core, channel)
            channel_deactivate(core, channel)
            return 0
    return 0
