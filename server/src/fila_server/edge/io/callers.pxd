"""Who calls: the key among a call's headers, and what its holder keeps open by it.

    caller_of       a header's value  ──►  the caller's number        once a call; a stream is one
    caller_enter    a call            ──►  it goes on, or Python says why not

Frames are judged when they are handed over (submission.pyx), and open calls when rights change (judging.pyx).
A failure goes to Python, which counts it and makes its answer wait. Nothing of a key is kept: its secret is
hashed where it was read.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint64_t

from fila_server.core.threads.mailbox cimport Command
from fila_server.edge.io.iothread cimport Call, Connection, IoThread

cdef bint callers_prepare(IoThread* io) noexcept nogil
cdef void callers_unprepare(IoThread* io) noexcept nogil
# 0 for what is no valid key of anybody's, or must not travel as it did.
cdef uint64_t caller_of(Connection* connection, const char* value, size_t length) noexcept nogil
# False: the call ends, or Python ends it.
cdef bint caller_enter(Call* call) noexcept nogil
# A place among the calls that Python has not begun. False: there is none, and the call was refused.
cdef bint caller_offered(Call* call) noexcept nogil
# Puts what Python should know of the caller behind the call's headers: address and certificate.
cdef void caller_report(Call* call) noexcept nogil
# What this command opens is held open by its caller's right to it.
cdef void caller_holds(Call* call, const Command* command) noexcept nogil
cdef void caller_leaves(Call* call) noexcept nogil
cdef void caller_disconnects(Connection* connection) noexcept nogil
