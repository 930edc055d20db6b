"""Changes by an administrator that touch every message of a queue, carried out in pieces between passes.

A purge of a queue of millions would stop everybody for as long as it takes. So it is noted as a chore, each
pass does a piece of it, and it is answered when the last piece is durable. It means what was visible when it
was called: messages that come later stay. Each piece is in the batch of its pass, so a crash in between
leaves a part purged and the caller without an answer; calling again finishes it.

Chores take turns, a piece each. A second change to the same queue (purge, seek, a channel made or deleted,
deletion) waits until the first is done and is carried out then, in the order of arrival.
"""

from fila_server.core.state.state cimport Core, Queue
from fila_server.core.threads.mailbox cimport Command

# True: something is being done to the queue and the command waits for it; owned until it is handed out again.
cdef bint chore_waits(Core* core, Queue* queue, Command* command) noexcept nogil
# PURGE_QUEUE, PURGE_CHANNEL; owns it
cdef void purge_begin(Core* core, Queue* queue, Command* command) noexcept nogil
# A channel of it was deleted or starts anew: what that one held is taken apart in pieces, and further changes
# to the queue wait for that. Nothing else is being done to the queue.
cdef void remains_begin(Core* core, Queue* queue) noexcept nogil
# A stage: a piece of each. True: there is more. Commands whose turn has come are put in front of the mailbox.
cdef bint chores_turn(Core* core) noexcept nogil
cdef void chores_forget(Core* core) noexcept nogil                       # the core is closed
