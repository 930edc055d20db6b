"""The lines in front of buckets: a limit is shared as a queue is, by deficit round robin.

    bucket ─ turns: a ring of its Waiters, one a channel; each turn is one token
               Waiters ─ ring of its Waiter, one a flow: weight of the key, cost of the message
                           Waiter ─ the flow's sub-queues that name the bucket, lowest position first

A token is *spoken for* a message before it is taken: then the message may go, and takes the token when it
is delivered. In the ring the token is charged when it is spoken for. A flow that stands in a line keeps its
place and its deficit as long as it has messages there. It is on the ring while it wants a token, which is
while more messages are there than tokens are spoken for.

What the message of a second and third token costs is not looked up: it is thought to cost what the first
does.
`owed` remembers the difference, and the next token settles it. So a flow's

    deficit + spoken - owed

changes by grants and deliveries alone; docs/fairness.md proves the promise from that.
"""

from libc.stdint cimport uint64_t

from fila_server.core.state.paths cimport subqueue_waits
from fila_server.core.state.state cimport Core, Subqueue, ThrottleKey, Waiter, Waiters

cdef inline void subqueue_counts(Subqueue* sub, int change) noexcept nogil:
    """One message more (1) or fewer (-1). Its line learns of it by waiter_changed, once it is in the fifo or
    out of it."""
    sub.count += change
    if sub.waiter != NULL:
        sub.waiter.messages += change
        sub.waiter.waiters.messages += change
        if subqueue_waits(sub):
            sub.flow.subqueues.waiting += change

cdef void waiters_join(Core* core, Subqueue* sub, ThrottleKey* bucket) noexcept nogil
# True: its line is to be woken, since it gave up tokens that were spoken for, or since a limit of several
# parts may have waited until it has enough for this very message. It stands among nobody until subqueue_rank.
cdef bint waiters_leave(Core* core, Subqueue* sub) noexcept nogil

# Its messages or tokens became more or fewer: may it go, does it want a token? True: it does now, or it gave
# some up, so the bucket is to be woken.
cdef bint waiter_changed(Core* core, Waiter* waiter) noexcept nogil
# Who has the turn and can pay for its message; nothing is spoken for it yet. NULL when nobody wants a token.
cdef Waiter* waiters_turn(Waiters* waiters) noexcept nogil
# A token of the bucket is spoken for who has the turn; NULL when nobody wants one.
cdef Waiter* waiters_speak(Core* core, Waiters* waiters) noexcept nogil
# The chosen one's first message takes its token; waiter_changed comes once it is out of its fifo.
cdef void waiter_spend(Core* core, Waiter* waiter, uint64_t cost) noexcept nogil
# The tokens spoken for it are others', and it wants them anew.
cdef void waiter_withdraw(Core* core, Waiter* waiter) noexcept nogil

# Its first message changed: keeps its place among those that may go, or among those held.
cdef bint subqueue_rank(Subqueue* sub) noexcept nogil
