"""Stage 3: leases end, by ack, nack, expiry or return, and messages come back, wait, die or go.

    ack                        -> DONE
    nack, expired lease        -> attempts + 1, then the policy: READY, DELAYED, or a dead letter
    stream ended, not written  -> READY at the old place; tokens, deficit and attempts as before
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from fila_server.core.buffer cimport Slice
from fila_server.core.mailbox cimport Command
from fila_server.core.state cimport Channel, Consumer, Core, Frame, Lease, Queue, Slot

cdef void settle(Core* core, Command* command) noexcept nogil            # ACK, NACK, their batches, EXTEND_LEASE
cdef void session_frame(Core* core, Consumer* consumer, Command* command) noexcept nogil
cdef void consumer_close(Core* core, Consumer* consumer, bint release) noexcept nogil

cdef void lease_expired(Core* core, Lease* lease) noexcept nogil
cdef void lease_end(Core* core, Lease* lease) noexcept nogil             # forget it; the slot's next state is the caller's
cdef void lease_return(Core* core, Lease* lease) noexcept nogil          # as if it had never been given
cdef void slot_done(Core* core, Slot* slot) noexcept nogil               # from any state
cdef void slot_stop(Core* core, Slot* slot) noexcept nogil               # the same, without a record of it
cdef void entry_unwanted(Core* core, Frame* frame, uint32_t index) noexcept nogil
cdef Slot* slot_at(Core* core, uint64_t queue_number, uint64_t channel_number, uint64_t offset) noexcept nogil
cdef void dead_letters_loaded(Core* core) noexcept nogil
cdef void keep_until_written(Core* core, char* bytes) noexcept nogil
cdef void slot_fail(Core* core, Slot* slot, Slice error, int64_t delay_ms, uint64_t last_lease) noexcept nogil
cdef void slot_retry(Core* core, Slot* slot, int64_t delay_ms, uint64_t last_lease) noexcept nogil
cdef void slot_dead_letter(Core* core, Slot* slot, const char* reason, Slice error) noexcept nogil
cdef void frame_lost(Core* core, Frame* frame) noexcept nogil            # its bytes can't be read: counted, dropped
cdef void settled_flush(Core* core) noexcept nogil                       # this pass's bitmaps and deletions
