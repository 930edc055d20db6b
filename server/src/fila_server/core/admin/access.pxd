"""Keys, grants and the record of what admins did: kept here, understood in `fila_server.access` and
`fila_server.operations`.

    ACCESS_CHANGE   {1 repeated: record {1 key, 2 value}, 2 the marker, 3 whether all there is goes first,
                    14 for the audit} -> empty, once durable
    ACCESS_READ     empty -> {1 repeated: record {1 key, 2 value}, 2 META's copy of the marker}
    AUDIT_READ      {1 below this number (0 = from the newest), 2 at most so many}
                    -> {1 repeated: record {1 number, 2 wall clock in ms, 3 what}}, newest first

A record without a value is deleted. The marker is written to ACCESS and to META, in the batch of the change.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void access_command(Core* core, Command* command) noexcept nogil
# At the start: where the numbers of the audit go on.
cdef void audit_recover(Core* core) noexcept nogil
