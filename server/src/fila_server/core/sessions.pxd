"""What a session says on its stream, after its Open: credit, acks, nacks, extensions, begun, window, alive, close."""

from fila_server.core.mailbox cimport Command
from fila_server.core.state cimport Consumer, Core

cdef void session_frame(Core* core, Consumer* consumer, Command* command) noexcept nogil
cdef void leases_return(Core* core, Command* command) noexcept nogil      # CANCEL with a Settle that names leases
