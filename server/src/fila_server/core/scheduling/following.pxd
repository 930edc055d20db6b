"""Limits that learn: the first rate of such a throttle key follows what workers tell of its provider.

The rate in force is the bucket's own, so whatever asks the bucket, a forecast or a list, asks for what is
learned. A closed limit is a bucket that earns nothing until then, and has nothing.
"""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.state.limits cimport LimitTerms
from fila_server.core.state.state cimport Core, ThrottleKey

cdef inline bint terms_follow(const LimitTerms* terms) noexcept nogil:
    """A first rate of 0 is an operator's stop: nothing that a provider says opens it."""
    return terms.most > 0 and terms.rates[0].per_second > 0

cdef inline bint key_follows(const ThrottleKey* key) noexcept nogil:
    return key.parts != NULL and terms_follow(&key.parts.terms)

# Its limit has these terms now, `before` had it; what was learned stays where the first rate and its unit do.
cdef void following_configure(Core* core, ThrottleKey* key, const LimitTerms* before) noexcept nogil
# What was learned before a restart stands in `learned`, and is in force from now on.
cdef void following_recovered(Core* core, ThrottleKey* key) noexcept nogil
# On the wall clock; it may be past.
cdef int64_t following_open_ms(Core* core, const ThrottleKey* key) noexcept nogil

# Messages wait for it.
cdef void following_waits(Core* core, ThrottleKey* key) noexcept nogil
# A message goes.
cdef void following_takes(Core* core, ThrottleKey* key) noexcept nogil
# Of the message of this lease. The caller wakes the bucket.
cdef void following_refused(Core* core, ThrottleKey* key, uint64_t lease_id, int64_t retry_ms) noexcept nogil
cdef void following_remains(
    Core* core, ThrottleKey* key, uint64_t lease_id, uint64_t remaining, int64_t reset_ms) noexcept nogil
