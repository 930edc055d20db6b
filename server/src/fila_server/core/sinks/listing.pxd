"""LIST_SINKS: which sinks are remembered, what they have staged, and which batch was published last."""

from fila_server.core.doors.mailbox cimport Command
from fila_server.core.state.state cimport Core

cdef void sinks_list(Core* core, Command* command) noexcept nogil
