"""Queues and channels: made, changed, found, emptied, dropped."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.buffer cimport Slice
from fila_server.core.state cimport Channel, Consumer, Core, Frame, Queue

cdef Queue* queue_new(Core* core, Slice name, uint64_t number) noexcept nogil
cdef void queue_drop(Core* core, Queue* queue) noexcept nogil
cdef Channel* channel_new(Core* core, Queue* queue, Slice name, uint64_t number, uint64_t start_offset) noexcept nogil
cdef void channel_drop(Core* core, Channel* channel) noexcept nogil
# The channel a call means, an empty name `default`; NULL: there is none. Asking never makes one.
cdef Channel* channel_find(Queue* queue, Slice name) noexcept nogil
cdef uint64_t number_next(Core* core) noexcept nogil
cdef uint64_t queue_oldest(Queue* queue) noexcept nogil
cdef uint64_t queue_revealed_below(Queue* queue) noexcept nogil        # the first offset that is not to be seen yet
cdef uint64_t queue_offset_at(Queue* queue, int64_t time_ms) noexcept nogil
cdef void channel_seek(Core* core, Channel* channel, uint64_t offset) noexcept nogil
cdef bint channel_rebuild(Core* core, Channel* channel) noexcept nogil        # some frames; True while there are more
cdef void forget_all(Core* core) noexcept nogil
