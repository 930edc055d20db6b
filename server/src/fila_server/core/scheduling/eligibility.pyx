"""Each move keeps in step: `joined`, the channel's weight, and the clock of how long a flow was stopped."""

from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.state.kinds cimport NOT_PARKED, PARKED_CAPPED, PARKED_PACED, PARKED_PAUSED, TIMER_PACE
from fila_server.core.state.paths cimport key_cap, key_pace
from fila_server.core.structures.bucket cimport (
    bucket_configure, bucket_due_ns, bucket_give_back, bucket_has, bucket_init, bucket_refill, bucket_take,
)
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.ring cimport ring_join, ring_leave, ring_park, ring_rejoin
from fila_server.core.structures.timers cimport timer_cancel, timer_set


cdef void _set_parked(Core* core, Flow* flow, uint8_t reason) noexcept nogil:
    """And the clock of how long it was stopped, whatever its buckets said."""
    if flow.parked >= PARKED_PAUSED:
        flow.stopped_ms += core.mono_ms - flow.stopped_since_ms
    flow.stopped_since_ms = core.mono_ms
    flow.parked = reason


cdef void flow_join(Core* core, Flow* flow) noexcept nogil:
    if not flow.joined:
        flow.joined = True
        flow.channel.weight += flow.turn.weight
        if flow.parked:
            _set_parked(core, flow, NOT_PARKED)
            ring_rejoin(&flow.channel.ring, &flow.turn)
        else:
            ring_join(&flow.channel.ring, &flow.turn)
    channel_activate(core, flow.channel)


cdef void flow_park(Core* core, Flow* flow, uint8_t reason) noexcept nogil:
    if flow.joined:
        flow.joined = False
        flow.channel.weight -= flow.turn.weight
        ring_park(&flow.channel.ring, &flow.turn)
    _set_parked(core, flow, reason)


cdef void flow_rest(Core* core, Flow* flow) noexcept nogil:
    if flow.joined:
        flow.joined = False
        flow.channel.weight -= flow.turn.weight
        ring_leave(&flow.channel.ring, &flow.turn)
    flow.turn.deficit = 0
    _set_parked(core, flow, NOT_PARKED)


# --- channels that may have work -----------------------------------------------------------

cdef void channel_activate(Core* core, Channel* channel) noexcept nogil:
    if channel.active or channel.gone:
        return
    channel.active = True
    if core.active == NULL:
        core.active = channel
        channel.next_active = channel.prev_active = channel
    else:                                       # behind everybody else
        channel.next_active = core.active
        channel.prev_active = core.active.prev_active
        core.active.prev_active.next_active = channel
        core.active.prev_active = channel


cdef void channel_deactivate(Core* core, Channel* channel) noexcept nogil:
    if not channel.active:
        return
    channel.active = False
    if channel.next_active == channel:
        core.active = NULL
    else:
        channel.prev_active.next_active = channel.next_active
        channel.next_active.prev_active = channel.prev_active
        if core.active == channel:
            core.active = channel.next_active
    channel.next_active = channel.prev_active = NULL


# --- what an operator allows a key -----------------------------------------------------------
# The bucket is filled when somebody asks. The timer is set only where a flow found it empty, for the next
# token, and reconsiders the key in all its channels.

# A rate of one in a month reaches its token in steps of a day.
cdef int64_t LONGEST_WAIT_NS = <int64_t> 86400 * 1000000000


cdef bint _has_token(Core* core, Pace* pace) noexcept nogil:
    """Else its timer is set for the next one."""
    bucket_refill(&pace.bucket, core.mono_ns, pace.wanted)
    if bucket_has(&pace.bucket):
        return True
    pace.wanted = True
    timer_set(
        &core.timers, &pace.timer, min(bucket_due_ns(&pace.bucket), core.mono_ns + LONGEST_WAIT_NS))
    return False


cdef uint8_t flow_stopped(Core* core, Flow* flow) noexcept nogil:
    cdef uint32_t cap = key_cap(flow.key)
    cdef Pace* pace = key_pace(flow.key)
    if flow.key.paused:
        return PARKED_PAUSED
    if cap and flow.in_flight >= cap:
        return PARKED_CAPPED
    if pace != NULL and not _has_token(core, pace):
        return PARKED_PACED
    return NOT_PARKED


cdef KeyExtras* key_extras(Core* core, Key* key) noexcept nogil:
    if key.extras == NULL:
        key.extras = <KeyExtras*> must_malloc(sizeof(KeyExtras))
        memset(key.extras, 0, sizeof(KeyExtras))
        core.index_bytes += sizeof(KeyExtras)
    return key.extras


cdef void extras_free(Core* core, Key* key) noexcept nogil:
    if key.extras != NULL:
        free(key.extras)
        key.extras = NULL
        core.index_bytes -= sizeof(KeyExtras)


cdef void cap_set(Core* core, Key* key, uint32_t cap) noexcept nogil:
    if cap or key.extras != NULL:
        key_extras(core, key).cap = cap


cdef Pace* _new(Core* core, Key* key) noexcept nogil:
    cdef Pace* pace = <Pace*> must_malloc(sizeof(Pace))
    memset(pace, 0, sizeof(Pace))
    pace.timer.kind = TIMER_PACE
    pace.key = key
    key_extras(core, key).pace = pace
    core.index_bytes += sizeof(Pace)
    return pace


cdef void pace_set(Core* core, Key* key, double rate, double burst) noexcept nogil:
    cdef Pace* pace = key_pace(key)
    if rate <= 0:
        if pace != NULL:
            timer_cancel(&core.timers, &pace.timer)
            free(pace)
            key.extras.pace = NULL
            core.index_bytes -= sizeof(Pace)
    elif pace == NULL:
        bucket_init(&_new(core, key).bucket, rate, burst, core.mono_ns)
    else:
        bucket_configure(&pace.bucket, rate, burst, core.mono_ns)


cdef void pace_recover(Core* core, Key* key, double rate, double burst) noexcept nogil:
    cdef Pace* pace = _new(core, key)
    bucket_init(&pace.bucket, rate, burst, core.mono_ns)
    pace.bucket.level = 0


cdef void pace_take(Pace* pace) noexcept nogil:
    bucket_take(&pace.bucket)
    pace.wanted = False


cdef bint pace_is_out(Pace* pace) noexcept nogil:
    return not bucket_has(&pace.bucket)


cdef void pace_refund(Core* core, Pace* pace) noexcept nogil:
    """Whoever waits for a token is woken by the timer, which is due at once."""
    bucket_give_back(&pace.bucket)
    if pace.timer.at:
        timer_set(&core.timers, &pace.timer, core.mono_ns)


cdef int64_t pace_due_ms(Core* core, Pace* pace) noexcept nogil:
    bucket_refill(&pace.bucket, core.mono_ns, pace.wanted)
    return core.wall_ms + max(<int64_t> 0, (bucket_due_ns(&pace.bucket) - core.mono_ns) // 1000000)
