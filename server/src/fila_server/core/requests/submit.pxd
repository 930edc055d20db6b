"""From a thread that reads sockets, or from Python, to the scheduler: parse, judge, post. Any thread.

Who is refused and keeps its command may post it again; nothing is lost and nothing waits here.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from fila_server.core.protocol.problem cimport Problem
from fila_server.core.requests.rights_table cimport Rights
from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef enum Posted:
    POSTED = 0
    MAILBOX_FULL
    DISK_FULL                       # an enqueue, while the scheduler itself waits for room
    LOG_STANDS                      # the same, while it waits for the log of the group

# NULL with `problem` filled; counted as malformed.
cdef Command* request_parse(
    Core* core, int32_t kind, uint64_t token, const char* bytes, size_t length,
    Problem* problem) noexcept nogil
# The same of bytes that came from malloc: they are the command's, or freed.
cdef Command* request_parse_adopted(
    Core* core, int32_t kind, uint64_t token, char* bytes, size_t length, Problem* problem) noexcept nogil
# Anything but POSTED: the command is still the caller's.
cdef Posted request_post(Core* core, Command* command) noexcept nogil


# --- requests of Python's --------------------------------------------------------------------
# A request of Python's: against its sender's quotas, parsed, judged; or one of errors.py.

# `caller` None is the broker itself, which may do everything.
cdef Command* judged_parse(
    Core* core, Rights rights, int kind, uint64_t token, bytes frame, object caller,
    int64_t now_ns) except NULL
