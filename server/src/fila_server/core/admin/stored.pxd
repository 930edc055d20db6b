"""How many bytes the broker stores under some fairness keys, over all queues: what a tenant's quota goes by.

    STORED_BYTES {1 repeated: a fairness key, at most 64; 2 where in the table of queues this part begins}
                  -> {1 repeated: its bytes in this part; 2 where the next part begins (0: that was all);
                      3 the table's size: where it is another one the parts before mean nothing}

A message counts until its frame is deleted or written anew without it. Counted anew by each start.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void stored_command(Core* core, Command* command) noexcept nogil
