from libc.errno cimport errno
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset, strlen

from fila_server.core.protocol.commands cimport WRITTEN
from fila_server.core.storage.reclaim cimport connection_freed
from fila_server.core.structures.buffer cimport buffer_free, must_malloc
from fila_server.edge.grpc.calls cimport call_gone, call_input_ended
from fila_server.edge.grpc.nghttp2 cimport (
    NGHTTP2_FLAG_NONE, NGHTTP2_NO_ERROR, NGHTTP2_PROTOCOL_ERROR, nghttp2_session_del,
    nghttp2_session_get_last_proc_stream_id, nghttp2_session_get_outbound_queue_size,
    nghttp2_session_mem_recv, nghttp2_session_mem_send, nghttp2_session_terminate_session,
    nghttp2_session_want_read, nghttp2_session_want_write, nghttp2_submit_ping,
)
from fila_server.edge.grpc.session cimport session_calm, session_leave, session_open
from fila_server.edge.grpc.single_request cimport single_keep
from fila_server.edge.grpc.status cimport DEADLINE_EXCEEDED
from fila_server.edge.io.bridge cimport EVENT_SENT, event_put
from fila_server.edge.io.callers cimport caller_disconnects
from fila_server.edge.io.iothread cimport (
    OUTBOUND_FRAMES_MAX, OUT_BYTES_HIGH, PRODUCER, READS_A_TURN, READ_BYTES,
    SESSION_CONSUMER, TO_PYTHON, Call, Mark, TokenEntry,
)
from fila_server.edge.io.posting cimport post_surely
from fila_server.edge.io.response cimport call_refuse, connection_mark, out_room
from fila_server.edge.io.sockets cimport (
    EAGAIN, EINTR, EPOLLIN, EPOLL_CTL_ADD, atomic_add, close, epoll_ctl, epoll_event, read, send_some,
    set_errno,
)
from fila_server.edge.io.tls cimport tls_begin, tls_end, tls_flush, tls_read, tls_send
from fila_server.edge.io.token_entries cimport entry_find
from fila_server.edge.io.unread cimport unread_give
from fila_server.edge.io.watching cimport connection_watch
from fila_server.edge.redis.connection cimport (
    redis_close, redis_flushed, redis_input_ended, redis_look, redis_open, redis_received, redis_shaken,
)
from fila_server.edge.redis.replies cimport replies_leave

cdef enum:
    OUT_BYTES_KEPT = 16384          # of the out buffer of a connection that is quiet
    READ_FIRST_BYTES = 32768        # the first read of a turn: some 200 small calls, a millisecond
    CALLS_A_TURN = 64

cdef int64_t KEEPALIVE_NS = 30000000000
cdef int64_t KEEPALIVE_TIMEOUT_NS = 20000000000
cdef int64_t SETTLED_WITHIN_NS = 10000000000       # the preface and the first SETTINGS
cdef int64_t HEADERS_WITHIN_NS = 10000000000       # a header block, once begun
cdef int64_t ANSWERED_WITHIN_NS = 10000000000      # to a client that has closed its side
cdef int64_t MESSAGE_PAUSE_NS_MAX = 60000000000    # within a message, once begun


cdef const char* TOO_MANY = b"-ERR max number of clients reached\r\n"


