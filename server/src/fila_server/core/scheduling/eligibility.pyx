"""Each move keeps in step: `joined`, the channel's weight, and the clock of how long a flow was stopped."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.state.kinds cimport (
    NOT_PARKED, OWN_CAP, OWN_RATE, PARKED_CAPPED, PARKED_IN_ORDER, PARKED_PAUSED, PARKED_RATE_LIMITED,
    TIMER_KEY_RATE,
)
from fila_server.core.state.paths cimport flow_is_in_order, flow_retrying, key_cap, key_own, key_rate_limit
from fila_server.core.state.state cimport Queue
from fila_server.core.structures.bucket cimport (
    bucket_configure, bucket_due_ns, bucket_give_back, bucket_has, bucket_init, bucket_refill, bucket_take,
)
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.heap cimport HeapNode, heap_insert, heap_remove
from fila_server.core.structures.maps cimport Map64, map64_free, map64_put, map64_remove
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


# --- what a key may have ---------------------------------------------------------------------
# The bucket is filled when somebody asks. The timer is set only where a flow found it empty, for the next
# token, and reconsiders the key in all its channels.

# A rate of one in a month reaches its token in steps of a day.
cdef int64_t LONGEST_WAIT_NS = <int64_t> 86400 * 1000000000
cdef double NS_PER_S = 1e9
cdef double FULL = 1 - 1e-9             # doubles add up to a little less


cdef bint _has_token(Core* core, KeyRateLimit* limit) noexcept nogil:
    """Else its timer is set for the next one."""
    bucket_refill(&limit.bucket, core.mono_ns, limit.wanted)
    if bucket_has(&limit.bucket):
        return True
    limit.wanted = True
    timer_set(
        &core.timers, &limit.timer, min(bucket_due_ns(&limit.bucket), core.mono_ns + LONGEST_WAIT_NS))
    return False


cdef uint8_t flow_stopped(Core* core, Flow* flow) noexcept nogil:
    cdef uint32_t cap = key_cap(flow.key)
    cdef KeyRateLimit* limit = key_rate_limit(flow.key)
    if flow.key.paused:
        return PARKED_PAUSED
    if flow_is_in_order(flow) and (flow.in_flight or flow_retrying(flow)):
        return PARKED_IN_ORDER
    if cap and flow.in_flight >= cap:
        return PARKED_CAPPED
    if limit != NULL and not _has_token(core, limit):
        return PARKED_RATE_LIMITED
    return NOT_PARKED


cdef KeyExtras* key_extras(Core* core, Key* key) noexcept nogil:
    if key.extras == NULL:
        key.extras = <KeyExtras*> must_malloc(sizeof(KeyExtras))
        memset(key.extras, 0, sizeof(KeyExtras))
        key.extras.key = key
        core.index_bytes += sizeof(KeyExtras)
    return key.extras


cdef void extras_free(Core* core, Key* key) noexcept nogil:
    if key.extras != NULL:
        map64_free(&key.extras.retrying)
        free(key.extras)
        key.extras = NULL
        core.index_bytes -= sizeof(KeyExtras)


cdef void retry_begins(Core* core, Flow* flow) noexcept nogil:
    cdef Map64* retrying = &key_extras(core, flow.key).retrying
    map64_put(retrying, <uint64_t> flow.channel, <void*> (flow_retrying(flow) + 1))


cdef void retry_ends(Flow* flow) noexcept nogil:
    cdef Map64* retrying = &flow.key.extras.retrying
    cdef uint64_t left = flow_retrying(flow) - 1
    if left:
        map64_put(retrying, <uint64_t> flow.channel, <void*> left)
    else:
        map64_remove(retrying, <uint64_t> flow.channel)


cdef void _say(Core* core, Key* key, uint8_t word, bint is_own) noexcept nogil:
    if is_own:
        key_extras(core, key).own |= word
    elif key.extras != NULL:
        key.extras.own &= ~word


cdef void cap_set(Core* core, Key* key, uint32_t cap, bint is_own) noexcept nogil:
    _say(core, key, OWN_CAP, is_own)
    if cap or key.extras != NULL:
        key_extras(core, key).cap = cap


cdef void pause_set(Core* core, Key* key, bint paused, int64_t since_ms) noexcept nogil:
    """A queue's paused keys are a heap by the moment when they were paused."""
    cdef Queue* queue = key.queue
    cdef HeapNode* place
    if key.paused == paused:
        return
    key.paused = paused
    place = &key_extras(core, key).place
    if paused:
        place.rank = since_ms
        queue.paused_keys = heap_insert(queue.paused_keys, place)
        queue.paused_count += 1
    else:
        queue.paused_keys = heap_remove(queue.paused_keys, place)
        queue.paused_count -= 1


