"""A consumer stands on one of its channel's two circles, here or away. One that leaves with leases goes
on a list that is worked off over the passes that follow, the newest lease first.
"""

from libc.stdint cimport int64_t, uint32_t, uint8_t
from libc.string cimport memset

from fila_server.core.life.answers cimport answer, answer_no_channel, answer_no_queue, emit
from fila_server.core.life.deliver cimport consumer_fill, leases_reserve
from fila_server.core.life.failure cimport NO_DELAY, lease_expired, lease_fail
from fila_server.core.life.giveback cimport MAY_BE_SEEN, UNWRITTEN, lease_return
from fila_server.core.life.revoked cimport lease_revoke, revoked_note, revoked_tell
from fila_server.core.life.sending cimport consumer_forget, consumer_unlink, delivery_free, pull_answer
from fila_server.core.recording.changes cimport CHANGED_CONSUMER_JOINED, consumer_changed
from fila_server.core.recording.decisions cimport EXPIRED, lease_decided
from fila_server.core.records.records cimport lease_extension_put
from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.state.kinds cimport (
    FAIL_BEGUN, FAIL_OLDEST, PULL, RETURN_ALL, RETURN_UNBEGUN, SESSION_STREAM, STREAM, TIMER_PULL,
    TIMER_SESSION,
)
from fila_server.core.state.paths cimport channel_find, lease_is_gone, queue_find, share_of
from fila_server.core.state.state cimport Delivery, Queue
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc, put_slice, put_varint, take_varint,
)
from fila_server.core.structures.maps cimport map64_get, map64_put
from fila_server.core.structures.timers cimport timer_cancel, timer_set
from fila_server.core.turns.clocks cimport channel_room
from fila_server.core.turns.parking cimport channel_activate
from fila_server.core.wire.commands cimport (
    CONSUME_OPEN, END, FAILED_PRECONDITION, LEASE, NOT_FOUND, OK, REPLY, SESSION_OPEN, UNAVAILABLE, WRITTEN,
)
from fila_server.core.wire.protobuf cimport (
    Fields, fields_parse, next_field, put_nested, put_number_field, put_status,
)

cdef enum:
    MAX_IN_FLIGHT_SESSION = 256
    MAX_IN_FLIGHT_STREAM = 32       # a stream that never says what it has begun should hold little
    WAIT_MS_MAX = 300000
    RENEWAL_MS = 600000
    LISTENED_GAP_MS_MAX = 500       # the edge says every 100 ms that it listens; what is longer was a pause
    LOOK_AGAIN_MS_MIN = 20
    AWAY_LEASE_MS = 1000

cdef enum CloseWord:                # CONSUMER_CLOSE's first byte
    BROKEN = 0                      # none
    RELEASE = 114                   # "release"
    HALF_CLOSED = 104               # "half-closed": the peer has no more to say, and reads on
    DRAIN = 100                     # "drain": the broker stops


# --- opening -----------------------------------------------------------------------------------

cdef void _link(Consumer** list, Consumer* consumer) noexcept nogil:
    """Into a circle, behind everybody else."""
    if list[0] == NULL:
        list[0] = consumer.next = consumer.prev = consumer
    else:
        consumer.next = list[0]
        consumer.prev = list[0].prev
        list[0].prev.next = consumer
        list[0].prev = consumer


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


cdef void consumer_open(Core* core, Command* command) noexcept nogil:
    cdef Fields outer
    cdef Fields fields
    cdef Queue* queue
    cdef Channel* channel
    cdef Consumer* consumer
    fields_parse(&outer, command.bytes, command.length)
    fields = outer
    if command.kind == SESSION_OPEN:
        fields_parse(&fields, outer.text[1].at, outer.text[1].length)
    queue = queue_find(core, fields.text[1])
    if queue == NULL:
        answer_no_queue(core, command)
        return
    channel = channel_find(queue, fields.text[2])
    if channel == NULL:
        answer_no_channel(core, command)
        return
    consumer = _new(
        core, channel,
        PULL if command.kind == LEASE else (STREAM if command.kind == CONSUME_OPEN else SESSION_STREAM))
    consumer.token = command.token
    map64_put(&core.consumers, command.token, consumer)
    _link(&channel.turn, consumer)
    channel.touched_ms = core.wall_ms
    channel.used_ms = core.heard_ms
    channel_room(core, channel, True)
    channel_activate(core, channel)
    if command.kind == LEASE:
        _open_pull(core, consumer, &fields)
        return
    put_slice(&consumer.peer, outer.text[15])       # the edge's own addition
    channel.consumers += 1
    if command.kind == CONSUME_OPEN:
        _open_stream(core, consumer, &fields)
    else:
        _open_session(core, consumer, &fields)
    consumer_changed(core, CHANGED_CONSUMER_JOINED, consumer)


