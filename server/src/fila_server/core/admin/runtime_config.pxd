"""The runtime config: keys and values for hooks, and the throttles among them."""

from fila_server.core.protocol.protobuf cimport Fields
from fila_server.core.state.state cimport Core
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.threads.mailbox cimport Command

# in memory; recovery calls it too
cdef void config_apply(Core* core, Slice name, Slice value) noexcept nogil
cdef void config_set(Core* core, Command* command, Fields* fields) noexcept nogil
cdef void config_get(Core* core, Command* command, Fields* fields) noexcept nogil
cdef void config_list(Core* core, Command* command, Fields* fields) noexcept nogil
