"""Stage 2: ready messages go to consumers with room. Before: enqueue.pyx. Next: settle.pyx.

The ring says whose turn it is, the buckets whether that key may go now, the consumer whether
it has room; a message leaves only when all three agree. What is picked together is one
Delivery: one lease record, one frame to the consumer. Where some bytes are cold the Delivery
waits for the reader thread, in the consumer's order, so fairness is never bent by the disk.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.state cimport Channel, Consumer, Core, Delivery, Frame, Slot
from fila_server.core.wire cimport View

cdef void deliver(Core* core) noexcept nogil                              # every channel with work, in turn, bounded
cdef uint32_t consumer_fill(Core* core, Consumer* consumer, uint32_t budget) noexcept nogil
cdef uint32_t consumer_room(Consumer* consumer) noexcept nogil
cdef void deliveries_loaded(Core* core) noexcept nogil                    # what the reader thread brought
cdef void frame_want(Core* core, Frame* frame) noexcept nogil             # ask for a cold frame, once
cdef void consumer_free(Core* core, Consumer* consumer) noexcept nogil
cdef void delivery_free(Core* core, Delivery* delivery) noexcept nogil
cdef void pull_answer(Core* core, Consumer* consumer) noexcept nogil      # a pull whose time is over: nothing
