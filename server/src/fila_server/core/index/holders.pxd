"""Whose consumers hold leases: a principal's messages in flight, over all queues, and their bound.

    holder_join     a consumer opens: its principal's holder, made where there is none
    holder_takes    a message is given to one of its consumers; holder_loses: that lease ends, however it does
    holder_stop     a consumer has no room for the bound alone, or came or gave a lease back while others had
                    none: it stands in a circle and is given nothing; when there is room again those of the
                    circle are looked at once more, in turn (holders_wake)

A holder lives as long as a consumer or a lease points to it, or refusals are untold. What was leased before a
restart is nobody's, until a session resumes with it.
"""

from libc.stdint cimport UINT32_MAX, uint32_t

from fila_server.core.protocol.protobuf cimport Fields
from fila_server.core.state.pending cimport Holder
from fila_server.core.state.state cimport Consumer, Core, Lease

# Whose it is: the number of its principal (0: nobody's), and how many leases that may have (0: no bound).
# Both stand behind what its client sent, where requests/rights put them (an Opener).
cdef void holder_join(Core* core, Consumer* consumer, const Fields* opening) noexcept nogil
cdef void holder_leave(Core* core, Consumer* consumer) noexcept nogil
# Each is at liberty to be called for nobody's.
cdef void holder_takes(Holder* holder, Lease* lease) noexcept nogil
cdef void holder_loses(Core* core, Lease* lease) noexcept nogil
cdef void holder_moves(Core* core, Lease* lease, Holder* holder) noexcept nogil
cdef void holder_stop(Consumer* consumer) noexcept nogil
cdef void holder_unstop(Consumer* consumer) noexcept nogil             # it is not looked at any more
# A stage: where there is room again, who stopped longest ago first, as many a pass as may take something.
# True: there is more.
cdef bint holders_wake(Core* core) noexcept nogil
cdef void holder_bound(Core* core, Holder* holder, uint32_t most) noexcept nogil
cdef void holder_reported(Core* core, Holder* holder) noexcept nogil   # its refusals

cdef inline uint32_t holder_room(const Holder* holder) noexcept nogil:
    """How many more leases its consumers may have."""
    if holder == NULL or holder.most == 0:
        return UINT32_MAX
    return holder.most - <uint32_t> holder.in_flight if holder.in_flight < holder.most else 0

# --- whose a lease is: it stands on its consumer's list, the newest first; of a pull's lease nothing does
cdef inline void lease_link(Consumer* consumer, Lease* lease) noexcept nogil:
    lease.consumer = consumer
    lease.prev = NULL
    lease.next = consumer.leases
    if lease.next != NULL:
        lease.next.prev = lease
    consumer.leases = lease
    consumer.in_flight += 1
    consumer.begun += lease.begun

# It keeps its word `consumer`; its place in a delivery is given up too.
cdef void lease_unlink(Lease* lease) noexcept nogil
