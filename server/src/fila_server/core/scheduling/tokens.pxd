"""The tokens of buckets: who is refused one, who takes one, and for whom one is spoken when it comes.

    a sub-queue's bucket has none for it ──► subqueue_wait: it steps into the bucket's line; that is all
    a token arrives                      ──► bucket_wake: it is spoken for whose turn it is, channel and flow
    its message goes                     ──► slot_pay: a token of each of its buckets is taken
"""

from fila_server.core.state.limits cimport Limit
from fila_server.core.state.state cimport Channel, Core, Flow, Slot, Subqueue, ThrottleKey, ThrottleSet

# The bucket that holds this sub-queue longest, or NULL when all would let it pass.
cdef ThrottleKey* bucket_refusing(Core* core, Subqueue* sub) noexcept nogil
# Step into the line of the bucket that refused; who stands there already wants a token anew.
cdef void subqueue_wait(Core* core, Subqueue* sub, ThrottleKey* bucket) noexcept nogil
# It goes, or may not go whatever its limits say: what it kept of them is others'.
cdef void subqueue_keeps_nothing(Core* core, Subqueue* sub) noexcept nogil
# It stands in no line any more, nor among those that may go: subqueue_rank puts it there.
cdef void subqueue_leave(Core* core, Subqueue* sub) noexcept nogil
# A message came into its fifo or left it, and it has some.
cdef void subqueue_changed(Core* core, Subqueue* sub) noexcept nogil

# A token from each of its buckets; call while the slot still stands in its sub-queue, and set_wake once it
# does not.
cdef void slot_pay(Core* core, Slot* slot) noexcept nogil
# Recovery: a lease of a message with this set runs; slot_pay counts those that begin.
cdef void set_held(ThrottleSet* set) noexcept nogil
# A lease of a message with this set ended: who waits for its slots may go.
cdef void set_freed(Core* core, ThrottleSet* set) noexcept nogil
# Tokens of these buckets were taken or given up: each has others' spoken for, or its timer set.
cdef void set_wake(Core* core, ThrottleSet* set) noexcept nogil
# A delivery that was never written gives its tokens back, up to each burst.
cdef void slot_refund(Core* core, Slot* slot, Flow* flow) noexcept nogil

# Speaks for as many messages as there are tokens, channels in turn.
cdef void bucket_wake(Core* core, ThrottleKey* bucket) noexcept nogil
# Something of it was used or given back: its level is written with this pass.
cdef void bucket_used(Core* core, ThrottleKey* bucket) noexcept nogil
# Its limit is another one, or has changed: what waits feels it now.
cdef void bucket_set(Core* core, ThrottleKey* bucket, Limit* limit) noexcept nogil
# Nobody in the channel has room: tokens that were spoken for there can't be taken, so others get them.
cdef void channel_full(Core* core, Channel* channel) noexcept nogil
