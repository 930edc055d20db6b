"""Pages of messages read without leasing or listed, and dead letters moved back where they came from.

A page is looked for in the log, a bounded piece a pass: what it is to show may stand at the far end of ten
million messages of others, and no delivery waits for that. Then it may have to wait for bytes that are cold.
From one pass to the next it keeps offsets, never pointers, so nothing it saw before can have gone stale.
"""

from fila_server.core.state.state cimport Core, Slot
from fila_server.core.threads.mailbox cimport Command

# PEEK_MESSAGES, LIST_PENDING, REDRIVE_MOVE; owns the command, or refuses it (False) where too many are under
# way.
cdef bint page_begin(Core* core, Command* command) noexcept nogil
cdef bint pages_turn(Core* core) noexcept nogil     # once a pass; True: some have more to look at
# What a message is doing, as GetMessageResponse.State has it; not of one that is done.
cdef int reported_state(Slot* slot) noexcept nogil
