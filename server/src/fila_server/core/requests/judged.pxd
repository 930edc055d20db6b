"""A request of Python's: against its sender's quotas, parsed, judged; or one of errors.py."""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.requests.rights_table cimport Rights
from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

# `caller` None is the broker itself, which may do everything.
cdef Command* judged_parse(
    Core* core, Rights rights, int kind, uint64_t token, bytes frame, object caller,
    int64_t now_ns) except NULL
