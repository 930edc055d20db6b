"""Now and then: retention, rewriting frames that few messages pin, the disk's floor, expired messages."""

from fila_server.core.state.pending cimport Expiry
from fila_server.core.state.state cimport Core

cdef void housekeeping(Core* core) noexcept nogil
cdef void message_expired(Core* core, Expiry* expiry) noexcept nogil
