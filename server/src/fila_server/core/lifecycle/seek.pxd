"""A channel starts anew at another offset, and takes the retained frames in again, some a pass."""

from libc.stdint cimport uint64_t

from fila_server.core.state.state cimport Channel, Core

# Returns the channel as it is from now on; the one given is then among its queue's gone ones, to be taken
# apart.
cdef Channel* channel_seek(Core* core, Channel* channel, uint64_t offset) noexcept nogil
# one that was just made
cdef void channel_start(Core* core, Channel* channel, uint64_t offset) noexcept nogil
# some frames; True while there are more
cdef bint channel_rebuild(Core* core, Channel* channel) noexcept nogil
