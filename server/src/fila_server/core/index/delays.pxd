"""Moments that a message has of its own: when a delayed one
becomes ready, and when a time to live is over."""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.state.state cimport Core, Queue, Slot

# How long to set a timer for, in ns, for a moment this far off; `far` when that is only a step on the way to
# it. What fires without `far` is due, whatever the wall clock says by then: it may have been set back.
cdef int64_t timer_step_ns(int64_t wait_ms, bint* far) noexcept nogil
cdef void slot_delay(Core* core, Slot* slot, int64_t due_ms, int64_t left_ms) noexcept nogil
# The same for one that failed and keeps its place: its flow waits for it.
cdef void slot_delay_retry(Core* core, Slot* slot, int64_t due_ms, int64_t left_ms) noexcept nogil
# Its delay is over, or taken away: it is in no state until the caller gives it one at once.
cdef void slot_delay_end(Core* core, Slot* slot) noexcept nogil
cdef void expiry_add(
    Core* core, Queue* queue, uint64_t offset, int64_t expires_ms, int64_t left_ms) noexcept nogil
cdef bint message_is_over(Core* core, Slot* slot) noexcept nogil          # its time to live has passed
cdef void expiry_drop(Core* core, Queue* queue, uint64_t offset) noexcept nogil
