"""Numbers that are given out once: message ids and offsets. And the core's dice, of which ids are made."""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.state.state cimport Core, Queue

cdef uint64_t random_next(Core* core) noexcept nogil
cdef void id_next(Core* core, uint64_t* high, uint64_t* low) noexcept nogil
cdef uint64_t offsets_next(Core* core, Queue* queue, uint32_t count) noexcept nogil     # the first of them

# An offset that some record speaks of was given out: new ones lie above it.
cdef void note_offset(Core* core, uint64_t queue_number, uint64_t offset) noexcept nogil
