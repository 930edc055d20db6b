"""What stands in the order of positions and comes and goes in the middle: ready messages of one flow or of
one of its sub-queues, and a channel's cohorts, whose position is a moment.

    head ─► placed ─► placed ─► placed ◄─ tail     what is new: positions only grow, so each goes to the end
    returned ─► heap by position                   given back to an old place that is neither front nor end

The first of both is the one that goes next. A message comes back when its delivery was never written or its
holder let it go; tens of thousands may at once, in any order, and each costs the logarithm of those that came
back.
"""

from libc.stdint cimport int64_t

from fila_server.core.structures.heap cimport HeapNode

cdef struct Placed:                 # the first part of what stands in a Fifo
    Placed*  next                   # neighbours
    Placed*  prev
    int64_t  position

cdef struct Fifo:
    Placed   *head, *tail
    HeapNode* returned              # given back to places in the middle

cdef void fifo_append(Fifo* fifo, Placed* placed) noexcept nogil         # its position is below no other's
cdef void fifo_return(Fifo* fifo, Placed* placed) noexcept nogil         # anywhere, by its position
cdef void fifo_remove(Fifo* fifo, Placed* placed) noexcept nogil
cdef Placed* fifo_returned_first(Fifo* fifo) noexcept nogil
# `placed` was copied from `before`: its neighbours point at the copy from now on.
cdef void fifo_moved(Fifo* fifo, Placed* before, Placed* placed) noexcept nogil

cdef inline Placed* fifo_first(Fifo* fifo) noexcept nogil:
    """The lowest position; NULL when there is none."""
    return fifo.head if fifo.returned == NULL else fifo_returned_first(fifo)