cdef void _open_pull(Core* core, Consumer* consumer, Fields* fields) noexcept nogil:
    cdef uint64_t wait_ms = fields.number[4]
    cdef Channel* channel = consumer.channel
    consumer.max_batch = <uint32_t> fields.number[3] if fields.number[3] else 1
    channel.waiting_pulls += 1
    if wait_ms > WAIT_MS_MAX:
        wait_ms = WAIT_MS_MAX
    if wait_ms:
        timer_set(&core.timers, &consumer.timer, core.mono_ns + <int64_t> wait_ms * 1000000)
    # What is ready is taken at once, so that a call that doesn't wait never misses it.
    if channel.ready and not core.stopping and consumer_fill(core, consumer, consumer.max_batch):
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
    consumer.max_in_flight = <uint32_t> fields.number[3] if fields.number[3] else MAX_IN_FLIGHT_STREAM
    consumer.limit = consumer.max_in_flight
    consumer.max_batch = <uint32_t> fields.number[4] if fields.number[4] else 1
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
    consumer.max_in_flight = <uint32_t> fields.number[3] if fields.number[3] else MAX_IN_FLIGHT_SESSION
    consumer.limit = consumer.max_in_flight
    if fields.number[4] and fields.number[4] < consumer.max_in_flight:
        consumer.limit = <uint32_t> fields.number[4]
    consumer.tracks_begun = fields.number[5] != 0
    put_slice(&consumer.name, fields.text[6])
    if consumer.tracks_begun:
        renewal_ms = <int64_t> fields.number[7] if fields.seen & (1 << 7) else RENEWAL_MS
        consumer.lease_ms = max(renewal_ms, visibility_ms)
        consumer.silence_ms = visibility_ms
        consumer.deadline_ms = core.heard_ms + visibility_ms
        timer_set(&core.timers, &consumer.timer, core.mono_ns + visibility_ms * 1000000)
    buffer_init(&lost)
    if not (fields.seen & (1 << 8) and _resume(core, consumer, fields.text[8], &lost)):
        promised = _number(core, consumer)
    buffer_init(&payload)
    buffer_init(&opened)
    put_number_field(&opened, 1, consumer.number)
    put_number_field(&opened, 2, <uint64_t> visibility_ms)
    put_number_field(&opened, 3, consumer.channel.queue.policy.grace_ms)
    put_number_field(&opened, 4, <uint64_t> (consumer.lease_ms if renewal_ms else 0))
    if lost.length:
        put_nested(&opened, 5, &lost)
    put_nested(&payload, 1, &opened)
    buffer_free(&opened)
    buffer_free(&lost)
    answer(core, consumer.token, OK, &payload, not promised)


# --- resuming ----------------------------------------------------------------------------------

cdef void lease_link(Consumer* consumer, Lease* lease) noexcept nogil:
    lease.consumer = consumer
    lease.prev = NULL
    lease.next = consumer.leases
    if lease.next != NULL:
        lease.next.prev = lease
    consumer.leases = lease
    consumer.in_flight += 1
    consumer.begun += lease.begun


cdef void _lease_unlink(Lease* lease) noexcept nogil:
    cdef Consumer* consumer = lease.consumer
    if lease.prev != NULL:
        lease.prev.next = lease.next
    else:
        consumer.leases = lease.next
    if lease.next != NULL:
        lease.next.prev = lease.prev
    consumer.in_flight -= 1
    consumer.begun -= lease.begun
    if lease.delivery != NULL:
        lease.delivery.leases[lease.at] = NULL
        lease.delivery = NULL


cdef void _take_over(
        Core* core, Consumer* consumer, Consumer* old, uint64_t lease_id, Buffer* lost) noexcept nogil:
    cdef Lease* lease = <Lease*> map64_get(&core.leases, lease_id)
    cdef int64_t renewed_ns = core.mono_ns + consumer.lease_ms * 1000000
    if old == NULL or lease == NULL or lease.consumer != old or lease_is_gone(lease):
        put_varint(lost, lease_id)
        return
    _lease_unlink(lease)
    lease_link(consumer, lease)
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
    if fields.number[1]:
        old = <Consumer*> map64_get(&core.streams, fields.number[1])
    if old != NULL and (old.kind != SESSION_STREAM or old.channel != consumer.channel or old.fate):
        old = NULL
    c.at, c.end, c.bad = resume.at, resume.at + resume.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == 2 and kind == 0:
            _take_over(core, consumer, old, number, lost)
        elif field == 2:
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
        _end(
            core, old, FAILED_PRECONDITION, b"SESSION_RESUMED",
            b"the session was resumed on another stream; this one is over")
    consumer_leave(core, old, RETURN_ALL)
    return True


