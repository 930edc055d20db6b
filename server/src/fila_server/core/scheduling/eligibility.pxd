"""Whether a flow may go. Where it stands: with its channel's ring, or parked; which channels may have work.

    joined      on the ring or deferred; its weight counts among the channel's
    parked      it has a backlog, and none of it may go: throttled, paused, capped, paced
    neither     it has no backlog

A joined flow whose key is within its committed rate (allowances.pxd) has a turn on a second ring, too:
Channel.committed, which is asked first. It keeps its place on the channel's ring meanwhile, and its savings
there, so that what all keys share beyond their committed rates is shared as if nothing else went. Whom the
one ring serves the other does not charge.

What moves a flow here and there asks nothing; flow_reconsider (flows.pxd) goes by flow_stopped and its
buckets. """

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

# Why the flow may not go whatever its buckets say, by what its key may have; NOT_PARKED: it may.
cdef uint8_t flow_stopped(Core* core, Flow* flow) noexcept nogil
# The message of it that goes next is another one than before, and not because it was sent: what it saves for.
cdef void flow_again(Flow* flow) noexcept nogil
