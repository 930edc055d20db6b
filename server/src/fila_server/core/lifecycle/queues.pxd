"""Queues and channels are made, and get numbers that are never used twice."""

from libc.stdint cimport uint64_t, uint8_t

from fila_server.core.state.state cimport Channel, Core, Queue
from fila_server.core.structures.buffer cimport Slice

cdef Queue* queue_new(Core* core, Slice name, uint64_t number) noexcept nogil
cdef Channel* channel_new(
    Core* core, Queue* queue, Slice name, uint64_t number, uint64_t start_offset) noexcept nogil
# The same channel begun anew under another number: it takes the old one's name, consumers and counts. The old
# one keeps what it held, among the queue's gone ones.
cdef Channel* channel_anew(Core* core, Channel* old) noexcept nogil
cdef void channel_rebuild_end(Core* core, Channel* channel) noexcept nogil
# Nobody finds it any more.
cdef void channel_part(Core* core, Channel* channel, uint8_t gone) noexcept nogil
cdef uint64_t number_next(Core* core) noexcept nogil
