"""FilaAdmin's commands on the scheduler thread: each reads its request's bytes and writes its response's."""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

# False: it is carried out in pieces, or waits for one that is (chores.pxd), and is owned there.
cdef bint admin_command(Core* core, Command* command) noexcept nogil
