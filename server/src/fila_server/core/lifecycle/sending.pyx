"""A delivery with cold messages holds the bytes that are here and waits for one that is not; when that
comes, for the next. So a load wakes those who wait for it, and looks at nobody else.
"""

from libc.stdint cimport uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.history.changes cimport CHANGED_CONSUMER_LEFT, consumer_changed
from fila_server.core.history.inputs cimport load_taken
from fila_server.core.history.traces cimport delivery_traced
from fila_server.core.index.bodies cimport body_new, body_release, body_touch, frame_want
from fila_server.core.index.holders cimport holder_leave, holder_room, holder_unstop
from fila_server.core.index.policy cimport channel_paused
from fila_server.core.index.visits cimport channel_is_used
from fila_server.core.lifecycle.answers cimport answer, answer_status, emit
from fila_server.core.lifecycle.ending cimport frame_lost
from fila_server.core.lifecycle.giveback cimport UNWRITTEN, lease_return
from fila_server.core.lifecycle.revoked cimport revoked_forget
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport DELIVERY, OK, RESOURCE_EXHAUSTED
from fila_server.core.protocol.protobuf cimport LEN, put_message
from fila_server.core.scheduling.clocks cimport channel_room
from fila_server.core.scheduling.eligibility cimport channel_activate
from fila_server.core.scheduling.tokens cimport channel_full
from fila_server.core.state.directory cimport directory_at
from fila_server.core.state.kinds cimport BEGUN_ONCE, DELAYED, LEASED, PULL, RETURNED_ONCE, STREAM
from fila_server.core.state.paths cimport (
    entry_cost, entry_of, entry_priority, frame_appended_ms, frame_enqueued_ms, frame_id, frame_of,
    frame_offset, key_weight, share_of,
)
from fila_server.core.state.state cimport Body, Channel, Delay, Entry, Frame, Lease, Queue, ThrottleSet
from fila_server.core.storage.families cimport STAGED
from fila_server.core.storage.status cimport STORE_DAMAGED, STORE_NOT_FOUND, STORE_OK
from fila_server.core.structures.buffer cimport Buffer, buffer_free, buffer_init, buffer_reserve, must_malloc
from fila_server.core.structures.maps cimport map64_get, map64_put, map64_remove
from fila_server.core.structures.timers cimport timer_cancel, timer_set
from fila_server.core.threads.reader cimport Load, loader_answers

# --- who waits for bytes -----------------------------------------------------------------------

cdef inline uint64_t _load_key(uint64_t queue_number, uint64_t first_offset) noexcept nogil:
    """Two frames may have the same: then a load wakes some in vain, and they wait again."""
    return (queue_number * <uint64_t> 0x9E3779B97F4A7C15 + first_offset) | <uint64_t> 1 << 63


cdef void _reader_join(Core* core, Consumer* consumer, Frame* frame) noexcept nogil:
    """Behind one cold frame of its next delivery; when that is here, behind the next cold one."""
    cdef uint64_t key = _load_key(frame.queue.number, frame.first_offset)
    cdef Consumer* first
    if consumer.reads == key:
        return
    _reader_leave(core, consumer)
    first = <Consumer*> map64_get(&core.readers, key)
    consumer.reads = key
    consumer.prev_reader = NULL
    consumer.next_reader = first
    if first != NULL:
        first.prev_reader = consumer
    map64_put(&core.readers, key, consumer)


cdef void _reader_leave(Core* core, Consumer* consumer) noexcept nogil:
    if consumer.reads == 0:
        return
    if consumer.prev_reader != NULL:
        consumer.prev_reader.next_reader = consumer.next_reader
    elif consumer.next_reader != NULL:
        map64_put(&core.readers, consumer.reads, consumer.next_reader)
    else:
        map64_remove(&core.readers, consumer.reads)
    if consumer.next_reader != NULL:
        consumer.next_reader.prev_reader = consumer.prev_reader
    consumer.reads = 0


