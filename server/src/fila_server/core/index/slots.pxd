"""States of a message in a channel, and every count that changes with them."""

from fila_server.core.state.state cimport Core, Slot

cdef void slot_ready(Core* core, Slot* slot, bint old_place) noexcept nogil      # from any state but READY
# out of its fifo; the caller sets a state at once
cdef void slot_unready(Core* core, Slot* slot) noexcept nogil
# pending, and in no fifo yet
cdef void slot_unplaced(Slot* slot) noexcept nogil
cdef void slot_count(Core* core, Slot* slot, int state) noexcept nogil           # the change of state itself
