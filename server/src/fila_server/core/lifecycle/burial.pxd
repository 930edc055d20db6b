"""A dead letter is written into its dead-letter queue, with a note of where it came from and why."""

from libc.stdint cimport uint32_t

from fila_server.core.state.state cimport Channel, Core, Frame
from fila_server.core.structures.buffer cimport Slice

cdef enum:
    LAST_ERROR_BYTES_MAX = 1024

# A dead letter into the queue's DLQ; its bytes are hot. Settling it here is the caller's.
cdef void bury(
    Core* core, Channel* channel, Frame* frame, uint32_t index, uint32_t attempts, const char* reason,
    Slice error) noexcept nogil
# the longest whole text of at most so many bytes
cdef uint32_t utf8_cut(Slice text, uint32_t most) noexcept nogil
