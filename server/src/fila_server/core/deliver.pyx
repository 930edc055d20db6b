"""Stage 2 of 4: see deliver.pxd."""

from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.answers cimport answer, emit
from fila_server.core.buffer cimport (
    Buffer, Slice, buffer_free, buffer_init, buffer_reserve, must_malloc, put_bytes, put_varint, varint_size, write_varint,
)
from fila_server.core.commands cimport DELIVERY, OK
from fila_server.core.drr cimport Turn, ring_afford, ring_charge, ring_turn
from fila_server.core.flows cimport channel_activate, channel_deactivate, flow_next, flow_reconsider, slot_pay
from fila_server.core.frames cimport (
    body_new, body_release, body_touch, entry_of, frame_appended_ms, frame_enqueued_ms, frame_id, frame_of,
    frame_offset, share_of, directory_at,
)
from fila_server.core.loader cimport Load, loader_answers, loader_ask
from fila_server.core.maps cimport map64_get, map64_next, map64_put, map64_remove
from fila_server.core.records cimport lease_record_put, meta_record_put
from fila_server.core.ending cimport frame_lost
from fila_server.core.slots cimport slot_count, slot_unready
from fila_server.core.state cimport (
    Body, Entry, Flow, LEASED, Lease, PULL, Queue, SESSION_STREAM, STREAM, TIMER_LEASE, ThrottleSet,
)
from fila_server.core.waiting cimport LeaseGroup
from fila_server.core.store cimport FRAMES, STORE_OK
from fila_server.core.timers cimport timer_cancel, timer_set
from fila_server.core.waits cimport channel_room, channel_served
from fila_server.core.view cimport message_view
from fila_server.core.wire cimport View, put_message

cdef extern from *:
    """
    static inline void fila_prefetch_flow(const void *turn) {
        const char *at = (const char *)turn;
        __builtin_prefetch(at - 64);        /* its Key, which it is part of */
        __builtin_prefetch(at, 1);
        __builtin_prefetch(at + 64, 1);
        __builtin_prefetch(at + 128, 1);
    }
    """
    void fila_prefetch_flow(const void* turn) noexcept nogil

cdef enum:
    MESSAGES_PER_PASS_MAX = 2048    # over all channels
    MESSAGES_PER_FRAME_MAX = 512
    FRAME_BYTES_MAX = 1048576       # several frames on the way beat one long one
    PULL_BYTES_MAX = 4128768        # under 4 MiB with its metadata
    METADATA_BYTES = 512            # allowed for, a message; keys may be longer, so the limit has slack
    UNWRITTEN_MAX = 2
    UNWRITTEN_SINGLE_MAX = 32       # of one message each
    LEASE_IDS_RESERVED = 1000000


cdef uint32_t consumer_room(Consumer* consumer) noexcept nogil:
    """How many more messages it may be given now."""
    cdef uint32_t most = UNWRITTEN_MAX
    if consumer.kind == PULL:
        return consumer.max_batch if consumer.first == NULL else 0
    if consumer.max_batch == 1:
        most = UNWRITTEN_SINGLE_MAX
    if consumer.unwritten >= most or consumer.in_flight >= consumer.limit:
        return 0
    return consumer.limit - consumer.in_flight


# --- picking ---------------------------------------------------------------------------------

cdef Slot* _pick(Core* core, Channel* channel, uint64_t room_bytes, bint first) noexcept nogil:
    """The next message in the order of the ring, charged and out of its fifo; NULL when none may go or fits."""
    cdef Turn* turn
    cdef Flow* flow
    cdef Slot* slot
    cdef Entry* entry
    while True:
        turn = ring_turn(&channel.ring)
        if turn == NULL:
            return NULL
        # With a million keys each one's lines are far from memory's caches; the next one's come meanwhile.
        fila_prefetch_flow(turn.next)
        flow = <Flow*> turn
        slot = flow_next(core, flow)
        if slot == NULL:
            flow_reconsider(core, flow)         # all of it waits in lines: off the ring
            continue
        entry = entry_of(slot)
        if not ring_afford(&channel.ring, turn, entry.cost):
            continue
        if not first and entry.length + METADATA_BYTES > room_bytes:
            return NULL
        slot_pay(core, slot)
        ring_charge(&channel.ring, turn, entry.cost)
        flow.served += entry.cost
        channel.served += entry.cost
        flow.delivered += 1
        slot_unready(core, slot)
        return slot


