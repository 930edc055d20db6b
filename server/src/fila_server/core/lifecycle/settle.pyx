"""A lease id is one look into a table. What is not there is lost, and nothing is searched for: a
consumer that wakes up late sends thousands of these.
"""

from fila_server.core.formats.records cimport lease_extension_put
from fila_server.core.history.decisions cimport ACKED, NACKED, ending_is, lease_decided
from fila_server.core.history.traces cimport lease_traced
from fila_server.core.index.leases cimport MARK_BEGUN, group_mark, lease_by_message_id
from fila_server.core.index.last_errors cimport last_error_keep
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel, answer_no_queue, answer_status
from fila_server.core.lifecycle.ending cimport lease_end, slot_done
from fila_server.core.lifecycle.failure cimport NO_DELAY, lease_fail, lease_reject, reply_close, reply_open
from fila_server.core.lifecycle.feedback cimport feedback_acked, feedback_fits, feedback_heard
from fila_server.core.lifecycle.giveback cimport MAY_BE_SEEN, lease_return
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport (
    ACK, ACK_BATCH, EXTEND_LEASE, FAILED_PRECONDITION, INVALID_ARGUMENT, NACK, NACK_BATCH, NOT_FOUND, OK,
    REPLY,
)
from fila_server.core.protocol.feedback cimport feedback_checked, feedback_in, no_feedback
from fila_server.core.protocol.problem cimport Problem
from fila_server.core.protocol.protobuf cimport (
    LEN, QUEUE_FIELD, channel_field, fields_parse, next_field, put_status_field, put_tag, put_timestamp_field,
    uuid_parse,
)
from fila_server.core.scheduling.flows cimport flow_find
from fila_server.core.state.kinds cimport RETURN_ALL
from fila_server.core.state.paths cimport (
    channel_find, entry_of, failure_counted, flow_delivers, frame_id, frame_of, queue_find, share_of,
)
from fila_server.core.state.state cimport Consumer, Queue, Slot
from fila_server.core.structures.buffer cimport Buffer, Cursor, buffer_init, put_varint
from fila_server.core.structures.maps cimport map64_get
from fila_server.core.structures.timers cimport timer_set
from fila_server.core.threads.spans cimport OUT_ACKED


cdef Verdict verdict(int32_t code, const char* reason, const char* text) noexcept nogil:
    cdef Verdict v
    v.code, v.reason, v.text = code, reason, text
    return v


cdef bint lease_given_back(Lease* lease) noexcept nogil:
    return lease.consumer != NULL and lease.consumer.fate == RETURN_ALL


cdef Lease* lease_find(
        Core* core, Channel* channel, bint has_id, uint64_t high, uint64_t low, uint64_t lease_id,
        Verdict* v) noexcept nogil:
    """The lease that is meant, or NULL and why it isn't there."""
    cdef Lease* lease
    cdef uint64_t h, l
    if lease_id:
        lease = <Lease*> map64_get(&core.leases, lease_id)
        if (
            lease != NULL and share_of(lease.slot).channel == channel and not channel.gone
            and not lease_given_back(lease)
        ):
            frame_id(frame_of(lease.slot), lease.slot.index, &h, &l)
            if not has_id or (h == high and l == low):
                return lease
        # Nothing is searched for: a consumer that wakes up late sends thousands of these.
        channel.queue.counters.stale_acks += 1
        v[0] = verdict(
            FAILED_PRECONDITION, b"LEASE_LOST",
            b"lease_id: the message is not held under this lease any more; it was settled, given out again, "
            b"or waits")
        return NULL
    lease = lease_by_message_id(core, channel, high, low) if has_id else NULL
    if lease != NULL and lease_given_back(lease):
        lease = NULL
    if lease == NULL:
        v[0] = verdict(
            NOT_FOUND, b"MESSAGE_NOT_FOUND",
            b"message_id: no such message in this channel, or nobody holds it; it may have been acked "
            b"already")
    return lease


cdef bint _begins(Lease* lease) noexcept nogil:
    """Its consumer has said so, or answers and so had it: that is a delivery. False: it was begun before."""
    cdef Channel* channel = share_of(lease.slot).channel
    if lease.begun:
        return False
    lease.begun = True
    channel.unbegun -= 1
    if lease.consumer != NULL:
        lease.consumer.begun += 1
    channel.delivered += 1
    channel.queue.counters.delivered += 1
    flow_delivers(flow_find(entry_of(lease.slot).key, channel))
    return True


