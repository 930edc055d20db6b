"""A frame rebuilt from its INDEX record; records.pyx writes them."""

from libc.stdint cimport uint64_t

from fila_server.core.formats.records cimport Times
from fila_server.core.state.state cimport Core, Frame, Queue

# NULL when the record is damaged. `times` is malloc'd for the caller, or NULL.
cdef Frame* frame_record_read(
    Core* core, Queue* queue, uint64_t first_offset, const char* value, size_t length,
    Times** times) noexcept nogil
