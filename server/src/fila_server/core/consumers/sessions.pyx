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
    Verdict, Wishes, lease_ack, lease_begin, lease_extend, lease_find, lease_nack, verdict, wishes_of,
)
from fila_server.core.protocol.commands cimport FRAME, INVALID_ARGUMENT, OK
from fila_server.core.protocol.protobuf cimport (
    Fields, fields_parse, next_field, put_nested, put_number_field, put_status_field, put_timestamp_field,
)
from fila_server.core.protocol.refusals cimport EXTEND_MS_MAX, EXTEND_MS_MIN
from fila_server.core.scheduling.clocks cimport channel_room
from fila_server.core.scheduling.parking cimport channel_activate
from fila_server.core.state.kinds cimport PULL
from fila_server.core.state.paths cimport lease_is_gone
from fila_server.core.state.pending cimport OpenReply
from fila_server.core.state.state cimport Consumer, Lease
from fila_server.core.structures.buffer cimport Buffer, Cursor, Slice, buffer_free, buffer_init, take_varint
from fila_server.core.structures.maps cimport map64_get
from fila_server.core.structures.timers cimport timer_cancel

cdef enum Part:                     # ConsumeSessionRequest's fields
    CREDIT = 2
    ACK = 3
    NACK = 4
    EXTEND = 5
    CLOSE = 6
    BEGUN = 7
    WINDOW = 8
    ALIVE = 9


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
        if field == ids.field and kind == 0:
            return True
        if field == ids.field and kind == 2:
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
    ids = _ids(text, 2)
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
        if field == CREDIT and kind == 0:
            number = min(number, <uint64_t> consumer.max_in_flight) + consumer.limit
            consumer.limit = <uint32_t> number if number < consumer.max_in_flight else consumer.max_in_flight
            _has_room(core, consumer)
        elif (field == ACK or field == NACK) and kind == 2:
            _settle(core, consumer, text, field == NACK)
        elif field == EXTEND and kind == 2:
            _extend(core, consumer, text)
        elif field == BEGUN and kind == 2:
            _begun(core, consumer, text)
        elif field == WINDOW and kind == 2:
            _window(core, consumer, text)
        elif field == ALIVE and kind == 2:
            _alive(core, consumer, text)
        elif field == CLOSE and kind == 2:
            fields_parse(&inner, text.at, text.length)
            consumer_close(core, consumer, inner.number[1] != 0)
            return


cdef void _has_room(Core* core, Consumer* consumer) noexcept nogil:
    channel_room(core, consumer.channel, True)
    channel_activate(core, consumer.channel)


# --- begun, window, alive ----------------------------------------------------------------------

cdef void _begun(Core* core, Consumer* consumer, Slice text) noexcept nogil:
    cdef LeaseIds ids = _ids(text, 1)
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
    cdef LeaseIds ids = _ids(text, 2)
    cdef uint64_t lease_id
    cdef Lease* lease
    fields_parse(&fields, text.at, text.length)
    if consumer.limit != fields.number[1]:
        consumer.limit = <uint32_t> fields.number[1]
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
    consumer.handling_us = fields.number[2]
    buffer_init(&alive)
    buffer_init(&payload)
    put_number_field(&alive, 1, fields.number[1])
    put_nested(&payload, 6, &alive)
    buffer_free(&alive)
    emit(core, consumer.token, FRAME, OK, &payload, False)


# --- settling ----------------------------------------------------------------------------------

cdef void _refuse(Buffer* answer, uint32_t field, uint64_t lease_id, Verdict* v) noexcept nogil:
    cdef Buffer inner
    buffer_init(&inner)
    put_number_field(&inner, 1, lease_id)
    put_status_field(&inner, 2, v.code, v.text, v.reason)
    put_nested(answer, field, &inner)
    buffer_free(&inner)


cdef void _settle(Core* core, Consumer* consumer, Slice text, bint nack) noexcept nogil:
    cdef Fields fields
    cdef LeaseIds ids = _ids(text, 2)
    cdef uint64_t lease_id
    cdef Wishes wishes
    cdef Verdict v
    cdef Lease* lease
    cdef Buffer settled
    cdef Buffer payload
    cdef OpenReply* reply
    if not fields_parse(&fields, text.at, text.length):
        return
    wishes = wishes_of(&fields, 3, 4, 5, 6)
    reply = reply_open(core, consumer.token, FRAME, consumer.channel.queue.policy.durable)
    buffer_init(&settled)
    buffer_init(&payload)
    put_number_field(&settled, 1, fields.number[1])
    while _next_id(&ids, &lease_id):
        lease = lease_find(core, consumer.channel, False, 0, 0, lease_id, &v)
        if lease == NULL:
            _refuse(&settled, 2, lease_id, &v)
        elif nack:
            lease_nack(core, lease, &wishes, reply)
        else:
            lease_ack(core, lease)
    put_nested(&payload, 3, &settled)
    buffer_free(&settled)
    reply.payload = payload
    reply_close(core, reply)


cdef void _extend(Core* core, Consumer* consumer, Slice text) noexcept nogil:
    """Extensions answer Extended; those refused are named as a settle's failures are."""
    cdef Fields fields
    cdef LeaseIds ids = _ids(text, 1)
    cdef uint64_t lease_id, extend_ms
    cdef Verdict v
    cdef Lease* lease
    cdef Buffer extended
    cdef Buffer payload
    if not fields_parse(&fields, text.at, text.length):
        return
    extend_ms = fields.number[2]
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
            _refuse(&extended, 3, lease_id, &v)
        else:
            lease_extend(core, lease, <int64_t> extend_ms)
            put_number_field(&extended, 1, lease_id)
    put_timestamp_field(&extended, 2, core.wall_ms + <int64_t> min(extend_ms, <uint64_t> 1 << 50))
    put_nested(&payload, 4, &extended)
    buffer_free(&extended)
    emit(core, consumer.token, FRAME, OK, &payload, consumer.channel.queue.policy.durable)
