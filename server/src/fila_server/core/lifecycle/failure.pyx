"""The lease's record outlives the lease until what follows is in the batch, so that a crash finds the
failure decided or not begun.
"""

from libc.math cimport pow as power
from libc.stdlib cimport free
from libc.string cimport memcpy, memset, strlen

from fila_server.core.formats.state_records cimport (
    state_record_delayed, state_record_ready, state_record_retry,
)
from fila_server.core.history.decisions cimport (
    DEAD_LETTERED, DROPPED, EXPIRED, ending_is, lease_decided, slot_ends,
)
from fila_server.core.history.traces cimport decision_traced
from fila_server.core.index.bodies cimport failure_waits, frame_want
from fila_server.core.index.delays cimport message_is_over, slot_delay, slot_delay_retry
from fila_server.core.index.frames cimport frame_finish, frame_retained
from fila_server.core.index.ids cimport random_next
from fila_server.core.index.keys cimport key_intern
from fila_server.core.index.visits cimport visit_soon
from fila_server.core.index.slots cimport slot_count, slot_ready
from fila_server.core.lifecycle.answers cimport emit
from fila_server.core.lifecycle.building cimport keep_until_written, move_in
from fila_server.core.lifecycle.ending cimport (
    lease_forget, lease_let_go, slot_at, slot_detach, slot_done, slot_replaced,
)
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport EVENT, OK
from fila_server.core.protocol.protobuf cimport (
    Fields, fields_parse, next_header, put_nested, put_number_field, put_text_field, put_timestamp_field,
    put_uuid,
)
from fila_server.core.scheduling.flows cimport flow_find, flow_holds, flow_of
from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.state.directory cimport directory_at, frame_index
from fila_server.core.state.kinds cimport DECIDING, DELETED, DONE, SOUGHT
from fila_server.core.state.paths cimport (
    failure_counted, frame_enqueued_ms, frame_id, frame_offset, share_of,
)
from fila_server.core.state.pending cimport Decision, LeaseRecord
from fila_server.core.state.settings cimport Policy
from fila_server.core.state.state cimport Entry, Flow, Queue, Share
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, buffer_free, buffer_init, must_malloc, put_bytes,
)
from fila_server.core.structures.maps cimport map64_get, map64_put, map64_remove
from fila_server.core.threads.spans cimport OUT_DEAD_LETTER, OUT_POLICY, OUT_RETRY

cdef enum:
    ATTEMPTS_MAX = 0xFFFF

cdef enum Action:                   # of a DECIDE; none, by policy: the hook failed or is cut off
    RETRY = 1
    DEAD_LETTER = 2


# --- answers that wait -----------------------------------------------------------------------

cdef OpenReply* reply_open(Core* core, uint64_t token, int32_t kind, bint durable) noexcept nogil:
    cdef OpenReply* reply = <OpenReply*> must_malloc(sizeof(OpenReply))
    memset(reply, 0, sizeof(OpenReply))
    reply.token = token
    reply.kind = kind
    reply.durable = durable
    reply.open = 1                  # the caller's own; reply_close gives it back
    return reply


cdef void reply_close(Core* core, OpenReply* reply) noexcept nogil:
    reply.open -= 1
    if reply.open == 0:
        emit(core, reply.token, reply.kind, OK, &reply.payload, reply.durable)
        free(reply)


# --- what happens next -----------------------------------------------------------------------

cdef int64_t _backoff_ms(Core* core, Policy* policy, uint32_t attempts) noexcept nogil:
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


cdef void _retry(Core* core, Slot* slot, int64_t delay_ms, uint64_t last_lease) noexcept nogil:
    """Ready again at the back, now or later; where keys are in order, in its old place."""
    cdef Channel* channel = share_of(slot).channel
    if channel.queue.policy.in_order:
        channel.queue.counters.retried_in_place += 1
        state_record_retry(core, slot, max(delay_ms, <int64_t> 0), last_lease)
        if delay_ms > 0:
            slot_delay_retry(core, slot, core.wall_ms + delay_ms, delay_ms)
        else:
            slot_ready(core, slot, True)
    elif delay_ms > 0:
        slot_delay(core, slot, core.wall_ms + delay_ms, delay_ms)
        state_record_delayed(core, slot, delay_ms, last_lease)
    else:
        slot_ready(core, slot, False)
        channel.requeue_seq += 1
        state_record_ready(core, slot, channel.placed_to, channel.requeue_seq, last_lease)


