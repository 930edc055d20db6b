"""The calls that get messages (pulls, consumers, sessions), and what becomes of those that nobody will read.

The core lets two deliveries of a consumer be unwritten, and a delivery is reported WRITTEN when the socket
has taken its last byte. So a window or a socket that is shut reaches the scheduler as "no room".
"""

from libc.stdint cimport int32_t

from fila_server.core.threads.outbox cimport Out
from fila_server.edge.grpc.submission cimport Received
from fila_server.edge.io.iothread cimport Call, IoThread

cdef void pull_message(Call* call, Received* message) noexcept nogil
cdef void consumer_message(Call* call, Received* message) noexcept nogil
cdef void session_half_closed(Call* call) noexcept nogil
cdef void session_retry(Call* call) noexcept nogil                     # its refused command
cdef void consumer_answer(Call* call, Out* answer) noexcept nogil      # takes the payload
cdef void consumer_drains(Call* call) noexcept nogil
cdef void consumer_gone(Call* call) noexcept nogil
# Its caller has lost the right to it: it ends now, and what it holds is pending again at once.
cdef void consumer_revoked(Call* call, int32_t code, const char* why, const char* reason) noexcept nogil
# Its client has closed its side of the connection: who waits for messages may be gone.
cdef void consumer_input_ended(Call* call) noexcept nogil
# An answer whose pull is gone: its messages are given back. Takes the payload.
cdef void pull_answer_unread(IoThread* io, Out* answer) noexcept nogil
# There may be room again for what is not read: pulls ask again, consumers get deliveries again.
cdef void consumer_room(Call* call) noexcept nogil
cdef bint consumer_waits_for_room(const Call* call) noexcept nogil
