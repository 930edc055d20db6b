"""A consumer stands on one of its channel's two circles, here or away. One that leaves with leases goes on a
list that is worked off over the passes that follow, the newest lease first.
"""

from libc.stdint cimport int64_t, uint32_t, uint8_t

from fila_server.core.formats.records cimport lease_extension_put
from fila_server.core.history.decisions cimport EXPIRED, lease_decided
from fila_server.core.index.holders cimport lease_unlink
from fila_server.core.lifecycle.answers cimport emit
from fila_server.core.lifecycle.failure cimport NO_DELAY, lease_expired, lease_fail
from fila_server.core.lifecycle.giveback cimport MAY_BE_SEEN, UNWRITTEN, lease_return
from fila_server.core.lifecycle.revoked cimport lease_revoke, revoked_note, revoked_report
from fila_server.core.lifecycle.sending cimport consumer_forget, consumer_unlink, delivery_free
from fila_server.core.protocol.commands cimport END, NOT_FOUND, OK, REPLY, UNAVAILABLE, WRITTEN
from fila_server.core.protocol.protobuf cimport put_status
from fila_server.core.scheduling.clocks cimport channel_room
from fila_server.core.scheduling.eligibility cimport channel_activate
from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.state.kinds cimport FAIL_BEGUN, FAIL_OLDEST, PULL, RETURN_ALL, RETURN_UNBEGUN, STREAM
from fila_server.core.state.paths cimport failure_counted, lease_is_gone, share_of
from fila_server.core.state.state cimport Delivery
from fila_server.core.structures.buffer cimport Buffer, Slice, buffer_init
from fila_server.core.structures.maps cimport map64_get
from fila_server.core.structures.timers cimport timer_cancel, timer_set

cdef enum:
    LISTENED_GAP_MS_MAX = 500       # the edge says every 100 ms that it listens; what is longer was a pause
    LOOK_AGAIN_MS_MIN = 20
    AWAY_LEASE_MS = 1000

cdef enum CloseWord:                # CONSUMER_CLOSE's first byte
    BROKEN = 0                      # none
    RELEASE = 114                   # "release"
    HALF_CLOSED = 104               # "half-closed": the peer has no more to say, and reads on
    DRAIN = 100                     # "drain": the broker stops


cdef void consumer_link(Consumer** list, Consumer* consumer) noexcept nogil:
    """Into a circle, behind everybody else."""
    if list[0] == NULL:
        list[0] = consumer.next = consumer.prev = consumer
    else:
        consumer.next = list[0]
        consumer.prev = list[0].prev
        list[0].prev.next = consumer
        list[0].prev = consumer


cdef void stream_end(
        Core* core, Consumer* consumer, int code, const char* reason, const char* message) noexcept nogil:
    cdef Buffer payload
    revoked_report(core, consumer)
    buffer_init(&payload)
    if code != OK:
        put_status(&payload, code, message, reason)
    # Behind the answers to its acks, which wait for this pass's epoch too.
    emit(core, consumer.token, END, code, &payload, code == OK and consumer.channel.queue.policy.durable)


# --- the end -----------------------------------------------------------------------------------

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
    consumer_link(&consumer.channel.away, consumer)


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
        if core.leaving != NULL:
            core.leaving.prev_leaving = consumer
        core.leaving = consumer
    consumer.fate = <uint8_t> fate


cdef void consumer_close(Core* core, Consumer* consumer, bint release) noexcept nogil:
    stream_end(core, consumer, OK, NULL, NULL)
    consumer_leave(core, consumer, RETURN_ALL if release else RETURN_UNBEGUN)


cdef void _lease_leave(Core* core, Consumer* consumer, Lease* lease) noexcept nogil:
    cdef Slice error
    cdef int64_t visible_ns
    error.at, error.length = b"consumer gone", 13
    if consumer.fate == RETURN_UNBEGUN and lease.begun and not lease_is_gone(lease):
        lease_unlink(lease)
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
        failure_counted(core, share_of(lease.slot).channel.queue)
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
            stream_end(core, consumer, OK, NULL, NULL)
        _break(core, consumer, word == DRAIN)


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
            revoked_report(core, consumer)
            buffer_init(&payload)
            put_status(&payload, NOT_FOUND, message, reason)
            emit(core, consumer.token, REPLY if consumer.kind == PULL else END, NOT_FOUND, &payload, False)
        consumer_forget(core, consumer)
    return channel.turn == NULL and channel.away == NULL


# --- silence, grace and leases that run out ------------------------------------------------------

cdef void consumer_due(Core* core, Consumer* consumer) noexcept nogil:
    cdef int64_t left_ms = consumer.deadline_ms - core.heard_ms
    if left_ms > 0:
        timer_set(
            &core.timers, &consumer.timer, core.mono_ns + max(left_ms, <int64_t> LOOK_AGAIN_MS_MIN) * 1000000)
        return
    if not consumer.away:
        stream_end(
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
