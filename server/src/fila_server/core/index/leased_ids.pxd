"""Leases by message id, for acks that name the message and no lease.

Ids run on within a frame, so a message of its own frame is found by binary search. One that came from another
frame (dead-lettered, redriven, or rewritten) may stand anywhere: while it is leased, its lease is listed
here. A message that is not leased needs no search: there is nothing to settle.
"""

from libc.stdint cimport uint64_t

from fila_server.core.state.state cimport Channel, Core, Lease

# For leases of entries whose ids do not run on (frame.own_ids); remove does nothing for one that is not
# listed.
cdef void leased_id_add(Core* core, Lease* lease) noexcept nogil
cdef void leased_id_remove(Core* core, Lease* lease) noexcept nogil
# or NULL
cdef Lease* lease_by_message_id(Core* core, Channel* channel, uint64_t high, uint64_t low) noexcept nogil
