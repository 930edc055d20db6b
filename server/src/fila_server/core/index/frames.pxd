"""Frames and shares: what is stored, and who still wants it."""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.state.state cimport Channel, Core, Frame, Key, Queue, Share
from fila_server.core.structures.prefetch cimport prefetch_lines

cdef enum:
    NEAR = 4                    # entries: what is asked for that long before it is needed is there by then
    FAR = 8

cdef Frame* frame_new(Core* core, Queue* queue, uint32_t count) noexcept nogil
cdef void frame_free(Core* core, Frame* frame) noexcept nogil
cdef Share* share_new(Core* core, Frame* frame, Channel* channel) noexcept nogil
cdef void frame_tally(Frame* frame) noexcept nogil            # anew, after slots were copied into it
cdef void share_free(Core* core, Share* share) noexcept nogil

# Counts anew who is wanted by some channel; for the rare moves (seek, a channel gone). Acks count by
# themselves.
cdef bint frame_awaited(Core* core, Frame* frame) noexcept nogil        # a channel is still to take it in
cdef void frame_recount(Core* core, Frame* frame) noexcept nogil
cdef bint frame_retained(Core* core, Frame* frame) noexcept nogil            # soft retention keeps it
# nobody wants it: goes with this pass
cdef void frame_finish(Core* core, Frame* frame) noexcept nogil
cdef uint64_t frame_unwanted(Frame* frame) noexcept nogil

# What is done with a frame's messages is mostly done with one after the other, and with many keys each brings
# a Key that is in no cache. So code at one entry prefetches the Key of the entry that is FAR behind it.
cdef inline void frame_prefetch_key(Frame* frame, uint32_t i) noexcept nogil:
    cdef Key* key = frame.entries[i + FAR].key if i + FAR < frame.count else NULL
    if key != NULL:
        prefetch_lines(<char*> key)

# The Key of the entry NEAR behind: asked for before, it can be looked at for what it leads to. NULL = there
# is none.
cdef inline Key* frame_key_near(Frame* frame, uint32_t i) noexcept nogil:
    return frame.entries[i + NEAR].key if i + NEAR < frame.count else NULL