cdef Consumer* _readers_wake(Core* core, Load* load, Consumer* woken) noexcept nogil:
    """Those that waited for this load, in front of those woken before; the longest wait comes first."""
    cdef Consumer* consumer
    cdef uint64_t key = _load_key(load.queue_number, load.first_offset)
    while True:
        consumer = <Consumer*> map64_get(&core.readers, key)
        if consumer == NULL:
            return woken
        _reader_leave(core, consumer)
        consumer.next_reader = woken
        woken = consumer


cdef bint _hot(Core* core, Delivery* delivery) noexcept nogil:
    """Whether every message's bytes are here; asks for those that are not, and holds those that are.

    Without the hold a budget smaller than one delivery would give up its first frame for its last, for ever.
    """
    cdef uint32_t i
    cdef bint all_hot = True
    cdef Body* body
    cdef Frame* frame
    for i in range(delivery.count):
        if delivery.leases[i] != NULL:
            frame = frame_of(delivery.leases[i].slot)
            if frame.body == NULL:
                frame_want(core, frame)
                if all_hot:
                    _reader_join(core, delivery.consumer, frame)
                all_hot = False
    if all_hot:
        return True
    if delivery.pins == NULL:
        delivery.pins = <Body**> must_malloc(delivery.count * sizeof(void*))
        memset(delivery.pins, 0, delivery.count * sizeof(void*))
    for i in range(delivery.count):
        if delivery.leases[i] == NULL:
            continue
        body = frame_of(delivery.leases[i].slot).body
        if body != NULL and delivery.pins[i] != body:       # another one since the frame was rewritten
            if delivery.pins[i] != NULL:
                body_release(core, delivery.pins[i])
            delivery.pins[i] = body
            body.refs += 1
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


cdef bint _is_void(Consumer* consumer, Delivery* delivery) noexcept nogil:
    """Picked before the channel was deleted or started anew. Some of its leases live, so their group does."""
    return consumer.channel.gone != 0 or delivery.group.channel_number != consumer.channel.number


cdef void _drop_delivery(Core* core, Consumer* consumer, Delivery* before, Delivery* delivery) noexcept nogil:
    """Every lease in it ended while its bytes were read, or ends now: there is nothing to send."""
    cdef uint32_t i
    for i in range(delivery.count):
        if delivery.leases[i] != NULL:
            lease_return(core, delivery.leases[i], UNWRITTEN)
    if before == NULL:
        consumer.first = delivery.next
    else:
        before.next = delivery.next
    if consumer.last == delivery:
        consumer.last = before
    consumer.unwritten -= 1
    delivery_free(core, delivery)
    channel_room(core, consumer.channel, True)
    if consumer.channel.ready:
        channel_activate(core, consumer.channel)
    if consumer.kind == PULL and consumer.timer.at == 0:
        # Its time is over, or it would not wait: it takes what else is ready in this pass, or nothing.
        timer_set(&core.timers, &consumer.timer, core.mono_ns)


cdef void send_what_is_ready(Core* core, Consumer* consumer) noexcept nogil:
    cdef Delivery* delivery = consumer.first
    cdef Delivery* before = NULL
    cdef Delivery* following
    while delivery != NULL:
        following = delivery.next
        if not delivery.sent:
            if _is_empty(delivery) or _is_void(consumer, delivery):
                _drop_delivery(core, consumer, before, delivery)
                delivery = following
                continue
            if not _hot(core, delivery):
                return
            delivery.sent = True
            _unpin(core, delivery)
            if core.traces != NULL:
                delivery_traced(core, delivery)
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
            expected += message_bytes(delivery.leases[i].slot)
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
        _encode(
            core, delivery,
            v1.CONSUME_RESPONSE_MESSAGES if consumer.batched else v1.CONSUME_RESPONSE_MESSAGE, &payload)
    else:
        # ConsumeSessionResponse.delivery: its length stands in front, so room is left and the
        # length written in as many bytes as were left (a padded varint is a valid one).
        buffer_reserve(&payload, 64)
        payload.length = 6
        _encode(core, delivery, v1.CONSUME_SESSION_RESPONSE_DELIVERY_MESSAGES, &payload)
        n = payload.length - 6
        head[0] = v1.CONSUME_SESSION_RESPONSE_DELIVERY << 3 | LEN
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
    _encode(core, delivery, v1.LEASE_RESPONSE_MESSAGES, &payload)
    answer(core, consumer.token, OK, &payload, False)
    consumer_forget(core, consumer)


