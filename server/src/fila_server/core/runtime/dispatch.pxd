"""Each command goes to the module that carries it out."""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef bint command_run(Core* core, Command* command) noexcept nogil     # False when it was kept for later
