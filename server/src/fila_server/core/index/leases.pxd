"""Leases: the one record of those in a frame sent, with the marks of what became of each, and a list by
message id.

A LEASES record says which messages a frame held. While some of it are held, others may have been begun, or
have come back; two bits a lease say so. They are written once a pass, unsynced as the lease's own record:
`kill -9` keeps them, a power cut may forget a mark and never invents one. All goes when the last lease of the
frame has ended.
"""

from libc.stdint cimport int64_t, uint64_t, uint8_t

from fila_server.core.state.pending cimport LeaseGroup
from fila_server.core.state.state cimport Channel, Core, Lease

cdef enum LeaseMark:
    MARK_BEGUN = 1
    MARK_RETURNED = 2

# The newest of its channel's: groups are made in the order of the moments at which their leases began.
cdef LeaseGroup* group_new(
    Channel* channel, uint64_t first_lease_id, uint64_t consumer, int64_t leased_ms) noexcept nogil
cdef void groups_unlink(Channel* channel) noexcept nogil             # of a channel that is about to be freed
cdef void group_mark(Core* core, LeaseGroup* group, uint64_t lease_id, uint8_t mark) noexcept nogil
cdef void group_leave(Core* core, LeaseGroup* group) noexcept nogil      # one lease fewer
cdef void groups_flush(Core* core) noexcept nogil                        # this pass's marks
cdef inline uint8_t mark_at(const uint8_t* marks, uint64_t index) noexcept nogil:
    return marks[index >> 2] >> (2 * (index & 3)) & 3


# --- leases by message id --------------------------------------------------------------------
# Leases by message id, for acks that name the message and no lease.
#
# Ids run on within a frame, so a message of its own frame is found by binary search. One that came from
# another frame (dead-lettered, redriven, or rewritten) may stand anywhere: while it is leased, its lease is
# listed here. A message that is not leased needs no search: there is nothing to settle.

cdef inline uint64_t id_cell(uint64_t high, uint64_t low) noexcept nogil:
    """Where an id stands in a table of ids; others may stand there, too."""
    return low ^ (high * <uint64_t> 0x9E3779B97F4A7C15)

# For leases of entries whose ids do not run on (frame.own_ids); remove does nothing for one that is not
# listed.
cdef void leased_id_add(Core* core, Lease* lease) noexcept nogil
cdef void leased_id_remove(Core* core, Lease* lease) noexcept nogil
# or NULL
cdef Lease* lease_by_message_id(Core* core, Channel* channel, uint64_t high, uint64_t low) noexcept nogil
