"""SetLimit, DeleteLimit, ListLimits, ResetLimit; and limits as they are found on the disk.

A limit of an exact name and the short form throttle.<name> are one record (runtime_config.pxd): whichever is
set, the other says the same.
"""

from fila_server.core.protocol.protobuf cimport Fields
from fila_server.core.state.state cimport Core
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.threads.mailbox cimport Command

cdef void limit_command(Core* core, Command* command, Fields* fields) noexcept nogil
# A record of BUCKETS, behind all of CONFIG.
cdef void limit_recover(Core* core, Slice name, Slice record) noexcept nogil
