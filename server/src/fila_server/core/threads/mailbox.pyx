"""A list of commands under a lock. Posting wakes the scheduler only when as many wait as it asked for."""

from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.threads.locks cimport (
    pthread_cond_destroy, pthread_cond_signal, pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock,
    pthread_mutex_unlock,
)

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
    cdef char* copy = <char*> must_malloc(length)
    memcpy(copy, bytes, length)
    return command_adopt(kind, token, copy, length)


cdef Command* command_adopt(int32_t kind, uint64_t token, char* bytes, size_t length) noexcept nogil:
    cdef Command* command = <Command*> must_malloc(sizeof(Command))
    memset(command, 0, sizeof(Command))
    command.kind = kind
    command.token = token
    command.length = <uint32_t> length
    command.bytes = bytes
    return command


cdef void command_free(Command* command) noexcept nogil:
    cdef uint32_t i
    cdef HookRoutings* routings
    for i in range(command.count):
        free(command.items[i].options)
    free(command.items)
    free(command.stage)
    while command.routings != NULL:
        routings = command.routings
        command.routings = routings.next
        free(routings)
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
    if box.asleep and box.count >= box.wanted:
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
    if box.asleep:
        pthread_cond_signal(&box.changed)
    pthread_mutex_unlock(&box.lock)


cdef bint mailbox_sleep(Mailbox* box, int64_t wait_ns, uint32_t wanted) noexcept nogil:
    cdef bint something
    pthread_mutex_lock(&box.lock)
    if box.count < wanted and not box.poked and wait_ns > 0:
        box.wanted = wanted
        box.asleep = True
        fila_cond_wait(&box.changed, &box.lock, wait_ns)
        box.asleep = False
    something = box.first != NULL or box.poked
    pthread_mutex_unlock(&box.lock)
    return something
