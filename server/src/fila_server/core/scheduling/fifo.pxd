"""Ready messages of one flow, or of one of its sub-queues, in the order of their positions.

    head ─► slot ─► slot ─► slot ◄─ tail          new messages: positions only grow, so each goes to the end
    returned ─► heap by position                   given back to an old place that is neither front nor end

The first of both is the one that goes next. A message comes back when its delivery was never written or its
holder let it go; tens of thousands may at once, in any order, and each costs the logarithm of those that came
back.
"""

from fila_server.core.state.state cimport Fifo, Slot

cdef void fifo_append(Fifo* fifo, Slot* slot) noexcept nogil             # its position is above all others'
cdef void fifo_return(Fifo* fifo, Slot* slot) noexcept nogil             # anywhere, by its position
cdef void fifo_remove(Fifo* fifo, Slot* slot) noexcept nogil
cdef Slot* fifo_returned_first(Fifo* fifo) noexcept nogil
# The slot was copied from `before`: whoever points at that one points at this one.
cdef void fifo_moved(Fifo* fifo, Slot* before, Slot* slot) noexcept nogil

cdef inline Slot* fifo_first(Fifo* fifo) noexcept nogil:
    """The lowest position; NULL when there is none."""
    return fifo.head if fifo.returned == NULL else fifo_returned_first(fifo)
