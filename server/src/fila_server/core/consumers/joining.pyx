"""A stream, a session or a pull gets its place behind everybody else in its channel. A session that resumes
takes over what it still has of its former self, which leaves with the rest.
"""

from libc.stdint cimport int64_t, uint32_t, uint8_t
from libc.string cimport memset

from fila_server.core.consumers.leaving cimport consumer_leave, consumer_link, stream_end
from fila_server.core.history.changes cimport CHANGED_CONSUMER_JOINED, consumer_changed
from fila_server.core.index.holders cimport holder_join, holder_moves, lease_link, lease_unlink
from fila_server.core.index.visits cimport channel_is_used
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel, answer_no_queue
from fila_server.core.lifecycle.deliver cimport consumer_fill, leases_reserve
from fila_server.core.lifecycle.sending cimport pull_answer
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport CONSUME_OPEN, FAILED_PRECONDITION, LEASE, OK, SESSION_OPEN
from fila_server.core.protocol.protobuf cimport (
    QUEUE_FIELD, VARINT, Fields, channel_field, fields_parse, next_field, put_nested, put_number_field,
)
from fila_server.core.scheduling.clocks cimport channel_room
from fila_server.core.scheduling.eligibility cimport channel_activate
from fila_server.core.state.kinds cimport PULL, RETURN_ALL, SESSION_STREAM, STREAM, TIMER_PULL, TIMER_SESSION
from fila_server.core.state.paths cimport channel_find, lease_is_gone, queue_find
from fila_server.core.state.state cimport Lease, Queue
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc, put_slice, put_varint, take_varint,
)
from fila_server.core.structures.maps cimport map64_get, map64_put
from fila_server.core.structures.timers cimport timer_set

cdef enum:
    MAX_IN_FLIGHT_SESSION = 256
    MAX_IN_FLIGHT_STREAM = 32       # a stream that never says what it has begun should hold little
    WAIT_MS_MAX = 300000
    RENEWAL_MS = 600000


cdef Consumer* _new(Core* core, Channel* channel, uint8_t kind) noexcept nogil:
    cdef Consumer* consumer = <Consumer*> must_malloc(sizeof(Consumer))
    memset(consumer, 0, sizeof(Consumer))
    consumer.channel = channel
    consumer.kind = kind
    consumer.timer.kind = TIMER_PULL if kind == PULL else TIMER_SESSION
    consumer.opened_ms = core.wall_ms
    buffer_init(&consumer.revoked)
    buffer_init(&consumer.name)
    buffer_init(&consumer.peer)
    return consumer


# --- opening -----------------------------------------------------------------------------------

cdef void consumer_open(Core* core, Command* command) noexcept nogil:
    cdef Fields outer
    cdef Fields fields
    cdef Slice opening
    cdef Queue* queue
    cdef Channel* channel
    cdef Consumer* consumer
    fields_parse(&outer, command.bytes, command.length)
    fields = outer
    if command.kind == SESSION_OPEN:
        opening = outer.text[v1.CONSUME_SESSION_REQUEST_OPEN]
        fields_parse(&fields, opening.at, opening.length)
    queue = queue_find(core, fields.text[QUEUE_FIELD])
    if queue == NULL:
        answer_no_queue(core, command)
        return
    channel = channel_find(queue, fields.text[channel_field(command.kind)])
    if channel == NULL:
        answer_no_channel(core, command)
        return
    consumer = _new(
        core, channel,
        PULL if command.kind == LEASE else (STREAM if command.kind == CONSUME_OPEN else SESSION_STREAM))
    consumer.token = command.token
    holder_join(core, consumer, &outer)
    map64_put(&core.consumers, command.token, consumer)
    consumer_link(&channel.turn, consumer)
    channel.touched_ms = core.wall_ms
    channel_is_used(core, channel)
    channel_room(core, channel, True)
    channel_activate(core, channel)
    if command.kind == LEASE:
        _open_pull(core, consumer, &fields)
        return
    put_slice(&consumer.peer, outer.text[seam.OPENER_PEER])
    channel.consumers += 1
    if command.kind == CONSUME_OPEN:
        _open_stream(core, consumer, &fields)
    else:
        _open_session(core, consumer, &fields)
    consumer_changed(core, CHANGED_CONSUMER_JOINED, consumer)


