"""What stands in the heap has itself for a
neighbour, and its node where its other one would be."""

from libc.stdlib cimport free

from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.heap cimport heap_insert, heap_remove

cdef struct Returned:
    HeapNode node                   # first
    Placed*  placed


cdef void fifo_append(Fifo* fifo, Placed* placed) noexcept nogil:
    placed.next = NULL
    placed.prev = fifo.tail
    if fifo.tail != NULL:
        fifo.tail.next = placed
    else:
        fifo.head = placed
    fifo.tail = placed


cdef void fifo_return(Fifo* fifo, Placed* placed) noexcept nogil:
    cdef Returned* returned
    if fifo.tail == NULL or fifo.tail.position < placed.position:
        fifo_append(fifo, placed)
    elif placed.position < fifo.head.position:
        placed.prev = NULL
        placed.next = fifo.head
        fifo.head.prev = placed
        fifo.head = placed
    else:
        returned = <Returned*> must_malloc(sizeof(Returned))
        returned.placed = placed
        returned.node.rank = placed.position
        placed.next = placed
        placed.prev = <Placed*> returned
        fifo.returned = heap_insert(fifo.returned, &returned.node)


cdef void fifo_remove(Fifo* fifo, Placed* placed) noexcept nogil:
    cdef Returned* returned
    if placed.next == placed:
        returned = <Returned*> placed.prev
        fifo.returned = heap_remove(fifo.returned, &returned.node)
        free(returned)
        placed.next = placed.prev = NULL
        return
    if placed.prev != NULL:
        placed.prev.next = placed.next
    else:
        fifo.head = placed.next
    if placed.next != NULL:
        placed.next.prev = placed.prev
    else:
        fifo.tail = placed.prev
    placed.next = placed.prev = NULL


cdef Placed* fifo_returned_first(Fifo* fifo) noexcept nogil:
    cdef Placed* returned
    if fifo.returned == NULL:
        return fifo.head
    returned = (<Returned*> fifo.returned).placed
    return fifo.head if fifo.head != NULL and fifo.head.position < returned.position else returned


cdef void fifo_moved(Fifo* fifo, Placed* before, Placed* placed) noexcept nogil:
    if before.next == before:
        placed.next = placed
        (<Returned*> placed.prev).placed = placed
        return
    if placed.prev != NULL:
        placed.prev.next = placed
    else:
        fifo.head = placed
    if placed.next != NULL:
        placed.next.prev = placed
    else:
        fifo.tail = placed
