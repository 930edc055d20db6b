"""A queue's settings: from the serialized QueueConfig, which is
what is stored, to the struct that is used."""

from libc.stdint cimport uint8_t

from fila_server.core.state.settings cimport Policy
from fila_server.core.state.state cimport Channel, Core, Queue
from fila_server.core.structures.buffer cimport Slice

cdef void queue_configure(Core* core, Queue* queue, Slice config) noexcept nogil
cdef void policy_free(Policy* policy) noexcept nogil
cdef bint channel_named_paused(Channel* channel) noexcept nogil

cdef enum:                          # Policy.paused
    QUEUE_PAUSED = 1
    CHANNELS_PAUSED = 2             # some are, by name

# Nothing is delivered in it: its queue is paused, or it is itself. Costs a look where neither may be.
cdef inline bint channel_paused(Channel* channel) noexcept nogil:
    cdef uint8_t paused = channel.queue.policy.paused
    return paused != 0 and (paused & QUEUE_PAUSED != 0 or channel_named_paused(channel))
