"""Frames and shares: what is stored, and who still wants it."""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.state.state cimport Channel, Core, Frame, Queue, Share

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
