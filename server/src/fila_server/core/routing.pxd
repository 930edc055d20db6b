"""What a message is shared and limited by: fairness key, weight, cost, throttle keys."""

from libc.stdint cimport uint8_t, uint32_t

from fila_server.core.buffer cimport Cursor, Slice
from fila_server.core.mailbox cimport Command
from fila_server.core.state cimport Building, Core, Queue
from fila_server.core.wire cimport Item

cdef enum:
    ROUTING_THROTTLE_KEYS_MAX = 16

    GIVEN_FAIRNESS_KEY = 1
    GIVEN_WEIGHT = 2
    GIVEN_COST = 4
    GIVEN_THROTTLE_KEYS = 8

cdef struct Routing:                # what a hook decided about a message
    uint8_t  given                  # the rest is for the queue's settings
    uint8_t  throttle_count
    uint32_t weight
    double   cost
    Slice    fairness_key
    Slice    throttle[16]

# A packed routing (parsed_frame.pyx has the layout).
cdef void take_routing(Cursor* c, Routing* routing) noexcept nogil

# Fills in key, set and cost (with a reference each) and takes over the weight; 0, or why it is refused.
cdef uint8_t route(Core* core, Queue* queue, Command* command, Item* item, Building* b) noexcept nogil
# The same, where what a hook decided (NULL = nothing) doesn't travel with the item.
cdef uint8_t route_as(
    Core* core, Queue* queue, Command* command, Item* item, const Routing* hooked, Building* b) noexcept nogil
