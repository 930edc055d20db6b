"""The scheduler thread's one door out: a list of finished answers, and an eventfd that tells the I/O
loop once, however many answers there are. The lock is held for a few pointer moves.
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t

from fila_server.core.doors.locks cimport pthread_mutex_t
from fila_server.core.structures.buffer cimport Buffer

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

cdef struct Outbox:
    pthread_mutex_t lock
    Outs     outs
    int      wake_fd
    bint     signalled

cdef Outbox* outbox_new() noexcept nogil
cdef void outbox_free(Outbox* box) noexcept nogil
# Answers are gathered without any lock, and handed over together; the payload's bytes change owner.
cdef void outs_add(Outs* outs, uint64_t token, int32_t kind, int32_t status, Buffer* payload) noexcept nogil
cdef void outbox_put(Outbox* box, Outs* outs) noexcept nogil               # empties `outs`, and signals
cdef void outs_free(Outs* outs) noexcept nogil
# the caller frees outs and payloads
cdef uint32_t outbox_take(Outbox* box, Out** outs) noexcept nogil
