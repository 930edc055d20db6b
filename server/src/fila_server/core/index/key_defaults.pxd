"""A queue's `key_defaults` changed: each of its keys learns of it, except where an operator said otherwise.

A key carries a copy of the defaults (scheduling/allowances.pxd), and a queue may have a million keys. So
they are walked in pieces, between passes; the first piece is at once, and for most queues it is the only one.
A key that comes meanwhile begins with the new defaults.
"""

from fila_server.core.state.state cimport Core, Queue

cdef void defaults_changed(Core* core, Queue* queue) noexcept nogil
# A stage: a piece of each walk. True: there is more.
cdef bint defaults_turn(Core* core) noexcept nogil
cdef void defaults_forget(Core* core) noexcept nogil                     # the core is closed
