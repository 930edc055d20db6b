"""The `most` largest of many in one pass over them, whatever their
number: a min-heap that the larger push out of."""

from libc.stdint cimport uint32_t, uint64_t

cdef struct Ranked:
    void*    what
    uint64_t rank

cdef void keep_largest(Ranked* rows, uint32_t* count, uint32_t most, void* what, uint64_t rank) noexcept nogil
cdef void largest_first(Ranked* rows, uint32_t count) noexcept nogil       # at the end: sorted