cdef void lease_fail(
        Core* core, Lease* lease, Slice error, int64_t delay_ms, OpenReply* reply) noexcept nogil:
    """The lease ends by failure; count the attempt and find out what comes next."""
    cdef Slot* slot = lease.slot
    cdef bint is_replaced = lease.successor != NULL
    cdef LeaseRecord kept = lease_let_go(core, lease)
    cdef Share* share = share_of(slot)
    cdef Queue* queue = share.channel.queue
    cdef Policy* policy = &queue.policy
    if share.channel.gone:
        slot_ends(core, slot)
        slot_count(core, slot, DONE)
        lease_forget(core, &kept)
        return
    share.channel.failed += 1
    if slot.attempts < ATTEMPTS_MAX:
        slot.attempts += 1
    if policy.max_attempts and slot.attempts >= policy.max_attempts and not queue.is_dlq:
        _dead_letter(core, slot, b"max_attempts", error, &kept, reply)
    elif message_is_over(core, slot):   # while it was leased: it is not waited for again
        queue.counters.ttl_dropped += 1
        _outlived(core, slot, error)
    elif is_replaced:                   # the one that waits for this moment is tried instead
        slot_replaced(core, slot)
    elif policy.has_on_failure:
        _ask(core, slot, NULL, error, delay_ms, &kept, reply)
    else:
        _by_policy(core, slot, delay_ms, kept.lease_id)
    lease_forget(core, &kept)


cdef void lease_reject(Core* core, Lease* lease, Slice error, OpenReply* reply) noexcept nogil:
    """Its consumer says that no retry will help. A dead-letter
    queue's own messages have nowhere else to go."""
    cdef Slot* slot = lease.slot
    cdef LeaseRecord kept = lease_let_go(core, lease)
    share_of(slot).channel.failed += 1
    if slot.attempts < ATTEMPTS_MAX:
        slot.attempts += 1
    _dead_letter(core, slot, b"rejected", error, &kept, reply)
    lease_forget(core, &kept)


cdef void slot_skip(Core* core, Slot* slot, OpenReply* reply) noexcept nogil:
    cdef Slice error
    error.at, error.length = b"skipped by an operator", 22
    share_of(slot).channel.queue.counters.skipped += 1
    slot_detach(core, slot)             # its bytes may have to be read back first
    slot_count(core, slot, DECIDING)
    _dead_letter(core, slot, b"skipped", error, NULL, reply)


cdef void slot_expire(Core* core, Slot* slot) noexcept nogil:
    cdef Slice error
    error.at, error.length = b"time to live is over", 20
    _outlived(core, slot, error)


cdef void _outlived(Core* core, Slot* slot, Slice error) noexcept nogil:
    """Its letter tells what its last consumer said of it, if one had it to the end."""
    cdef Queue* queue = share_of(slot).channel.queue
    if not queue.policy.ttl_to_dlq or queue.dlq == NULL:
        ending_is(core, DROPPED, b"ttl", 0, 0)
        slot_done(core, slot)
        return
    slot_detach(core, slot)             # its bytes may have to be read back first
    slot_count(core, slot, DECIDING)
    _dead_letter(core, slot, b"ttl", error, NULL, NULL)


cdef void _by_policy(Core* core, Slot* slot, int64_t delay_ms, uint64_t last_lease) noexcept nogil:
    if delay_ms == NO_DELAY:
        delay_ms = _backoff_ms(core, &share_of(slot).channel.queue.policy, slot.attempts)
    _retry(core, slot, delay_ms, last_lease)


cdef void lease_expired(Core* core, Lease* lease) noexcept nogil:
    cdef Slice error
    error.at, error.length = b"visibility timeout expired", 26
    share_of(lease.slot).channel.queue.counters.expired += 1
    failure_counted(core, share_of(lease.slot).channel.queue)
    lease_decided(core, EXPIRED, lease, b"visibility timeout", 18)
    lease_fail(core, lease, error, NO_DELAY, NULL)


# --- decisions -------------------------------------------------------------------------------

