"""The tokens of buckets: who is refused one, who takes one, and who is woken when one comes.

    a sub-queue's bucket is empty ──► subqueue_wait: it steps into the bucket's line, which costs nothing
    a token arrives               ──► bucket_wake: as many sub-queues leave the lines as there are tokens
    one that was woken            ──► has a claim: nobody else is woken for its token until the claim ends
"""

from fila_server.core.state.state cimport Channel, Core, Slot, Subqueue, ThrottleKey

# The bucket that holds this sub-queue longest, or NULL when all would let it pass.
cdef ThrottleKey* bucket_refusing(Core* core, Subqueue* sub) noexcept nogil
# Step into the line of the bucket that refused: at its front, if this one had woken it before.
cdef void subqueue_wait(Core* core, Subqueue* sub, ThrottleKey* bucket) noexcept nogil
# The token that woke this sub-queue is used, or is somebody else's again.
cdef void subqueue_claim_ends(Core* core, Subqueue* sub) noexcept nogil

# A token from each of its buckets; call while the slot still stands in its sub-queue.
cdef void slot_pay(Core* core, Slot* slot) noexcept nogil
# A delivery that was never written gives its tokens back, up to each burst.
cdef void slot_refund(Core* core, Slot* slot) noexcept nogil

# Lets as many sub-queues out of the lines as there are tokens, channels in turn.
cdef void bucket_wake(Core* core, ThrottleKey* bucket) noexcept nogil
# Its rate or burst changed, or went away: what waits feels it now.
cdef void bucket_set(Core* core, ThrottleKey* bucket) noexcept nogil
# Nobody in the channel has room: those who were woken for a token there can't be served, so others are.
cdef void channel_full(Core* core, Channel* channel) noexcept nogil
