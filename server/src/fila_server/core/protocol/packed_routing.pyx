"""Read by the layout that hooks/packed.py writes; a wrong length ends the reading."""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from fila_server.core.structures.buffer cimport read_u64be, take_slice


cdef Slice _take_key(Cursor* c) noexcept nogil:
    cdef Slice length = take_slice(c, 2)
    if c.bad:
        return length
    return take_slice(c, (<uint64_t> <uint8_t> length.at[0] << 8) | <uint8_t> length.at[1])


cdef void take_routing(Cursor* c, Routing* routing) noexcept nogil:
    cdef Slice head = take_slice(c, ROUTING_HEAD_BYTES)
    cdef uint64_t cost
    cdef uint32_t i
    if c.bad:
        return
    routing.given = <uint8_t> head.at[0]
    routing.throttle_count = <uint8_t> head.at[1]
    routing.weight = (<uint32_t> <uint8_t> head.at[2] << 8) | <uint8_t> head.at[3]
    cost = read_u64be(head.at + 4)
    memcpy(&routing.cost, &cost, 8)
    routing.fairness_key = _take_key(c)
    if routing.throttle_count > ROUTING_THROTTLE_KEYS_MAX:
        c.bad = True
        return
    for i in range(routing.throttle_count):
        routing.throttle[i] = _take_key(c)
