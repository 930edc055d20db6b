"""LIST_SINKS: which sinks are remembered, what they have staged, and which batch was published last."""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void sinks_list(Core* core, Command* command) noexcept nogil
