"""Each command goes to the module that carries it out."""

from fila_server.core.doors.mailbox cimport Command
from fila_server.core.state.state cimport Core

cdef bint command_run(Core* core, Command* command) noexcept nogil     # False when it was kept for later
