"""Messages that a call names by id or dedup key: CANCEL_MESSAGES takes them back, GET_MESSAGE says of one
where it is.

Where ids run on from a frame's first, the place of an id is arithmetic. A message that came from another
frame (dead-lettered, redriven, rewritten) may stand anywhere. While it is leased it is listed by its id;
otherwise the frames of such messages are walked over, for all ids of a call together and a bounded piece a
pass. So ids that nobody knows cost one walk a call, and none in a queue without such frames.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

# True: it is answered. False: it looks for its messages, and owns the command.
cdef bint lookup_begin(Core* core, Command* command) noexcept nogil
cdef bint lookups_turn(Core* core) noexcept nogil     # once a pass; True: some have more to look at
cdef void lookups_forget(Core* core) noexcept nogil   # the core is closed
