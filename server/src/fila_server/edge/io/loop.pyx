from libc.errno cimport errno
from libc.stddef cimport size_t
from libc.stdint cimport INT64_MAX, int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset, strlen

from fila_server.core.structures.buffer cimport Buffer, buffer_free, buffer_init, must_malloc, put_bytes
from fila_server.core.structures.timers cimport Timer, timers_free, timers_init, timers_next, timers_pop_due
from fila_server.core.threads.mailbox cimport Command, command_free
from fila_server.core.threads.outbox cimport Out, Outboxes, outbox_order, outbox_take
from fila_server.edge.grpc.calls cimport answer_take, call_drains, call_expires, call_free, call_room
from fila_server.edge.grpc.intake cimport intake_again, intake_turn
from fila_server.edge.grpc.session cimport session_leave, session_prepare, session_unprepare
from fila_server.edge.io.bridge cimport (
    EVENT_STOPPED, ORDER_CONNECTION, ORDER_DRAIN, ORDER_LISTEN, ORDER_REDIS_CONNECTION, ORDER_REDIS_LISTEN,
    event_put,
)
from fila_server.edge.io.callers cimport callers_prepare, callers_unprepare
from fila_server.edge.io.connection cimport (
    connection_close, connection_flush, connection_free, connection_look, connection_new, connection_read,
)
from fila_server.edge.io.iothread cimport READ_BYTES, Call, Connection, TokenEntry
from fila_server.edge.io.judging cimport judging_turn
from fila_server.edge.io.posting cimport FIRST_THREAD, post_again, post_deaf, post_listened
from fila_server.edge.io.sockets cimport (
    EMFILE, ENFILE, EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL,
    accept_from, atomic_load, close, epoll_create1, epoll_ctl, epoll_event, epoll_wait, monotonic_ns,
)
from fila_server.edge.io.token_entries cimport entry_find
from fila_server.edge.io.watching cimport is_unread
from fila_server.edge.redis.connection cimport redis_again, redis_end, redis_take

cdef enum:
    EVENTS_A_TURN = 256
    ACCEPTS_A_TURN = 64
    LISTENERS_MAX = 8
    TURN_MS_MAX = 50                # LISTENED is due ten times a second
    ALONE_MS_MAX = 400              # without a connection: a pause that the core counts as heard (to 500)
    AGAIN_MS = 2                    # how long to leave a full mailbox alone
    NS_A_MS = 1000000

cdef int64_t LOOK_NS = 1000000000
cdef int64_t ROOM_NS = 20000000     # how often those who wait for room are looked at


# --- who comes in ----------------------------------------------------------------------------

cdef void _watch(IoThread* io, int fd, void* what, bint wanted) noexcept nogil:
    cdef epoll_event event
    event.events = EPOLLIN
    event.data.ptr = what
    epoll_ctl(io.epoll_fd, EPOLL_CTL_ADD if wanted else EPOLL_CTL_DEL, fd, &event)


cdef void _listeners_rest(IoThread* io, bint rest) noexcept nogil:
    """Without a descriptor left accept() would be told of the same knock again and again."""
    cdef uint32_t i
    if io.listeners_rest == rest:
        return
    io.listeners_rest = rest
    for i in range(io.listeners_count):
        _watch(io, io.listeners[i], &io.listeners[i], not rest)


cdef void _accept(IoThread* io, uint32_t number) noexcept nogil:
    """Connections go round the threads: a broker has few, and long ones."""
    cdef int listener = io.listeners[number]
    cdef bint is_redis = io.is_redis[number]
    cdef IoThread* other
    cdef Buffer payload
    cdef char peer[72]
    cdef int fd
    cdef int times
    for times in range(ACCEPTS_A_TURN):
        fd = accept_from(listener, peer, sizeof(peer))
        if fd < 0:
            if errno == EMFILE or errno == ENFILE:
                _listeners_rest(io, True)
            return
        other = io.threads[io.next_thread % io.threads_count]
        io.next_thread += 1
        if other == io:
            connection_new(io, fd, peer, is_redis)
            continue
        buffer_init(&payload)
        put_bytes(&payload, peer, strlen(peer) + 1)
        outbox_order(other.outbox, 0, ORDER_REDIS_CONNECTION if is_redis else ORDER_CONNECTION, fd, &payload)


# --- what the core and Python say ------------------------------------------------------------

