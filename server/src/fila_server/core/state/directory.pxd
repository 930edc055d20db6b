"""A queue's frames in the order of their offsets, found by offset and by id."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.state.state cimport Directory, Frame, Queue

# --- the directory: frames of a queue by offset, and by id
cdef void directory_add(Directory* directory, Frame* frame) noexcept nogil
# A rewritten frame takes its original's place; its first offset is not below that one's.
cdef void directory_replace(Directory* directory, Frame* old, Frame* frame) noexcept nogil
cdef void directory_remove(Directory* directory, Frame* frame) noexcept nogil
cdef void directory_free(Directory* directory) noexcept nogil
# The frame that holds `offset`, or the first one after it; NULL behind the last.
cdef Frame* directory_at(Directory* directory, uint64_t offset) noexcept nogil
cdef Frame* directory_first(Directory* directory) noexcept nogil
cdef Frame* directory_after(Directory* directory, Frame* frame) noexcept nogil
# A walk: from which cell on there may be frames with offsets from this one on, and the next frame from a cell
# on, which is moved behind it; NULL at the end. Nothing may be added or removed meanwhile.
cdef uint32_t directory_from(Directory* directory, uint64_t offset) noexcept nogil
cdef Frame* directory_next(Directory* directory, uint32_t* cell) noexcept nogil
# Which of its entries has this offset; its count where none has.
cdef uint32_t frame_index(Frame* frame, uint64_t offset) noexcept nogil
# The frame whose own ids begin with these 64 bits, or NULL; entries moved from elsewhere are in leased_ids.
cdef Frame* directory_ordinary(Directory* directory, uint64_t id_high) noexcept nogil

cdef void directory_pop(Queue* queue, Frame* frame) noexcept nogil       # its first frame
cdef uint64_t queue_oldest(Queue* queue) noexcept nogil
# the first offset that is not to be seen yet
cdef uint64_t queue_revealed_below(Queue* queue) noexcept nogil
# The smallest retained offset appended at or after a moment; the next one to be given when none is.
cdef uint64_t queue_offset_at(Queue* queue, int64_t time_ms) noexcept nogil

# Cells that were looked at one after the other, and not by halves, since the process began: few a call,
# whatever is stored. Tests of cost read it.
cdef uint64_t directory_walked() noexcept nogil
