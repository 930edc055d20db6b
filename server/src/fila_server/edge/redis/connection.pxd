"""A client of the Redis protocol: what comes is carried out in order, what is owed leaves in that order.

    socket ──► decoder ──► item ──► request_start ──► [known][awaited][known] ──► out buffer ──► socket
                             └── waits while what runs must be finished first

Everything is bounded: what is started, by replies and bytes; what is not, by leaving it in the decoder and no
longer reading from the socket; replies, by making none while the socket has not taken the last ones, and all
clients' together by the budget of unread answers; what one client may start in a turn of the thread.

Python knows each by a token from its first moment, says whether it may stay and who it is, and carries out
every command that no message passes (redis_client.py).
"""

from libc.stddef cimport size_t

from fila_server.core.threads.outbox cimport Out
from fila_server.edge.io.iothread cimport Connection, IoThread, TokenEntry

cdef void redis_open(Connection* connection) noexcept nogil
cdef void redis_shaken(Connection* connection) noexcept nogil          # nothing is encrypted, or all is
cdef void redis_received(Connection* connection, const char* data, size_t length) noexcept nogil
cdef void redis_input_ended(Connection* connection) noexcept nogil
# The socket has taken what there was. False: the connection is over.
cdef bint redis_flushed(Connection* connection) noexcept nogil
cdef void redis_look(Connection* connection) noexcept nogil            # once a second
# Answer what runs, end a read that waits, and close: the thread leaves, or the client's key is gone.
cdef void redis_end(Connection* connection) noexcept nogil
cdef void redis_close(Connection* connection) noexcept nogil           # frees all that makes it one
# Rights have changed: a read that waits is over when the right to it is gone.
cdef void redis_judge(Connection* connection) noexcept nogil
# An answer of the core, or an order of Python's. Takes the payload.
cdef void redis_take(IoThread* io, TokenEntry* entry, Out* answer) noexcept nogil
cdef void redis_again(IoThread* io) noexcept nogil                     # who stands in line
