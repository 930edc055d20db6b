"""A call from its headers to its end: which of the kinds of calls is asked, whatever happens to it."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t

from fila_server.core.threads.outbox cimport Out
from fila_server.edge.grpc.submission cimport Received
from fila_server.edge.io.iothread cimport Call, Connection, IoThread

cdef Call* call_new(Connection* connection, int32_t stream_id) noexcept nogil
cdef void call_begin(Call* call) noexcept nogil                        # its headers are complete
cdef void call_message(Call* call, Received* message) noexcept nogil   # takes `owned`, or leaves it
cdef void call_half_closed(Call* call) noexcept nogil                  # and every message was taken
# Whether it can take no message just now; and whether it will never take one again.
cdef bint call_is_blocked(Call* call) noexcept nogil
cdef bint call_discards(Call* call) noexcept nogil
# So much of what it discards has come.
cdef void call_threw_away(Call* call, size_t length) noexcept nogil
cdef void call_retry(Call* call) noexcept nogil                        # what the mailbox refused
cdef void call_room(IoThread* io) noexcept nogil                       # those that wait for room for answers
cdef void call_expires(Call* call) noexcept nogil                      # its deadline has passed
cdef void call_input_ended(Call* call) noexcept nogil                  # its client will say nothing more
cdef void call_drains(Call* call) noexcept nogil
# Its stream is closed: nothing of it goes on. Freed at once, or when its line lets it go.
cdef void call_gone(Call* call) noexcept nogil
cdef void call_free(Call* call) noexcept nogil
cdef void input_free(Call* call) noexcept nogil                        # what was read and is of no use
# An answer of the core, or an order of Python's for a call. Takes the payload.
cdef void answer_take(IoThread* io, Out* answer) noexcept nogil
