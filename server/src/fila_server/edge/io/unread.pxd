"""One budget for answers that their clients have not read yet, over all connections of all threads.

What is owed to a stream is small; what all are owed together fills the memory. So an answer of some size is
counted from the moment the core gave it until the socket has it. broker/unwritten.py counts those of the
asyncio loop, tells them here, and asks for these.

A connection may have as many of them as are still free: one that reads nothing has half of the budget at
most, two a third each, and the rest is for those who read. (Dynamic thresholds: Choudhury and Hahne,
IEEE/ACM Transactions on Networking 6(2), 1998, with alpha 1.)
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t

from fila_server.edge.io.iothread cimport COUNTED_FROM_BYTES, Common, Connection
from fila_server.edge.io.sockets cimport atomic_add, atomic_load

cdef inline int64_t unread_total(Common* common) noexcept nogil:
    return atomic_load(&common.unread_bytes) + atomic_load(&common.elsewhere_bytes)

cdef inline bint unread_has_room(Connection* connection, size_t size) noexcept nogil:
    cdef Common* common = connection.thread.common
    cdef int64_t held = unread_total(common)
    # One that is larger than the whole budget goes when it is alone.
    return (
        size < COUNTED_FROM_BYTES or held == 0
        or held + connection.unread_bytes + <int64_t> size <= common.unread_bytes_max
    )

cdef inline bint unread_is_refused(Common* common) noexcept nogil:
    """For calls whose answers are counted but must not be refused: they are refused before, at twice the
    budget."""
    return unread_total(common) >= 2 * common.unread_bytes_max

cdef inline uint32_t unread_add(Connection* connection, size_t size) noexcept nogil:
    """What was counted: `unread_give` takes it back."""
    if size < COUNTED_FROM_BYTES:
        return 0
    connection.unread_bytes += <int64_t> size
    atomic_add(&connection.thread.common.unread_bytes, <int64_t> size)
    return <uint32_t> size

cdef inline void unread_give(Connection* connection, uint32_t counted) noexcept nogil:
    if counted:
        connection.unread_bytes -= <int64_t> counted
        atomic_add(&connection.thread.common.unread_bytes, -<int64_t> counted)
