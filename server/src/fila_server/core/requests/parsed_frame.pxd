"""See parsed_frame.pyx."""

from fila_server.core.protocol.refusals cimport Limits
from fila_server.core.threads.mailbox cimport Command

cdef class ParsedFrame:
    cdef Command* command               # NULL once it was submitted
    cdef Limits limits
    cdef _check(self, Py_ssize_t i)
