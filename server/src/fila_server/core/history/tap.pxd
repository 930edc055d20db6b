"""See tap.pyx."""

from fila_server.core.history.lists cimport Lists
from fila_server.core.threads.blocks cimport Block, History

cdef class Recording:
    cdef History* history
    cdef readonly bint closed           # the core is; what is full by now is all that comes

cdef class RecordedBlock:
    cdef Recording source
    cdef Block* block
    cdef Lists* gathered                # NULL until somebody asks for lists
    cdef tuple _list(self, int what, const void* column, size_t size)
    cdef dict _columns(self)
    cdef dict _lists(self)