cdef void lease_ack(Core* core, Lease* lease) noexcept nogil:
    cdef Slot* slot = lease.slot
    cdef Channel* channel = share_of(slot).channel
    cdef Slice nothing
    _begins(lease)
    if core.traces != NULL:
        nothing.at, nothing.length = NULL, 0
        lease_traced(core, lease, OUT_ACKED, nothing)
    channel.queue.counters.acked += 1
    channel.acked += 1
    channel.touched_ms = core.wall_ms
    feedback_acked(core, lease)
    ending_is(
        core, ACKED, NULL, lease.consumer.number if lease.consumer != NULL else 0,
        core.wall_ms - lease.leased_ms)
    lease_end(core, lease)
    slot_done(core, slot)


cdef Wishes wishes_of(
        const Fields* fields, uint32_t error, uint32_t delay, uint32_t dead_letter,
        uint32_t release) noexcept nogil:
    """What a nack wants, by the numbers its fields have in that message."""
    cdef Wishes wishes
    wishes.error = fields.text[error]
    wishes.delay_ms = _bounded(fields.number[delay]) if fields.seen & (1 << delay) else NO_DELAY
    wishes.dead_letter = fields.number[dead_letter] != 0
    wishes.release = fields.number[release] != 0
    wishes.was_limited = False
    wishes.said = no_feedback()
    return wishes


cdef Feedbacks feedback_of(const Fields* fields, uint32_t field, Slice message) noexcept nogil:
    return feedback_in(message, field) if fields.seen & (1 << field) else no_feedback()


cdef bint lease_tells(Core* core, Lease* lease, Wishes* wishes, Verdict* v) noexcept nogil:
    wishes.was_limited = False
    if wishes.said.message.length == 0:
        return True
    if not feedback_fits(lease, &wishes.said):
        v[0] = verdict(
            INVALID_ARGUMENT, b"INVALID_FIELD",
            b"feedback.limit: the message does not name this limit; give one of its throttle_keys, or leave "
            b"it out for each of them that learns")
        return False
    wishes.was_limited = feedback_heard(core, lease, &wishes.said)
    return True


cdef void lease_nack(Core* core, Lease* lease, Wishes* wishes, OpenReply* reply) noexcept nogil:
    cdef Channel* channel = share_of(lease.slot).channel
    channel.touched_ms = core.wall_ms
    _begins(lease)
    if wishes.release or (wishes.was_limited and not wishes.dead_letter):
        lease_return(core, lease, MAY_BE_SEEN)
        return
    channel.queue.counters.nacked += 1
    failure_counted(core, channel.queue)
    lease_decided(core, NACKED, lease, wishes.error.at, wishes.error.length)
    if wishes.dead_letter:
        lease_reject(core, lease, wishes.error, reply)
    else:
        last_error_keep(core, lease.slot, wishes.error)
        lease_fail(core, lease, wishes.error, wishes.delay_ms, reply)


cdef void lease_begin(Core* core, Lease* lease) noexcept nogil:
    """Its consumer works on it from now on, and its time counts anew."""
    cdef Consumer* consumer = lease.consumer
    cdef int64_t due_ns
    if not _begins(lease):
        return
    if consumer != NULL:
        due_ns = core.mono_ns + consumer.lease_ms * 1000000
        if due_ns > lease.due_ns:       # the timer fires at the old time, and is set again then
            lease.expires_ms += (due_ns - lease.due_ns) // 1000000
            lease.due_ns = due_ns
    lease.group.begun_until_ms = max(lease.group.begun_until_ms, lease.expires_ms)
    group_mark(core, lease.group, lease.lease_id, MARK_BEGUN)


cdef void lease_extend(Core* core, Lease* lease, int64_t extend_ms) noexcept nogil:
    """The lease now ends `extend_ms` from now; a session that has its leases renewed only ever gains by it.
    Recorded apart: its frame's record names one expiry for all."""
    cdef int64_t due_ns = core.mono_ns + extend_ms * 1000000
    lease_begin(core, lease)
    if lease.consumer != NULL and lease.consumer.tracks_begun and due_ns < lease.due_ns:
        return
    lease.expires_ms = core.wall_ms + extend_ms
    lease.due_ns = due_ns
    timer_set(&core.timers, &lease.timer, due_ns)
    lease.extended = True
    lease_extension_put(core, lease)


