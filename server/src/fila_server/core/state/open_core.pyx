"""Counted under the GIL, as is closing's look at it."""

import threading


cdef class OpenCore:
    """The core of one open data directory."""

    def __cinit__(self):
        self.core = NULL
        self.is_open = False
        self.readers_changed = threading.Condition()

    cdef uint64_t look(self) noexcept nogil:
        return 0

    cdef Look looked(self, uint64_t look) noexcept nogil:
        return LOOK_STANDS
