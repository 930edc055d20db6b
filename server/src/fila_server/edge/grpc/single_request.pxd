"""The one message of a call that takes one: kept until the client says that no other follows.

Such a call runs at its END_STREAM, as gRPC has it: with a second message it is refused, and nothing was done.
The message mostly lies where it was read when the end comes, and is not copied; else it is kept, and counted
with the half-read ones.
"""

from fila_server.edge.grpc.submission cimport Received
from fila_server.edge.io.iothread cimport Call, IoThread

cdef void single_put(Call* call, Received* message) noexcept nogil     # takes `owned`
# The call's message; the caller frees `owned`.
cdef void single_take(Call* call, Received* message) noexcept nogil
cdef void single_free(Call* call) noexcept nogil
# The bytes being read will not be there any more: what lies in them is copied.
cdef void single_keep(IoThread* io) noexcept nogil
