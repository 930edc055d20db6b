"""STATES: what a message is in a channel that no plain pending one is (records.pxd has its form)."""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.state.state cimport Channel, Core, Slot

cdef enum:                          # STATES: what the message is
    STATE_READY = 0                 # behind a certain offset
    STATE_DELAYED = 1
    STATE_RETURNED = 2              # where it always was; format 1 has none of these
    STATE_RETRY = 3                 # it failed where keys are in order: it stands where its offset says
    STATE_IN_PLACE = 4              # it replaced another one, and stands where that one stood
    STATE_HELD = 5                  # it replaces one that is leased, and waits for the end of that lease
    VERSION_PLACED = 2              # of the record: it stands where another one stood

cdef void state_record_ready(
    Core* core, Slot* slot, uint64_t base, uint64_t seq, uint64_t last_lease) noexcept nogil
cdef void state_record_delayed(Core* core, Slot* slot, int64_t delay_ms, uint64_t last_lease) noexcept nogil
cdef void state_record_retry(Core* core, Slot* slot, int64_t delay_ms, uint64_t last_lease) noexcept nogil
cdef void state_record_returned(Core* core, Slot* slot, uint64_t last_lease) noexcept nogil
# It stands where that message stood, whose place it has in Channel.places.
cdef void state_record_in_place(Core* core, Slot* slot) noexcept nogil
cdef void state_record_held(Core* core, Slot* slot, uint64_t before) noexcept nogil
cdef void state_record_delete(Core* core, Slot* slot) noexcept nogil
# Where a message stands that is about to end, or be leased no more, for the one that takes its place: the
# offset whose record tells it, which is kept until that one gives the place up.
cdef uint64_t place_taken(Slot* slot) noexcept nogil
cdef void place_given_up(Core* core, Channel* channel, uint64_t place) noexcept nogil
