"""What a hook decided about a message, as it travels from the hook to
the core: packed into bytes, and taken apart.

parsed_frame.pyx has the layout.
"""

from libc.stdint cimport uint32_t, uint8_t

from fila_server.core.structures.buffer cimport Cursor, Slice

cdef enum:
    ROUTING_THROTTLE_KEYS_MAX = 16

    GIVEN_FAIRNESS_KEY = 1
    GIVEN_WEIGHT = 2
    GIVEN_COST = 4
    GIVEN_THROTTLE_KEYS = 8

    ROUTING_HEAD_BYTES = 12             # before the fairness key
    ROUTING_BYTES_MAX = ROUTING_HEAD_BYTES + 17 * (2 + 0xFFFF)

cdef struct Routing:                # what a hook decided about a message
    uint8_t  given                  # the rest is for the queue's settings
    uint8_t  throttle_count
    uint32_t weight
    double   cost
    Slice    fairness_key
    Slice    throttle[16]

# A packed routing (parsed_frame.pyx has the layout).
cdef void take_routing(Cursor* c, Routing* routing) noexcept nogil
