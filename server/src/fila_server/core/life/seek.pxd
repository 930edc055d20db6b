"""A channel starts anew at another offset, and takes the retained frames in again, some a pass."""

from libc.stdint cimport uint64_t

from fila_server.core.state.state cimport Channel, Core

# Takes the channel out of every frame. What nobody wants then goes with this pass, but for frames that reach
# `rebuilt_from`: the channel is about to take those in again.
cdef void channel_shares_drop(Core* core, Channel* channel, uint64_t rebuilt_from) noexcept nogil
cdef void channel_seek(Core* core, Channel* channel, uint64_t offset) noexcept nogil
# some frames; True while there are more
cdef bint channel_rebuild(Core* core, Channel* channel) noexcept nogil
