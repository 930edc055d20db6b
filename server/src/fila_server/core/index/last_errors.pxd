"""What consumers said of messages that failed, for who asks about one of them; in memory, and only of late.

A row is found by the message's id and channel, and a later message of the same row takes its place. So it
costs the same however many messages fail, and is forgotten with a restart. Dead letters keep their errors.
"""

from fila_server.core.state.state cimport Core, Slot
from fila_server.core.structures.buffer cimport Slice

cdef enum:
    LAST_ERRORS = 4096              # rows, of 300 bytes; made with the first error

# Its consumer nacks it, and the attempt is counted next; an empty error is not kept.
cdef void last_error_keep(Core* core, Slot* slot, Slice error) noexcept nogil
# Of the failure that was its last; empty: none was given, or it is forgotten.
cdef Slice last_error(Core* core, Slot* slot) noexcept nogil
cdef void last_errors_forget(Core* core) noexcept nogil
