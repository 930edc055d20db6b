"""Frames rebuilt from their INDEX records, which formats/records writes, and taken into their channels."""

from libc.stdint cimport uint64_t

from fila_server.core.formats.records cimport Times
from fila_server.core.state.state cimport Core, Frame, Queue

# NULL when the record is damaged. `times` is malloc'd for the caller, or NULL.
cdef Frame* frame_record_read(
    Core* core, Queue* queue, uint64_t first_offset, const char* value, size_t length,
    Times** times) noexcept nogil


# --- frames taken into their queue's channels ------------------------------------------------
# Frames that recovery read, taken into their queue's channels: leased, delayed, come back, or ready.

# Into the directory, and a share for each channel that it is for, by the channel's notes. What is neither
# leased nor delayed is left without a place.
cdef void frame_take(Core* core, Queue* queue, Frame* frame, Times* times) noexcept nogil
# Once all frames are taken: what replaces a message that waited behind a leased one waits behind that, too,
# whatever became of the one between. Its frame does not tell; the record of their dedup key does.
cdef void dedup_take(Core* core, Queue* queue) noexcept nogil
# Once all frames are taken: gives what is not delayed its place, in the order of each channel's positions;
# what is not leased is ready then. The channels' notes are over.
cdef void queue_place(Core* core, Queue* queue) noexcept nogil
