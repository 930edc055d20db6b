"""Where a flow stands: with its channel's ring, or parked; and which channels may have work.

    joined      on the ring or deferred; its weight counts among the channel's
    parked      it has a backlog, and none of it may go: throttled, paused, capped, paced
    neither     it has no backlog

Whether it may go is decided elsewhere (flows.pxd); this only moves it.
"""

from libc.stdint cimport uint8_t

from fila_server.core.state.state cimport Channel, Core, Flow

# A flow with a backlog that may go stands with the ring, and its channel may have work.
cdef void flow_join(Core* core, Flow* flow) noexcept nogil
cdef void flow_park(Core* core, Flow* flow, uint8_t reason) noexcept nogil
# It has no backlog any more: it is neither, and saves for nothing.
cdef void flow_rest(Core* core, Flow* flow) noexcept nogil

# A channel is looked at by deliver_ready once it may have work, after those that stand there already.
cdef void channel_activate(Core* core, Channel* channel) noexcept nogil
cdef void channel_deactivate(Core* core, Channel* channel) noexcept nogil
