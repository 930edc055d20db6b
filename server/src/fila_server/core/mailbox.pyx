"""See mailbox.pxd."""

from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.buffer cimport must_malloc, must_realloc
from fila_server.core.wire cimport Options

cdef extern from "<pthread.h>" nogil:
    int pthread_mutex_init(pthread_mutex_t*, const void*)
    int pthread_mutex_destroy(pthread_mutex_t*)
    int pthread_mutex_lock(pthread_mutex_t*)
    int pthread_mutex_unlock(pthread_mutex_t*)
    int pthread_cond_destroy(pthread_cond_t*)
    int pthread_cond_signal(pthread_cond_t*)

cdef extern from "<unistd.h>" nogil:
    ssize_t write(int fd, const void* buf, size_t count)
    ssize_t read(int fd, void* buf, size_t count)
    int close(int fd)

cdef extern from "<sys/eventfd.h>" nogil:
    int eventfd(unsigned int initval, int flags)
    enum: EFD_NONBLOCK
    enum: EFD_CLOEXEC

cdef extern from *:
    """
    #include <pthread.h>
    #include <time.h>
    static void fila_cond_init(pthread_cond_t *cond) {
        pthread_condattr_t attr;
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(cond, &attr);
        pthread_condattr_destroy(&attr);
    }
    /* Waits for a length of time, so no moment has to be known: the caller stays free of clocks. */
    static void fila_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, long long wait_ns) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += wait_ns / 1000000000LL;
        until.tv_nsec += wait_ns % 1000000000LL;
        if (until.tv_nsec >= 1000000000L) { until.tv_sec += 1; until.tv_nsec -= 1000000000L; }
        pthread_cond_timedwait(cond, lock, &until);
    }
    """
    void fila_cond_init(pthread_cond_t* cond) nogil
    void fila_cond_wait(pthread_cond_t* cond, pthread_mutex_t* lock, long long wait_ns) nogil


cdef Command* command_new(int32_t kind, uint64_t token, const char* bytes, size_t length) noexcept nogil:
    cdef Command* command = <Command*> must_malloc(sizeof(Command))
    memset(command, 0, sizeof(Command))
    command.kind = kind
    command.token = token
    command.length = <uint32_t> length
    command.bytes = <char*> must_malloc(length)
    memcpy(command.bytes, bytes, length)
    return command


cdef void command_free(Command* command) noexcept nogil:
    cdef uint32_t i
    cdef Decided* decided
    for i in range(command.count):
        free(command.items[i].options)
    free(command.items)
    while command.decided != NULL:
        decided = command.decided
        command.decided = decided.next
        free(decided)
    free(command.bytes)
    free(command)


cdef Mailbox* mailbox_new(uint32_t capacity) noexcept nogil:
    cdef Mailbox* box = <Mailbox*> must_malloc(sizeof(Mailbox))
    memset(box, 0, sizeof(Mailbox))
    pthread_mutex_init(&box.lock, NULL)
    fila_cond_init(&box.changed)
    box.capacity = capacity
    return box


cdef void mailbox_free(Mailbox* box) noexcept nogil:
    cdef Command* command = box.first
    cdef Command* following
    while command != NULL:
        following = command.next
        command_free(command)
        command = following
    pthread_cond_destroy(&box.changed)
    pthread_mutex_destroy(&box.lock)
    free(box)


cdef bint mailbox_post(Mailbox* box, Command* command) noexcept nogil:
    pthread_mutex_lock(&box.lock)
    if box.count >= box.capacity:
        box.refused += 1
        pthread_mutex_unlock(&box.lock)
        return False
    command.next = NULL
    if box.last == NULL:
        box.first = command
    else:
        box.last.next = command
    box.last = command
    box.count += 1
    if box.parked and box.count >= box.wanted:
        pthread_cond_signal(&box.changed)
    pthread_mutex_unlock(&box.lock)
    return True


cdef Command* mailbox_take(Mailbox* box, uint32_t most) noexcept nogil:
    cdef Command* first
    cdef Command* last
    cdef uint32_t taken = 1
    pthread_mutex_lock(&box.lock)
    first = box.first
    if first != NULL:
        last = first
        while taken < most and last.next != NULL:
            last = last.next
            taken += 1
        box.first = last.next
        if box.first == NULL:
            box.last = NULL
        last.next = NULL
        box.count -= taken
    box.poked = False
    pthread_mutex_unlock(&box.lock)
    return first


cdef void mailbox_poke(Mailbox* box) noexcept nogil:
    pthread_mutex_lock(&box.lock)
    box.poked = True
    if box.parked:
        pthread_cond_signal(&box.changed)
    pthread_mutex_unlock(&box.lock)


cdef bint mailbox_park(Mailbox* box, int64_t wait_ns, uint32_t wanted) noexcept nogil:
    cdef bint something
    pthread_mutex_lock(&box.lock)
    if box.count < wanted and not box.poked and wait_ns > 0:
        box.wanted = wanted
        box.parked = True
        fila_cond_wait(&box.changed, &box.lock, wait_ns)
        box.parked = False
    something = box.first != NULL or box.poked
    pthread_mutex_unlock(&box.lock)
    return something


cdef Outbox* outbox_new() noexcept nogil:
    cdef Outbox* box = <Outbox*> must_malloc(sizeof(Outbox))
    memset(box, 0, sizeof(Outbox))
    pthread_mutex_init(&box.lock, NULL)
    box.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
    return box


cdef void outbox_free(Outbox* box) noexcept nogil:
    outs_free(&box.outs)
    close(box.wake_fd)
    pthread_mutex_destroy(&box.lock)
    free(box)


cdef void outs_free(Outs* outs) noexcept nogil:
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


cdef void outs_add(Outs* outs, uint64_t token, int32_t kind, int32_t status, Buffer* payload) noexcept nogil:
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


cdef void outbox_put(Outbox* box, Outs* outs) noexcept nogil:
    cdef uint64_t one = 1
    cdef Outs empty
    cdef bint signal
    if outs.count == 0:
        return
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
