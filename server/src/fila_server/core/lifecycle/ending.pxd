"""How things end: a lease, a message in a channel, a frame on disk."""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.state.pending cimport LeaseRecord
from fila_server.core.state.state cimport Core, Frame, Lease, Share, Slot

# forget it; the slot's next state is the caller's
cdef void lease_end(Core* core, Lease* lease) noexcept nogil
# The same in two halves: what is in memory goes, and what is on disk stays until lease_forget.
cdef LeaseRecord lease_let_go(Core* core, Lease* lease) noexcept nogil
cdef void lease_forget(Core* core, LeaseRecord* kept) noexcept nogil
cdef void slot_detach(Core* core, Slot* slot) noexcept nogil           # out of fifo, delay, lease or decision
# DONE from any state, without a record of it
cdef void slot_stop(Core* core, Slot* slot) noexcept nogil
# DONE from any state, recorded with this pass
cdef void slot_done(Core* core, Slot* slot) noexcept nogil
# Its sender takes it back. True: a consumer had it, whose session is told.
cdef bint slot_cancel(Core* core, Slot* slot) noexcept nogil
# It gives way to a later message of its dedup key; nobody has it.
cdef void slot_replaced(Core* core, Slot* slot) noexcept nogil
cdef void entry_unwanted(Core* core, Frame* frame, uint32_t index) noexcept nogil
# its SETTLED record goes with this pass
cdef void share_dirty(Core* core, Share* share) noexcept nogil
# its bytes can't be read: counted, dropped
cdef void frame_lost(Core* core, Frame* frame) noexcept nogil
cdef void settled_flush(Core* core) noexcept nogil                       # this pass's bitmaps and deletions
cdef Slot* slot_at(Core* core, uint64_t queue_number, uint64_t channel_number, uint64_t offset) noexcept nogil
