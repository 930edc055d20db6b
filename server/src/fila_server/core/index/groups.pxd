"""The leases of one frame sent: their one record, and beside it the marks of what became of each.

A LEASES record says which messages a frame held. While some of it are held, others may have been begun, or
have come back; two bits a lease say so. They are written once a pass, unsynced as the lease's own record:
`kill -9` keeps them, a power cut may forget a mark and never invents one. All goes when the last lease of the
frame has ended.
"""

from libc.stdint cimport uint64_t, uint8_t

from fila_server.core.state.pending cimport LeaseGroup
from fila_server.core.state.state cimport Core

cdef enum LeaseMark:
    MARK_BEGUN = 1
    MARK_RETURNED = 2

cdef LeaseGroup* group_new(
    uint64_t queue_number, uint64_t channel_number, uint64_t first_lease_id, uint64_t consumer) noexcept nogil
cdef void group_mark(Core* core, LeaseGroup* group, uint64_t lease_id, uint8_t mark) noexcept nogil
cdef void group_leave(Core* core, LeaseGroup* group) noexcept nogil      # one lease fewer
cdef void groups_flush(Core* core) noexcept nogil                        # this pass's marks
cdef inline uint8_t mark_at(const uint8_t* marks, uint64_t index) noexcept nogil:
    return marks[index >> 2] >> (2 * (index & 3)) & 3