cdef void connection_new(IoThread* io, int fd, const char* peer, bint is_redis) noexcept nogil:
    cdef Connection* connection
    cdef epoll_event event
    if io.connections_count >= io.common.connections_max or io.is_draining:
        close(fd)
        return
    if io.common.descriptors_kept and fd >= io.common.descriptors_kept:
        # Here and at once: Python would hear of it when a burst had taken the store's descriptors too.
        if is_redis and io.common.tls == NULL:
            send_some(fd, TOO_MANY, strlen(TOO_MANY))
        close(fd)
        return
    connection = <Connection*> must_malloc(sizeof(Connection))
    memset(connection, 0, sizeof(Connection))
    connection.thread = io
    connection.fd = fd
    snprintf(connection.peer, sizeof(connection.peer), b"%s", peer)
    connection.opened_ns = connection.heard_ns = io.now_ns
    connection.is_local = (
        memcmp(peer, b"ipv4:127.", 9) == 0 or memcmp(peer, b"ipv6:[::1]:", 11) == 0)
    if not tls_begin(connection):
        tls_end(connection)
        close(fd)
        free(connection)
        return
    connection.may_send_keys = (
        connection.is_local or io.common.takes_plain_keys or connection.tls != NULL)
    event.events = EPOLLIN
    event.data.ptr = connection
    if (
        (not is_redis and not session_open(connection))
        or epoll_ctl(io.epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0
    ):
        nghttp2_session_del(connection.session)
        tls_end(connection)
        close(fd)
        free(connection)
        return
    connection.next = io.connections
    if connection.next != NULL:
        connection.next.previous = connection
    io.connections = connection
    io.connections_count += 1
    atomic_add(&io.common.connections, 1)
    if is_redis:
        redis_open(connection)
        if connection.is_shaken:
            redis_shaken(connection)
    connection_mark(connection)


cdef void connection_close(Connection* connection) noexcept nogil:
    cdef IoThread* io = connection.thread
    cdef uint32_t i
    if connection.is_dead:
        return
    connection.is_dead = True
    if io.judged == connection:
        io.judged = connection.next
    while connection.calls != NULL:
        call_gone(connection.calls)
    for i in range(connection.marks_count):
        unread_give(connection, connection.marks[
            (connection.marks_first + i) % connection.marks_capacity].counted)
    caller_disconnects(connection)
    if connection.redis != NULL:
        redis_close(connection)
    nghttp2_session_del(connection.session)
    connection.session = NULL
    tls_end(connection)
    close(connection.fd)
    buffer_free(&connection.names)
    free(connection.out)
    free(connection.marks)
    if connection.next != NULL:
        connection.next.previous = connection.previous
    if connection.previous != NULL:
        connection.previous.next = connection.next
    else:
        io.connections = connection.next
    io.connections_count -= 1
    atomic_add(&io.common.connections, -1)
    connection_mark(connection)


cdef void connection_free(Connection* connection) noexcept nogil:
    connection_freed(connection.thread.common.core.shared.upkeep)
    if not connection.is_queued:        # else it is freed from there
        free(connection)


# --- in --------------------------------------------------------------------------------------

cdef void _input_ended(Connection* connection) noexcept nogil:
    """The client has closed its side, or is gone: what it asked for in full is answered."""
    cdef Call* call = connection.calls
    if connection.input_ended_ns:
        return
    connection.input_ended_ns = connection.thread.now_ns
    connection_watch(connection)
    if connection.redis != NULL:
        redis_input_ended(connection)
    while call != NULL:
        call_input_ended(call)
        call = call.next


cdef inline ssize_t _receive(Connection* connection, size_t room) noexcept nogil:
    cdef IoThread* io = connection.thread
    cdef bint was_shaken = connection.is_shaken
    cdef ssize_t length
    cdef int failure
    if connection.tls == NULL:
        return read(connection.fd, io.read_buffer, room)
    length = tls_read(connection, io.read_buffer, READ_BYTES)
    if connection.redis != NULL and connection.is_shaken and not was_shaken:
        failure = errno
        redis_shaken(connection)
        set_errno(failure)
    return length


cdef void connection_read(Connection* connection) noexcept nogil:
    cdef IoThread* io = connection.thread
    cdef ssize_t length
    cdef ssize_t taken
    cdef int turn
    cdef int32_t before = 0
    # Small calls cost by their number: many clients with many of them would keep the others waiting for
    # seconds. So the first read is short, and who began CALLS_A_TURN with it goes on in its next turn. What
    # OpenSSL holds would not wake us again, so that is read as far as it goes.
    cdef bint by_calls = connection.redis == NULL and connection.tls == NULL
    cdef size_t room = READ_FIRST_BYTES if by_calls else READ_BYTES
    if by_calls:
        before = nghttp2_session_get_last_proc_stream_id(connection.session)
    for turn in range(READS_A_TURN):
        length = _receive(connection, room)
        if length < 0 and (errno == EAGAIN or errno == EINTR):
            break
        if length < 0:
            connection_close(connection)
            return
        if length == 0:
            _input_ended(connection)
            break
        connection.heard_ns = io.now_ns
        connection.pinged_ns = 0
        if connection.redis != NULL:
            redis_received(connection, io.read_buffer, <size_t> length)
            break                   # so many small commands take as long as READS_A_TURN of large frames
        if connection.is_faulty:
            return                  # read and forgotten, so that it can read why it is sent away
        taken = nghttp2_session_mem_recv(connection.session, <const uint8_t*> io.read_buffer, length)
        single_keep(io)
        if taken < 0:
            # Not HTTP/2 at all, or a flood that nghttp2 counts: a GOAWAY as far as it can be sent, and the
            # end.
            if not connection.is_faulty:
                nghttp2_session_terminate_session(connection.session, NGHTTP2_PROTOCOL_ERROR)
            connection.is_faulty = True
            break
        if nghttp2_session_get_outbound_queue_size(connection.session) > OUTBOUND_FRAMES_MAX:
            session_calm(connection)    # it makes us answer and reads nothing
        if connection.is_faulty or length < <ssize_t> room:
            break
        if by_calls and (
            nghttp2_session_get_last_proc_stream_id(connection.session) - before >= 2 * CALLS_A_TURN
        ):
            break
        room = READ_BYTES
    connection_mark(connection)


# --- out -------------------------------------------------------------------------------------

cdef void _want_out(Connection* connection, bint wanted) noexcept nogil:
    if connection.wants_out != wanted:
        connection.wants_out = wanted
        connection_watch(connection)


cdef void _reached(Connection* connection) noexcept nogil:
    """What the socket has taken is written: consumers have room again, and the budget."""
    cdef IoThread* io = connection.thread
    cdef uint64_t taken = connection.out_made - (connection.out_length - connection.out_done)
    cdef Mark* mark
    cdef TokenEntry* entry
    while connection.marks_count and connection.marks[connection.marks_first].at <= taken:
        mark = &connection.marks[connection.marks_first]
        unread_give(connection, mark.counted)
        entry = entry_find(io, mark.token) if mark.token else NULL
        if entry != NULL and mark.is_delivery:
            post_surely(io, WRITTEN, mark.token, b"", 0)
        elif entry != NULL and entry.call != NULL and entry.call.shape == TO_PYTHON:
            event_put(io.common, EVENT_SENT, mark.token, 0, NULL, NULL)
        connection.marks_first = (connection.marks_first + 1) % connection.marks_capacity
        connection.marks_count -= 1


cdef bint _make(Connection* connection) noexcept nogil:
    """Fill the out buffer, never with more than the socket will soon take. False: the connection is closed.
    """
    cdef const uint8_t* at
    cdef ssize_t length
    if connection.redis != NULL:
        replies_leave(connection)
        return True
    while connection.out_length - connection.out_done < OUT_BYTES_HIGH:
        length = nghttp2_session_mem_send(connection.session, &at)
        if length < 0:
            connection_close(connection)
            return False
        if length == 0:
            break
        memcpy(out_room(connection, <size_t> length), at, length)
    return True


cdef inline ssize_t _send(Connection* connection, const char* at, size_t length) noexcept nogil:
    if connection.tls != NULL:
        return tls_send(connection, at, length)
    return send_some(connection.fd, at, length)


cdef void _unsent(Connection* connection) noexcept nogil:
    if errno == EAGAIN or errno == EINTR:
        _want_out(connection, True)
    else:
        connection_close(connection)


cdef void connection_flush(Connection* connection) noexcept nogil:
    cdef ssize_t sent
    if connection.is_over:
        connection_close(connection)
        return
    if connection.tls != NULL:
        if not tls_flush(connection):
            _unsent(connection)
            return
        if not connection.is_shaken:
            _want_out(connection, False)
            if connection.input_ended_ns:
                connection_close(connection)
            return
    while True:
        if not _make(connection):
            return
        if connection.out_done == connection.out_length:
            break
        sent = _send(
            connection, connection.out + connection.out_done, connection.out_length - connection.out_done)
        if sent < 0:
            _unsent(connection)
            return
        connection.out_done += sent
        if connection.out_done == connection.out_length:
            connection.out_done = connection.out_length = 0
        _reached(connection)
    _want_out(connection, False)
    if connection.redis != NULL:
        if not redis_flushed(connection):
            connection_close(connection)
        return
    if connection.input_ended_ns and connection.calls == NULL:
        connection_close(connection)
        return
    if connection.is_faulty:
        return                      # closed by the next look: now, what it still sends would undo our GOAWAY
    if nghttp2_session_want_read(connection.session) or nghttp2_session_want_write(connection.session):
        return
    connection_close(connection)


# --- once a second ---------------------------------------------------------------------------

cdef inline bint _is_awaited(const Call* call) noexcept nogil:
    """Whether the client owes the rest of a message, or the one that its call has."""
    if call.prefix_got or call.whole != NULL:
        return True
    return call.messages == 0 and not call.half_close_taken and call.http_status == NULL and (
        call.shape != PRODUCER and call.shape != SESSION_CONSUMER)


cdef void connection_look(Connection* connection) noexcept nogil:
    cdef int64_t now_ns = connection.thread.now_ns
    cdef Call* call
    if connection.redis != NULL:
        redis_look(connection)
        return
    if connection.is_faulty:
        connection_close(connection)    # it had up to a second to read why
        return
    if connection.certificate_ends_ns and now_ns >= connection.certificate_ends_ns:
        # Its client is nobody from here on; the next look closes it.
        connection.is_faulty = True
        nghttp2_session_terminate_session(connection.session, NGHTTP2_NO_ERROR)
        connection_mark(connection)
        return
    if connection.input_ended_ns and now_ns - connection.input_ended_ns > ANSWERED_WITHIN_NS:
        connection_close(connection)
        return
    if connection.thread.is_draining:
        session_leave(connection)
    if connection.out_capacity > OUT_BYTES_KEPT and connection.out_length == 0:
        free(connection.out)            # ten thousand quiet connections are not to keep what they once needed
        connection.out = NULL
        connection.out_capacity = 0
    if not connection.is_settled and now_ns - connection.opened_ns > SETTLED_WITHIN_NS:
        connection_close(connection)
        return
    if connection.headers_began_ns and now_ns - connection.headers_began_ns > HEADERS_WITHIN_NS:
        session_calm(connection)
        return
    call = connection.calls
    while call != NULL:
        if connection.window_held or call.pending.length:
            call.partial_ns = now_ns        # it is we who keep the client from going on
        elif _is_awaited(call) and not call.is_ended and now_ns - call.partial_ns > MESSAGE_PAUSE_NS_MAX:
            call_refuse(
                call, DEADLINE_EXCEEDED,
                b"a request was begun and did not go on for 60 s; send it whole, and say that it ends",
                b"INTERNAL")
        call = call.next
    if now_ns - connection.heard_ns <= KEEPALIVE_NS:
        return
    if connection.pinged_ns == 0:
        connection.pinged_ns = now_ns
        nghttp2_submit_ping(connection.session, NGHTTP2_FLAG_NONE, NULL)
        connection_mark(connection)
    elif now_ns - connection.pinged_ns > KEEPALIVE_TIMEOUT_NS:
        connection_close(connection)