cdef bint _reserve_leases(Core* core, uint32_t count) noexcept nogil:
    """Lease ids promised on disk before they are given out, so that no power cut repeats one."""
    if core.next_lease_id + LEASE_IDS_RESERVED // 2 > core.lease_id_reserved:
        core.lease_id_reserved = core.next_lease_id + LEASE_IDS_RESERVED
        core.lease_id_epoch = core.epoch
        meta_record_put(core, b"leases", core.lease_id_reserved)
        core.sync_wanted = True
    elif core.durable >= core.lease_id_epoch:
        core.lease_id_durable = core.lease_id_reserved
    return core.next_lease_id + count <= core.lease_id_durable


cdef Lease* _lease(Core* core, Slot* slot, Consumer* consumer, LeaseGroup* group, int64_t timeout_ms) noexcept nogil:
    cdef Lease* lease = <Lease*> must_malloc(sizeof(Lease))
    cdef Flow* flow
    memset(lease, 0, sizeof(Lease))
    lease.timer.kind = TIMER_LEASE
    lease.lease_id = core.next_lease_id
    core.next_lease_id += 1
    lease.slot = slot
    lease.group = group
    group.live += 1
    lease.leased_ms = core.wall_ms
    lease.expires_ms = core.wall_ms + timeout_ms
    slot_count(core, slot, LEASED)
    slot.owner = lease
    map64_put(&core.leases, lease.lease_id, lease)
    timer_set(&core.timers, &lease.timer, core.mono_ns + timeout_ms * 1000000)
    if consumer.kind != PULL:
        lease.consumer = consumer
        lease.next = consumer.leases
        if lease.next != NULL:
            lease.next.prev = lease
        consumer.leases = lease
        consumer.in_flight += 1
    flow = _flow(slot)
    flow.in_flight += 1
    if flow.key.cap:
        flow_reconsider(core, flow)
    return lease


cdef inline Flow* _flow(Slot* slot) noexcept nogil:
    cdef Flow* flow = entry_of(slot).key.flows
    while flow.channel != share_of(slot).channel:
        flow = flow.next_of_key
    return flow


cdef void _latency(Core* core, Queue* queue, Slot* slot) noexcept nogil:
    cdef int64_t waited = core.wall_ms - frame_enqueued_ms(frame_of(slot), slot.index)
    cdef int bucket = 0
    if waited > 0:
        queue.counters.latency_ms += <uint64_t> waited
    while waited > 0 and bucket < 31:
        waited >>= 1
        bucket += 1
    core.counters.latency[bucket] += 1
    queue.counters.latency[bucket] += 1


