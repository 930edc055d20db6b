"""See tap.pyx."""

from fila_server.core.doors.blocks cimport Block, History

cdef class Recording:
    cdef History* history
    cdef readonly bint closed           # the core is; what is full by now is all that comes

cdef class RecordedBlock:
    cdef Recording source
    cdef Block* block
    cdef dict _columns(self)
