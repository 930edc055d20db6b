"""Stage 3 of 4: see settle.pxd."""

from libc.math cimport pow as power
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcpy, memset, strlen

from fila_server.core.answers cimport answer, answer_status, emit
from fila_server.core.buffer cimport (
    Buffer, Cursor, buffer_free, buffer_init, must_malloc, must_realloc, put_bytes, put_varint, take_varint,
)
from fila_server.core.commands cimport (
    ACK, ACK_BATCH, EXTEND_LEASE, FAILED_PRECONDITION, FRAME, INVALID_ARGUMENT, NACK, NACK_BATCH, NOT_FOUND, OK,
)
from fila_server.core.deliver cimport consumer_free, frame_want
from fila_server.core.drr cimport ring_refund
from fila_server.core.enqueue cimport move_in, queue_find, random_next
from fila_server.core.flows cimport (
    channel_activate, flow_find, flow_reconsider, slot_count, slot_ready, slot_refund, slot_unready,
)
from fila_server.core.frames cimport (
    directory_at, directory_find_id, directory_remove, frame_finish, frame_retained, frame_unwanted, entry_of, frame_enqueued_ms, frame_free, frame_id, frame_of, frame_offset,
    key_intern, share_find, share_of,
)
from fila_server.core.maps cimport map64_get, map64_next, map64_remove
from fila_server.core.records cimport (
    frame_record_delete, lease_extension_put, lease_record_delete, settled_record_delete, settled_record_put,
    state_record_delayed, state_record_delete, state_record_ready,
)
from fila_server.core.reveal cimport extra_drop, slot_delay
from fila_server.core.queues cimport channel_need
from fila_server.core.state cimport (
    DECIDING, DELAYED, DONE, DeadWait, Delay, Delivery, Entry, Flow, LEASED, LeaseGroup, Policy, READY, SESSION_STREAM, Share,
)
from fila_server.core.timers cimport timer_cancel, timer_set
from fila_server.core.wire cimport (
    Fields, fields_parse, next_field, put_nested, put_number_field, put_status, put_status_field, put_tag,
    put_text_field, put_timestamp_field, uuid_parse,
)

cdef enum:
    EXTEND_MS_MIN = 1000
    EXTEND_MS_MAX = 43200000
    LAST_ERROR_BYTES_MAX = 1024
    NO_DELAY = -1


# --- ending a lease --------------------------------------------------------------------------

cdef void lease_end(Core* core, Lease* lease) noexcept nogil:
    cdef Slot* slot = lease.slot
    cdef LeaseGroup* group = lease.group
    cdef Consumer* consumer = lease.consumer
    cdef Flow* flow = flow_find(entry_of(slot).key, share_of(slot).channel)
    timer_cancel(&core.timers, &lease.timer)
    if consumer != NULL:
        if lease.prev != NULL:
            lease.prev.next = lease.next
        else:
            consumer.leases = lease.next
        if lease.next != NULL:
            lease.next.prev = lease.prev
        consumer.in_flight -= 1
        consumer.channel.has_room = True
        if consumer.channel.ready:
            channel_activate(core, consumer.channel)
    if lease.delivery != NULL:
        lease.delivery.leases[lease.at] = NULL
    if lease.extended:
        lease_record_delete(core, group.queue_number | (<uint64_t> 1 << 63), group.channel_number, lease.lease_id)
    group.live -= 1
    if group.live == 0:
        lease_record_delete(core, group.queue_number, group.channel_number, group.first_lease_id)
        free(group)
    map64_remove(&core.leases, lease.lease_id)
    slot.owner = NULL
    flow.in_flight -= 1
    if flow.key.cap:
        flow_reconsider(core, flow)
    free(lease)


cdef void lease_return(Core* core, Lease* lease) noexcept nogil:
    """Undo a delivery that was never written: place, tokens, deficit and attempts as before."""
    cdef Slot* slot = lease.slot
    cdef Entry* entry = entry_of(slot)
    cdef Channel* channel = share_of(slot).channel
    cdef Flow* flow = flow_find(entry.key, channel)
    lease_end(core, lease)
    slot_refund(core, slot)
    slot_ready(core, slot, True)
    if flow.joined:
        ring_refund(&channel.ring, &flow.turn, entry.cost)
    flow.served -= entry.cost
    flow.delivered -= 1
    channel.queue.counters.released += 1


