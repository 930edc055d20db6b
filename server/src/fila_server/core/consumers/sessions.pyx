"""Submit.pyx has checked the frame's shape and bounds."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.consumers.leaving cimport consumer_close, consumer_command
from fila_server.core.history.changes cimport CHANGED_CONSUMER_ROOM, consumer_changed
from fila_server.core.lifecycle.answers cimport emit
from fila_server.core.lifecycle.failure cimport reply_close, reply_open
from fila_server.core.lifecycle.giveback cimport GIVEN_BACK, UNWRITTEN, lease_return
from fila_server.core.lifecycle.revoked cimport revoked_note
from fila_server.core.lifecycle.sending cimport pull_answer
from fila_server.core.lifecycle.settle cimport (
    Verdict, Wishes, feedback_of, lease_ack, lease_begin, lease_extend, lease_find, lease_nack, lease_tells,
    verdict, wishes_of,
)
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport FRAME, INVALID_ARGUMENT, OK
from fila_server.core.protocol.protobuf cimport (
    LEN, VARINT, Fields, fields_parse, next_field, put_nested, put_number_field, put_status_field,
    put_timestamp_field,
)
from fila_server.core.protocol.refusals cimport EXTEND_MS_MAX, EXTEND_MS_MIN
from fila_server.core.scheduling.clocks cimport channel_room
from fila_server.core.scheduling.eligibility cimport channel_activate
from fila_server.core.state.kinds cimport PULL
from fila_server.core.state.paths cimport lease_is_gone
from fila_server.core.state.pending cimport OpenReply
from fila_server.core.state.state cimport Consumer, Lease
from fila_server.core.structures.buffer cimport Buffer, Cursor, Slice, buffer_free, buffer_init, take_varint
from fila_server.core.structures.maps cimport map64_get
from fila_server.core.structures.timers cimport timer_cancel

cdef enum:
    OVER = 111                      # the first letter of "over"; no field of a Settle begins so


cdef struct LeaseIds:               # of a repeated field, packed or not
    Cursor   message
    Cursor   packed
    uint32_t field


cdef LeaseIds _ids(Slice text, uint32_t field) noexcept nogil:
    cdef LeaseIds ids
    ids.message.at, ids.message.end, ids.message.bad = text.at, text.at + text.length, False
    ids.packed.at, ids.packed.end, ids.packed.bad = text.at, text.at, False
    ids.field = field
    return ids


cdef bint _next_id(LeaseIds* ids, uint64_t* lease_id) noexcept nogil:
    cdef uint32_t field, kind
    cdef Slice text
    while True:
        if ids.packed.at < ids.packed.end:
            lease_id[0] = take_varint(&ids.packed)
            if not ids.packed.bad:
                return True
            ids.packed.at = ids.packed.end
        if not next_field(&ids.message, &field, &kind, &text, lease_id):
            return False
        if field == ids.field and kind == VARINT:
            return True
        if field == ids.field and kind == LEN:
            ids.packed.at, ids.packed.end, ids.packed.bad = text.at, text.at + text.length, False


cdef void pull_cancel(Core* core, Command* command) noexcept nogil:
    cdef Consumer* consumer = <Consumer*> map64_get(&core.consumers, command.token)
    if command.length and command.bytes[0] == OVER:
        if consumer != NULL and consumer.kind == PULL:
            timer_cancel(&core.timers, &consumer.timer)     # over: see _drop_delivery in lifecycle/sending
            pull_answer(core, consumer)
    elif command.length and consumer == NULL:
        _leases_return(core, command)
    else:
        consumer_command(core, command)


cdef void _leases_return(Core* core, Command* command) noexcept nogil:
    """A cancel that came behind the pull's answer names its leases. What
    was settled or ran out meanwhile stays so."""
    cdef Slice text
    cdef LeaseIds ids
    cdef uint64_t lease_id
    cdef Lease* lease
    text.at, text.length = command.bytes, command.length
    ids = _ids(text, v1.SETTLE_LEASE_IDS)
    while _next_id(&ids, &lease_id):
        lease = <Lease*> map64_get(&core.leases, lease_id)
        if lease != NULL and not lease_is_gone(lease):
            lease_return(core, lease, UNWRITTEN)


cdef void session_command(Core* core, Command* command) noexcept nogil:
    cdef Consumer* consumer = <Consumer*> map64_get(&core.consumers, command.token)
    if consumer == NULL:                # it ended meanwhile; the edge has been told
        return
    if consumer.silence_ms:             # whatever it says, it lives
        consumer.deadline_ms = core.heard_ms + consumer.silence_ms
    _session_frame(core, consumer, command)


cdef void _session_frame(Core* core, Consumer* consumer, Command* command) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef Fields inner
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == v1.CONSUME_SESSION_REQUEST_CREDIT and kind == VARINT:
            number = min(number, <uint64_t> consumer.max_in_flight) + consumer.limit
            consumer.limit = <uint32_t> number if number < consumer.max_in_flight else consumer.max_in_flight
            _has_room(core, consumer)
        elif field == v1.CONSUME_SESSION_REQUEST_ACK and kind == LEN:
            _settle(core, consumer, text, False)
        elif field == v1.CONSUME_SESSION_REQUEST_NACK and kind == LEN:
            _settle(core, consumer, text, True)
        elif field == v1.CONSUME_SESSION_REQUEST_EXTEND and kind == LEN:
            _extend(core, consumer, text)
        elif field == v1.CONSUME_SESSION_REQUEST_BEGUN and kind == LEN:
            _begun(core, consumer, text)
        elif field == v1.CONSUME_SESSION_REQUEST_WINDOW and kind == LEN:
            _window(core, consumer, text)
        elif field == v1.CONSUME_SESSION_REQUEST_ALIVE and kind == LEN:
            _alive(core, consumer, text)
        elif field == v1.CONSUME_SESSION_REQUEST_CLOSE and kind == LEN:
            fields_parse(&inner, text.at, text.length)
            consumer_close(core, consumer, inner.number[v1.CONSUME_SESSION_REQUEST_CLOSE_RELEASE] != 0)
            return


cdef void _has_room(Core* core, Consumer* consumer) noexcept nogil:
    channel_room(core, consumer.channel, True)
    channel_activate(core, consumer.channel)


# --- begun, window, alive ----------------------------------------------------------------------

cdef void _begun(Core* core, Consumer* consumer, Slice text) noexcept nogil:
    cdef LeaseIds ids = _ids(text, v1.CONSUME_SESSION_REQUEST_BEGUN_LEASE_IDS)
    cdef uint64_t lease_id
    cdef Lease* lease
    while _next_id(&ids, &lease_id):
        lease = <Lease*> map64_get(&core.leases, lease_id)
        if lease == NULL or lease.consumer != consumer or lease_is_gone(lease):
            revoked_note(core, consumer, lease_id, b"LEASE_LOST")
        else:
            lease_begin(core, lease)


cdef void _window(Core* core, Consumer* consumer, Slice text) noexcept nogil:
    """The new size first, so that what is given back does not come straight back."""
    cdef Fields fields
    cdef LeaseIds ids = _ids(text, v1.CONSUME_SESSION_REQUEST_WINDOW_GIVE_BACK)
    cdef uint64_t lease_id
    cdef Lease* lease
    fields_parse(&fields, text.at, text.length)
    if consumer.limit != fields.number[v1.CONSUME_SESSION_REQUEST_WINDOW_SIZE]:
        consumer.limit = <uint32_t> fields.number[v1.CONSUME_SESSION_REQUEST_WINDOW_SIZE]
        consumer_changed(core, CHANGED_CONSUMER_ROOM, consumer)
    consumer.max_in_flight = consumer.limit
    while _next_id(&ids, &lease_id):
        lease = <Lease*> map64_get(&core.leases, lease_id)
        if lease != NULL and lease.consumer == consumer:
            lease_return(core, lease, GIVEN_BACK)
    _has_room(core, consumer)


cdef void _alive(Core* core, Consumer* consumer, Slice text) noexcept nogil:
    cdef Fields fields
    cdef Buffer alive
    cdef Buffer payload
    fields_parse(&fields, text.at, text.length)
    consumer.handling_us = fields.number[v1.CONSUME_SESSION_REQUEST_ALIVE_HANDLING_TIME_US]
    buffer_init(&alive)
    buffer_init(&payload)
    put_number_field(
        &alive, v1.CONSUME_SESSION_RESPONSE_ALIVE_SEQUENCE,
        fields.number[v1.CONSUME_SESSION_REQUEST_ALIVE_SEQUENCE])
    put_nested(&payload, v1.CONSUME_SESSION_RESPONSE_ALIVE, &alive)
    buffer_free(&alive)
    emit(core, consumer.token, FRAME, OK, &payload, False)


# --- settling ----------------------------------------------------------------------------------

cdef void _refuse(Buffer* answer, uint32_t field, uint64_t lease_id, Verdict* v) noexcept nogil:
    cdef Buffer inner
    buffer_init(&inner)
    put_number_field(&inner, v1.CONSUME_SESSION_RESPONSE_FAILURE_LEASE_ID, lease_id)
    put_status_field(&inner, v1.CONSUME_SESSION_RESPONSE_FAILURE_STATUS, v.code, v.text, v.reason)
    put_nested(answer, field, &inner)
    buffer_free(&inner)


cdef void _settle(Core* core, Consumer* consumer, Slice text, bint nack) noexcept nogil:
    cdef Fields fields
    cdef LeaseIds ids = _ids(text, v1.SETTLE_LEASE_IDS)
    cdef uint64_t lease_id
    cdef Wishes wishes
    cdef Verdict v
    cdef Lease* lease
    cdef Buffer settled
    cdef Buffer payload
    cdef OpenReply* reply
    if not fields_parse(&fields, text.at, text.length):
        return
    wishes = wishes_of(
        &fields, v1.SETTLE_ERROR, v1.SETTLE_DELAY_MS, v1.SETTLE_DEAD_LETTER, v1.SETTLE_RELEASE)
    wishes.said = feedback_of(&fields, v1.SETTLE_FEEDBACK, text)
    reply = reply_open(core, consumer.token, FRAME, consumer.channel.queue.policy.durable)
    buffer_init(&settled)
    buffer_init(&payload)
    put_number_field(
        &settled, v1.CONSUME_SESSION_RESPONSE_SETTLED_SEQUENCE, fields.number[v1.SETTLE_SEQUENCE])
    while _next_id(&ids, &lease_id):
        lease = lease_find(core, consumer.channel, False, 0, 0, lease_id, &v)
        if lease == NULL or not lease_tells(core, lease, &wishes, &v):
            _refuse(&settled, v1.CONSUME_SESSION_RESPONSE_SETTLED_FAILURES, lease_id, &v)
        elif nack:
            lease_nack(core, lease, &wishes, reply)
        else:
            lease_ack(core, lease)
    put_nested(&payload, v1.CONSUME_SESSION_RESPONSE_SETTLED, &settled)
    buffer_free(&settled)
    reply.payload = payload
    reply_close(core, reply)


cdef void _extend(Core* core, Consumer* consumer, Slice text) noexcept nogil:
    """Extensions answer Extended; those refused are named as a settle's failures are."""
    cdef Fields fields
    cdef LeaseIds ids = _ids(text, v1.CONSUME_SESSION_REQUEST_EXTEND_LEASE_IDS)
    cdef uint64_t lease_id, extend_ms
    cdef Verdict v
    cdef Lease* lease
    cdef Buffer extended
    cdef Buffer payload
    if not fields_parse(&fields, text.at, text.length):
        return
    extend_ms = fields.number[v1.CONSUME_SESSION_REQUEST_EXTEND_EXTEND_MS]
    buffer_init(&extended)
    buffer_init(&payload)
    while _next_id(&ids, &lease_id):
        lease = NULL
        if extend_ms < EXTEND_MS_MIN or extend_ms > EXTEND_MS_MAX:
            v = verdict(
                INVALID_ARGUMENT, b"INVALID_FIELD", b"extend_ms: must be 1000 (1 s) to 43200000 (12 h)")
        else:
            lease = lease_find(core, consumer.channel, False, 0, 0, lease_id, &v)
        if lease == NULL:
            _refuse(&extended, v1.CONSUME_SESSION_RESPONSE_EXTENDED_FAILURES, lease_id, &v)
        else:
            lease_extend(core, lease, <int64_t> extend_ms)
            put_number_field(&extended, v1.CONSUME_SESSION_RESPONSE_EXTENDED_LEASE_IDS, lease_id)
    put_timestamp_field(
        &extended, v1.CONSUME_SESSION_RESPONSE_EXTENDED_LEASE_EXPIRES_AT,
        core.wall_ms + <int64_t> min(extend_ms, <uint64_t> 1 << 50))
    put_nested(&payload, v1.CONSUME_SESSION_RESPONSE_EXTENDED, &extended)
    buffer_free(&extended)
    emit(core, consumer.token, FRAME, OK, &payload, consumer.channel.queue.policy.durable)