cdef void _drain(IoThread* io, int64_t wait_ms) noexcept nogil:
    cdef Connection* connection = io.connections
    cdef Call* call
    cdef Call* following
    cdef uint32_t i
    if io.is_draining:
        return
    _listeners_rest(io, True)
    for i in range(io.listeners_count):
        close(io.listeners[i])
    io.listeners_count = 0
    io.is_draining = True
    io.leave_ns = io.now_ns + wait_ms * NS_A_MS
    while connection != NULL:
        call = connection.calls
        while call != NULL:
            following = call.next
            call_drains(call)
            call = following
        if connection.redis != NULL:
            redis_end(connection)
        else:
            session_leave(connection)
        connection = connection.next


cdef void _take(IoThread* io) noexcept nogil:
    cdef Out* outs = NULL
    cdef uint32_t count = outbox_take(io.outbox, &outs)
    cdef uint32_t i
    cdef TokenEntry* entry
    for i in range(count):
        entry = entry_find(io, outs[i].token)
        if entry != NULL and entry.call == NULL:
            redis_take(io, entry, &outs[i])
        elif outs[i].kind == ORDER_CONNECTION or outs[i].kind == ORDER_REDIS_CONNECTION:
            connection_new(io, outs[i].status, outs[i].payload, outs[i].kind == ORDER_REDIS_CONNECTION)
            free(outs[i].payload)
        elif outs[i].kind == ORDER_LISTEN or outs[i].kind == ORDER_REDIS_LISTEN:
            if io.listeners_count < LISTENERS_MAX:
                io.listeners[io.listeners_count] = outs[i].status
                io.is_redis[io.listeners_count] = outs[i].kind == ORDER_REDIS_LISTEN
                _watch(io, outs[i].status, &io.listeners[io.listeners_count], True)
                io.listeners_count += 1
            free(outs[i].payload)
        elif outs[i].kind == ORDER_DRAIN:
            _drain(io, outs[i].status)
            free(outs[i].payload)
        else:
            answer_take(io, &outs[i])
    free(outs)


# --- what is due -----------------------------------------------------------------------------

cdef Call SHAPE                     # nobody's: it says how far from a call's beginning its timer lies


cdef inline Call* _call_of(Timer* timer) noexcept nogil:
    return <Call*> (<char*> timer - (<char*> &SHAPE.timer - <char*> &SHAPE))


cdef void _due(IoThread* io) noexcept nogil:
    cdef Timer* timer = timers_pop_due(&io.timers, io.now_ns)
    cdef Connection* connection
    cdef Connection* following
    while timer != NULL:
        call_expires(_call_of(timer))
        timer = timers_pop_due(&io.timers, io.now_ns)
    if io.withheld != NULL and io.now_ns - io.room_ns >= ROOM_NS:
        io.room_ns = io.now_ns
        call_room(io)
    if io.now_ns - io.ticked_ns < LOOK_NS:
        return
    io.ticked_ns = io.now_ns
    if not io.is_draining:
        _listeners_rest(io, False)
    connection = io.connections
    while connection != NULL:
        following = connection.next
        connection_look(connection)
        connection = following


cdef void _calls_again(IoThread* io) noexcept nogil:
    """Those that may be able to take what they left lying."""
    cdef Call* call = io.queued
    cdef Call* following
    io.queued = io.queued_last = NULL
    while call != NULL:
        following = call.next_queued
        call.is_queued = False
        if call.is_gone:
            call_free(call)
        else:
            intake_again(call)
        call = following


cdef void _turn_begins(IoThread* io) noexcept nogil:
    """Who waited to be inflated comes before what is new."""
    cdef bint others_wait = io.inflated_bytes != 0
    io.inflated_bytes = 0
    io.handshakes = 0
    intake_turn(io)
    if others_wait and io.inflation.call == NULL:
        _calls_again(io)


cdef void _again(IoThread* io) noexcept nogil:
    _calls_again(io)
    redis_again(io)
    post_again(io)


cdef void _flush(IoThread* io) noexcept nogil:
    cdef Connection* connection
    while io.dirty != NULL:
        connection = io.dirty
        io.dirty = connection.next_dirty
        connection.is_dirty = False
        if connection.is_dead:
            connection_free(connection)
        else:
            connection_flush(connection)


