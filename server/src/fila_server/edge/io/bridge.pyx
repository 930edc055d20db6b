from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from fila_server.core.structures.buffer cimport (
    Buffer, buffer_free, buffer_init, must_malloc, put_bytes, put_u32be,
)
from fila_server.core.threads.locks cimport pthread_mutex_lock, pthread_mutex_unlock
from fila_server.core.threads.mailbox cimport Command, command_free
from fila_server.edge.io.iothread cimport IoThread
from fila_server.edge.io.sockets cimport atomic_add, read

cdef extern from "<unistd.h>" nogil:
    ssize_t write(int fd, const void* at, size_t length)


cdef enum:
    CALLS_OFFERED_MAX = 1000        # the loop begins so many in some 50 ms
    SHARED_FROM = 500               # of them: from here on each connection has its share of the places
    SHARE = 16
    SHARE_NS = 100000000


cdef bint _had_its_share(Connection* connection, int64_t now_ns) noexcept nogil:
    """Without it one client that floods would take each place that becomes free, before any other."""
    if now_ns - connection.offers_ns >= SHARE_NS:
        connection.offers_ns = now_ns
        connection.offers = 0
    connection.offers += 1
    return connection.offers > SHARE


cdef bint offer_begin(Connection* connection) noexcept nogil:
    cdef IoThread* io = connection.thread
    cdef int64_t waiting = atomic_add(&io.common.calls_offered, 1)
    if waiting <= SHARED_FROM or (waiting <= CALLS_OFFERED_MAX and not _had_its_share(connection, io.now_ns)):
        return True
    atomic_add(&io.common.calls_offered, -1)
    return False


cdef void event_put(
        Common* common, int32_t what, uint64_t token, int64_t number, Command* command,
        Buffer* payload) noexcept nogil:
    cdef Event* event = <Event*> must_malloc(sizeof(Event))
    cdef uint64_t one = 1
    cdef bint signal
    event.next = NULL
    event.what = what
    event.token = token
    event.number = number
    event.command = command
    buffer_init(&event.bytes)
    if payload != NULL:
        event.bytes = payload[0]
        buffer_init(payload)
    pthread_mutex_lock(&common.lock)
    if common.first_event == NULL:
        common.first_event = event
    else:
        common.last_event.next = event
    common.last_event = event
    signal = not common.is_signalled
    common.is_signalled = True
    pthread_mutex_unlock(&common.lock)
    if signal:
        write(common.event_fd, &one, 8)


cdef void header_put(
        Buffer* to, const char* name, size_t name_length, const char* value, size_t length) noexcept nogil:
    put_u32be(to, <uint32_t> name_length)
    put_bytes(to, name, name_length)
    put_u32be(to, <uint32_t> length)
    put_bytes(to, value, length)


cdef Event* events_take(Common* common) noexcept nogil:
    cdef uint64_t drained
    cdef Event* first
    # Cleared before the list is taken: an event put in between signals again.
    read(common.event_fd, &drained, 8)
    pthread_mutex_lock(&common.lock)
    first = common.first_event
    common.first_event = common.last_event = NULL
    common.is_signalled = False
    pthread_mutex_unlock(&common.lock)
    return first


cdef void event_free(Event* event) noexcept nogil:
    if event.command != NULL:
        command_free(event.command)
    buffer_free(&event.bytes)
    free(event)
