"""How long one message waited and why, for the history: the clocks' readings when its wait began, against
now.

The same causes as in clocks.pxd, a message at a time. A slot's readings stand behind the slots of its share,
and only where a history is recorded: then a pending message costs 20 bytes more. Apart from the clocks, so
that what reads these need not know the history's blocks.
"""

from fila_server.core.state.state cimport Core, Flow, Slot, Subqueue
from fila_server.core.threads.blocks cimport Waited

cdef void wait_begins(Core* core, Slot* slot, Flow* flow, Subqueue* sub, bint was_delayed) noexcept nogil
cdef void wait_delayed(Core* core, Slot* slot) noexcept nogil               # it waits for its time first
cdef Waited wait_of(Core* core, Slot* slot, Flow* flow, Subqueue* sub) noexcept nogil

# --- what a bucket holds: told once a message when it begins, and once when it ends
cdef void sub_gains(Core* core, Slot* slot, Subqueue* sub) noexcept nogil   # it stands in `sub` now
cdef void sub_loses(Core* core, Slot* slot, Subqueue* sub) noexcept nogil   # it still does
cdef void sub_is_held(Core* core, Subqueue* sub) noexcept nogil             # it began to wait for its bucket
