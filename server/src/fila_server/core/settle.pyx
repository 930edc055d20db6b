"""Stage 3 of 4: see settle.pxd."""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free

from fila_server.core.answers cimport answer, answer_no_channel, answer_no_queue, answer_status, emit
from fila_server.core.buffer cimport Buffer, Cursor, buffer_free, buffer_init, put_varint, take_varint
from fila_server.core.commands cimport (
    ACK, ACK_BATCH, END, EXTEND_LEASE, FAILED_PRECONDITION, FRAME, INVALID_ARGUMENT, NACK, NACK_BATCH, NOT_FOUND, OK, REPLY,
)
from fila_server.core.sending cimport consumer_free
from fila_server.core.ending cimport lease_end, lease_return, slot_done
from fila_server.core.enqueue cimport queue_find
from fila_server.core.failure cimport lease_fail, owed_close, owed_open
from fila_server.core.flows cimport channel_activate
from fila_server.core.frames cimport directory_find_id, frame_id, frame_of, share_find, share_of
from fila_server.core.maps cimport map64_get
from fila_server.core.queues cimport channel_find
from fila_server.core.records cimport lease_extension_put
from fila_server.core.waits cimport channel_room
from fila_server.core.state cimport Channel, DONE, Delivery, Frame, LEASED, Lease, Queue, Share, Slot
from fila_server.core.waiting cimport Owed
from fila_server.core.timers cimport timer_set
from fila_server.core.wire cimport (
    Fields, fields_parse, next_field, put_nested, put_number_field, put_status_field, put_tag, put_timestamp_field,
    uuid_parse,
)

cdef enum:
    EXTEND_MS_MIN = 1000
    EXTEND_MS_MAX = 43200000
    NO_DELAY = -1


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


cdef void leases_return(Core* core, Command* command) noexcept nogil:
    """CANCEL that came behind the pull's answer. What was settled or ran out meanwhile is left as it is."""
    cdef Cursor c
    cdef Cursor ids
    cdef uint32_t field, kind
    cdef Slice piece
    cdef uint64_t number
    cdef Lease* lease
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &piece, &number):
        if field != 2 or kind != 2:
            continue
        ids.at, ids.end, ids.bad = piece.at, piece.at + piece.length, False
        while ids.at < ids.end and not ids.bad:
            lease = <Lease*> map64_get(&core.leases, take_varint(&ids))
            if lease != NULL and not ids.bad:
                lease_return(core, lease)


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
    cdef Slot* slot
    cdef uint64_t h, l
    cdef bint stored = False
    if lease_id:
        lease = <Lease*> map64_get(&core.leases, lease_id)
        if lease != NULL and share_of(lease.slot).channel == channel:
            frame_id(frame_of(lease.slot), lease.slot.index, &h, &l)
            if not has_id or (h == high and l == low):
                return lease
    if has_id:
        slot = directory_find_id(&channel.queue.directory, high, low, channel, lease_id != 0)
        stored = slot != NULL or channel.rebuild_at != 0    # not taken in again yet; its lease is over either way
        if slot != NULL and lease_id == 0 and slot.state == LEASED:
            return <Lease*> slot.owner
    if lease_id and (stored or not has_id):
        channel.queue.counters.stale_acks += 1
        v[0] = _verdict(
            FAILED_PRECONDITION, b"LEASE_LOST",
            b"lease_id: the message is not held under this lease any more; it was settled, given out again, or waits")
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


