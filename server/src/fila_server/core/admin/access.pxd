"""Keys, grants and the record of what admins did: kept here, understood in `fila_server.access` and
`fila_server.operations`.

    ACCESS_CHANGE   AccessChange; with `anew`, all there is goes first -> empty, once durable
    ACCESS_READ     empty -> AccessChange, with META's copy of the marker
    AUDIT_READ      AuditPage: below this number (0 = from the newest), at most so many
                    -> AuditRecords, newest first

A record without a value is deleted. The marker is written to ACCESS and to META, in the batch of the change.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void access_command(Core* core, Command* command) noexcept nogil
# At the start: where the numbers of the audit go on.
cdef void audit_recover(Core* core) noexcept nogil
