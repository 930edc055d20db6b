"""Whether a flow may go. Where it stands: with its channel's ring, or parked; which channels may have work;
and what an operator allows its key.

    joined      on the ring or deferred; its weight counts among the channel's
    parked      it has a backlog, and none of it may go: throttled, paused, capped, paced
    neither     it has no backlog

What moves a flow here and there asks nothing; flow_reconsider (flows.pxd) goes by flow_stopped and its
buckets. """

from libc.stdint cimport int64_t, uint32_t, uint8_t

from fila_server.core.state.pending cimport KeyExtras, KeyRateLimit
from fila_server.core.state.state cimport Channel, Core, Flow, Key

# A flow with a backlog that may go stands with the ring, and its channel may have work.
cdef void flow_join(Core* core, Flow* flow) noexcept nogil
cdef void flow_park(Core* core, Flow* flow, uint8_t reason) noexcept nogil
# It has no backlog any more: it is neither, and saves for nothing.
cdef void flow_rest(Core* core, Flow* flow) noexcept nogil

# A channel is looked at by deliver_ready once it may have work, after those that stand there already.
cdef void channel_activate(Core* core, Channel* channel) noexcept nogil
cdef void channel_deactivate(Core* core, Channel* channel) noexcept nogil


# --- what a key may have ---------------------------------------------------------------------
# What one fairness key may have: a rate, as a bucket that all channels of its queue share, a cap on its
# leases, and whether it goes at all. An operator's word for it (KeyExtras.own) wins over the queue's
# defaults, of which each key carries a copy: so what delivers asks the key alone, and asks nothing new where
# a queue has no defaults.
#
# A flow whose key has used up its rate is parked, as one at its cap is, and costs nothing until the timer of
# the next token. A bucket begins full when the rate is set, and empty after a restart, so that it is no
# second burst.

# Why the flow may not go whatever its buckets say, by what its key may have; NOT_PARKED: it may.
cdef uint8_t flow_stopped(Core* core, Flow* flow) noexcept nogil
# Made when asked for first. Whoever frees the key frees them, once the pace and the index are gone.
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
# The queue's defaults, where no operator said otherwise. True: something changed, and the caller reconsiders
# the key.
cdef bint key_take_defaults(Core* core, Key* key) noexcept nogil
# What an operator said (an OwnWord) counts no more. The caller reconsiders the key.
cdef void word_taken_back(Core* core, Key* key, uint8_t word) noexcept nogil
# Of a key that is new. Nobody knows what one of the same name took before a restart: its bucket is what one
# that was empty then would hold by now.
cdef void rate_limit_begin(Core* core, Key* key) noexcept nogil
# A key that no message names any more: is its bucket as a new one's? If not, the timer tells when it will be.
cdef bint rate_limit_is_full(Core* core, KeyRateLimit* limit) noexcept nogil
cdef void rate_limit_time_full(Core* core, KeyRateLimit* limit) noexcept nogil
cdef void rate_limit_time_no_more(Core* core, KeyRateLimit* limit) noexcept nogil
cdef void rate_limit_take(Core* core, KeyRateLimit* limit) noexcept nogil
cdef bint rate_limit_is_out(KeyRateLimit* limit) noexcept nogil  # as of the last look: reconsider the key
cdef void rate_limit_refund(Core* core, KeyRateLimit* limit) noexcept nogil
# when it has a token, on the wall clock
cdef int64_t rate_limit_due_ms(Core* core, KeyRateLimit* limit) noexcept nogil
