"""LIST_CONSUMERS: who consumes a queue, and what each holds."""

from fila_server.core.mailbox cimport Command
from fila_server.core.state cimport Core, Queue
from fila_server.core.wire cimport Fields

cdef void roster(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil
