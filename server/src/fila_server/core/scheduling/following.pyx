"""Lease ids grow, so they say what left before what. Where the rate fell below what the operator set, the
burst falls with it: so much at once would be as much too much for the provider."""

from fila_server.core.structures.bucket cimport bucket_close, bucket_configure
from fila_server.core.structures.learned_rate cimport (
    learned_bound, learned_grow, learned_init, learned_refused, learned_remains, learned_take,
)

cdef int64_t NS_PER_MS = 1000000
cdef uint64_t REMAINING_MAX = <uint64_t> 1 << 50


cdef double _burst(ThrottleKey* key) noexcept nogil:
    cdef double operators = key.parts.terms.rates[0].per_second
    cdef double burst = key.parts.terms.rates[0].burst
    if key.parts.learned.rate < operators:
        burst *= key.parts.learned.rate / operators
    return max(1, burst)


cdef void _in_force(Core* core, ThrottleKey* key) noexcept nogil:
    bucket_configure(&key.bucket, key.parts.learned.rate, _burst(key), core.mono_ns)


cdef inline void _closed(Core* core, ThrottleKey* key) noexcept nogil:
    if key.parts.learned.open_ns > core.mono_ns:
        bucket_close(&key.bucket, key.parts.learned.open_ns)


cdef void following_configure(Core* core, ThrottleKey* key, const LimitTerms* before) noexcept nogil:
    cdef LimitTerms* terms = &key.parts.terms
    if not terms_follow(before) or before.rates[0].per_second != terms.rates[0].per_second:
        learned_init(
            &key.parts.learned, terms.least, terms.most, terms.rates[0].per_second, core.mono_ns)
        key.parts.reported_rate = key.parts.learned.rate
        key.parts.refused_ms = 0
    else:
        learned_bound(&key.parts.learned, terms.least, terms.most)
    _in_force(core, key)


cdef void following_recovered(Core* core, ThrottleKey* key) noexcept nogil:
    learned_bound(&key.parts.learned, key.parts.terms.least, key.parts.terms.most)
    key.parts.reported_rate = key.parts.learned.rate
    _in_force(core, key)
    _closed(core, key)


cdef int64_t following_open_ms(Core* core, const ThrottleKey* key) noexcept nogil:
    return core.wall_ms + (key.parts.learned.open_ns - core.mono_ns) // NS_PER_MS


cdef void following_waits(Core* core, ThrottleKey* key) noexcept nogil:
    """The bucket was refilled just now, and keeps what that gave it for a late wake."""
    if key.bucket.level < key.bucket.burst and learned_grow(&key.parts.learned, core.mono_ns):
        key.bucket.rate, key.bucket.burst = key.parts.learned.rate, _burst(key)


cdef void following_takes(Core* core, ThrottleKey* key) noexcept nogil:
    learned_take(&key.parts.learned, core.mono_ns)
    _closed(core, key)


cdef void following_refused(Core* core, ThrottleKey* key, uint64_t lease_id, int64_t retry_ms) noexcept nogil:
    learned_refused(
        &key.parts.learned, lease_id, core.next_lease_id - 1, retry_ms * NS_PER_MS, core.mono_ns)
    key.parts.refused_ms = core.wall_ms
    _in_force(core, key)
    bucket_close(&key.bucket, max(key.parts.learned.open_ns, core.mono_ns))


cdef void following_remains(
        Core* core, ThrottleKey* key, uint64_t lease_id, uint64_t remaining, int64_t reset_ms) noexcept nogil:
    """The message that was answered is in flight still, and counted by the provider."""
    learned_remains(
        &key.parts.learned, lease_id, <int64_t> min(remaining, REMAINING_MAX),
        max(<int64_t> key.in_flight - 1, <int64_t> 0), reset_ms * NS_PER_MS, core.mono_ns)
    _closed(core, key)
