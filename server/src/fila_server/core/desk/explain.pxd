"""Why is this key late? EXPLAIN_KEY, answered from what stands in memory, whatever the number of keys.

Walks that could be long are cut: the sub-queues of one key, the places before it in a bucket's line, the
consumers of a channel, and the timers among which the key's next delay is looked for.
"""

from fila_server.core.doors.mailbox cimport Command
from fila_server.core.state.state cimport Core, Queue
from fila_server.core.wire.protobuf cimport Fields

cdef void explain_key(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil
