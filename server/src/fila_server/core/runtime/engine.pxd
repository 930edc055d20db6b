"""See engine.pyx."""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.history.tap cimport Recording
from fila_server.core.runtime.store_copy cimport StoreCopy
from fila_server.core.state.opaque cimport Store
from fila_server.core.state.open_core cimport OpenCore
from fila_server.core.threads.mailbox cimport Command
from fila_server.core.threads.spans cimport SpanTap

cdef class CoreEngine(OpenCore):
    cdef readonly Recording recording       # None unless history.enabled
    cdef readonly SpanTap spans             # None unless telemetry.trace_sample
    cdef readonly StoreCopy copy            # None: a single node
    cdef _record_base(self, dict settings, int64_t mono_ns, int64_t wall_ns, uint64_t seed)
    cdef _record_begins(self)
    cdef _settings(self, dict settings)
    cdef _begin(self, int64_t mono_ns, int64_t wall_ns, uint64_t seed)
    cdef _promise(self, int64_t mono_ns, int64_t wall_ns)
    cdef Store* _take(self, StoreCopy copy) except NULL
    cdef _leave(self)
    cdef _ends(self)
    cdef _release(self)
    cdef readonly object rights
    cdef _post(self, Command* command)
