"""A frame that few messages pin is written anew with those few, so
that disk and index follow what is live."""

from fila_server.core.state.state cimport Core, Frame, Queue

# False: not now (its bytes are cold and were asked for, or it is on its way).
cdef bint frame_rewrite(Core* core, Frame* frame) noexcept nogil
# Some frames, where it is worth it. False: there is nothing to do before the queue changes.
cdef bint queue_rewrite(Core* core, Queue* queue) noexcept nogil