cdef void consumer_close(Core* core, Consumer* consumer, bint release) noexcept nogil:
    """A stream is over: what was not written comes back now, the rest only where it was let go cleanly."""
    cdef Delivery* delivery = consumer.first
    cdef Delivery* following
    cdef uint32_t i
    while delivery != NULL:
        following = delivery.next
        i = delivery.count
        while i > 0:                    # the last first, so that each finds its old place at the front
            i -= 1
            if delivery.leases[i] != NULL:
                lease_return(core, delivery.leases[i])
        delivery = following
    while release and consumer.leases != NULL:
        lease_return(core, consumer.leases)
    consumer_free(core, consumer)


# --- the end of a message in a channel -------------------------------------------------------

cdef void _dirty(Core* core, Share* share) noexcept nogil:
    if not share.dirty:
        share.dirty = True
        share.next_dirty = core.dirty_shares
        core.dirty_shares = share


cdef void slot_stop(Core* core, Slot* slot) noexcept nogil:
    """Out of whatever it stands in: fifo, delay, lease. Nothing is recorded."""
    cdef Delay* delay
    if slot.state == READY:
        slot_unready(core, slot)
    elif slot.state == DELAYED:
        delay = <Delay*> slot.owner
        timer_cancel(&core.timers, &delay.timer)
        free(delay)
        slot.owner = NULL
        flow_find(entry_of(slot).key, share_of(slot).channel).delayed -= 1
    elif slot.state == LEASED and slot.owner != NULL:
        lease_end(core, <Lease*> slot.owner)
    slot_count(core, slot, DONE)


cdef void slot_done(Core* core, Slot* slot) noexcept nogil:
    """This channel is done with the message."""
    cdef Share* share = share_of(slot)
    cdef Frame* frame = share.frame
    slot_stop(core, slot)
    if slot.recorded:
        state_record_delete(core, slot)
    share.remaining -= 1
    _dirty(core, share)
    entry_unwanted(core, frame, slot.index)


cdef void entry_unwanted(Core* core, Frame* frame, uint32_t index) noexcept nogil:
    """A channel lost interest in this message; count it out when it was the last one."""
    cdef Share* other = frame.shares
    while other != NULL:
        if other.slots[index].state != DONE:
            return
        other = other.next_of_frame
    if _wanted_by_rebuild(frame):
        return
    frame.live -= 1
    frame.live_bytes -= frame.entries[index].length
    frame.queue.unwanted_bytes += frame.entries[index].length


cdef bint _wanted_by_rebuild(Frame* frame) noexcept nogil:
    """A channel that is still being rebuilt will want this frame, though it has no share of it yet."""
    cdef Channel* channel = frame.queue.channels
    while channel != NULL:
        if channel.rebuild_at and channel.rebuild_at <= frame.first_offset and share_find(frame, channel) == NULL:
            return True
        channel = channel.next
    return False


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
    """Off the disk and out of memory. A frame that is dropped unfinished had its slots ended by the caller."""
    cdef Queue* queue = frame.queue
    cdef Share* share = frame.shares
    cdef uint32_t i
    if frame.has_extras:
        for i in range(frame.count):
            extra_drop(core, queue, frame_offset(frame, i))
    frame_record_delete(core, frame)
    while share != NULL:
        if share.recorded:
            settled_record_delete(core, queue.number, share.channel.number, frame.first_offset)
        share = share.next_of_frame
    queue.stored_bytes -= frame.body_bytes
    queue.unwanted_bytes -= frame_unwanted(frame)
    directory_remove(&queue.directory, frame)
    frame_free(core, frame)


