"""What the scheduler thread answers, to each thread that reads and writes sockets: a list of finished
answers, and an eventfd that tells its thread once, however many answers there are. A lock is held for a few
pointer moves.

Whose an answer is, its token says in the highest byte: 0 is the asyncio loop's, which is always there; the
others are opened before the scheduler starts. What the core tells by itself (events, notices) is for the
loop.
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t

from fila_server.core.structures.buffer cimport Buffer
from fila_server.core.threads.locks cimport pthread_mutex_t

cdef struct Out:
    uint64_t token
    int32_t  kind
    int32_t  status
    char*    payload
    size_t   length

cdef struct Outs:                   # answers, in order
    Out*     items
    uint32_t count
    uint32_t capacity

cdef struct Outbox "fila_outbox":
    pthread_mutex_t lock
    Outs     outs
    int      wake_fd
    bint     signalled

cdef enum:
    OUTBOXES_MAX = 17               # the loop's, and sixteen threads'
    TOKEN_OUTBOX_SHIFT = 56

cdef struct Outboxes "fila_outboxes":
    uint32_t count
    Outbox*  boxes[OUTBOXES_MAX]
    Outs     gathered[OUTBOXES_MAX] # the scheduler thread's own, until it hands them over

# Makes the loop's; False when the system has no descriptor for it (errno).
cdef bint outboxes_open(Outboxes* all) noexcept nogil
# One more; its number, or -1 (errno). Not while the scheduler runs.
cdef int outbox_add(Outboxes* all) noexcept nogil
cdef void outboxes_free(Outboxes* all) noexcept nogil
# Answers are gathered without any lock, and handed over together; the payload's bytes change owner.
cdef void outs_add(
    Outboxes* all, uint64_t token, int32_t kind, int32_t status, Buffer* payload) noexcept nogil
cdef void outboxes_put(Outboxes* all) noexcept nogil                       # hands over, and signals
# From another thread than the scheduler: one order for the box's owner, behind what is there. Its kind is
# none of ReplyKind.
cdef void outbox_order(
    Outbox* box, uint64_t token, int32_t kind, int32_t status, Buffer* payload) noexcept nogil
cdef void outs_forget(Outboxes* all) noexcept nogil                        # what was gathered and never left
# the caller frees outs and payloads
cdef uint32_t outbox_take(Outbox* box, Out** outs) noexcept nogil