cdef uint32_t consumer_fill(Core* core, Consumer* consumer, uint32_t budget) noexcept nogil:
    """Give a consumer one Delivery of what goes next; returns how many messages."""
    cdef Channel* channel = consumer.channel
    cdef Queue* queue = channel.queue
    cdef uint32_t wanted = consumer_room(consumer)
    cdef uint32_t count = 0
    cdef uint64_t bytes_left = PULL_BYTES_MAX if consumer.kind == PULL else FRAME_BYTES_MAX
    cdef Delivery* delivery
    cdef LeaseGroup* group
    cdef Slot* slot
    cdef Lease* lease
    cdef Frame* frame
    cdef int64_t timeout_ms = <int64_t> queue.policy.visibility_ms
    cdef uint64_t served = channel.served
    cdef uint64_t weight = channel.weight
    if consumer.kind != PULL:
        if wanted > MESSAGES_PER_FRAME_MAX:
            wanted = MESSAGES_PER_FRAME_MAX
        if wanted > budget:
            wanted = budget
        if consumer.kind == STREAM and wanted > consumer.max_batch:
            wanted = consumer.max_batch
    if wanted > channel.ready:
        wanted = <uint32_t> channel.ready
    if wanted == 0 or not _reserve_leases(core, wanted):
        return 0
    delivery = NULL
    while count < wanted:
        slot = _pick(core, channel, bytes_left, count == 0)
        if slot == NULL:
            break
        if delivery == NULL:
            delivery = <Delivery*> must_malloc(sizeof(Delivery))
            memset(delivery, 0, sizeof(Delivery))
            delivery.leases = <Lease**> must_malloc(wanted * sizeof(void*))
            group = <LeaseGroup*> must_malloc(sizeof(LeaseGroup))
            group.channel_number = channel.number
            group.queue_number = queue.number
            group.first_lease_id = core.next_lease_id
            group.live = 0
        lease = _lease(core, slot, consumer, group, timeout_ms)
        lease.delivery = delivery
        lease.at = count
        delivery.leases[count] = lease
        count += 1
        frame = frame_of(slot)
        if frame.body == NULL:
            frame_want(core, frame)
        _latency(core, queue, slot)
        if entry_of(slot).length + METADATA_BYTES >= bytes_left:
            break
        bytes_left -= entry_of(slot).length + METADATA_BYTES
    if delivery == NULL:
        return 0
    delivery.count = count
    delivery.consumer = consumer
    delivery.group = group
    channel_served(core, channel, channel.served - served, weight)
    channel.delivered += count
    queue.counters.delivered += count
    channel.touched_ms = core.wall_ms
    lease_record_put(core, queue, channel, delivery.leases, count)
    if consumer.last == NULL:
        consumer.first = delivery
    else:
        consumer.last.next = delivery
    consumer.last = delivery
    consumer.unwritten += 1
    _send_what_is_ready(core, consumer)
    return count


# --- sending ---------------------------------------------------------------------------------

cdef void frame_want(Core* core, Frame* frame) noexcept nogil:
    if frame.body == NULL and not frame.loading:
        frame.loading = True
        core.counters.loads += 1
        loader_ask(core.loader, FRAMES, frame.queue.number, frame.first_offset)


cdef bint _hot(Core* core, Delivery* delivery) noexcept nogil:
    """Whether every message's bytes are here; asks for those that are not, and holds those that are.

    Without the hold a budget smaller than one delivery would give up its first frame for its last, for ever.
    """
    cdef uint32_t i
    cdef bint all_hot = True
    cdef Frame* frame
    for i in range(delivery.count):
        if delivery.leases[i] != NULL:
            frame = frame_of(delivery.leases[i].slot)
            if frame.body == NULL:
                frame_want(core, frame)
                all_hot = False
    if all_hot:
        return True
    if delivery.pins == NULL:
        delivery.pins = <Body**> must_malloc(delivery.count * sizeof(void*))
        memset(delivery.pins, 0, delivery.count * sizeof(void*))
    for i in range(delivery.count):
        if delivery.leases[i] != NULL and delivery.pins[i] == NULL:
            delivery.pins[i] = frame_of(delivery.leases[i].slot).body
            if delivery.pins[i] != NULL:
                delivery.pins[i].refs += 1
    return False


cdef void _unpin(Core* core, Delivery* delivery) noexcept nogil:
    cdef uint32_t i
    if delivery.pins == NULL:
        return
    for i in range(delivery.count):
        if delivery.pins[i] != NULL:
            body_release(core, delivery.pins[i])
    free(delivery.pins)
    delivery.pins = NULL


cdef bint _is_empty(Delivery* delivery) noexcept nogil:
    cdef uint32_t i
    for i in range(delivery.count):
        if delivery.leases[i] != NULL:
            return False
    return True


cdef void _drop_delivery(Core* core, Consumer* consumer, Delivery* before, Delivery* delivery) noexcept nogil:
    """Every lease in it ended while its bytes were read: there is nothing to send."""
    if before == NULL:
        consumer.first = delivery.next
    else:
        before.next = delivery.next
    if consumer.last == delivery:
        consumer.last = before
    consumer.unwritten -= 1
    delivery_free(core, delivery)
    consumer.channel.has_room = True
    if consumer.channel.ready:
        channel_activate(core, consumer.channel)


