"""Queues and channels taken away: consumers told, messages and records gone with this pass."""

from fila_server.core.state.state cimport Channel, Core, Queue

cdef void queue_drop(Core* core, Queue* queue) noexcept nogil
cdef void channel_drop(Core* core, Channel* channel) noexcept nogil
cdef void forget_all(Core* core) noexcept nogil
