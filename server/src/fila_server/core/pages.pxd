"""Pages of messages read without leasing, and dead letters moved back where they came from.

Both need bytes that may be cold: such a command waits, its frames are asked for, and it is
run again when something was read. It looks everything up anew each time, so nothing it saw
before can have gone stale.
"""

from fila_server.core.mailbox cimport Command
from fila_server.core.state cimport Core

# True: answered. False: it waits for the disk, and the command was kept.
cdef bint page(Core* core, Command* command) noexcept nogil          # PEEK_MESSAGES, REDRIVE_MOVE
cdef void pages_loaded(Core* core) noexcept nogil
