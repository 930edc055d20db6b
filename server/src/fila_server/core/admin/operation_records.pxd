"""Small records that operators' calls keep: versions of queues' settings, long operations. Kept here, and
understood in `fila_server.operations`.

    KEPT_CHANGE     KeptChange: `prefixes`, drop all records whose keys begin so; `records` -> empty, durable
    KEPT_READ       KeptPage: keys that begin with `prefix` and are below `below` (empty: from the last), at
                    most `most` of them -> KeptRecords, in falling order of key

A KeptChange may also stand in the frames of CREATE_QUEUE, UPDATE_QUEUE and DELETE_QUEUE, which write it in
the batch of the change: the edge makes those frames anew, so no client can put it there. A record without a
value is deleted.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void kept_command(Core* core, Command* command) noexcept nogil
# What the frame says of kept records, in this pass's batch.
cdef void kept_put(Core* core, Command* command) noexcept nogil