cdef void _ask(
        Core* core, Slot* slot, const char* reason, Slice error, int64_t delay_ms, LeaseRecord* kept,
        OpenReply* reply) noexcept nogil:
    """Set a message aside until its bytes are here (`reason`: a dead
    letter's) or its hook has spoken (NULL)."""
    cdef Share* share = share_of(slot)
    # UNPLACED may have none
    cdef Flow* flow = flow_of(core, share.frame.entries[slot.index].key, share.channel)
    cdef Decision* decision
    if error.length > LAST_ERROR_BYTES_MAX:
        error.length = utf8_cut(error, LAST_ERROR_BYTES_MAX)
    decision = <Decision*> must_malloc(sizeof(Decision) + error.length)
    memset(decision, 0, sizeof(Decision))
    core.decision_number += 1
    decision.number = core.decision_number
    decision.queue_number = share.channel.queue.number
    decision.channel_number = share.channel.number
    decision.offset = frame_offset(share.frame, slot.index)
    decision.reason = reason
    decision.delay_ms = delay_ms
    if kept != NULL:                    # it goes with the decision
        decision.record = kept[0]
        kept.group = NULL
    decision.reply = reply
    decision.error.at = <char*> decision + sizeof(Decision)
    decision.error.length = error.length
    memcpy(<char*> decision + sizeof(Decision), error.at, error.length)
    if reply != NULL:
        reply.open += 1
    map64_put(&core.decisions, decision.number, decision)
    slot_count(core, slot, DECIDING)
    slot.owner = decision
    flow_holds(core, flow, 1)       # it counts as leased until it is decided
    if share.frame.body == NULL:
        frame_want(core, share.frame)
        failure_waits(share.frame, decision)
    else:
        _report(core, slot, decision)


cdef void _report(Core* core, Slot* slot, Decision* decision) noexcept nogil:
    """The bytes are hot: bury the dead letter, or send the event that asks the hook."""
    cdef Share* share = share_of(slot)
    cdef Frame* frame = share.frame
    cdef Entry* entry = &frame.entries[slot.index]
    cdef Buffer event
    cdef Cursor c
    cdef Slice text
    cdef Slice value
    cdef uint64_t high, low
    cdef Buffer header
    if decision.reason != NULL:
        _decision_end(core, decision)
        _dead_letter(core, slot, decision.reason, decision.error, &decision.record, decision.reply)
        _decision_free(core, decision)
        return
    buffer_init(&event)
    buffer_init(&header)
    text.at, text.length = share.channel.queue.text.bytes, share.channel.queue.text.length
    put_text_field(&event, seam.FAILURE_EVENT_QUEUE, text)
    text.at, text.length = share.channel.text.bytes, share.channel.text.length
    put_text_field(&event, seam.FAILURE_EVENT_CHANNEL, text)
    frame_id(frame, slot.index, &high, &low)
    put_uuid(&header, high, low)
    text.at, text.length = header.data, <uint32_t> header.length
    put_text_field(&event, seam.FAILURE_EVENT_MESSAGE_ID, text)
    put_number_field(&event, seam.FAILURE_EVENT_ATTEMPTS, slot.attempts)
    put_text_field(&event, seam.FAILURE_EVENT_ERROR, decision.error)
    text.at, text.length = entry.key.text.bytes, entry.key.text.length
    put_text_field(&event, seam.FAILURE_EVENT_FAIRNESS_KEY, text)
    c.at, c.end, c.bad = frame.body.bytes + entry.at, frame.body.bytes + entry.at + entry.length, False
    while next_header(&c, &text, &value):
        header.length = 0
        put_text_field(&header, seam.HEADER_NAME, text)
        put_text_field(&header, seam.HEADER_VALUE, value)
        put_nested(&event, seam.FAILURE_EVENT_HEADERS, &header)
    buffer_free(&header)
    emit(core, decision.number, EVENT, OK, &event, False)


cdef void _decision_end(Core* core, Decision* decision) noexcept nogil:
    """The slot is nobody's again; the caller gives it its next state at once."""
    cdef Slot* slot = slot_at(core, decision.queue_number, decision.channel_number, decision.offset)
    cdef Flow* flow
    map64_remove(&core.decisions, decision.number)
    if slot != NULL and slot.state == DECIDING and slot.owner == decision:
        slot.owner = NULL
        flow = flow_find(share_of(slot).frame.entries[slot.index].key, share_of(slot).channel)
        flow_holds(core, flow, -1)


