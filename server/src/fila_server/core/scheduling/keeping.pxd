"""Nobody who needs several limits starves: the one that waits for longest keeps what it was given before.

A sub-queue whose turn comes at one limit goes only if its other limits have enough as well. Where others take
all of each at once, that might never be. So each that had to wait has a *ticket*, a growing number, and one
in the broker, the *keeper*, keeps from a limit where its turn came what one message takes of its rates, while
it stands in the line of the next. An older ticket takes the place. A limit may so let as much more go
than its burst and rate as one message takes; where that one does not go after all, others take it.

A slot is kept, and stands idle, only while the keeper waits for a slot of another limit: not for one
whose budget is spent, whose rate is 0, or which its provider has closed, for that may last for a day. Of
a budget nothing is kept. With one keeper no two wait for each other; and the oldest ticket is served once its
turn has come at each of its limits.
"""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.state.state cimport Core, Subqueue, ThrottleKey

# It has to wait; the first time since a message of it went.
cdef inline void ticket_take(Core* core, Subqueue* sub) noexcept nogil:
    if sub.ticket == 0:
        core.limit_table.tickets += 1
        sub.ticket = core.limit_table.tickets

# Its turn came in its line, and `refusing`, another limit, has not enough. Who kept something until now, and
# does no more, or NULL: its limits are to be woken.
cdef Subqueue* keep(Core* core, Subqueue* sub, ThrottleKey* refusing) noexcept nogil
cdef inline bint is_kept(Subqueue* sub, uint32_t member) noexcept nogil:
    return sub.kept >> member & 1

# It has kept of this one: whether the rest of it has enough; and its message takes the rest.
cdef bint rest_has(Core* core, Subqueue* sub, uint32_t member, uint64_t cost) noexcept nogil
cdef void rest_pay(Core* core, Subqueue* sub, uint32_t member, uint64_t cost) noexcept nogil
# Another message is its first now. True: that one takes less, so more is left for others. If that came back
# as late as it goes, and the limit had filled up by then, more than one message would go beyond the burst.
cdef bint keep_shrinks(Core* core, Subqueue* sub) noexcept nogil
# Its message went, or it waits no more: what is still kept comes back. True: something did, so its limits are
# to be woken.
cdef bint keep_ends(Core* core, Subqueue* sub) noexcept nogil
# The keeper, if it waits for this limit and keeps a slot of another one, and no slot of this one would let
# it go; or NULL.
cdef Subqueue* keeps_in_vain(Core* core, ThrottleKey* key) noexcept nogil
# The keeper, if it keeps something of this limit.
cdef Subqueue* keeper_at(Core* core, ThrottleKey* key) noexcept nogil