cdef void frame_lost(Core* core, Frame* frame) noexcept nogil:
    """Its bytes are damaged or gone: what is left of it is dropped, counted and reported."""
    cdef Share* share = frame.shares
    cdef Slot* slot
    cdef uint32_t i
    core.counters.lost_ranges += 1
    core.counters.lost_messages += frame.live
    while share != NULL:
        for i in range(frame.count):
            slot = &share.slots[i]
            if slot.state != DONE:
                slot_done(core, slot)
        share = share.next_of_frame
    frame_finish(core, frame)


# --- failure ---------------------------------------------------------------------------------

cdef int64_t backoff_ms(Core* core, Policy* policy, uint32_t attempts) noexcept nogil:
    """Fixed, or exponential from `base` to `cap`; jitter takes up to its share off."""
    cdef double wait = <double> policy.retry_base_ms
    cdef double unit
    if not policy.retry_fixed and attempts > 1:
        wait *= power(2.0, <double> (attempts - 1 if attempts < 64 else 63))
    if wait > <double> policy.retry_cap_ms and not policy.retry_fixed:
        wait = <double> policy.retry_cap_ms
    unit = <double> (random_next(core) >> 11) / 9007199254740992.0
    wait -= wait * policy.retry_jitter * unit
    return <int64_t> wait


cdef void slot_retry(Core* core, Slot* slot, int64_t delay_ms, uint64_t last_lease) noexcept nogil:
    """Ready again at the back, now or later."""
    cdef Channel* channel = share_of(slot).channel
    if delay_ms > 0:
        slot_delay(core, slot, core.wall_ms + delay_ms)
        state_record_delayed(core, slot, core.wall_ms + delay_ms, last_lease)
    else:
        slot_ready(core, slot, False)
        channel.requeue_seq += 1
        state_record_ready(core, slot, channel.queue.next_offset - 1, channel.requeue_seq, last_lease)


cdef void slot_fail(Core* core, Slot* slot, Slice error, int64_t delay_ms, uint64_t last_lease) noexcept nogil:
    """The lease ended by failure and is gone; count the attempt and let the policy decide."""
    cdef Share* share = share_of(slot)
    cdef Policy* policy = &share.channel.queue.policy
    if slot.attempts < 0xFFFF:
        slot.attempts += 1
    if policy.max_attempts and slot.attempts >= policy.max_attempts and not share.channel.queue.is_dlq:
        slot_dead_letter(core, slot, b"max_attempts", error)
        return
    if delay_ms == NO_DELAY:
        delay_ms = backoff_ms(core, policy, slot.attempts)
    slot_retry(core, slot, delay_ms, last_lease)


cdef void slot_dead_letter(Core* core, Slot* slot, const char* reason, Slice error) noexcept nogil:
    """Move a message to its DLQ and settle it here, in one batch.

    Its stored bytes go along with a piece of metadata that says where it came from; the rest
    of the metadata merges with it at delivery (wire.pyx). The bytes must be hot: where they
    are not, the slot waits in DECIDING and comes back here when they are.
    """
    cdef Share* share = share_of(slot)
    cdef Frame* frame = share.frame
    cdef Queue* queue = share.channel.queue
    cdef Entry* entry = &frame.entries[slot.index]
    cdef Queue* dlq = queue.dlq
    cdef Buffer inner
    cdef Buffer dead
    cdef Buffer body
    cdef Slice text
    cdef uint64_t high, low
    if dlq == NULL:
        slot_retry(core, slot, backoff_ms(core, &queue.policy, slot.attempts), 0)
        return
    if frame.body == NULL:
        _dead_later(core, slot, reason, error)
        return
    buffer_init(&inner)
    buffer_init(&dead)
    buffer_init(&body)
    text.at, text.length = queue.text.bytes, queue.text.length
    put_text_field(&dead, 1, text)
    text.at, text.length = share.channel.text.bytes, share.channel.text.length
    put_text_field(&dead, 2, text)
    text.at, text.length = reason, <uint32_t> strlen(reason)
    put_text_field(&dead, 3, text)
    if error.length > LAST_ERROR_BYTES_MAX:
        error.length = _utf8_cut(error, LAST_ERROR_BYTES_MAX)
    if error.length:
        put_text_field(&dead, 4, error)
    put_number_field(&dead, 5, slot.attempts)
    put_timestamp_field(&dead, 6, core.wall_ms)
    put_nested(&inner, 10, &dead)
    put_bytes(&body, frame.body.bytes + entry.at, entry.length)
    put_nested(&body, 4, &inner)
    frame_id(frame, slot.index, &high, &low)
    text.at, text.length = entry.key.text.bytes, entry.key.text.length
    if entry.set != NULL:
        entry.set.refs += 1
    move_in(
        core, dlq, key_intern(core, dlq, text), entry.set, entry.cost, body.data, <uint32_t> body.length,
        high, low, frame_enqueued_ms(frame, slot.index), NULL)
    # The bytes must outlive the building of the frame; the pass frees them after it.
    keep_until_written(core, body.data)
    buffer_free(&inner)
    buffer_free(&dead)
    queue.counters.dead_lettered += 1
    slot_done(core, slot)


