"""A stored frame becomes visible: every channel gets its share of it.

A message is revealed once its enqueue is durable (or, under `os`, written).
"""

from libc.stdint cimport uint64_t

from fila_server.core.state.state cimport Core, Frame

# False: `counters.work` has reached `until`, and more of its channels are to come.
cdef bint frame_reveal(Core* core, Frame* frame, uint64_t until) noexcept nogil
