"""The parts of one throttle key's limit (rates, slots, a budget), judged and taken as one.

Only for keys with `parts`, and for what any key with a limit is asked seldom: nearly all have one bucket of
messages and nothing else, which tokens.pyx asks itself. Costs are in thousandths of a message, as everywhere.

What is *counted on* stands before a message: messages that the key has spoken for and that have not gone yet,
and what they should cost.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.state.limits cimport LimitTerms
from fila_server.core.state.state cimport Core, ThrottleKey

cdef inline bint terms_are_plain(const LimitTerms* terms) noexcept nogil:
    """One rate, of messages, and nothing else."""
    return (
        terms.rate_count == 1 and not terms.rates[0].in_cost and terms.slots == 0 and terms.amount == 0
        and not terms.shadow and terms.most == 0
    )

cdef enum Part:                     # fila.v1.LimitPart
    NO_PART = 0
    RATE_PART = 1
    SLOTS_PART = 2
    BUDGET_PART = 3

cdef struct Counted:
    int64_t messages, cost

# What has become due since the last look.
cdef void parts_refill(Core* core, ThrottleKey* key) noexcept nogil
# Whether all of them have enough for a message, behind what is counted on.
cdef bint parts_have(ThrottleKey* key, uint64_t cost, Counted before) noexcept nogil
cdef void parts_take(ThrottleKey* key, uint64_t cost) noexcept nogil
cdef void parts_give_back(ThrottleKey* key, uint64_t cost) noexcept nogil
# The same of its rates alone, and of its budget.
cdef void parts_rates_take(ThrottleKey* key, uint64_t cost) noexcept nogil
cdef void parts_rates_give_back(ThrottleKey* key, uint64_t cost) noexcept nogil
cdef void parts_rates_settle(ThrottleKey* key, uint64_t taken, uint64_t cost) noexcept nogil  # cost otherwise
cdef bint parts_budget_has(Core* core, ThrottleKey* key, uint64_t cost) noexcept nogil
# Slots or none: nothing of that cost goes before its budget's next period, before its provider opens it, or
# before somebody changes a rate of 0.
cdef bint parts_stand_still(Core* core, ThrottleKey* key, uint64_t cost) noexcept nogil
cdef void parts_spend(ThrottleKey* key, uint64_t cost) noexcept nogil
# Which of them has not enough for a message behind what is counted on: a Part; of several, what lasts
# longest.
cdef int parts_holding(Core* core, ThrottleKey* key, uint64_t cost, Counted before) noexcept nogil
# Of its rates, by number from 1, the one that will have enough last.
cdef uint32_t parts_last_rate(ThrottleKey* key, uint64_t cost, Counted before) noexcept nogil
# When they will have enough, on the monotonic clock, if nothing is taken meanwhile; INT64_MAX: nobody can
# know, since a lease must end, or nothing refills it.
cdef int64_t parts_due_ns(Core* core, ThrottleKey* key, uint64_t cost, Counted before) noexcept nogil

# The limit's terms are the key's from now on. What it has used stays where the part is the same; a new part
# is full.
cdef void parts_configure(Core* core, ThrottleKey* key, const LimitTerms* terms) noexcept nogil
# Nothing of it is used that time has not given back: a new one would be the same.
cdef bint parts_are_full(Core* core, ThrottleKey* key) noexcept nogil
# When they are, on the monotonic clock, if nothing is taken meanwhile; INT64_MAX: never.
cdef int64_t parts_full_ns(Core* core, ThrottleKey* key) noexcept nogil
