"""What the scheduler thread, which never waits for the disk, asks of the reader thread, which does.

The scheduler asks for frames by their place on disk, several at a time; the reader thread
fills them in and pokes the scheduler's mailbox. Answers carry the place, not a pointer to
a Frame: the frame may be gone when the bytes arrive.
"""

from libc.stdint cimport uint64_t

from fila_server.core.threads.locks cimport pthread_cond_t, pthread_mutex_t
from fila_server.core.threads.mailbox cimport Mailbox

cdef extern from *:
    struct Store "fila_store"               # storage/families

cdef struct Load "fila_load":
    Load*    next
    int      family
    uint64_t queue_number
    uint64_t first_offset
    char*    bytes                  # NULL = not there or damaged
    size_t   length
    int      status                 # a StoreStatus

cdef struct Loader "fila_loader":
    pthread_mutex_t lock
    pthread_cond_t  changed
    Load*    asked
    Load*    asked_last
    Load*    answered
    Load*    answered_last
    bint     stopping

cdef Loader* loader_new() noexcept nogil
cdef void loader_free(Loader* loader) noexcept nogil
cdef void loader_ask(Loader* loader, int family, uint64_t queue_number, uint64_t first_offset) noexcept nogil
# a list; the caller frees it and takes the bytes
cdef Load* loader_answers(Loader* loader) noexcept nogil
# Reads all that is asked for; returns how many. `wait`: sleep first while there is nothing.
cdef int loader_serve(Loader* loader, Store* store, Mailbox* mailbox, bint wait) noexcept nogil
cdef void loader_stop(Loader* loader) noexcept nogil
