"""LIST_CONSUMERS: who consumes a queue, and what each holds."""

from fila_server.core.protocol.protobuf cimport Fields
from fila_server.core.state.state cimport Core, Queue
from fila_server.core.threads.mailbox cimport Command

cdef void roster_command(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil
