"""What is kept of a column never comes behind what it is taken from, so a column is its own place."""

from libc.stdint cimport int32_t, uint32_t, uint64_t, uint8_t

from fila_server.core.history.decisions cimport (
    ACKED, DELAYED_FOR, DELIVERED, EXPIRED, NACKED, RELEASED, RETURNED,
)
from fila_server.core.threads.blocks cimport Block

ctypedef fused Element:
    int32_t
    uint64_t


cdef inline bint _says(uint8_t kind, int what) noexcept nogil:
    """Whether rows of a kind have this list."""
    if what <= LISTED_ATTEMPTS:
        return True
    if what == LISTED_HELD:
        return (
            kind == RELEASED or kind == RETURNED or kind == NACKED or kind == EXPIRED or kind == DELAYED_FOR
            or kind == ACKED
        )
    return kind == DELIVERED


cdef void _gather(Lists* lists, const Block* b, int what, Element* column) noexcept nogil:
    cdef int32_t* begins = lists.begins[what]
    cdef uint32_t row, i, first, end
    cdef uint32_t to = 0
    cdef Element unlike, one
    begins[0] = 0
    for row in range(b.runs):
        first, end = <uint32_t> b.begins[row], <uint32_t> b.begins[row + 1]
        if first < end and _says(b.kind[row], what):
            one = column[first]
            unlike = 0
            for i in range(first, end):
                unlike |= column[i] ^ one
            column[to] = one
            to += 1
            if unlike:
                for i in range(first + 1, end):
                    column[to] = column[i]
                    to += 1
        begins[row + 1] = <int32_t> to


cdef void lists_gather(Lists* lists, Block* block) noexcept nogil:
    _gather(lists, block, LISTED_COST, block.cost)
    _gather(lists, block, LISTED_ATTEMPTS, block.attempts)
    _gather(lists, block, LISTED_HELD, block.held_ms)
    _gather(lists, block, LISTED_NO_CONSUMER, block.wait_no_consumer_ms)
    _gather(lists, block, LISTED_SHARE, block.wait_share_ms)
    _gather(lists, block, LISTED_THROTTLE, block.wait_throttle_ms)
    _gather(lists, block, LISTED_DELAY, block.wait_delay_ms)
    _gather(lists, block, LISTED_WAIT_HELD, block.wait_held_ms)
