"""A slot that stands in the heap has itself for a
neighbour, and its node where its other one would be."""

from libc.stdlib cimport free

from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.heap cimport HeapNode, heap_insert, heap_remove

cdef struct Returned:
    HeapNode node                   # first
    Slot*    slot


cdef void fifo_append(Fifo* fifo, Slot* slot) noexcept nogil:
    slot.next = NULL
    slot.prev = fifo.tail
    if fifo.tail != NULL:
        fifo.tail.next = slot
    else:
        fifo.head = slot
    fifo.tail = slot


cdef void fifo_return(Fifo* fifo, Slot* slot) noexcept nogil:
    cdef Returned* returned
    if fifo.tail == NULL or fifo.tail.position < slot.position:
        fifo_append(fifo, slot)
    elif slot.position < fifo.head.position:
        slot.prev = NULL
        slot.next = fifo.head
        fifo.head.prev = slot
        fifo.head = slot
    else:
        returned = <Returned*> must_malloc(sizeof(Returned))
        returned.slot = slot
        returned.node.rank = slot.position
        slot.next = slot
        slot.prev = <Slot*> returned
        fifo.returned = heap_insert(fifo.returned, &returned.node)


cdef void fifo_remove(Fifo* fifo, Slot* slot) noexcept nogil:
    cdef Returned* returned
    if slot.next == slot:
        returned = <Returned*> slot.prev
        fifo.returned = heap_remove(fifo.returned, &returned.node)
        free(returned)
        slot.next = slot.prev = NULL
        return
    if slot.prev != NULL:
        slot.prev.next = slot.next
    else:
        fifo.head = slot.next
    if slot.next != NULL:
        slot.next.prev = slot.prev
    else:
        fifo.tail = slot.prev
    slot.next = slot.prev = NULL


cdef Slot* fifo_returned_first(Fifo* fifo) noexcept nogil:
    cdef Slot* returned
    if fifo.returned == NULL:
        return fifo.head
    returned = (<Returned*> fifo.returned).slot
    return fifo.head if fifo.head != NULL and fifo.head.position < returned.position else returned


cdef void fifo_moved(Fifo* fifo, Slot* before, Slot* slot) noexcept nogil:
    if before.next == before:
        slot.next = slot
        (<Returned*> slot.prev).slot = slot
        return
    if slot.prev != NULL:
        slot.prev.next = slot
    else:
        fifo.head = slot
    if slot.next != NULL:
        slot.next.prev = slot
    else:
        fifo.tail = slot
