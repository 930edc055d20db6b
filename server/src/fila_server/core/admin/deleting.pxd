"""Queues and channels taken away: at once for everybody outside, in pieces for the memory they hold.

    the call       the name is free, the records are deleted in this pass's batch, nothing is delivered
    later passes   consumers are told and end, leases end (an ack of one finds it lost), messages, keys and
                   the rest are freed, as much as a stage allows

So a restart at any moment finds a queue or channel whole or not at all, and no pass is longer for it. A
channel that starts anew elsewhere leaves its old self behind in the same way.
"""

from fila_server.core.state.state cimport Channel, Core, Queue

cdef void queue_delete(Core* core, Queue* queue) noexcept nogil
cdef void channel_delete(Core* core, Channel* channel) noexcept nogil
# Some more of a queue's gone channels. True: they are all cleared away.
cdef bint channels_clear(Core* core, Queue* queue) noexcept nogil
cdef void queues_clear(Core* core) noexcept nogil                        # some more of the deleted queues
cdef void forget_all(Core* core) noexcept nogil                          # the core is closed
