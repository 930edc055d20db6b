"""The leases a payload brings, so that what nobody will read can be given back: pending again, no attempt
counted."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint32_t

from fila_server.core.structures.buffer cimport Buffer
from fila_server.edge.io.iothread cimport IoThread

# Writes a Settle that names them, the last first: each finds its old place in front of the one that was given
# before it. `kind` is that of the request: LEASE, CONSUME_OPEN or SESSION_OPEN. How many there are.
cdef uint32_t leases_settle(Buffer* to, const char* payload, size_t length, int32_t kind) noexcept nogil
# Gives them back.
cdef void leases_give_back(IoThread* io, const char* payload, size_t length, int32_t kind) noexcept nogil
