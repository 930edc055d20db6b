"""Stage 2: ready messages go to consumers with room. Before: enqueue.pyx. Next: settle.pyx.

The ring says whose turn it is, the buckets whether that key may go now, the consumer whether
it has room; a message leaves only when all three agree. What is picked together is one
Delivery: one lease record, one frame to the consumer (sending.pxd). Where some bytes are
cold it waits for the reader thread, in the consumer's order, so fairness is never bent by the disk.
"""

from libc.stdint cimport uint32_t

from fila_server.core.state.state cimport Consumer, Core

cdef enum:
    MESSAGES_PER_FRAME_MAX = 512

# every channel with work, in turn, bounded
cdef void deliver_ready(Core* core) noexcept nogil
cdef uint32_t consumer_fill(Core* core, Consumer* consumer, uint32_t budget) noexcept nogil
# False: so many ids are not promised on disk yet
cdef bint leases_reserve(Core* core, uint32_t count) noexcept nogil
cdef uint32_t consumer_room(Consumer* consumer) noexcept nogil
