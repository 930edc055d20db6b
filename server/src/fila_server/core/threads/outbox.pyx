"""A pass gathers its answers in lists of its own and hands each over at its end, with the lock held for a
swap of pointers or one copy. The eventfd is written only when its thread has taken all that was told
before."""

from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.protocol.commands cimport END
from fila_server.core.structures.buffer cimport must_malloc, must_realloc
from fila_server.core.threads.locks cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)

cdef extern from "<unistd.h>" nogil:
    ssize_t write(int fd, const void* buf, size_t count)
    ssize_t read(int fd, void* buf, size_t count)
    int close(int fd)

cdef extern from "<sys/eventfd.h>" nogil:
    int eventfd(unsigned int initval, int flags)
    enum: EFD_NONBLOCK
    enum: EFD_CLOEXEC


cdef bint outboxes_open(Outboxes* all) noexcept nogil:
    memset(all, 0, sizeof(Outboxes))
    return outbox_add(all) == 0


cdef int outbox_add(Outboxes* all) noexcept nogil:
    cdef Outbox* box
    cdef int wake_fd
    if all.count == OUTBOXES_MAX:
        return -1
    wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
    if wake_fd < 0:
        return -1
    box = <Outbox*> must_malloc(sizeof(Outbox))
    memset(box, 0, sizeof(Outbox))
    pthread_mutex_init(&box.lock, NULL)
    box.wake_fd = wake_fd
    all.boxes[all.count] = box
    all.count += 1
    return all.count - 1


cdef void outboxes_free(Outboxes* all) noexcept nogil:
    cdef uint32_t i
    outs_forget(all)
    for i in range(all.count):
        _outs_free(&all.boxes[i].outs)
        close(all.boxes[i].wake_fd)
        pthread_mutex_destroy(&all.boxes[i].lock)
        free(all.boxes[i])
    all.count = 0


cdef void outs_forget(Outboxes* all) noexcept nogil:
    cdef uint32_t i
    for i in range(all.count):
        _outs_free(&all.gathered[i])


cdef void _outs_free(Outs* outs) noexcept nogil:
    cdef uint32_t i
    for i in range(outs.count):
        free(outs.items[i].payload)
    free(outs.items)
    outs.items = NULL
    outs.count = outs.capacity = 0


cdef void _reserve(Outs* outs, uint32_t more) noexcept nogil:
    if outs.count + more > outs.capacity:
        outs.capacity = max(outs.capacity * 2 + 64, outs.count + more)
        outs.items = <Out*> must_realloc(outs.items, outs.capacity * sizeof(Out))


cdef void outs_add(
        Outboxes* all, uint64_t token, int32_t kind, int32_t status, Buffer* payload) noexcept nogil:
    cdef uint32_t number = <uint32_t> (token >> TOKEN_OUTBOX_SHIFT) if kind <= END else 0
    _add(&all.gathered[number if number < all.count else 0], token, kind, status, payload)


cdef void _add(Outs* outs, uint64_t token, int32_t kind, int32_t status, Buffer* payload) noexcept nogil:
    cdef Out* out
    _reserve(outs, 1)
    out = &outs.items[outs.count]
    outs.count += 1
    out.token = token
    out.kind = kind
    out.status = status
    out.payload = payload.data
    out.length = payload.length
    payload.data = NULL
    payload.length = payload.capacity = 0


cdef void outbox_order(
        Outbox* box, uint64_t token, int32_t kind, int32_t status, Buffer* payload) noexcept nogil:
    cdef uint64_t one = 1
    cdef bint signal
    pthread_mutex_lock(&box.lock)
    _add(&box.outs, token, kind, status, payload)
    signal = not box.signalled
    box.signalled = True
    pthread_mutex_unlock(&box.lock)
    if signal:
        write(box.wake_fd, &one, 8)


cdef void outboxes_put(Outboxes* all) noexcept nogil:
    cdef uint32_t i
    for i in range(all.count):
        if all.gathered[i].count:
            _put(all.boxes[i], &all.gathered[i])


cdef void _put(Outbox* box, Outs* outs) noexcept nogil:
    cdef uint64_t one = 1
    cdef Outs empty
    cdef bint signal
    pthread_mutex_lock(&box.lock)
    if box.outs.count == 0:             # the list itself changes hands
        empty = box.outs
        box.outs = outs[0]
        outs[0] = empty
    else:
        _reserve(&box.outs, outs.count)
        memcpy(&box.outs.items[box.outs.count], outs.items, outs.count * sizeof(Out))
        box.outs.count += outs.count
        outs.count = 0
    signal = not box.signalled
    box.signalled = True
    pthread_mutex_unlock(&box.lock)
    if signal:
        write(box.wake_fd, &one, 8)


cdef uint32_t outbox_take(Outbox* box, Out** outs) noexcept nogil:
    cdef uint64_t drained
    cdef uint32_t count
    # Cleared before the list is taken: an answer added in between signals again.
    read(box.wake_fd, &drained, 8)
    pthread_mutex_lock(&box.lock)
    box.signalled = False
    outs[0] = box.outs.items
    count = box.outs.count
    memset(&box.outs, 0, sizeof(Outs))
    pthread_mutex_unlock(&box.lock)
    return count