cdef int _wait_ms(IoThread* io) noexcept nogil:
    cdef int64_t left_ns
    cdef int most = ALONE_MS_MAX
    if io.connections != NULL or (io.number == FIRST_THREAD and atomic_load(&io.common.connections)):
        most = TURN_MS_MAX
    if io.judged != NULL or io.redis_queued != NULL or io.inflation.call != NULL:
        return 0
    if io.queued != NULL and io.inflated_bytes:
        return 0                        # it may be what they wait for
    if io.queued != NULL or io.unposted != NULL:
        return AGAIN_MS
    left_ns = timers_next(&io.timers)
    if left_ns == INT64_MAX:
        return most if io.withheld == NULL else ROOM_NS // NS_A_MS
    left_ns = (left_ns - io.now_ns + NS_A_MS - 1) // NS_A_MS
    return <int> min(max(left_ns, <int64_t> 0), <int64_t> (
        most if io.withheld == NULL else ROOM_NS // NS_A_MS))


# --- the thread ------------------------------------------------------------------------------

cdef IoThread* loop_new(Common* common, int number) noexcept nogil:
    cdef IoThread* io = <IoThread*> must_malloc(sizeof(IoThread))
    cdef Outboxes* outboxes = common.core.outboxes
    memset(io, 0, sizeof(IoThread))
    io.common = common
    io.number = number
    io.generation = common.rights.generation      # nothing is open yet that older rights let in
    io.outbox = outboxes.boxes[number]
    io.epoll_fd = epoll_create1(EPOLL_CLOEXEC)
    if io.epoll_fd < 0 or not callers_prepare(io) or not session_prepare(io):
        callers_unprepare(io)
        if io.epoll_fd >= 0:
            close(io.epoll_fd)
        free(io)
        return NULL
    io.read_buffer = <char*> must_malloc(READ_BYTES)
    timers_init(&io.timers)
    _watch(io, outboxes.boxes[number].wake_fd, io, True)
    return io


cdef void loop_turn(IoThread* io, const epoll_event* events, int count) noexcept nogil:
    cdef Connection* connection
    cdef int i
    _turn_begins(io)
    for i in range(count):
        if events[i].data.ptr == io:
            _take(io)
        elif <char*> &io.listeners[0] <= <char*> events[i].data.ptr < <char*> &io.listeners[LISTENERS_MAX]:
            if not io.is_draining:
                _accept(io, <uint32_t> (<int*> events[i].data.ptr - &io.listeners[0]))
        else:
            connection = <Connection*> events[i].data.ptr
            if is_unread(connection) and events[i].events & (EPOLLHUP | EPOLLERR):
                connection_close(connection)
            elif not connection.is_dead and events[i].events & ~(<uint32_t> EPOLLOUT):
                connection_read(connection)
            elif not connection.is_dead:
                connection_flush(connection)
    _again(io)
    _due(io)
    judging_turn(io)
    _flush(io)
    if count < EVENTS_A_TURN:
        post_listened(io)           # all that was there to be read has been


cdef void loop_run(IoThread* io) noexcept nogil:
    cdef epoll_event events[EVENTS_A_TURN]
    cdef int count
    while True:
        if io.connections == NULL:
            post_deaf(io)
        count = epoll_wait(io.epoll_fd, events, EVENTS_A_TURN, _wait_ms(io))
        io.now_ns = monotonic_ns()
        loop_turn(io, events, count)
        if io.is_draining and _may_leave(io):
            break
    _leave(io)


cdef bint _may_leave(IoThread* io) noexcept nogil:
    return (io.connections == NULL and io.unposted == NULL) or io.now_ns >= io.leave_ns


cdef void _leave(IoThread* io) noexcept nogil:
    while io.connections != NULL:
        connection_close(io.connections)
    _again(io)
    call_room(io)
    _flush(io)
    post_deaf(io)
    event_put(io.common, EVENT_STOPPED, io.number, 0, NULL, NULL)


cdef void loop_free(IoThread* io) noexcept nogil:
    cdef Command* command
    while io.unposted != NULL:
        command = io.unposted
        io.unposted = command.next
        command_free(command)
    close(io.epoll_fd)
    session_unprepare(io)
    callers_unprepare(io)
    timers_free(&io.timers)
    free(io.entries)
    free(io.read_buffer)
    buffer_free(&io.scratch)
    free(io)
