"""The pairing heap. Nothing here recurses: a heap of a million
siblings must not need a million stack frames."""

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free


cdef inline HeapNode* _meld(HeapNode* a, HeapNode* b) noexcept nogil:
    """Make the larger root the first child of the smaller. Of equals the first stays on top."""
    cdef HeapNode* swap
    if b.rank < a.rank:
        swap = a
        a = b
        b = swap
    b.next = a.child
    if a.child != NULL:
        a.child.prev = b
    b.prev = a
    a.child = b
    a.next = NULL
    a.prev = NULL
    return a


cdef HeapNode* _meld_siblings(HeapNode* first) noexcept nogil:
    """Make one heap of a list of siblings: in pairs from the left, then the pairs from the right.

    The pairs are chained backwards through `prev` while they are made, so the way back needs no stack.
    """
    cdef HeapNode* pairs = NULL
    cdef HeapNode* a
    cdef HeapNode* b
    cdef HeapNode* root
    while first != NULL:
        a = first
        b = a.next
        if b == NULL:
            first = NULL
            a.next = NULL
        else:
            first = b.next
            a = _meld(a, b)
        a.prev = pairs
        pairs = a
    root = pairs
    if root == NULL:
        return NULL
    pairs = root.prev
    root.prev = NULL
    while pairs != NULL:
        a = pairs
        pairs = a.prev
        root = _meld(a, root)
    return root


cdef HeapNode* heap_insert(HeapNode* root, HeapNode* node) noexcept nogil:
    node.child = NULL
    node.next = NULL
    node.prev = NULL
    node.in_heap = True
    return node if root == NULL else _meld(root, node)


cdef HeapNode* heap_remove(HeapNode* root, HeapNode* node) noexcept nogil:
    cdef HeapNode* children = _meld_siblings(node.child)
    if node == root:
        root = children
    else:
        if node.prev.child == node:              # first child: prev is the parent
            node.prev.child = node.next
        else:
            node.prev.next = node.next
        if node.next != NULL:
            node.next.prev = node.prev
        if children != NULL:
            root = _meld(root, children)
    node.child = NULL
    node.next = NULL
    node.prev = NULL
    node.in_heap = False
    return root


cdef class RankHeap:
    """A heap of nodes numbered from 0, for tests and benchmarks."""

    cdef HeapNode* root
    cdef HeapNode* nodes
    cdef uint32_t node_count

    def __cinit__(self, uint32_t node_count):
        self.root = NULL
        self.node_count = node_count
        self.nodes = <HeapNode*>calloc(max(node_count, 1), sizeof(HeapNode))
        if self.nodes == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.nodes)

    cdef HeapNode* _node(self, uint32_t number) except NULL:
        if number >= self.node_count:
            raise IndexError(f"node {number} of {self.node_count}")
        return &self.nodes[number]

    def insert(self, uint32_t number, int64_t rank):
        cdef HeapNode* node = self._node(number)
        if node.in_heap:
            raise ValueError(f"node {number} is in the heap")
        node.rank = rank
        self.root = heap_insert(self.root, node)

    def remove(self, uint32_t number):
        cdef HeapNode* node = self._node(number)
        if not node.in_heap:
            raise ValueError(f"node {number} is not in the heap")
        self.root = heap_remove(self.root, node)

    def first(self):
        return None if self.root == NULL else <int64_t>(self.root - self.nodes)

    def in_heap(self, uint32_t number):
        return bool(self._node(number).in_heap)

    def spin(self, int64_t passes):
        """Move the first to the back, `passes` times in one call."""
        cdef HeapNode* node
        cdef int64_t back = self.node_count
        with nogil:
            for _ in range(passes):
                node = self.root
                if node == NULL:
                    break
                self.root = heap_remove(self.root, node)
                node.rank += back
                self.root = heap_insert(self.root, node)
