"""Small records that operators' calls keep: versions of queues' settings, long operations. Kept here, and
understood in `fila_server.operations`.

    OPERATION_RECORDS_CHANGE  `prefixes`, drop all records whose keys begin so; `records` -> empty, durable
    OPERATION_RECORDS_READ    keys that begin with `prefix` and are below `below` (empty: from the last), at
                              most `most` of them -> OperationRecords, in falling order of key

An OperationRecordsChange may also stand in the frames of CREATE_QUEUE, UPDATE_QUEUE and DELETE_QUEUE. They
write it in the batch of the change: the edge makes those frames anew, so no client can put it there. A record
without a value is deleted.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void operation_records_command(Core* core, Command* command) noexcept nogil
# What the frame says of kept records, in this pass's batch.
cdef void operation_records_put(Core* core, Command* command) noexcept nogil
