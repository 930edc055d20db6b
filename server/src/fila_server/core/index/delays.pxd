"""Moments that a message has of its own: when a delayed one
becomes ready, and when a time to live is over."""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.state.pending cimport Replacing
from fila_server.core.state.state cimport Core, Lease, Queue, Slot

# How long to set a timer for, in ns, for a moment this far off; `far` when that is only a step on the way to
# it. What fires without `far` is due, whatever the wall clock says by then: it may have been set back.
cdef int64_t timer_step_ns(int64_t wait_ms, bint* far) noexcept nogil
cdef void slot_delay(Core* core, Slot* slot, int64_t due_ms, int64_t left_ms) noexcept nogil
# The same for one that failed and keeps its place: its flow waits for it.
cdef void slot_delay_retry(Core* core, Slot* slot, int64_t due_ms, int64_t left_ms) noexcept nogil
# Its message replaces one that is leased, whose offset is `before`: it waits until that lease ends, and until
# its own delay is over if it has one already. In a second step it is told which lease that is.
cdef void slot_hold(Core* core, Slot* slot, uint64_t before) noexcept nogil
cdef void slot_hold_behind(Slot* slot, Lease* lease) noexcept nogil
# The lease is about to end, and has a successor: that one goes with this pass.
cdef void successor_goes(Core* core, Lease* lease) noexcept nogil
cdef void replacing_add(Core* core, const Replacing* replacing) noexcept nogil
# Its delay is over, or taken away: it is in no state until the caller gives it one at once.
cdef void slot_delay_end(Core* core, Slot* slot) noexcept nogil
cdef void expiry_add(
    Core* core, Queue* queue, uint64_t offset, int64_t expires_ms, int64_t left_ms) noexcept nogil
cdef bint message_is_over(Core* core, Slot* slot) noexcept nogil          # its time to live has passed
cdef void expiry_drop(Core* core, Queue* queue, uint64_t offset) noexcept nogil