cdef void _nack(Core* core, Lease* lease, Slice error, int64_t delay_ms, Owed* owed) noexcept nogil:
    share_of(lease.slot).channel.queue.counters.nacked += 1
    lease_fail(core, lease, error, delay_ms, owed)


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
        answer_no_queue(core, command)
        return
    name = fields.text[3 if command.kind == ACK else (4 if command.kind == NACK else 2)]
    channel = channel_find(queue, name)
    if channel == NULL:
        answer_no_channel(core, command)
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
    cdef Owed* owed
    has_id = uuid_parse(id_text, &high, &low)
    lease = _find(core, channel, has_id, high, low, lease_id, &v)
    if lease == NULL:
        answer_status(core, command.token, v.code, v.text, v.reason)
        return
    buffer_init(&payload)
    if command.kind == NACK:
        if fields.seen & (1 << 6):
            delay_ms = _bounded(fields.number[6])
        owed = owed_open(core, command.token, REPLY, channel.queue.policy.durable)
        _nack(core, lease, fields.text[3], delay_ms, owed)
        owed_close(core, owed)
        return
    if command.kind == ACK:
        _ack(core, lease)
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
    cdef Owed* owed = owed_open(core, command.token, REPLY, channel.queue.policy.durable)
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
            _nack(core, lease, item.text[3], _bounded(item.number[4]) if item.seen & (1 << 4) else NO_DELAY, owed)
        put_tag(&payload, 1, 2)
        put_varint(&payload, 0)
    owed.payload = payload
    owed_close(core, owed)


# --- sessions --------------------------------------------------------------------------------

cdef void session_frame(Core* core, Consumer* consumer, Command* command) noexcept nogil:
    """A later ConsumeSessionRequest: credit, acks, nacks, extensions, or the end."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef Fields inner
    cdef Buffer payload
    cdef uint64_t token
    cdef bint durable
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == 2 and kind == 0:
            number = min(number, <uint64_t> consumer.max_in_flight) + consumer.limit
            consumer.limit = <uint32_t> number if number < consumer.max_in_flight else consumer.max_in_flight
            channel_room(core, consumer.channel, True)
            channel_activate(core, consumer.channel)
        elif (field == 3 or field == 4) and kind == 2:
            _session_settle(core, consumer, text, field == 4)
        elif field == 5 and kind == 2:
            _session_extend(core, consumer, text)
        elif field == 6 and kind == 2:
            fields_parse(&inner, text.at, text.length)
            token, durable = consumer.token, consumer.channel.queue.policy.durable
            consumer_close(core, consumer, inner.number[1] != 0)
            # Behind the answers to its acks, which wait for this pass's epoch too.
            buffer_init(&payload)
            emit(core, token, END, OK, &payload, durable)
            return


cdef void _session_one(Core* core, Consumer* consumer, uint64_t lease_id, Owed* owed, Slice error, int64_t delay_ms, Buffer* failures) noexcept nogil:
    cdef Verdict v
    cdef Buffer inner
    cdef Lease* lease = _find(core, consumer.channel, False, 0, 0, lease_id, &v)
    if lease == NULL:
        buffer_init(&inner)
        put_number_field(&inner, 1, lease_id)
        put_status_field(&inner, 2, v.code, v.text, v.reason)
        put_nested(failures, 2, &inner)
        buffer_free(&inner)
    elif owed.nack:
        _nack(core, lease, error, delay_ms, owed)
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
    cdef Owed* owed
    if not fields_parse(&fields, text.at, text.length):
        return
    if fields.seen & (1 << 4):
        delay_ms = _bounded(fields.number[4])
    owed = owed_open(core, consumer.token, FRAME, consumer.channel.queue.policy.durable)
    owed.nack = nack
    buffer_init(&settled)
    buffer_init(&payload)
    put_number_field(&settled, 1, fields.number[1])
    c.at, c.end, c.bad = text.at, text.at + text.length, False
    while next_field(&c, &field, &kind, &piece, &number):
        if field != 2:
            continue
        if kind == 0:                   # not packed
            _session_one(core, consumer, number, owed, fields.text[3], delay_ms, &settled)
        elif kind == 2:
            ids.at, ids.end, ids.bad = piece.at, piece.at + piece.length, False
            while ids.at < ids.end and not ids.bad:
                number = take_varint(&ids)
                if not ids.bad:
                    _session_one(core, consumer, number, owed, fields.text[3], delay_ms, &settled)
    put_nested(&payload, 3, &settled)
    buffer_free(&settled)
    owed.payload = payload
    owed_close(core, owed)


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
