"""A rate that follows what its provider says: it falls when calls are refused, and probes back within bounds.

    refused     at once to 0.92 of what it was; further, down to the accepted part, while more of what left
                before is refused. What left before a decrease never counts for another one
    waited for  back to where it was refused, fast at first and slowly near it: the limit should be there
    beyond      ever faster: the limit must have moved

Departures have numbers that grow, so that no clock decides what left before a decrease. Time is told, in
nanoseconds. Judged by reference.ReferenceLearnedRate, and by the providers in tests/simulation/providers.py.
"""

from libc.stdint cimport int64_t, uint64_t

cdef struct LearnedRate:
    double   least, most            # its bounds, a second
    double   rate                   # in force
    double   near                   # what was refused last; 0 = nobody knows where the limit is
    double   before                 # in force before the last decrease
    double   share                  # of the latest answers, refusals; of those since that decrease
    double   back_from              # the part of `near` that was left then
    double   waited_s, beyond_s     # while messages waited for it: since the last refusal; beyond `near`
    double   pause_s                # the longest that a refusal since that decrease asked for
    uint64_t decreased_at           # departures up to this number left before it
    int64_t  refused_ns             # when the last refusal was told
    int64_t  grown_ns               # growth is accounted for up to here
    int64_t  open_ns                # closed before
    uint64_t latest                 # departure whose answer said what remains:
    int64_t  allowed                # so many may go until
    int64_t  reset_ns               # then; in the past: as many as the rate gives

cdef void learned_init(
    LearnedRate* learned, double least, double most, double rate, int64_t now_ns) noexcept nogil
# Other bounds; what was learned stays, within them.
cdef void learned_bound(LearnedRate* learned, double least, double most) noexcept nogil

# The departure `left` was refused, `newest` is the last one so far; nothing goes for `retry_ns`, 0 or more.
cdef void learned_refused(
    LearnedRate* learned, uint64_t left, uint64_t newest, int64_t retry_ns, int64_t now_ns) noexcept nogil
cdef void learned_accepted(LearnedRate* learned) noexcept nogil
# The answer to `left` said that so many more calls, 0 or more, are let pass until `reset_ns` from now.
# `in_flight` left already, and may or may not be among them.
cdef void learned_remains(
    LearnedRate* learned, uint64_t left, int64_t remaining, int64_t in_flight, int64_t reset_ns,
    int64_t now_ns) noexcept nogil
# A message goes.
cdef void learned_take(LearnedRate* learned, int64_t now_ns) noexcept nogil
# Messages wait for it: it may grow. True: it did.
cdef bint learned_grow(LearnedRate* learned, int64_t now_ns) noexcept nogil
