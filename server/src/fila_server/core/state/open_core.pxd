"""What the engine and the readers of its log share: the core while
it is open, and how many of them read just now.

CoreEngine is one of these; a LogReader holds it as one, and knows nothing else of the engine.
"""

from libc.stdint cimport uint64_t

from fila_server.core.state.state cimport Core

cdef enum Look:
    LOOK_WAITS = 0
    LOOK_STANDS = 1
    LOOK_FAILS = 2                      # another node may have answered since

cdef class OpenCore:
    cdef Core* core
    cdef bint is_open
    cdef int readers                    # log reads under way; closing waits for them
    cdef object readers_changed
    # In a group: ask for a record of this owner's; what was in the store before is the newest that was
    # answered once looked() tells that the record counts. 0: no group.
    cdef uint64_t look(self) noexcept nogil
    cdef Look looked(self, uint64_t look) noexcept nogil
