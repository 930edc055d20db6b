"""A queue's settings: from the serialized QueueConfig, which is
what is stored, to the struct that is used."""

from fila_server.core.state.settings cimport Policy
from fila_server.core.state.state cimport Core, Queue
from fila_server.core.structures.buffer cimport Slice

cdef void queue_configure(Core* core, Queue* queue, Slice config) noexcept nogil
cdef void policy_free(Policy* policy) noexcept nogil
