"""From bytes of DATA frames to messages: length prefixes, halves, compression,
and the windows that are given back.

What a call has taken is given back to its stream's window at once, also in the middle of a message: a message
larger than the window must get through. What it cannot take just now is kept, and its window with it, so that
its client stops. The connection's window is given back in any case, or one slow stream would stop all others,
until so much is kept that the connection as a whole must stop.

A thread inflates one message at a time, some of it a turn: clients that compress wait for each other, in the
order in which they came, and nobody else waits for them.
"""

from libc.stddef cimport size_t

from fila_server.edge.io.iothread cimport Call, Connection, IoThread

cdef void intake_bytes(Call* call, const char* at, size_t length) noexcept nogil
# A turn begins: some more of the message that is being inflated.
cdef void intake_turn(IoThread* io) noexcept nogil
# It may be able to take what was kept.
cdef void intake_again(Call* call) noexcept nogil
# The client has half-closed: told to the call once it has taken everything before.
cdef void intake_end(Call* call) noexcept nogil
# Nobody wants these bytes.
cdef void intake_discard(Connection* connection, int stream_id, size_t length) noexcept nogil
