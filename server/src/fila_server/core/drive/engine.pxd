"""See engine.pyx."""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.doors.mailbox cimport Command
from fila_server.core.state.open_core cimport OpenCore

cdef class CoreEngine(OpenCore):
    cdef _settings(self, dict settings)
    cdef _begin(self, int64_t mono_ns, int64_t wall_ns, uint64_t seed)
    cdef _promise(self, int64_t mono_ns, int64_t wall_ns)
    cdef _release(self)
    cdef Command* _parse(self, int kind, uint64_t token, bytes frame) except NULL
    cdef _post(self, Command* command)
