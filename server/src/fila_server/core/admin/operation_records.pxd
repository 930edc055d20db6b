"""Small records that operators' calls keep: versions of queues' settings, long operations. Kept here, and
understood in `fila_server.operations`.

    KEPT_CHANGE     {12 repeated: drop all whose keys begin so, 13 repeated: record {1 key, 2 value}}
                    -> empty, durable
    KEPT_READ       {1 keys that begin so, 2 below this key (empty: from the last), 3 at most so many}
                    -> {1 repeated: record {1 key, 2 value}}, in falling order of key

Fields 12 and 13 may also stand in the frames of CREATE_QUEUE, UPDATE_QUEUE and DELETE_QUEUE, which write them
in the batch of the change: the edge makes those frames anew, so no client can put them there. A record
without a value is deleted.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void kept_command(Core* core, Command* command) noexcept nogil
# What the frame says of kept records, in this pass's batch.
cdef void kept_put(Core* core, Command* command) noexcept nogil
