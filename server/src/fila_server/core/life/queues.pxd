"""Queues and channels are made, and get numbers that are never used twice."""

from libc.stdint cimport uint64_t

from fila_server.core.state.state cimport Channel, Core, Queue
from fila_server.core.structures.buffer cimport Slice

cdef Queue* queue_new(Core* core, Slice name, uint64_t number) noexcept nogil
cdef Channel* channel_new(
    Core* core, Queue* queue, Slice name, uint64_t number, uint64_t start_offset) noexcept nogil
cdef uint64_t number_next(Core* core) noexcept nogil
