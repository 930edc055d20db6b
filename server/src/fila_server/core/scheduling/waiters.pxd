"""The lines in front of buckets: a channel's sub-queues that wait for one bucket, in turn order.

A sub-queue that was woken for a token has a claim on it until it is served; a line lives while
somebody stands in it or has a claim by it.
"""

from fila_server.core.state.state cimport Core, Subqueue, ThrottleKey, Waiters

cdef void waiters_join(Core* core, Subqueue* sub, ThrottleKey* bucket, bint front) noexcept nogil
cdef void waiters_leave(Core* core, Subqueue* sub) noexcept nogil
cdef void waiters_drop_if_empty(Core* core, Waiters* waiters) noexcept nogil
cdef void claim_begins(Waiters* waiters) noexcept nogil
cdef void claim_ends(Waiters* waiters) noexcept nogil
# Its first message changed: keeps the place of one that stands in no line among its flow's eligible ones.
cdef void subqueue_rank(Subqueue* sub) noexcept nogil