cdef void settle_command(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Queue* queue
    cdef Channel* channel
    fields_parse(&fields, command.bytes, command.length)
    queue = queue_find(core, fields.text[QUEUE_FIELD])
    if queue == NULL:
        answer_no_queue(core, command)
        return
    channel = channel_find(queue, fields.text[channel_field(command.kind)])
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
    cdef uint64_t lease_id
    cdef Slice id_text
    cdef Slice whole
    cdef Wishes wishes
    cdef OpenReply* reply
    if command.kind == ACK:
        id_text, lease_id = fields.text[v1.ACK_REQUEST_MESSAGE_ID], fields.number[v1.ACK_REQUEST_LEASE_ID]
    elif command.kind == NACK:
        id_text, lease_id = fields.text[v1.NACK_REQUEST_MESSAGE_ID], fields.number[v1.NACK_REQUEST_LEASE_ID]
    else:
        id_text = fields.text[v1.EXTEND_LEASE_REQUEST_MESSAGE_ID]
        lease_id = fields.number[v1.EXTEND_LEASE_REQUEST_LEASE_ID]
    has_id = uuid_parse(id_text, &high, &low)
    lease = lease_find(core, channel, has_id, high, low, lease_id, &v)
    wishes = wishes_of(
        fields, v1.NACK_REQUEST_ERROR, v1.NACK_REQUEST_DELAY_MS, v1.NACK_REQUEST_DEAD_LETTER,
        v1.NACK_REQUEST_RELEASE)
    if command.kind != EXTEND_LEASE:
        whole.at, whole.length = command.bytes, command.length
        wishes.said = feedback_of(
            fields, v1.ACK_REQUEST_FEEDBACK if command.kind == ACK else v1.NACK_REQUEST_FEEDBACK, whole)
    if lease == NULL or not lease_tells(core, lease, &wishes, &v):
        answer_status(core, command.token, v.code, v.text, v.reason)
        return
    buffer_init(&payload)
    if command.kind == NACK:
        reply = reply_open(core, command.token, REPLY, channel.queue.policy.durable)
        lease_nack(core, lease, &wishes, reply)
        reply_close(core, reply)
        return
    if command.kind == ACK:
        lease_ack(core, lease)
    else:
        lease_extend(core, lease, <int64_t> fields.number[v1.EXTEND_LEASE_REQUEST_EXTEND_MS])
        put_timestamp_field(&payload, v1.EXTEND_LEASE_RESPONSE_LEASE_EXPIRES_AT, lease.expires_ms)
    answer(core, command.token, OK, &payload, channel.queue.policy.durable)


cdef inline int64_t _bounded(uint64_t delay_ms) noexcept nogil:
    return <int64_t> delay_ms if delay_ms < <uint64_t> 1 << 50 else <int64_t> 1 << 50


cdef void _settle_batch(Core* core, Channel* channel, Command* command) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef Slice id_text
    cdef uint64_t number, lease_id, high, low
    cdef Fields item
    cdef Buffer payload
    cdef Verdict v
    cdef Lease* lease
    cdef bint good, has_id
    cdef Problem problem
    cdef Wishes wishes
    cdef OpenReply* reply = reply_open(core, command.token, REPLY, channel.queue.policy.durable)
    buffer_init(&payload)
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field != v1.NACK_BATCH_REQUEST_ITEMS or kind != LEN:
            continue
        good = fields_parse(&item, text.at, text.length)
        id_text, lease_id = item.text[v1.SETTLE_ITEM_MESSAGE_ID], item.number[v1.SETTLE_ITEM_LEASE_ID]
        has_id = good and uuid_parse(id_text, &high, &low)
        if not good or (not has_id if id_text.length else lease_id == 0):
            put_status_field(
                &payload, v1.SETTLE_BATCH_RESPONSE_RESULTS, INVALID_ARGUMENT,
                b"message_id: must be a UUID of 36 characters, or give lease_id", b"INVALID_FIELD")
            continue
        wishes = wishes_of(
            &item, v1.SETTLE_ITEM_ERROR, v1.SETTLE_ITEM_DELAY_MS, v1.SETTLE_ITEM_DEAD_LETTER,
            v1.SETTLE_ITEM_RELEASE)
        if (
            command.kind == NACK_BATCH and wishes.release
            and (wishes.dead_letter or wishes.delay_ms != NO_DELAY)
        ):
            put_status_field(
                &payload, v1.SETTLE_BATCH_RESPONSE_RESULTS, INVALID_ARGUMENT,
                b"release: not together with dead_letter or delay_ms; a message that did not fail goes back "
                b"as it was",
                b"INVALID_FIELD")
            continue
        wishes.said = feedback_of(&item, v1.SETTLE_ITEM_FEEDBACK, text)
        if wishes.said.message.length and not feedback_checked(&wishes.said, &problem):
            put_status_field(
                &payload, v1.SETTLE_BATCH_RESPONSE_RESULTS, problem.code, problem.text, problem.reason)
            continue
        lease = lease_find(core, channel, has_id, high, low, lease_id, &v)
        if lease == NULL or not lease_tells(core, lease, &wishes, &v):
            put_status_field(&payload, v1.SETTLE_BATCH_RESPONSE_RESULTS, v.code, v.text, v.reason)
            continue
        if command.kind == ACK_BATCH:
            lease_ack(core, lease)
        else:
            lease_nack(core, lease, &wishes, reply)
        put_tag(&payload, v1.SETTLE_BATCH_RESPONSE_RESULTS, LEN)
        put_varint(&payload, 0)
    reply.payload = payload
    reply_close(core, reply)
