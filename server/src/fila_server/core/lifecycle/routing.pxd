"""What a message is shared and limited by: fairness key, weight, cost, throttle keys."""

from libc.stdint cimport uint8_t

from fila_server.core.protocol.packed_routing cimport Routing
from fila_server.core.protocol.protobuf cimport Item
from fila_server.core.state.state cimport Building, Core, Queue
from fila_server.core.threads.mailbox cimport Command

# Fills in key, set and cost (with a reference each) and takes over the weight; 0, or why it is refused.
cdef uint8_t route(Core* core, Queue* queue, Command* command, Item* item, Building* b) noexcept nogil
# The same, where what a hook decided (NULL = nothing) doesn't travel with the item.
cdef uint8_t route_as(
    Core* core, Queue* queue, Command* command, Item* item, const Routing* hooked, Building* b) noexcept nogil
# Whether it could be routed, with nothing made or changed; 0, or why not.
cdef uint8_t route_check(Core* core, Queue* queue, Command* command, Item* item) noexcept nogil
# As a message without any headers: for one that must not be refused, whatever the settings say by now.
cdef void route_plainly(Core* core, Queue* queue, Building* b) noexcept nogil