# --- the end -----------------------------------------------------------------------------------

cdef void _end(
        Core* core, Consumer* consumer, int code, const char* reason, const char* message) noexcept nogil:
    cdef Buffer payload
    revoked_tell(core, consumer)
    buffer_init(&payload)
    if code != OK:
        put_status(&payload, code, message, reason)
    # Behind the answers to its acks, which wait for this pass's epoch too.
    emit(core, consumer.token, END, code, &payload, code == OK and consumer.channel.queue.policy.durable)


cdef void consumer_close(Core* core, Consumer* consumer, bint release) noexcept nogil:
    _end(core, consumer, OK, NULL, NULL)
    consumer_leave(core, consumer, RETURN_ALL if release else RETURN_UNBEGUN)


cdef void _unwritten_return(Core* core, Consumer* consumer, bint all_of_it) noexcept nogil:
    """What was not written comes back now. A frame handed to the transport may have
    arrived all the same: of a session that can still resume it stays."""
    cdef Delivery* delivery = consumer.first
    cdef Delivery* following
    cdef uint32_t i
    while delivery != NULL:
        following = delivery.next
        i = delivery.count
        while i > 0:                    # the last first, so that each finds its old place at the front
            i -= 1
            if delivery.leases[i] != NULL and (all_of_it or not delivery.sent):
                lease_return(core, delivery.leases[i], UNWRITTEN)
        delivery_free(core, delivery)
        delivery = following
    consumer.first = consumer.last = NULL
    consumer.unwritten = 0


cdef void _stand_aside(Core* core, Consumer* consumer) noexcept nogil:
    """Out of the channel's turn; it keeps its leases."""
    if consumer.away:
        return
    consumer_unlink(core, consumer)
    consumer.away = True
    consumer.token = 0
    _link(&consumer.channel.away, consumer)


cdef void consumer_leave(Core* core, Consumer* consumer, int fate) noexcept nogil:
    if consumer.kind == PULL or not consumer.fate:
        _unwritten_return(core, consumer, True)
    if consumer.kind == PULL or consumer.leases == NULL:
        consumer_forget(core, consumer)
        return
    _stand_aside(core, consumer)
    timer_cancel(&core.timers, &consumer.timer)
    if not consumer.fate:
        consumer.next_leaving = core.leaving
        core.leaving = consumer
    consumer.fate = <uint8_t> fate


cdef void _lease_leave(Core* core, Consumer* consumer, Lease* lease) noexcept nogil:
    cdef Slice error
    cdef int64_t visible_ns
    error.at, error.length = b"consumer gone", 13
    if consumer.fate == RETURN_UNBEGUN and lease.begun and not lease_is_gone(lease):
        _lease_unlink(lease)
        lease.consumer = NULL
        visible_ns = core.mono_ns + <int64_t> consumer.channel.queue.policy.visibility_ms * 1000000
        # nobody renews it any more; where nobody did, it keeps what it was given
        if consumer.tracks_begun and lease.due_ns > visible_ns and not lease.extended:
            lease.due_ns = visible_ns
            lease.expires_ms = core.wall_ms + (visible_ns - core.mono_ns) // 1000000
            timer_set(&core.timers, &lease.timer, visible_ns)
        # The frame's record names the consumer, for whose return a restart would wait: not for this one.
        if lease.group.consumer:
            lease.extended = True
            lease_extension_put(core, lease)
    elif consumer.fate == FAIL_BEGUN and lease.begun or consumer.fate == FAIL_OLDEST and lease.next == NULL:
        share_of(lease.slot).channel.queue.counters.expired += 1
        lease_decided(core, EXPIRED, lease, b"consumer gone", 13)
        lease_fail(core, lease, error, NO_DELAY, NULL)
    else:
        lease_return(core, lease, MAY_BE_SEEN)


cdef void consumers_leave(Core* core) noexcept nogil:
    cdef Consumer* consumer
    while core.leaving != NULL and stage_goes_on(core):
        consumer = core.leaving
        # the newest first: each was near the front
        while consumer.leases != NULL and stage_goes_on(core):
            _lease_leave(core, consumer, consumer.leases)
            core.counters.work += 1
        if consumer.leases == NULL:
            consumer_forget(core, consumer)         # off the list, too


cdef void _break(Core* core, Consumer* consumer, bint for_good) noexcept nogil:
    """Its stream ended without a Close: what it holds waits for the grace, what was not written does not."""
    cdef int64_t grace_ms = <int64_t> consumer.channel.queue.policy.grace_ms
    _unwritten_return(core, consumer, not consumer.tracks_begun)
    if consumer.leases == NULL:
        consumer_forget(core, consumer)
        return
    if grace_ms == 0 and not for_good:
        consumer_leave(core, consumer, FAIL_OLDEST if consumer.kind == STREAM else FAIL_BEGUN)
        return
    _stand_aside(core, consumer)
    timer_cancel(&core.timers, &consumer.timer)
    if not for_good:
        consumer.deadline_ms = core.heard_ms + grace_ms
        timer_set(&core.timers, &consumer.timer, core.mono_ns + grace_ms * 1000000)