cdef void _decision_free(Core* core, Decision* decision) noexcept nogil:
    lease_forget(core, &decision.record)
    if decision.reply != NULL:
        reply_close(core, decision.reply)
    free(decision)


cdef void decide(Core* core, Command* command) noexcept nogil:
    """The message may be gone meanwhile (purge, seek, deletion): then nothing is left to do."""
    cdef Decision* decision = <Decision*> map64_get(&core.decisions, command.token)
    cdef Slot* slot
    cdef Fields fields
    cdef uint64_t action
    if decision == NULL:
        return
    fields_parse(&fields, command.bytes, command.length)
    action = fields.number[seam.DECISION_ACTION]
    slot = slot_at(core, decision.queue_number, decision.channel_number, decision.offset)
    if slot != NULL and (slot.state != DECIDING or slot.owner != decision):
        slot = NULL
    _decision_end(core, decision)
    if slot != NULL and not share_of(slot).channel.gone:
        if core.traces != NULL:
            decision_traced(
                core, slot, decision.record.lease_id,
                OUT_DEAD_LETTER if action == DEAD_LETTER else OUT_RETRY if action == RETRY else OUT_POLICY)
        if action == DEAD_LETTER and not share_of(slot).channel.queue.is_dlq:
            _dead_letter(core, slot, b"on_failure", decision.error, &decision.record, decision.reply)
        elif message_is_over(core, slot):   # while it was being decided, as if its lease had ended now
            share_of(slot).channel.queue.counters.ttl_dropped += 1
            slot_expire(core, slot)
        elif action == RETRY and fields.seen & (1 << seam.DECISION_DELAY_MS):
            _retry(
                core, slot, <int64_t> min(fields.number[seam.DECISION_DELAY_MS], <uint64_t> 1 << 50),
                decision.record.lease_id)
        else:
            _by_policy(core, slot, decision.delay_ms, decision.record.lease_id)
    _decision_free(core, decision)


cdef bint failures_turn(Core* core) noexcept nogil:
    cdef Decision* decision
    while core.unasked != NULL and stage_goes_on(core):
        decision = core.unasked
        core.unasked = decision.next
        if core.unasked == NULL:
            core.unasked_last = NULL
        core.counters.work += 1
        _go_on(core, decision)
    return core.unasked != NULL


cdef void _go_on(Core* core, Decision* decision) noexcept nogil:
    cdef Slot* slot
    if decision.birth:
        if _dead_lettered_apart(core, decision):
            map64_remove(&core.decisions, decision.number)
            _decision_free(core, decision)
        return
    slot = slot_at(core, decision.queue_number, decision.channel_number, decision.offset)
    if slot == NULL or slot.state != DECIDING or slot.owner != decision or _is_moot(slot, decision):
        _decision_end(core, decision)
        _decision_free(core, decision)
    elif share_of(slot).frame.body == NULL:             # given up again meanwhile
        frame_want(core, share_of(slot).frame)
        failure_waits(share_of(slot).frame, decision)
    else:
        _report(core, slot, decision)


cdef bint _is_moot(Slot* slot, Decision* decision) noexcept nogil:
    """Its channel was deleted, or starts anew and brings the message again. A dead letter outlives a seek."""
    cdef int gone = share_of(slot).channel.gone
    return gone == DELETED or gone == SOUGHT and decision.reason == NULL


cdef void slot_outlived(Core* core, Slot* slot) noexcept nogil:
    cdef Decision* decision = <Decision*> slot.owner
    if slot.state != DECIDING or decision == NULL or decision.reason == NULL:
        return
    decision.birth = share_of(slot).channel.birth
    decision.attempts = slot.attempts
    share_of(slot).frame.burials += 1


cdef bint _dead_lettered_apart(Core* core, Decision* decision) noexcept nogil:
    """False while its bytes are not here yet."""
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, decision.queue_number)
    cdef Frame* frame = directory_at(&queue.directory, decision.offset) if queue != NULL else NULL
    cdef Channel* channel = queue.channels if queue != NULL else NULL
    cdef uint32_t i
    if frame == NULL or frame.dying:
        return True                     # deleted, dropped or damaged meanwhile
    i = frame_index(frame, decision.offset)
    if i == frame.count:
        return True
    if frame.body == NULL:
        frame_want(core, frame)
        failure_waits(frame, decision)
        return False
    frame.burials -= 1
    visit_soon(core, frame.queue)
    while channel != NULL and channel.birth != decision.birth:
        channel = channel.next
    if channel != NULL and queue.dlq != NULL:
        dead_letter_put(core, channel, frame, i, decision.attempts, decision.reason, decision.error)
    if frame.live == 0 and not frame_retained(core, frame):
        frame_finish(core, frame)
    return True


