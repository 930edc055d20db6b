"""What one fairness key may have: a rate, as a bucket that all channels of its queue share, a cap on its
leases, whether it goes at all, and a committed rate, a bucket as well: while that has a token the key goes
first (eligibility.pxd).

An operator's word for it (KeyExtras.own) wins over the queue's defaults, of which each key carries a copy: so
what delivers asks the key alone, and asks nothing new where a queue has no defaults.

A flow whose key has used up its rate is parked, as one at its cap is, and costs nothing until the timer of
the next token. A bucket begins full when the rate is set, and empty after a restart, so that it is no
second burst.
"""

from libc.stdint cimport int64_t, uint32_t, uint8_t

from fila_server.core.state.pending cimport FirstTurn, KeyExtras, KeyRateLimit
from fila_server.core.state.state cimport Core, Flow, Key

# Made when asked for first. They are freed with the key, once the rates and the index are gone.
cdef KeyExtras* key_extras(Core* core, Key* key) noexcept nogil
cdef void extras_free(Core* core, Key* key) noexcept nogil
# A failed message of the flow keeps its place, and begins or ends to wait for its retry. The caller
# reconsiders the flow.
cdef void retry_begins(Core* core, Flow* flow) noexcept nogil
cdef void retry_ends(Flow* flow) noexcept nogil
# Most leases that the key may hold in a channel at a time, 0 = no cap; `is_own`: by an operator's word. The
# caller reconsiders the key.
cdef void cap_set(Core* core, Key* key, uint32_t cap, bint is_own) noexcept nogil
# Nothing of the key goes while it is paused; `since_ms`, on the wall clock: when that began. The caller
# reconsiders the key.
cdef void pause_set(Core* core, Key* key, bint paused, int64_t since_ms) noexcept nogil
# Tokens a second and most of them, at least one; a rate of 0 takes the rate away; `is_own`: by an operator's
# word. The caller reconsiders the key.
cdef void rate_limit_set(Core* core, Key* key, double rate, double burst, bint is_own) noexcept nogil
# The same of its committed rate, whose bucket holds a second's worth, and at least one.
cdef void committed_set(Core* core, Key* key, double rate, bint is_own) noexcept nogil
# A flow has no turn among those within their committed rate any more.
cdef void first_turn_end(Core* core, FirstTurn* first) noexcept nogil
# The queue's defaults, where no operator said otherwise. True: something changed, and the caller reconsiders
# the key.
cdef bint key_take_defaults(Core* core, Key* key) noexcept nogil
# What an operator said (an OwnWord) counts no more. The caller reconsiders the key.
cdef void word_taken_back(Core* core, Key* key, uint8_t word) noexcept nogil
# Of a key that is new. Nobody knows what one of the same name took before a restart: its buckets are what
# those that were empty then would hold by now.
cdef void rates_begin(Core* core, Key* key) noexcept nogil
# A key that no message names any more: are its buckets as a new one's? If not, a timer tells when they
# will be.
cdef bint rates_are_full(Core* core, Key* key) noexcept nogil
cdef void rates_time_no_more(Core* core, Key* key) noexcept nogil
# Whether it has a token; else its timer is set for the next one.
cdef bint rate_limit_has_token(Core* core, KeyRateLimit* limit) noexcept nogil
cdef void rate_limit_take(Core* core, KeyRateLimit* limit) noexcept nogil
cdef bint rate_limit_is_out(KeyRateLimit* limit) noexcept nogil  # as of the last look: reconsider the key
cdef void rate_limit_refund(Core* core, KeyRateLimit* limit) noexcept nogil
# when it has a token, on the wall clock
cdef int64_t rate_limit_due_ms(Core* core, KeyRateLimit* limit) noexcept nogil
