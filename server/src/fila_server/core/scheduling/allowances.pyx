"""A bucket is filled when somebody asks. Its timer is set only where a flow found it empty, for the next
token, and reconsiders the key in all its channels."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.state.kinds cimport OWN_CAP, OWN_COMMITTED, OWN_RATE, TIMER_KEY_RATE
from fila_server.core.state.paths cimport flow_retrying, key_cap, key_committed, key_own, key_rate_limit
from fila_server.core.state.pending cimport Committed
from fila_server.core.state.settings cimport Policy
from fila_server.core.state.state cimport Queue
from fila_server.core.structures.bucket cimport (
    bucket_configure, bucket_due_ns, bucket_give_back, bucket_has, bucket_init, bucket_refill, bucket_take,
)
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.heap cimport HeapNode, heap_insert, heap_remove
from fila_server.core.structures.maps cimport (
    Map64, map64_free, map64_init, map64_next, map64_put, map64_remove,
)
from fila_server.core.structures.ring cimport ring_leave
from fila_server.core.structures.timers cimport timer_cancel, timer_set

# A rate of one in a month reaches its token in steps of a day.
cdef int64_t LONGEST_WAIT_NS = <int64_t> 86400 * 1000000000
cdef double NS_PER_S = 1e9
cdef double FULL = 1 - 1e-9             # doubles add up to a little less


cdef bint rate_limit_has_token(Core* core, KeyRateLimit* limit) noexcept nogil:
    """If there is none, the timer wakes the key."""
    bucket_refill(&limit.bucket, core.mono_ns, limit.wanted)
    if bucket_has(&limit.bucket):
        return True
    limit.wanted = True
    timer_set(
        &core.timers, &limit.timer, min(bucket_due_ns(&limit.bucket), core.mono_ns + LONGEST_WAIT_NS))
    return False


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


cdef void* _new(Core* core, Key* key, size_t size) noexcept nogil:
    """Zeroed, but for the KeyRateLimit that it begins with."""
    cdef KeyRateLimit* limit = <KeyRateLimit*> must_malloc(size)
    memset(limit, 0, size)
    limit.timer.kind = TIMER_KEY_RATE
    limit.key = key
    core.index_bytes += size
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
        limit = <KeyRateLimit*> _new(core, key, sizeof(KeyRateLimit))
        bucket_init(&limit.bucket, rate, burst, core.mono_ns)
        key_extras(core, key).rate_limit = limit
    else:
        bucket_configure(&limit.bucket, rate, burst, core.mono_ns)


cdef void first_turn_end(Core* core, FirstTurn* first) noexcept nogil:
    cdef Flow* flow = <Flow*> first.flow
    ring_leave(flow.channel.committed, &first.turn)
    map64_remove(&flow.key.extras.committed.turns, <uint64_t> flow.channel)
    free(first)
    core.index_bytes -= sizeof(FirstTurn)


cdef void _committed_free(Core* core, Key* key) noexcept nogil:
    cdef Committed* committed = key_committed(key)
    cdef FirstTurn* first
    cdef uint32_t cursor
    while True:
        cursor = 0                      # what leaves a map moves others
        first = <FirstTurn*> map64_next(&committed.turns, &cursor)
        if first == NULL:
            break
        first_turn_end(core, first)
    map64_free(&committed.turns)
    timer_cancel(&core.timers, &committed.limit.timer)
    free(committed)
    key.extras.committed = NULL
    core.index_bytes -= sizeof(Committed)


cdef void committed_set(Core* core, Key* key, double rate, bint is_own) noexcept nogil:
    cdef Committed* committed = key_committed(key)
    _say(core, key, OWN_COMMITTED, is_own)
    if rate <= 0:
        if committed != NULL:
            _committed_free(core, key)
    elif committed == NULL:
        committed = <Committed*> _new(core, key, sizeof(Committed))
        bucket_init(&committed.limit.bucket, rate, max(rate, 1.0), core.mono_ns)
        map64_init(&committed.turns)
        key_extras(core, key).committed = committed
    else:
        bucket_configure(&committed.limit.bucket, rate, max(rate, 1.0), core.mono_ns)


cdef bint key_take_defaults(Core* core, Key* key) noexcept nogil:
    cdef uint8_t own = key_own(key)
    cdef Policy* policy = &key.queue.policy
    cdef KeyRateLimit* limit = key_rate_limit(key)
    cdef Committed* committed = key_committed(key)
    cdef bint is_new = False
    if not own & OWN_CAP and key_cap(key) != policy.default_cap:
        cap_set(core, key, policy.default_cap, False)
        is_new = True
    if not own & OWN_COMMITTED and policy.default_committed != (
        committed.limit.bucket.rate if committed != NULL else 0
    ):
        committed_set(core, key, policy.default_committed, False)
        is_new = True
    if own & OWN_RATE or (limit == NULL and policy.default_rate <= 0):
        return is_new
    if (
        limit == NULL or limit.bucket.rate != policy.default_rate
        or limit.bucket.burst != policy.default_burst
    ):
        rate_limit_set(core, key, policy.default_rate, policy.default_burst, False)
        is_new = True
    return is_new


cdef void word_taken_back(Core* core, Key* key, uint8_t word) noexcept nogil:
    _say(core, key, word, False)
    key_take_defaults(core, key)


cdef void _begin(Core* core, KeyRateLimit* limit) noexcept nogil:
    limit.bucket.level = min(
        limit.bucket.burst, limit.bucket.rate * (<double> (core.mono_ns - core.opened_ns) / NS_PER_S))


cdef void rates_begin(Core* core, Key* key) noexcept nogil:
    if not key.queue.is_recovered:
        return
    if key_rate_limit(key) != NULL:
        _begin(core, key_rate_limit(key))
    if key_committed(key) != NULL:
        _begin(core, &key_committed(key).limit)


cdef bint _is_full(Core* core, KeyRateLimit* limit) noexcept nogil:
    """Else its timer is set for then."""
    cdef double missing
    bucket_refill(&limit.bucket, core.mono_ns, False)
    if limit.bucket.level >= limit.bucket.burst * FULL:
        return True
    missing = limit.bucket.burst - limit.bucket.level
    limit.wanted = False
    timer_set(
        &core.timers, &limit.timer,
        core.mono_ns + 1 + <int64_t> min(missing / limit.bucket.rate * NS_PER_S, <double> LONGEST_WAIT_NS))
    return False


cdef bint rates_are_full(Core* core, Key* key) noexcept nogil:
    if key_rate_limit(key) != NULL and not _is_full(core, key_rate_limit(key)):
        return False
    return key_committed(key) == NULL or _is_full(core, &key_committed(key).limit)


cdef void rates_time_no_more(Core* core, Key* key) noexcept nogil:
    if key_rate_limit(key) != NULL:
        timer_cancel(&core.timers, &key_rate_limit(key).timer)
    if key_committed(key) != NULL:
        timer_cancel(&core.timers, &key_committed(key).limit.timer)


cdef void rate_limit_take(Core* core, KeyRateLimit* limit) noexcept nogil:
    # The flow may have stood on the ring since it was looked at: what came in since then ends at the burst.
    bucket_refill(&limit.bucket, core.mono_ns, limit.wanted)
    bucket_take(&limit.bucket)
    limit.wanted = False


cdef bint rate_limit_is_out(KeyRateLimit* limit) noexcept nogil:
    return not bucket_has(&limit.bucket)


cdef void rate_limit_refund(Core* core, KeyRateLimit* limit) noexcept nogil:
    """The timer, which is due at once, wakes what waits for a token."""
    bucket_give_back(&limit.bucket)
    if limit.timer.at:
        timer_set(&core.timers, &limit.timer, core.mono_ns)


cdef int64_t rate_limit_due_ms(Core* core, KeyRateLimit* limit) noexcept nogil:
    bucket_refill(&limit.bucket, core.mono_ns, limit.wanted)
    return core.wall_ms + max(<int64_t> 0, (bucket_due_ns(&limit.bucket) - core.mono_ns) // 1000000)
