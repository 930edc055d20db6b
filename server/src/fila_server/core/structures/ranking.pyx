"""A heap of the best so far whose root is the worst of them: most candidates cost one comparison."""


cdef void _sink(Ranked* rows, uint32_t count) noexcept nogil:
    """Put the topmost where it belongs."""
    cdef Ranked moved
    cdef uint32_t i = 0
    cdef uint32_t child
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and rows[child + 1].rank < rows[child].rank:
            child += 1
        if rows[i].rank <= rows[child].rank:
            break
        moved = rows[i]
        rows[i] = rows[child]
        rows[child] = moved
        i = child


cdef void keep_largest(
        Ranked* rows, uint32_t* count, uint32_t most, void* what, uint64_t rank) noexcept nogil:
    cdef uint32_t i, parent
    cdef Ranked moved
    if count[0] == most:
        if most and rank > rows[0].rank:
            rows[0].what, rows[0].rank = what, rank
            _sink(rows, most)
        return
    i = count[0]
    count[0] += 1
    rows[i].what, rows[i].rank = what, rank
    while i > 0:
        parent = (i - 1) // 2
        if rows[parent].rank <= rows[i].rank:
            break
        moved = rows[i]
        rows[i] = rows[parent]
        rows[parent] = moved
        i = parent


cdef void largest_first(Ranked* rows, uint32_t count) noexcept nogil:
    """Empties the min-heap from behind."""
    cdef Ranked moved
    while count > 1:
        count -= 1
        moved = rows[0]
        rows[0] = rows[count]
        rows[count] = moved
        _sink(rows, count)