cdef void consumer_command(Core* core, Command* command) noexcept nogil:
    cdef Consumer* consumer = <Consumer*> map64_get(&core.consumers, command.token)
    cdef Delivery* delivery
    cdef char word = command.bytes[0] if command.length else <char> BROKEN
    if consumer == NULL:                # it ended meanwhile; the edge has been told
        return
    if command.kind == WRITTEN:
        delivery = consumer.first
        if delivery != NULL and delivery.sent:
            consumer.first = delivery.next
            if consumer.first == NULL:
                consumer.last = NULL
            consumer.unwritten -= 1
            delivery_free(core, delivery)
            channel_room(core, consumer.channel, True)
            if consumer.channel.ready:
                channel_activate(core, consumer.channel)
    elif consumer.kind == PULL or word == RELEASE:
        consumer_leave(core, consumer, RETURN_ALL)
    else:
        if word == HALF_CLOSED:
            _end(core, consumer, OK, NULL, NULL)
        _break(core, consumer, word == DRAIN)


cdef void consumer_due(Core* core, Consumer* consumer) noexcept nogil:
    cdef int64_t left_ms = consumer.deadline_ms - core.heard_ms
    if left_ms > 0:
        timer_set(
            &core.timers, &consumer.timer, core.mono_ns + max(left_ms, <int64_t> LOOK_AGAIN_MS_MIN) * 1000000)
        return
    if not consumer.away:
        _end(
            core, consumer, UNAVAILABLE, b"SESSION_SILENT",
            b"the session said nothing for the queue's visibility timeout, so its messages were taken back; "
            b"send Alive more often")
    consumer_leave(core, consumer, FAIL_OLDEST if consumer.kind == STREAM else FAIL_BEGUN)


cdef void listened(Core* core) noexcept nogil:
    cdef int64_t gap_ms = (core.mono_ns - core.listened_ns) // 1000000
    if core.listened_ns:
        core.heard_ms += min(gap_ms, <int64_t> LISTENED_GAP_MS_MAX)
        core.listened_ns += gap_ms * 1000000
    else:
        core.listened_ns = core.mono_ns


cdef void lease_due(Core* core, Lease* lease) noexcept nogil:
    cdef Consumer* consumer = lease.consumer
    if lease.due_ns > core.mono_ns:
        timer_set(&core.timers, &lease.timer, lease.due_ns)
        return
    if consumer != NULL and consumer.fate == RETURN_ALL:    # returned already, and its turn comes only now
        lease_return(core, lease, MAY_BE_SEEN)
        return
    if consumer != NULL and consumer.away and consumer.tracks_begun:
        # its session may come back
        timer_set(&core.timers, &lease.timer, core.mono_ns + <int64_t> AWAY_LEASE_MS * 1000000)
        return
    core.revoking = b"EXPIRED"
    lease_revoke(core, lease)
    core.revoking = NULL
    if lease.delivery != NULL and not lease.delivery.sent:  # its bytes are being read back: nobody has it
        lease_return(core, lease, UNWRITTEN)
    elif lease.begun:
        lease_expired(core, lease)
    else:
        lease_return(core, lease, MAY_BE_SEEN)


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
        _link(&channel.away, consumer)
        timer_set(&core.timers, &consumer.timer, core.mono_ns + grace_ms * 1000000)
    return consumer


cdef bint channel_consumers_end(
        Core* core, Channel* channel, const char* message, const char* reason,
        const char* revoked) noexcept nogil:
    cdef Buffer payload
    cdef Consumer* consumer
    cdef Lease* lease
    while (channel.turn != NULL or channel.away != NULL) and stage_goes_on(core):
        core.counters.work += 1
        consumer = channel.turn if channel.turn != NULL else channel.away
        lease = consumer.leases if consumer.tracks_begun and consumer.token else NULL
        while lease != NULL:
            revoked_note(core, consumer, lease.lease_id, revoked)
            core.counters.work += 1
            lease = lease.next
        if consumer.token:
            revoked_tell(core, consumer)
            buffer_init(&payload)
            put_status(&payload, NOT_FOUND, message, reason)
            emit(core, consumer.token, REPLY if consumer.kind == PULL else END, NOT_FOUND, &payload, False)
        consumer_forget(core, consumer)
    return channel.turn == NULL and channel.away == NULL
