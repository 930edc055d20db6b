"""What a session says on its stream, after its Open: credit, acks,
nacks, extensions, begun, window, alive, close."""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void session_command(Core* core, Command* command) noexcept nogil      # SESSION
# CANCEL, of a pull that waits or was answered; "over": it is answered as if its time were over
cdef void pull_cancel(Core* core, Command* command) noexcept nogil
