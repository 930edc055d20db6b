"""How many bytes the broker stores under some fairness keys, over all queues: what a tenant's quota goes by.

    STORED_BYTES StoredPage: at most 64 fairness keys, and where in the table of queues this part begins
                  -> StoredBytes: the bytes of each in this part, where the next part begins (0: that was
                  all), and the table's size: where it is another one the parts before mean nothing

A message counts until its frame is deleted or written anew without it. Counted anew by each start.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void stored_command(Core* core, Command* command) noexcept nogil