# --- dead letters ----------------------------------------------------------------------------

cdef void _dead_letter(
        Core* core, Slot* slot, const char* reason, Slice error, LeaseRecord* kept,
        OpenReply* reply) noexcept nogil:
    """Move a message to its DLQ and settle it here, in one batch.

    Its stored bytes go along with a piece of metadata that says where it came from; the rest
    of the metadata merges with it at delivery (protobuf.pyx). The bytes must be hot: where they
    are not, the message waits in DECIDING and comes back here when they are.
    """
    cdef Share* share = share_of(slot)
    if share.channel.queue.dlq == NULL and share.channel.queue.policy.idle_ms:
        visit_soon(core, share.channel.queue)
        share.channel.queue.counters.dead_dropped += 1      # a queue that expires has no place for
                                                            # them; the edge is told
        ending_is(core, DROPPED, b"no dead-letter queue", 0, 0)
        slot_done(core, slot)
        return
    if share.channel.queue.dlq == NULL:
        _by_policy(core, slot, NO_DELAY, core.next_lease_id - 1)
        return
    if share.frame.body == NULL:
        _ask(core, slot, reason, error, NO_DELAY, kept, reply)
        return
    dead_letter_put(core, share.channel, share.frame, slot.index, slot.attempts, reason, error)
    ending_is(core, DEAD_LETTERED, reason, 0, 0)
    slot_done(core, slot)


# A dead letter is the stored bytes with a piece of metadata behind them, which merges as protobuf merges.

cdef void dead_letter_put(
        Core* core, Channel* channel, Frame* frame, uint32_t index, uint32_t attempts, const char* reason,
        Slice error) noexcept nogil:
    cdef Queue* queue = channel.queue
    cdef Entry* entry = &frame.entries[index]
    cdef Queue* dlq = queue.dlq
    cdef Buffer inner
    cdef Buffer dead
    cdef Buffer body
    cdef Slice text
    cdef uint64_t high, low
    buffer_init(&inner)
    buffer_init(&dead)
    buffer_init(&body)
    text.at, text.length = queue.text.bytes, queue.text.length
    put_text_field(&dead, v1.DEAD_LETTER_SOURCE_QUEUE, text)
    text.at, text.length = channel.text.bytes, channel.text.length
    put_text_field(&dead, v1.DEAD_LETTER_SOURCE_CHANNEL, text)
    text.at, text.length = reason, <uint32_t> strlen(reason)
    put_text_field(&dead, v1.DEAD_LETTER_REASON, text)
    if error.length > LAST_ERROR_BYTES_MAX:
        error.length = utf8_cut(error, LAST_ERROR_BYTES_MAX)
    if error.length:
        put_text_field(&dead, v1.DEAD_LETTER_LAST_ERROR, error)
    put_number_field(&dead, v1.DEAD_LETTER_ATTEMPTS, attempts)
    put_timestamp_field(&dead, v1.DEAD_LETTER_AT, core.wall_ms)
    put_nested(&inner, v1.MESSAGE_METADATA_DEAD_LETTER, &dead)
    put_bytes(&body, frame.body.bytes + entry.at, entry.length)
    put_nested(&body, v1.MESSAGE_METADATA, &inner)
    frame_id(frame, index, &high, &low)
    text.at, text.length = entry.key.text.bytes, entry.key.text.length
    if entry.set != NULL:
        entry.set.refs += 1
    move_in(
        core, dlq, key_intern(core, dlq, text), entry.set, entry.cost_bits, body.data, <uint32_t> body.length,
        high, low, frame_enqueued_ms(frame, index), NULL)
    # The bytes must outlive the building of the frame; the pass frees them after it.
    keep_until_written(core, body.data)
    buffer_free(&inner)
    buffer_free(&dead)
    queue.counters.dead_lettered += 1


cdef uint32_t utf8_cut(Slice text, uint32_t most) noexcept nogil:
    while most > 0 and <unsigned char> text.at[most] & 0xC0 == 0x80:
        most -= 1
    return most
