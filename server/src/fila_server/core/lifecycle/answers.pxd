"""What leaves the core, and when: once the pass is written, or once its epoch is durable.

    this pass ──► passing ──► unsynced, for its epoch ──► outgoing ──► a frame is seen, an answer leaves
                         └──────────────────────────────►    │
                                                             └──► the queue's line, behind a frame that needs
                                                                  more than one stage: for a thousand channels

Everything leaves in one order, but for that: a producer of a queue with many channels waits for them,
and nobody else does. A batch for several queues is answered when the one with most channels has it.
"""

from libc.stdint cimport int32_t, uint64_t

from fila_server.core.state.state cimport Body, Core, Effect, Frame, Queue
from fila_server.core.structures.buffer cimport Buffer
from fila_server.core.threads.mailbox cimport Command

# Each takes the payload's bytes over. `durable`: not before this pass's epoch is synced.
cdef void answer(Core* core, uint64_t token, int32_t status, Buffer* payload, bint durable) noexcept nogil
cdef void answer_enqueued(Core* core, Command* command, Buffer* payload) noexcept nogil   # behind its frames
cdef void answer_status(
    Core* core, uint64_t token, int32_t status, const char* message, const char* reason) noexcept nogil
# What an admin's command did is recorded with this pass; `answer` calls it where the command succeeded.
cdef void answer_audited(Core* core) noexcept nogil
# What the table of rights' verdict says: NOT_FOUND as for a queue that never was, or PERMISSION_DENIED.
cdef void answer_refused(Core* core, Command* command) noexcept nogil
cdef void answer_no_queue(Core* core, Command* command) noexcept nogil         # NOT_FOUND, by name
cdef void answer_no_channel(Core* core, Command* command) noexcept nogil       # and names those there are
cdef void emit(
    Core* core, uint64_t token, int32_t kind, int32_t status, Buffer* payload, bint durable) noexcept nogil
cdef void reveal_later(Core* core, Frame* frame, bint durable) noexcept nogil
# An answer that tells of the broker itself and of nothing that it holds: a group's owner may say it at once.
cdef void answer_at_once(Core* core, uint64_t token, Buffer* payload) noexcept nogil
# Whether anything of this pass is to leave that is not said at once.
cdef bint answers_tell(Core* core) noexcept nogil
# In a group the store has another version of these bytes until the log has this pass: they stay in memory.
cdef void body_stays(Core* core, Body* body) noexcept nogil
# The pass is written: what waits for the disk too lines up behind its epoch.
cdef void answers_written(Core* core) noexcept nogil
# The pass is held back, but for what the disk refused of it: of what was added behind `last` (NULL: of all),
# answers that wait for no epoch line up. They say that nothing was stored, so they promise nothing.
cdef void refusals_written(Core* core, Effect* last) noexcept nogil
# What epochs up to `durable` allow to leave, lines up.
cdef void answers_durable(Core* core, uint64_t durable) noexcept nogil
# A stage: answers leave and frames become visible, in one order. An outbox is locked only when its are
# handed over.
cdef void answers_leave(Core* core) noexcept nogil
# A stage: queues whose frames need longer take turns. True: there is more.
cdef bint reveals_turn(Core* core) noexcept nogil
# A queue is deleted: its frames that were to become visible are gone; their places in the lines stay, empty.
cdef void answers_forget(Core* core, Queue* queue) noexcept nogil
# The frame goes while only some of its channels have it.
cdef void reveal_ends(Core* core, Frame* frame) noexcept nogil