cdef void _open_pull(Core* core, Consumer* consumer, Fields* fields) noexcept nogil:
    cdef uint64_t wait_ms = fields.number[v1.LEASE_REQUEST_WAIT_MS]
    cdef Channel* channel = consumer.channel
    consumer.max_batch = <uint32_t> (fields.number[v1.LEASE_REQUEST_MAX_MESSAGES] or 1)
    channel.waiting_pulls += 1
    if wait_ms > WAIT_MS_MAX:
        wait_ms = WAIT_MS_MAX
    if wait_ms:
        timer_set(&core.timers, &consumer.timer, core.mono_ns + <int64_t> wait_ms * 1000000)
    # What is ready is taken at once, so that a call that doesn't wait never misses it.
    if (
        channel.ready and not core.stopping and consumer.next_stopped == NULL
        and consumer_fill(core, consumer, consumer.max_batch)
    ):
        return
    if wait_ms == 0:
        pull_answer(core, consumer)


cdef bint _number(Core* core, Consumer* consumer) noexcept nogil:
    """Numbered from the lease ids, which are promised on disk; False: this one not yet."""
    cdef bint promised = leases_reserve(core, 1)
    consumer.number = core.next_lease_id
    core.next_lease_id += 1
    map64_put(&core.streams, consumer.number, consumer)
    return promised


cdef void _open_stream(Core* core, Consumer* consumer, Fields* fields) noexcept nogil:
    cdef Buffer payload
    consumer.max_in_flight = <uint32_t> (
        fields.number[v1.CONSUME_REQUEST_MAX_IN_FLIGHT] or MAX_IN_FLIGHT_STREAM)
    consumer.limit = consumer.max_in_flight
    consumer.max_batch = <uint32_t> (fields.number[v1.CONSUME_REQUEST_MAX_BATCH] or 1)
    consumer.batched = consumer.max_batch > 1
    buffer_init(&payload)
    answer(core, consumer.token, OK, &payload, not _number(core, consumer))


cdef void _open_session(Core* core, Consumer* consumer, Fields* fields) noexcept nogil:
    cdef Buffer payload
    cdef Buffer opened
    cdef Buffer lost
    cdef int64_t visibility_ms = <int64_t> consumer.channel.queue.policy.visibility_ms
    cdef int64_t renewal_ms = 0
    cdef bint promised = True
    cdef uint64_t credit = fields.number[v1.CONSUME_SESSION_REQUEST_OPEN_INITIAL_CREDIT]
    consumer.max_in_flight = <uint32_t> (
        fields.number[v1.CONSUME_SESSION_REQUEST_OPEN_MAX_IN_FLIGHT] or MAX_IN_FLIGHT_SESSION)
    consumer.limit = consumer.max_in_flight
    if credit and credit < consumer.max_in_flight:
        consumer.limit = <uint32_t> credit
    consumer.tracks_begun = fields.number[v1.CONSUME_SESSION_REQUEST_OPEN_TRACKS_BEGUN] != 0
    put_slice(&consumer.name, fields.text[v1.CONSUME_SESSION_REQUEST_OPEN_NAME])
    if consumer.tracks_begun:
        renewal_ms = RENEWAL_MS
        if fields.seen & (1 << v1.CONSUME_SESSION_REQUEST_OPEN_MAX_LEASE_RENEWAL_MS):
            renewal_ms = <int64_t> fields.number[v1.CONSUME_SESSION_REQUEST_OPEN_MAX_LEASE_RENEWAL_MS]
        consumer.lease_ms = max(renewal_ms, visibility_ms)
        consumer.silence_ms = visibility_ms
        consumer.deadline_ms = core.heard_ms + visibility_ms
        timer_set(&core.timers, &consumer.timer, core.mono_ns + visibility_ms * 1000000)
    buffer_init(&lost)
    if not (
        fields.seen & (1 << v1.CONSUME_SESSION_REQUEST_OPEN_RESUME)
        and _resume(core, consumer, fields.text[v1.CONSUME_SESSION_REQUEST_OPEN_RESUME], &lost)
    ):
        promised = _number(core, consumer)
    buffer_init(&payload)
    buffer_init(&opened)
    put_number_field(&opened, v1.CONSUME_SESSION_RESPONSE_OPENED_CONSUMER_ID, consumer.number)
    put_number_field(
        &opened, v1.CONSUME_SESSION_RESPONSE_OPENED_VISIBILITY_TIMEOUT_MS, <uint64_t> visibility_ms)
    put_number_field(
        &opened, v1.CONSUME_SESSION_RESPONSE_OPENED_DISCONNECT_GRACE_MS,
        consumer.channel.queue.policy.grace_ms)
    put_number_field(
        &opened, v1.CONSUME_SESSION_RESPONSE_OPENED_MAX_LEASE_RENEWAL_MS,
        <uint64_t> (consumer.lease_ms if renewal_ms else 0))
    if lost.length:
        put_nested(&opened, v1.CONSUME_SESSION_RESPONSE_OPENED_LOST_LEASE_IDS, &lost)
    put_nested(&payload, v1.CONSUME_SESSION_RESPONSE_OPENED, &opened)
    buffer_free(&opened)
    buffer_free(&lost)
    answer(core, consumer.token, OK, &payload, not promised)


