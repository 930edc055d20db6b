"""Stage 3: consumers' answers. Before: deliver.pyx. What a failure leads to: failure.pyx.

    ack                        -> DONE
    nack, expired lease        -> attempts + 1, then the policy: READY, DELAYED, or a dead letter
    stream ended, not written, or a pull's answer that nobody awaited
                               -> READY at the old place; tokens, deficit and attempts as before
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from fila_server.core.buffer cimport Slice
from fila_server.core.mailbox cimport Command
from fila_server.core.state cimport Consumer, Core

cdef void settle(Core* core, Command* command) noexcept nogil            # ACK, NACK, their batches, EXTEND_LEASE
cdef void session_frame(Core* core, Consumer* consumer, Command* command) noexcept nogil
cdef void consumer_close(Core* core, Consumer* consumer, bint release) noexcept nogil
cdef void leases_return(Core* core, Command* command) noexcept nogil      # CANCEL with a Settle that names leases