cdef void _send_what_is_ready(Core* core, Consumer* consumer) noexcept nogil:
    cdef Delivery* delivery = consumer.first
    cdef Delivery* before = NULL
    cdef Delivery* following
    while delivery != NULL:
        following = delivery.next
        if not delivery.sent:
            if consumer.kind != PULL and _is_empty(delivery):
                _drop_delivery(core, consumer, before, delivery)
                delivery = following
                continue
            if not _hot(core, delivery):
                return
            delivery.sent = True
            _unpin(core, delivery)
            if consumer.kind == PULL:
                _send_pull(core, consumer, delivery)    # frees the consumer
                return
            _send(core, consumer, delivery)
        before = delivery
        delivery = following


cdef void _encode(Core* core, Delivery* delivery, uint32_t field, Buffer* out) noexcept nogil:
    cdef View view
    cdef uint32_t i
    cdef size_t expected = 64
    for i in range(delivery.count):
        if delivery.leases[i] != NULL:
            expected += entry_of(delivery.leases[i].slot).length + 224
    buffer_reserve(out, expected)
    for i in range(delivery.count):
        if delivery.leases[i] != NULL:
            message_view(core, delivery.leases[i].slot, &view)
            put_message(out, field, &view, &core.tail)


cdef void _send(Core* core, Consumer* consumer, Delivery* delivery) noexcept nogil:
    cdef Buffer payload
    cdef char head[12]
    cdef size_t n
    cdef int i
    buffer_init(&payload)
    if consumer.kind == STREAM:
        _encode(core, delivery, 2 if consumer.batched else 1, &payload)
    else:
        # ConsumeSessionResponse.delivery: its length stands in front, so room is left and the
        # length written in as many bytes as were left (a padded varint is a valid one).
        buffer_reserve(&payload, 64)
        payload.length = 6
        _encode(core, delivery, 1, &payload)
        n = payload.length - 6
        head[0] = 0x12
        head[1] = <char> ((n & 0x7F) | 0x80)
        head[2] = <char> (((n >> 7) & 0x7F) | 0x80)
        head[3] = <char> (((n >> 14) & 0x7F) | 0x80)
        head[4] = <char> (((n >> 21) & 0x7F) | 0x80)
        head[5] = <char> ((n >> 28) & 0x7F)
        for i in range(6):
            payload.data[i] = head[i]
    emit(core, consumer.token, DELIVERY, OK, &payload, False)


cdef void _send_pull(Core* core, Consumer* consumer, Delivery* delivery) noexcept nogil:
    cdef Buffer payload
    buffer_init(&payload)
    _encode(core, delivery, 1, &payload)
    answer(core, consumer.token, OK, &payload, False)
    consumer_free(core, consumer)


cdef void pull_answer(Core* core, Consumer* consumer) noexcept nogil:
    cdef Buffer payload
    if consumer.first != NULL:          # its messages are being read back: they go when they are here
        return
    buffer_init(&payload)
    answer(core, consumer.token, OK, &payload, False)
    consumer_free(core, consumer)


cdef void deliveries_loaded(Core* core) noexcept nogil:
    """Take in what the reader thread brought, then send what was waiting for it."""
    cdef Load* load = loader_answers(core.loader)
    cdef Load* following
    cdef Queue* queue
    cdef Frame* frame
    cdef Consumer* consumer
    cdef uint32_t cursor = 0
    if load == NULL:
        return
    while load != NULL:
        following = load.next
        queue = <Queue*> map64_get(&core.queues_by_number, load.queue_number)
        frame = directory_at(&queue.directory, load.first_offset) if queue != NULL else NULL
        if frame != NULL and frame.first_offset == load.first_offset and frame.loading:
            frame.loading = False
            if load.status == STORE_OK and load.length >= frame.body_bytes and frame.body == NULL:
                body_new(core, frame, load.bytes, <uint32_t> load.length)
                core.counters.loads_bytes += load.length
                frame.loaded_seen = True
                load.bytes = NULL
            elif frame.body == NULL:
                frame_lost(core, frame)
        free(load.bytes)
        free(load)
        load = following
    # Few consumers wait at a time, and a load is a disk read: a look at each is cheap beside it.
    while True:
        consumer = <Consumer*> map64_next(&core.consumers, &cursor)
        if consumer == NULL:
            break
        if consumer.first != NULL and consumer.kind != PULL:
            _send_what_is_ready(core, consumer)
    _pulls_loaded(core)


