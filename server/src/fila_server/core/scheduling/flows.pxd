"""One channel's ready messages: a flow a fairness key, and its sub-queues.

    a slot becomes READY ──► its flow's fifo, or the sub-queue of its priority and set of throttle keys
    a flow's turn comes  ──► flow_next: of what may go the highest priority, of that the lowest position
                               a sub-queue whose bucket is empty steps into that bucket's line (tokens)
                               nothing may go: the flow is parked and costs nothing (parking)

A rank says both in one number: the priority stands above the position. Of the usual priority it is the
position, so that the fifo of messages without throttle keys is compared with sub-queues as it is.

Where a queue's keys are in order, a flow sends its lowest position or nothing. It is parked while a message
of it is in flight or waits for its retry, so that one goes at a time, and none before it.
"""

from libc.stdint cimport int32_t, uint32_t

from fila_server.core.state.kinds cimport PARKED_IN_ORDER
from fila_server.core.state.paths cimport flow_is_in_order, key_cap
from fila_server.core.state.state cimport Channel, Core, Flow, Key, Slot, Subqueue, ThrottleSet

cdef Flow* flow_find(Key* key, Channel* channel) noexcept nogil
cdef Flow* flow_of(Core* core, Key* key, Channel* channel) noexcept nogil
cdef void flow_free(Core* core, Flow* flow) noexcept nogil

# `set`: NULL for none.
cdef Subqueue* subqueue_of(
    Core* core, Flow* flow, ThrottleSet* set, uint32_t priority) noexcept nogil
cdef void subqueue_free(Core* core, Subqueue* sub) noexcept nogil

# The message that goes next, or NULL: all that is left waits in some bucket's line.
cdef Slot* flow_next(Core* core, Flow* flow) noexcept nogil
# Pause, cap, rate, weight or backlog changed: put the flow where it belongs now.
cdef void flow_reconsider(Core* core, Flow* flow) noexcept nogil
cdef void key_reconsider(Core* core, Key* key) noexcept nogil                    # the same, in every channel

cdef inline void flow_holds(Core* core, Flow* flow, int32_t change) noexcept nogil:
    """One message more (1) or fewer (-1) of it is in flight: its order or a cap parks it, or lets it go."""
    flow.in_flight += change
    # Its order may have been switched off while that held it.
    if key_cap(flow.key) or flow_is_in_order(flow) or flow.parked == PARKED_IN_ORDER:
        flow_reconsider(core, flow)
