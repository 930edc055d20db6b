"""Bytes of frames: which are in memory, what asks for those that are not, and what waits for them."""

from libc.stdint cimport uint32_t

from fila_server.core.state.pending cimport Decision
from fila_server.core.state.state cimport Body, Core, Frame

# --- bodies (hot payload bytes)
cdef Body* body_new(Core* core, Frame* frame, char* bytes, uint32_t length) noexcept nogil   # owns `bytes`
cdef void body_release(Core* core, Body* body) noexcept nogil
cdef void body_touch(Core* core, Body* body) noexcept nogil
cdef void bodies_evict(Core* core) noexcept nogil

# the bytes they waited for are here, or never will be
cdef void failures_go_on(Core* core, Frame* frame) noexcept nogil

# --- frames
cdef void failure_waits(Frame* frame, Decision* decision) noexcept nogil         # for the frame's bytes

cdef void frame_want(Core* core, Frame* frame) noexcept nogil             # ask for a cold frame, once
