"""One channel's ready messages: a flow a fairness key, and its sub-queues.

    a slot becomes READY ──► its flow's fifo, or the sub-queue of its set of throttle keys
    a flow's turn comes  ──► flow_next: the lowest position among what may go
                               a sub-queue whose bucket is empty steps into that bucket's line (tokens)
                               nothing may go: the flow is parked and costs nothing (parking)
"""

from libc.stdint cimport int32_t

from fila_server.core.state.paths cimport key_cap
from fila_server.core.state.state cimport Channel, Core, Flow, Key, Slot, Subqueue, ThrottleSet

cdef Flow* flow_find(Key* key, Channel* channel) noexcept nogil
cdef Flow* flow_of(Core* core, Key* key, Channel* channel) noexcept nogil
cdef void flow_free(Core* core, Flow* flow) noexcept nogil

cdef Subqueue* subqueue_of(Core* core, Flow* flow, ThrottleSet* set) noexcept nogil
cdef void subqueue_free(Core* core, Subqueue* sub) noexcept nogil

# The message that goes next, or NULL: all that is left waits in some bucket's line.
cdef Slot* flow_next(Core* core, Flow* flow) noexcept nogil
# Pause, cap, rate, weight or backlog changed: put the flow where it belongs now.
cdef void flow_reconsider(Core* core, Flow* flow) noexcept nogil
cdef void key_reconsider(Core* core, Key* key) noexcept nogil                    # the same, in every channel

cdef inline void flow_holds(Core* core, Flow* flow, int32_t change) noexcept nogil:
    """One message more (1) or fewer (-1) of the flow is in flight: a cap parks the flow, or lets it go."""
    flow.in_flight += change
    if key_cap(flow.key):
        flow_reconsider(core, flow)
