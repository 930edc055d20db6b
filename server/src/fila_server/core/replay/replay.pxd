"""See replay.pyx."""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.runtime.engine cimport CoreEngine
from fila_server.core.structures.buffer cimport Cursor
from fila_server.core.threads.mailbox cimport Command
from fila_server.core.threads.reader cimport Load

cdef class Replay(CoreEngine):
    cdef readonly dict head             # the row `base`
    cdef readonly str headers           # history.headers as it was recorded
    cdef readonly tuple clocks          # monotonic and wall, as the recording began
    cdef object records
    cdef bint begun                     # a pass was read, and waits for all that it took
    cdef int64_t mono_ns, wall_ms, durable, level
    cdef uint64_t number                # of the recorded pass
    cdef uint64_t first                 # the pass that opening itself ran
    cdef _begin_pass(self, uint64_t number, int64_t wall_ms, int64_t mono_ns, int64_t durable, int64_t level)
    cdef _run(self)
    cdef void _forget_answers(self) noexcept nogil
    cdef void _forget_asked(self) noexcept nogil
    cdef char* _expanded(self, Cursor* c, int64_t length) except NULL
    cdef _command(
        self, int64_t kind, int64_t token, int64_t length, int64_t checksum, const char* bytes, size_t size)
    cdef _route(self, Command* command, Cursor* c, uint64_t count)
    cdef _load(
        self, int64_t queue, int64_t first_offset, int64_t length, int64_t status, const char* bytes,
        size_t size)
    cdef void _answer(self, Load* load) noexcept nogil
