"""A message as a delivery or a peek shows it."""

from fila_server.core.state cimport Core, Slot
from fila_server.core.wire cimport View

cdef void message_view(Core* core, Slot* slot, View* view) noexcept nogil
