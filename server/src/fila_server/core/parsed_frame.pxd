"""See parsed_frame.pyx."""

from fila_server.core.mailbox cimport Command
from fila_server.core.refusals cimport Limits

cdef class ParsedFrame:
    cdef Command* command               # NULL once it was submitted
    cdef Limits limits
    cdef _check(self, Py_ssize_t i)
