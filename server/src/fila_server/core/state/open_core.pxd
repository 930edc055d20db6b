"""What the engine and the readers of its log share: the core while
it is open, and how many of them read just now.

CoreEngine is one of these; a LogReader holds it as one, and knows nothing else of the engine.
"""

from fila_server.core.state.state cimport Core

cdef class OpenCore:
    cdef Core* core
    cdef bint is_open
    cdef int readers                    # log reads under way; closing waits for them
    cdef object readers_changed
