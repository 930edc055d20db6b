"""An intrusive pairing heap by a 64-bit rank, for things in order of position that come and go in the middle.

    root ---child---> a ---next---> b ---next---> c        prev of a is root, of b is a, of c is b
                      |
                      child ...

The root pointer is the heap: no header, no allocation, 40 bytes inside the owner. Inserting is O(1), removing
O(log n) amortised; the first removal after n inserts pairs up to n children once.
"""

from libc.stdint cimport int64_t

cdef struct HeapNode:
    HeapNode* child            # first child
    HeapNode* next             # next sibling
    HeapNode* prev             # previous sibling; the parent when first child; NULL at the root
    int64_t   rank             # smallest at the root; not to be changed while in_heap
    bint      in_heap


cdef HeapNode* heap_insert(HeapNode* root, HeapNode* node) noexcept nogil  # the new root; root may be NULL
# the new root; node may be the root
cdef HeapNode* heap_remove(HeapNode* root, HeapNode* node) noexcept nogil
