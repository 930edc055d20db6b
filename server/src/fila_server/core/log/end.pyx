"""The log's memory belongs to the class beneath."""


cdef class LogEnd:
    """One node's end of a log."""

    def __cinit__(self):
        self.log = NULL
