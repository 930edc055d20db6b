"""To the scheduler's mailbox: what may be refused, and what must not be lost."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint64_t

from fila_server.edge.io.iothread cimport IoThread

cdef enum:
    FIRST_THREAD = 1                # tells the core for all

# Without an answer and never lost: WRITTEN, CONSUMER_CLOSE, CANCEL. While the mailbox is full they stand in a
# line of the thread's: at most two and one a consumer, and one a pull.
cdef void post_surely(
    IoThread* io, int32_t kind, uint64_t token, const char* bytes, size_t length) noexcept nogil
cdef void post_again(IoThread* io) noexcept nogil
# The sockets have been read up to now. The core hears of it when that is true of every thread: a consumer
# counts as silent only while it could have been heard.
cdef void post_listened(IoThread* io) noexcept nogil
# Before a sleep without a connection: nobody's silence is this thread's fault, so its word is not waited for.
cdef void post_deaf(IoThread* io) noexcept nogil
