"""Limits as operators set them, and what a throttle key that has one keeps besides its first bucket.

    Limit (name, or pattern) ── instances ──► ThrottleKey ── bucket: the first rate
                                                          └─ parts: further rates, the budget; or NULL

A throttle key is an instance of the limit of its name, otherwise of the pattern with the longest beginning.
It exists while messages name it, leases of such run, or something of it is used that time has not given back.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.structures.bucket cimport Bucket
from fila_server.core.structures.buffer cimport Buffer
from fila_server.core.structures.learned_rate cimport LearnedRate
from fila_server.core.structures.ledger cimport Ledger
from fila_server.core.structures.maps cimport Text, TextMap

cdef enum:
    RATES_MAX = 4
    LIMIT_NAME_BYTES_MAX = 300      # with the `*`

cdef struct LimitRate:
    double   per_second, burst
    bint     in_cost

cdef struct LimitTerms:             # what an operator said
    LimitRate rates[RATES_MAX]
    uint32_t rate_count
    uint32_t slots                  # most messages in flight; 0 = any number
    double   amount                 # of the budget; 0 = none
    int64_t  period_ms, anchor_ms
    bint     budget_in_cost
    bint     shadow
    double   least, most            # between which the first rate follows its provider; 0 = it does not

cdef struct Limit:
    Text     text                   # first; with the `*` of a pattern
    LimitTerms terms
    bint     is_pattern
    bint     has_rate, has_burst    # halves of the short form, until both are known
    double   half_rate, half_burst
    bint     recorded               # it has a record of its own, beside the short form's
    void*    instances              # ThrottleKeys, the newest first
    uint64_t instance_count
    uint64_t waiting, passed, stopped, would_hold   # of all instances; the first: `Waiter`s that want a token
    void*    walked                 # while its change reaches the instances in pieces: the next ThrottleKey
    bint     is_changing, is_going  # stands on LimitTable.changing; deleted, and freed behind the walk
    Limit*   next_changing

cdef struct Parts:                  # of a ThrottleKey
    Bucket   more[RATES_MAX - 1]    # the rates behind the first
    LimitTerms terms                # by which it counts just now
    Ledger   ledger
    LearnedRate learned             # where it follows its provider;
    double   reported_rate          # its rate as people were told, and
    int64_t  refused_ms             # when a refusal was, on the wall clock; 0 = none was since the start

cdef struct LimitTable:
    TextMap  by_name                # of Limits
    uint32_t patterns[LIMIT_NAME_BYTES_MAX + 1]     # how many there are with a beginning so long
    uint32_t longest                # none is longer
    Limit    *changing, *changing_last
    Limit    none                   # of throttle keys without a limit
    void     *idle_newest, *idle_oldest             # ThrottleKeys that are kept only for what they used
    uint64_t idle_count
    int64_t  newest_ms              # that the wall clock ever read; and up to where a restart knows that
    int64_t  recorded_ms
    uint64_t tickets                # the last one given
    void*    keeper                 # a Subqueue; see scheduling/keeping
    uint64_t cost_then[16]          # what its message cost when it was kept, by place in its set
    Buffer   crossed                # budgets of which much is spent now: reported with this pass
    int64_t  counted_from_ms        # when the second began in which so many were reported, and others not
    uint64_t reported, unreported
