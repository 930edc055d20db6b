"""See parsed_frame.pyx."""

from fila_server.core.doors.mailbox cimport Command
from fila_server.core.protocol.refusals cimport Limits

cdef class ParsedFrame:
    cdef Command* command               # NULL once it was submitted
    cdef Limits limits
    cdef _check(self, Py_ssize_t i)
