"""What principals hold in flight, and how much they may: the rights' table hears the one, says the other.

    HOLDERS {1 repeated: {1 number of a principal; 2 leases that it may have, 0 = no bound}}
            -> {1 repeated, in this order: {1 leases it has; 2 pulls refused for its bound since last told}}
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void in_flight_command(Core* core, Command* command) noexcept nogil