# --- resuming ----------------------------------------------------------------------------------

cdef void _take_over(
        Core* core, Consumer* consumer, Consumer* old, uint64_t lease_id, Buffer* lost) noexcept nogil:
    cdef Lease* lease = <Lease*> map64_get(&core.leases, lease_id)
    cdef int64_t renewed_ns = core.mono_ns + consumer.lease_ms * 1000000
    if old == NULL or lease == NULL or lease.consumer != old or lease_is_gone(lease):
        put_varint(lost, lease_id)
        return
    lease_unlink(lease)
    lease_link(consumer, lease)
    holder_moves(core, lease, consumer.holder)
    # Recovered, it must not have run out while the broker was down.
    if old.opened_ms == 0 and consumer.tracks_begun and renewed_ns > lease.due_ns:
        lease.expires_ms += (renewed_ns - lease.due_ns) // 1000000
        lease.due_ns = renewed_ns
        timer_set(&core.timers, &lease.timer, renewed_ns)


cdef bint _resume(Core* core, Consumer* consumer, Slice resume, Buffer* lost) noexcept nogil:
    """Take over what the broken session held and this one says it still
    has; the rest returns. False: there is none."""
    cdef Fields fields
    cdef Consumer* old = NULL
    cdef Cursor c
    cdef Cursor ids
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    fields_parse(&fields, resume.at, resume.length)
    number = fields.number[v1.CONSUME_SESSION_REQUEST_RESUME_CONSUMER_ID]
    if number:
        old = <Consumer*> map64_get(&core.streams, number)
    if old != NULL and (old.kind != SESSION_STREAM or old.channel != consumer.channel or old.fate):
        old = NULL
    c.at, c.end, c.bad = resume.at, resume.at + resume.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == v1.CONSUME_SESSION_REQUEST_RESUME_LEASE_IDS and kind == VARINT:
            _take_over(core, consumer, old, number, lost)
        elif field == v1.CONSUME_SESSION_REQUEST_RESUME_LEASE_IDS:
            ids.at, ids.end, ids.bad = text.at, text.at + text.length, False
            while ids.at < ids.end and not ids.bad:
                number = take_varint(&ids)
                if not ids.bad:
                    _take_over(core, consumer, old, number, lost)
    if old == NULL:
        return False
    consumer.number = old.number
    consumer.returned = old.returned
    old.number = 0                      # the leases' records name it, so it stays with them
    map64_put(&core.streams, consumer.number, consumer)
    if not old.away:
        stream_end(
            core, old, FAILED_PRECONDITION, b"SESSION_RESUMED",
            b"the session was resumed on another stream; this one is over")
    consumer_leave(core, old, RETURN_ALL)
    return True


cdef Consumer* consumer_recovered(Core* core, Channel* channel, uint64_t number) noexcept nogil:
    """Its grace is counted from the moment the edge listens: heard_ms stands still until then."""
    cdef Consumer* consumer = <Consumer*> map64_get(&core.streams, number)
    cdef int64_t grace_ms = <int64_t> channel.queue.policy.grace_ms
    if consumer == NULL:
        consumer = _new(core, channel, SESSION_STREAM)
        consumer.number = number
        consumer.tracks_begun = consumer.away = True
        consumer.opened_ms = 0
        consumer.deadline_ms = core.heard_ms + max(grace_ms, <int64_t> 1)
        map64_put(&core.streams, number, consumer)
        consumer_link(&channel.away, consumer)
        timer_set(&core.timers, &consumer.timer, core.mono_ns + grace_ms * 1000000)
    return consumer