cdef void _pulls_loaded(Core* core) noexcept nogil:
    """Pulls apart: answering one frees it, which moves the map under the cursor."""
    cdef Consumer* consumer
    cdef uint32_t cursor = 0
    cdef bint freed = True
    while freed:
        freed = False
        cursor = 0
        while True:
            consumer = <Consumer*> map64_next(&core.consumers, &cursor)
            if consumer == NULL:
                break
            if consumer.kind == PULL and consumer.first != NULL and not consumer.first.sent and _hot(core, consumer.first):
                _send_what_is_ready(core, consumer)
                freed = True
                break


# --- the turn of channels and consumers --------------------------------------------------------

cdef void deliver(Core* core) noexcept nogil:
    cdef uint32_t budget = MESSAGES_PER_PASS_MAX
    cdef uint32_t got
    cdef Channel* channel
    cdef Channel* stop = NULL
    while budget and core.active != NULL:
        channel = core.active
        if channel == stop:
            break                               # a whole round and nobody took anything
        core.active = channel.next_active
        got = _channel_deliver(core, channel, budget)
        budget -= got if got < budget else budget
        if got:
            stop = NULL
        elif stop == NULL and channel.active:
            stop = channel
        if not channel.active and channel == stop:
            stop = NULL


cdef uint32_t _channel_deliver(Core* core, Channel* channel, uint32_t budget) noexcept nogil:
    """One consumer's turn in one channel; takes the channel off the list when nothing can go."""
    cdef Consumer* consumer = channel.turn
    cdef Consumer* begin = consumer
    cdef Consumer* following
    cdef uint32_t got
    if channel.ready == 0 or consumer == NULL:
        if consumer == NULL:
            channel_room(core, channel, False)
        channel_deactivate(core, channel)
        return 0
    while True:
        following = consumer.next
        if consumer_room(consumer):
            channel.turn = following
            channel_room(core, channel, True)
            got = consumer_fill(core, consumer, budget)
            if got == 0 and core.next_lease_id + MESSAGES_PER_FRAME_MAX <= core.lease_id_durable:
                channel_deactivate(core, channel)       # all that is ready waits for tokens, or is paused
            return got
        consumer = following
        if consumer == begin:
            break
    channel_room(core, channel, False)
    channel_deactivate(core, channel)
    return 0


# --- ends --------------------------------------------------------------------------------------

cdef void delivery_free(Core* core, Delivery* delivery) noexcept nogil:
    cdef uint32_t i
    for i in range(delivery.count):
        if delivery.leases[i] != NULL:
            delivery.leases[i].delivery = NULL
    _unpin(core, delivery)
    free(delivery.leases)
    free(delivery)


cdef void consumer_free(Core* core, Consumer* consumer) noexcept nogil:
    """Unlink a consumer and forget it; its leases live on without it."""
    cdef Channel* channel = consumer.channel
    cdef Delivery* delivery = consumer.first
    cdef Delivery* following
    cdef Lease* lease = consumer.leases
    timer_cancel(&core.timers, &consumer.timer)
    while delivery != NULL:
        following = delivery.next
        delivery_free(core, delivery)
        delivery = following
    while lease != NULL:
        lease.consumer = NULL
        lease = lease.next
    if consumer.kind == PULL:
        channel.waiting_pulls -= 1
    else:
        channel.consumers -= 1
    if consumer.next == consumer:
        channel.turn = NULL
    else:
        consumer.prev.next = consumer.next
        consumer.next.prev = consumer.prev
        if channel.turn == consumer:
            channel.turn = consumer.next
    map64_remove(&core.consumers, consumer.token)
    free(consumer)
