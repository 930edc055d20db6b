"""Dead letters moved back where they came from, a page at a time (peek.pxd finds them)."""

from fila_server.core.protocol.protobuf cimport Fields
from fila_server.core.state.search cimport Search
from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef bint redrive_wants(Core* core, Command* command, Fields* fields, Search* search) noexcept nogil
cdef void redrive_page(Core* core, Command* command, Fields* fields, Search* search) noexcept nogil