cdef void pull_answer(Core* core, Consumer* consumer) noexcept nogil:
    cdef Buffer payload
    if consumer.first != NULL:          # its messages are being read back: they go when they are here
        return
    if (
        consumer.channel.ready and not channel_paused(consumer.channel)
        and (holder_room(consumer.holder) == 0 or consumer.next_stopped != NULL)
    ):
        _refuse_full(core, consumer)    # "nothing is ready" would be untrue
    else:
        buffer_init(&payload)
        answer(core, consumer.token, OK, &payload, False)
    consumer_forget(core, consumer)


cdef void _refuse_full(Core* core, Consumer* consumer) noexcept nogil:
    cdef char text[192]
    consumer.holder.refused += 1
    snprintf(
        text, sizeof(text),
        b"quota: at most %u messages in flight for this key's name, and there are %llu%s; settle some, or "
        b"ask an admin for more",
        consumer.holder.most, <unsigned long long> consumer.holder.in_flight,
        b", others wait for the rest" if holder_room(consumer.holder) else b"")
    answer_status(core, consumer.token, RESOURCE_EXHAUSTED, text, b"QUOTA_EXCEEDED")


cdef void deliveries_loaded(Core* core) noexcept nogil:
    """Take in what the reader thread brought, then send what was waiting for it."""
    cdef Load* load = loader_answers(core.loader)
    cdef Load* following
    cdef Queue* queue
    cdef Frame* frame
    cdef Consumer* reader
    cdef Consumer* woken = NULL
    while load != NULL:
        following = load.next
        core.loads_taken += 1
        load_taken(core, load)
        if load.family == STAGED:       # for sinks/moving.pyx, in this pass
            load.next = core.sinks.loaded
            core.sinks.loaded = load
            load = following
            continue
        queue = <Queue*> map64_get(&core.queues_by_number, load.queue_number)
        frame = directory_at(&queue.directory, load.first_offset) if queue != NULL else NULL
        if frame != NULL and frame.first_offset == load.first_offset and frame.loading:
            frame.loading = False
            # Of another length it is another version of the frame, which a lost table brought to light: the
            # entries' places would cut it up anywhere.
            if load.status == STORE_OK and load.length == frame.body_bytes and frame.body == NULL:
                body_new(core, frame, load.bytes, <uint32_t> load.length)
                core.counters.loads_bytes += load.length
                frame.loaded_seen = True
                load.bytes = NULL
            elif frame.body == NULL and load.status in (STORE_OK, STORE_DAMAGED, STORE_NOT_FOUND):
                frame_lost(core, frame)
            elif frame.body == NULL:    # a disk or a table of open files that is in trouble just now
                frame_want(core, frame)
        woken = _readers_wake(core, load, woken)
        free(load.bytes)
        free(load)
        load = following
    while woken != NULL:
        reader = woken
        woken = reader.next_reader
        core.counters.work += 1
        send_what_is_ready(core, reader)        # frees a pull


# --- ends --------------------------------------------------------------------------------------

cdef void delivery_free(Core* core, Delivery* delivery) noexcept nogil:
    cdef uint32_t i
    for i in range(delivery.count):
        if delivery.leases[i] != NULL:
            delivery.leases[i].delivery = NULL
    _unpin(core, delivery)
    free(delivery.leases)
    free(delivery)


cdef void consumer_unlink(Core* core, Consumer* consumer) noexcept nogil:
    """Out of its channel's circle, the one of those that are here or the one of those that are away."""
    cdef Channel* channel = consumer.channel
    cdef Consumer** list = &channel.away if consumer.away else &channel.turn
    if consumer.next == consumer:
        list[0] = NULL
    else:
        consumer.prev.next = consumer.next
        consumer.next.prev = consumer.prev
        if list[0] == consumer:
            list[0] = consumer.next
    channel_is_used(core, channel)
    if channel.looked_from == consumer:
        channel.looked_from = NULL
    holder_unstop(consumer)
    if consumer.away:
        return
    map64_remove(&core.consumers, consumer.token)
    if consumer.kind == PULL:
        channel.waiting_pulls -= 1
    else:
        channel.consumers -= 1
    if channel.turn == NULL:
        channel_full(core, channel)