cdef uint32_t _utf8_cut(Slice text, uint32_t most) noexcept nogil:
    while most > 0 and <unsigned char> text.at[most] & 0xC0 == 0x80:
        most -= 1
    return most


cdef void _dead_later(Core* core, Slot* slot, const char* reason, Slice error) noexcept nogil:
    cdef DeadWait* wait = <DeadWait*> must_malloc(sizeof(DeadWait) + error.length)
    cdef Share* share = share_of(slot)
    memset(wait, 0, sizeof(DeadWait))
    wait.queue_number = share.channel.queue.number
    wait.channel_number = share.channel.number
    wait.offset = frame_offset(share.frame, slot.index)
    wait.reason = reason
    wait.error.at = <char*> wait + sizeof(DeadWait)
    wait.error.length = error.length
    memcpy(<char*> wait + sizeof(DeadWait), error.at, error.length)
    wait.next = core.dead_waits
    core.dead_waits = wait
    slot_count(core, slot, DECIDING)
    frame_want(core, share.frame)


cdef void dead_letters_loaded(Core* core) noexcept nogil:
    """Dead letters whose bytes have arrived meanwhile."""
    cdef DeadWait* wait = core.dead_waits
    cdef DeadWait* following
    cdef Slot* slot
    core.dead_waits = NULL
    while wait != NULL:
        following = wait.next
        slot = slot_at(core, wait.queue_number, wait.channel_number, wait.offset)
        if slot != NULL and slot.state == DECIDING:
            slot_dead_letter(core, slot, wait.reason, wait.error)
        free(wait)
        wait = following


cdef Slot* slot_at(Core* core, uint64_t queue_number, uint64_t channel_number, uint64_t offset) noexcept nogil:
    """The slot of a message in a channel, or NULL: the message, the channel or the queue may be gone."""
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, queue_number)
    cdef Channel* channel
    cdef Frame* frame
    cdef Share* share
    cdef uint32_t i
    if queue == NULL:
        return NULL
    channel = queue.channels
    while channel != NULL and channel.number != channel_number:
        channel = channel.next
    frame = directory_at(&queue.directory, offset)
    if channel == NULL or frame == NULL:
        return NULL
    share = share_find(frame, channel)
    if share == NULL:
        return NULL
    for i in range(frame.count):
        if frame_offset(frame, i) == offset:
            return &share.slots[i]
    return NULL


cdef void keep_until_written(Core* core, char* bytes) noexcept nogil:
    if core.kept_count == core.kept_capacity:
        core.kept_capacity = core.kept_capacity * 2 + 16
        core.kept = <char**> must_realloc(core.kept, core.kept_capacity * sizeof(void*))
    core.kept[core.kept_count] = bytes
    core.kept_count += 1


cdef void lease_expired(Core* core, Lease* lease) noexcept nogil:
    cdef Slot* slot = lease.slot
    cdef uint64_t lease_id = lease.lease_id
    cdef Slice error
    error.at, error.length = b"visibility timeout expired", 26
    share_of(slot).channel.queue.counters.expired += 1
    lease_end(core, lease)
    slot_fail(core, slot, error, NO_DELAY, lease_id)


