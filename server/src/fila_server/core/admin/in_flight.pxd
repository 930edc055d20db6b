"""What principals hold in flight, and how much they may: the rights' table hears the one, says the other.

    HOLDERS Holders: the number of each principal, and the leases that it may have (0 = no bound)
            -> Held, in this order: the leases it has, and the pulls refused for its bound since last told
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void in_flight_command(Core* core, Command* command) noexcept nogil
