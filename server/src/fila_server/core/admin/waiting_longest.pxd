"""Who waits longest? WAITING_LONGEST_PAGE: one part of one queue's keys, so that a million stop nobody.

The edge asks part after part, with the cursor of the answer before, and keeps the longest waits of all parts.
A table that has grown in between is begun anew: what is told twice the edge knows by its name.

KEY_POLICIES is the same walk over what operators set for single keys, or tells it of one that is named.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void waiting_longest_command(Core* core, Command* command) noexcept nogil