cdef void _leave_no_trace(Core* core, Consumer* consumer) noexcept nogil:
    if consumer.fate:
        if consumer.prev_leaving != NULL:
            consumer.prev_leaving.next_leaving = consumer.next_leaving
        else:
            core.leaving = consumer.next_leaving
        if consumer.next_leaving != NULL:
            consumer.next_leaving.prev_leaving = consumer.prev_leaving
    if consumer.number:
        map64_remove(&core.streams, consumer.number)


cdef void consumer_forget(Core* core, Consumer* consumer) noexcept nogil:
    """Its leases live on without it."""
    cdef Delivery* delivery = consumer.first
    cdef Delivery* following
    cdef Lease* lease = consumer.leases
    consumer_changed(core, CHANGED_CONSUMER_LEFT, consumer)
    timer_cancel(&core.timers, &consumer.timer)
    _reader_leave(core, consumer)
    while delivery != NULL:
        following = delivery.next
        delivery_free(core, delivery)
        delivery = following
    while lease != NULL:
        lease.consumer = NULL
        lease = lease.next
    consumer_unlink(core, consumer)
    holder_leave(core, consumer)
    _leave_no_trace(core, consumer)
    revoked_forget(core, consumer)
    buffer_free(&consumer.name)
    buffer_free(&consumer.peer)
    free(consumer)


# --- a message as a delivery shows it --------------------------------------------------------
# Nothing is copied: a view points into the frame's bytes and its entry.

cdef enum:
    FIXED_BYTES = 192       # id, numbers, moments, and what stands before each text


cdef void message_view(Core* core, Slot* slot, View* view) noexcept nogil:
    """What a message says in its channel; its body must be hot."""
    cdef Frame* frame = frame_of(slot)
    cdef Channel* channel = share_of(slot).channel
    cdef Entry* entry = &frame.entries[slot.index]
    cdef ThrottleSet* set = entry.set
    cdef Lease* lease
    cdef uint32_t i
    frame_id(frame, slot.index, &view.id_high, &view.id_low)
    view.body = frame.body.bytes + entry.at
    view.body_length = entry.length
    view.fairness_key.at = entry.key.text.bytes
    view.fairness_key.length = entry.key.text.length
    view.weight = key_weight(entry.key)
    view.attempts = slot.attempts
    view.redelivered = slot.attempts or slot.marks & BEGUN_ONCE
    view.came_back = not view.redelivered and slot.marks >= RETURNED_ONCE
    view.queue.at = channel.queue.text.bytes
    view.queue.length = channel.queue.text.length
    view.channel.at = channel.text.bytes
    view.channel.length = channel.text.length
    view.offset = frame_offset(frame, slot.index)
    view.cost, view.priority = entry_cost(entry), entry_priority(entry)
    view.enqueued_ms = frame_enqueued_ms(frame, slot.index)
    view.appended_ms = frame_appended_ms(frame, slot.index)
    view.lease_id = 0
    view.leased_ms = view.expires_ms = view.due_ms = 0
    if slot.state == LEASED:
        lease = <Lease*> slot.owner
        view.lease_id = lease.lease_id
        view.leased_ms = lease.leased_ms
        view.expires_ms = lease.expires_ms
    elif slot.state == DELAYED:
        view.due_ms = (<Delay*> slot.owner).due_ms
    view.throttle_count = 0
    if set != NULL:
        for i in range(set.count):
            view.throttle[i].at = set.members[i].text.bytes
            view.throttle[i].length = set.members[i].text.length
        view.throttle_count = set.count
    if frame.loaded_seen:
        body_touch(core, frame.body)


cdef uint64_t message_bytes(Slot* slot) noexcept nogil:
    cdef Entry* entry = entry_of(slot)
    cdef Channel* channel = share_of(slot).channel
    cdef uint64_t keys = entry.set.text.length if entry.set != NULL else 0
    keys += entry.key.text.length
    return entry.length + FIXED_BYTES + keys + channel.queue.text.length + channel.text.length
