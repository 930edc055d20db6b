"""A schedule fires: one message is enqueued, and the record of its next moment goes in the same batch."""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

# Returns False: it is owned by the pass until it is answered.
cdef bint fire_command(Core* core, Command* command) noexcept nogil