cdef KeyRateLimit* _new(Core* core, Key* key) noexcept nogil:
    cdef KeyRateLimit* limit = <KeyRateLimit*> must_malloc(sizeof(KeyRateLimit))
    memset(limit, 0, sizeof(KeyRateLimit))
    limit.timer.kind = TIMER_KEY_RATE
    limit.key = key
    key_extras(core, key).rate_limit = limit
    core.index_bytes += sizeof(KeyRateLimit)
    return limit


cdef void rate_limit_set(Core* core, Key* key, double rate, double burst, bint is_own) noexcept nogil:
    cdef KeyRateLimit* limit = key_rate_limit(key)
    _say(core, key, OWN_RATE, is_own)
    if rate <= 0:
        if limit != NULL:
            timer_cancel(&core.timers, &limit.timer)
            free(limit)
            key.extras.rate_limit = NULL
            core.index_bytes -= sizeof(KeyRateLimit)
    elif limit == NULL:
        bucket_init(&_new(core, key).bucket, rate, burst, core.mono_ns)
    else:
        bucket_configure(&limit.bucket, rate, burst, core.mono_ns)


cdef bint key_take_defaults(Core* core, Key* key) noexcept nogil:
    cdef uint8_t own = key_own(key)
    cdef uint32_t cap = key.queue.policy.default_cap
    cdef double rate = key.queue.policy.default_rate
    cdef double burst = key.queue.policy.default_burst
    cdef KeyRateLimit* limit = key_rate_limit(key)
    cdef bint is_new = False
    if not own & OWN_CAP and key_cap(key) != cap:
        cap_set(core, key, cap, False)
        is_new = True
    if own & OWN_RATE or (limit == NULL and rate <= 0):
        return is_new
    if limit == NULL or limit.bucket.rate != rate or limit.bucket.burst != burst:
        rate_limit_set(core, key, rate, burst, False)
        is_new = True
    return is_new


cdef void word_taken_back(Core* core, Key* key, uint8_t word) noexcept nogil:
    _say(core, key, word, False)
    key_take_defaults(core, key)


cdef void rate_limit_begin(Core* core, Key* key) noexcept nogil:
    cdef KeyRateLimit* limit = key_rate_limit(key)
    if limit != NULL and key.queue.is_recovered:
        limit.bucket.level = min(
            limit.bucket.burst, limit.bucket.rate * (<double> (core.mono_ns - core.opened_ns) / NS_PER_S))


cdef bint rate_limit_is_full(Core* core, KeyRateLimit* limit) noexcept nogil:
    bucket_refill(&limit.bucket, core.mono_ns, False)
    return limit.bucket.level >= limit.bucket.burst * FULL


cdef void rate_limit_time_full(Core* core, KeyRateLimit* limit) noexcept nogil:
    cdef double missing = limit.bucket.burst - limit.bucket.level
    cdef double wait_ns = min(missing / limit.bucket.rate * NS_PER_S, <double> LONGEST_WAIT_NS)
    limit.wanted = False
    timer_set(&core.timers, &limit.timer, core.mono_ns + 1 + <int64_t> wait_ns)


cdef void rate_limit_time_no_more(Core* core, KeyRateLimit* limit) noexcept nogil:
    timer_cancel(&core.timers, &limit.timer)


cdef void rate_limit_take(Core* core, KeyRateLimit* limit) noexcept nogil:
    # The flow may have stood on the ring since it was looked at: what came in since then ends at the burst.
    bucket_refill(&limit.bucket, core.mono_ns, limit.wanted)
    bucket_take(&limit.bucket)
    limit.wanted = False


cdef bint rate_limit_is_out(KeyRateLimit* limit) noexcept nogil:
    return not bucket_has(&limit.bucket)


cdef void rate_limit_refund(Core* core, KeyRateLimit* limit) noexcept nogil:
    """Whoever waits for a token is woken by the timer, which is due at once."""
    bucket_give_back(&limit.bucket)
    if limit.timer.at:
        timer_set(&core.timers, &limit.timer, core.mono_ns)


cdef int64_t rate_limit_due_ms(Core* core, KeyRateLimit* limit) noexcept nogil:
    bucket_refill(&limit.bucket, core.mono_ns, limit.wanted)
    return core.wall_ms + max(<int64_t> 0, (bucket_due_ns(&limit.bucket) - core.mono_ns) // 1000000)
