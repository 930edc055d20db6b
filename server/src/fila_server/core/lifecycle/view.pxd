"""A message as a delivery or a peek shows it."""

from libc.stdint cimport uint64_t

from fila_server.core.protocol.protobuf cimport View
from fila_server.core.state.state cimport Core, Slot

cdef void message_view(Core* core, Slot* slot, View* view) noexcept nogil
cdef uint64_t message_bytes(Slot* slot) noexcept nogil            # at most this many, on the wire
