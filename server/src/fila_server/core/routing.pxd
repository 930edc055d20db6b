"""What a message is shared and limited by: fairness key, weight, cost, throttle keys."""

from libc.stdint cimport uint8_t

from fila_server.core.mailbox cimport Command
from fila_server.core.state cimport Building, Core, Queue
from fila_server.core.wire cimport Item

# Fills in key, set and cost (with a reference each) and takes over the weight; 0, or why it is refused.
cdef uint8_t route(Core* core, Queue* queue, Command* command, Item* item, Building* b) noexcept nogil

# The queue's weight table is a new one: it counts for the keys that wait already.
cdef void weights_apply(Core* core, Queue* queue) noexcept nogil