# --- commands --------------------------------------------------------------------------------

cdef struct Verdict:                # of one settle: 0, or why not
    int32_t code
    const char* reason
    const char* text


cdef Verdict _verdict(int32_t code, const char* reason, const char* text) noexcept nogil:
    cdef Verdict v
    v.code, v.reason, v.text = code, reason, text
    return v


cdef Lease* _find(Core* core, Channel* channel, bint has_id, uint64_t high, uint64_t low, uint64_t lease_id, Verdict* v) noexcept nogil:
    """The lease that is meant, or NULL and why it isn't there."""
    cdef Lease* lease
    cdef Frame* frame
    cdef Share* share
    cdef uint32_t index
    cdef uint32_t cursor = 0
    cdef uint64_t h, l
    cdef bint stored = False
    if lease_id:
        lease = <Lease*> map64_get(&core.leases, lease_id)
        if lease != NULL and share_of(lease.slot).channel == channel:
            frame_id(frame_of(lease.slot), lease.slot.index, &h, &l)
            if not has_id or (h == high and l == low):
                return lease
    if has_id:
        frame = directory_find_id(&channel.queue.directory, high, low, &index)
        if frame != NULL:
            share = share_find(frame, channel)
            stored = share != NULL and share.slots[index].state != DONE
            if stored and lease_id == 0 and share.slots[index].state == LEASED:
                return <Lease*> share.slots[index].owner
    if lease_id and (stored or not has_id):
        channel.queue.counters.stale_acks += 1
        v[0] = _verdict(
            FAILED_PRECONDITION, b"LEASE_LOST",
            b"lease_id: the message is not held under this lease any more; it was given out again or is waiting")
    else:
        v[0] = _verdict(
            NOT_FOUND, b"MESSAGE_NOT_FOUND",
            b"message_id: no such message in this channel, or nobody holds it; it may have been acked already")
    return NULL


cdef void _ack(Core* core, Lease* lease) noexcept nogil:
    cdef Slot* slot = lease.slot
    cdef Channel* channel = share_of(slot).channel
    channel.queue.counters.acked += 1
    channel.acked += 1
    channel.touched_ms = core.wall_ms
    lease_end(core, lease)
    slot_done(core, slot)


cdef void _nack(Core* core, Lease* lease, Slice error, int64_t delay_ms) noexcept nogil:
    cdef Slot* slot = lease.slot
    cdef uint64_t lease_id = lease.lease_id
    share_of(slot).channel.queue.counters.nacked += 1
    lease_end(core, lease)
    slot_fail(core, slot, error, delay_ms, lease_id)


cdef void _extend(Core* core, Lease* lease, int64_t extend_ms) noexcept nogil:
    """The lease now ends `extend_ms` from now. Recorded apart: its frame's record names one expiry for all."""
    cdef Channel* channel = share_of(lease.slot).channel
    lease.expires_ms = core.wall_ms + extend_ms
    timer_set(&core.timers, &lease.timer, core.mono_ns + extend_ms * 1000000)
    lease.extended = True
    lease_extension_put(core, lease, channel.queue.number | (<uint64_t> 1 << 63), channel.number)


cdef void settle(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Queue* queue
    cdef Channel* channel
    cdef Slice name
    fields_parse(&fields, command.bytes, command.length)
    queue = queue_find(core, fields.text[1])
    if queue == NULL:
        answer_status(core, command.token, NOT_FOUND, b"queue: no such queue; create it first", b"QUEUE_NOT_FOUND")
        return
    name = fields.text[3 if command.kind == ACK else (4 if command.kind == NACK else 2)]
    channel = channel_need(core, queue, name)
    if channel == NULL:
        answer_status(core, command.token, NOT_FOUND, b"channel: the queue has no such channel", b"CHANNEL_NOT_FOUND")
        return
    if command.kind == ACK_BATCH or command.kind == NACK_BATCH:
        _settle_batch(core, channel, command)
    else:
        _settle_one(core, channel, command, &fields)


cdef void _settle_one(Core* core, Channel* channel, Command* command, Fields* fields) noexcept nogil:
    cdef Verdict v
    cdef Lease* lease
    cdef Buffer payload
    cdef uint64_t high = 0
    cdef uint64_t low = 0
    cdef bint has_id
    cdef uint64_t lease_id = fields.number[5 if command.kind == NACK else 4]
    cdef Slice id_text = fields.text[3 if command.kind == EXTEND_LEASE else 2]
    cdef int64_t delay_ms = NO_DELAY
    has_id = uuid_parse(id_text, &high, &low)
    lease = _find(core, channel, has_id, high, low, lease_id, &v)
    if lease == NULL:
        answer_status(core, command.token, v.code, v.text, v.reason)
        return
    buffer_init(&payload)
    if command.kind == ACK:
        _ack(core, lease)
    elif command.kind == NACK:
        if fields.seen & (1 << 6):
            delay_ms = _bounded(fields.number[6])
        _nack(core, lease, fields.text[3], delay_ms)
    else:
        _extend(core, lease, <int64_t> fields.number[5])
        put_timestamp_field(&payload, 1, lease.expires_ms)
    answer(core, command.token, OK, &payload, channel.queue.policy.durable)


cdef inline int64_t _bounded(uint64_t delay_ms) noexcept nogil:
    return <int64_t> delay_ms if delay_ms < <uint64_t> 1 << 50 else <int64_t> 1 << 50


cdef void _settle_batch(Core* core, Channel* channel, Command* command) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number, high, low
    cdef Fields item
    cdef Buffer payload
    cdef Verdict v
    cdef Lease* lease
    cdef bint good, has_id
    buffer_init(&payload)
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field != 3 or kind != 2:
            continue
        good = fields_parse(&item, text.at, text.length)
        has_id = good and uuid_parse(item.text[1], &high, &low)
        if not good or (item.text[1].length and not has_id) or (item.text[1].length == 0 and item.number[2] == 0):
            put_status_field(&payload, 1, INVALID_ARGUMENT, b"message_id: must be a UUID of 36 characters, or give lease_id", b"INVALID_FIELD")
            continue
        lease = _find(core, channel, has_id, high, low, item.number[2], &v)
        if lease == NULL:
            put_status_field(&payload, 1, v.code, v.text, v.reason)
            continue
        if command.kind == ACK_BATCH:
            _ack(core, lease)
        else:
            _nack(core, lease, item.text[3], _bounded(item.number[4]) if item.seen & (1 << 4) else NO_DELAY)
        put_tag(&payload, 1, 2)
        put_varint(&payload, 0)
    answer(core, command.token, OK, &payload, channel.queue.policy.durable)


# --- sessions --------------------------------------------------------------------------------

cdef void session_frame(Core* core, Consumer* consumer, Command* command) noexcept nogil:
    """A later ConsumeSessionRequest: credit, acks, nacks, extensions, or the end."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef Fields inner
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == 2 and kind == 0:
            number += consumer.limit
            consumer.limit = <uint32_t> number if number < consumer.max_in_flight else consumer.max_in_flight
            consumer.channel.has_room = True
            channel_activate(core, consumer.channel)
        elif (field == 3 or field == 4) and kind == 2:
            _session_settle(core, consumer, text, field == 4)
        elif field == 5 and kind == 2:
            _session_extend(core, consumer, text)
        elif field == 6 and kind == 2:
            fields_parse(&inner, text.at, text.length)
            consumer_close(core, consumer, inner.number[1] != 0)
            return


cdef void _session_one(Core* core, Consumer* consumer, uint64_t lease_id, bint nack, Slice error, int64_t delay_ms, Buffer* failures) noexcept nogil:
    cdef Verdict v
    cdef Buffer inner
    cdef Lease* lease = _find(core, consumer.channel, False, 0, 0, lease_id, &v)
    if lease == NULL:
        buffer_init(&inner)
        put_number_field(&inner, 1, lease_id)
        put_status_field(&inner, 2, v.code, v.text, v.reason)
        put_nested(failures, 2, &inner)
        buffer_free(&inner)
    elif nack:
        _nack(core, lease, error, delay_ms)
    else:
        _ack(core, lease)


cdef void _session_settle(Core* core, Consumer* consumer, Slice text, bint nack) noexcept nogil:
    cdef Fields fields
    cdef Cursor c
    cdef Cursor ids
    cdef uint32_t field, kind
    cdef Slice piece
    cdef uint64_t number
    cdef Buffer settled
    cdef Buffer payload
    cdef int64_t delay_ms = NO_DELAY
    cdef bint durable = consumer.channel.queue.policy.durable
    if not fields_parse(&fields, text.at, text.length):
        return
    if fields.seen & (1 << 4):
        delay_ms = _bounded(fields.number[4])
    buffer_init(&settled)
    buffer_init(&payload)
    put_number_field(&settled, 1, fields.number[1])
    c.at, c.end, c.bad = text.at, text.at + text.length, False
    while next_field(&c, &field, &kind, &piece, &number):
        if field != 2:
            continue
        if kind == 0:                   # not packed
            _session_one(core, consumer, number, nack, fields.text[3], delay_ms, &settled)
        elif kind == 2:
            ids.at, ids.end, ids.bad = piece.at, piece.at + piece.length, False
            while ids.at < ids.end and not ids.bad:
                number = take_varint(&ids)
                if not ids.bad:
                    _session_one(core, consumer, number, nack, fields.text[3], delay_ms, &settled)
    put_nested(&payload, 3, &settled)
    buffer_free(&settled)
    emit(core, consumer.token, FRAME, OK, &payload, durable)


cdef void _session_extend(Core* core, Consumer* consumer, Slice text) noexcept nogil:
    """Extensions answer Extended; those refused are named as a settle's failures are."""
    cdef Fields fields
    cdef Cursor c
    cdef Cursor ids
    cdef uint32_t field, kind
    cdef Slice piece
    cdef uint64_t number
    cdef Buffer extended
    cdef Buffer payload
    if not fields_parse(&fields, text.at, text.length):
        return
    buffer_init(&extended)
    buffer_init(&payload)
    c.at, c.end, c.bad = text.at, text.at + text.length, False
    while next_field(&c, &field, &kind, &piece, &number):
        if field != 1:
            continue
        if kind == 0:
            _extend_one(core, consumer, number, fields.number[2], &extended)
        elif kind == 2:
            ids.at, ids.end, ids.bad = piece.at, piece.at + piece.length, False
            while ids.at < ids.end and not ids.bad:
                number = take_varint(&ids)
                if not ids.bad:
                    _extend_one(core, consumer, number, fields.number[2], &extended)
    put_timestamp_field(&extended, 2, core.wall_ms + _bounded(fields.number[2]))
    put_nested(&payload, 4, &extended)
    buffer_free(&extended)
    emit(core, consumer.token, FRAME, OK, &payload, consumer.channel.queue.policy.durable)


cdef void _extend_one(Core* core, Consumer* consumer, uint64_t lease_id, uint64_t extend_ms, Buffer* extended) noexcept nogil:
    cdef Verdict v
    cdef Buffer inner
    cdef Lease* lease
    if extend_ms < EXTEND_MS_MIN or extend_ms > EXTEND_MS_MAX:
        v = _verdict(INVALID_ARGUMENT, b"INVALID_FIELD", b"extend_ms: must be 1000 (1 s) to 43200000 (12 h)")
        lease = NULL
    else:
        lease = _find(core, consumer.channel, False, 0, 0, lease_id, &v)
    if lease != NULL:
        _extend(core, lease, <int64_t> extend_ms)
        put_number_field(extended, 1, lease_id)
        return
    buffer_init(&inner)
    put_number_field(&inner, 1, lease_id)
    put_status_field(&inner, 2, v.code, v.text, v.reason)
    put_nested(extended, 3, &inner)
    buffer_free(&inner)
