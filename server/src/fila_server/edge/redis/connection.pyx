from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset, strlen

from fila_server.core.protocol.commands cimport RESOURCE_EXHAUSTED, UNAUTHENTICATED
from fila_server.core.protocol.refusals cimport Limits
from fila_server.core.requests.rights cimport CONSUME, rights_on
from fila_server.core.structures.buffer cimport (
    Buffer, Slice, buffer_free, buffer_init, must_malloc, put_bytes,
)
from fila_server.edge.io.bridge cimport (
    EVENT_REDIS_GONE, EVENT_REDIS_OPENED, ORDER_REDIS_END, ORDER_REDIS_REPLY, ORDER_REFUSED, ORDER_SEND,
    event_put, header_put,
)
from fila_server.edge.io.iothread cimport PARTIAL_BYTES_FREE, PARTIAL_BYTES_MAX, Redis, Reply
from fila_server.edge.io.response cimport connection_mark
from fila_server.edge.io.sockets cimport keep_alive, shut_output
from fila_server.edge.io.tls cimport tls_farewell
from fila_server.edge.io.token_entries cimport entry_free, entry_of_connection, entry_token
from fila_server.edge.io.watching cimport connection_watch
from fila_server.edge.redis.decoder cimport ITEM_PUSHES, ITEM_REPLY, decoder_free, decoder_init, decoder_next
from fila_server.edge.redis.replies cimport replies_are_many, replies_free, reply_add, reply_refuse
from fila_server.edge.redis.requests cimport (
    request_answer, request_answered, request_end_wait, request_forget_wait, request_may_start, request_start,
    request_wait_over,
)
from fila_server.edge.redis.resp cimport reader_feed, reader_keep, reader_unread

cdef enum:
    # Kept for later. Less is always read, so that a client's leaving is noticed; with more behind it a read
    # does not wait.
    UNSTARTED_BYTES_MAX = 1048576
    UNKNOWN_BYTES_MAX = 65536       # before AUTH: enough for any AUTH or HELLO
    COST_A_TURN = 4096              # of what one client starts, then the others have their turn
    COST_OF_ITEM = 64               # a push among many costs 1
    OUT_BYTES_KEPT = 16384          # of the out buffer of a client that is quiet

cdef int64_t LINGER_NS = 1000000000                # that a client has to read why it was sent away
cdef int64_t SHAKEN_WITHIN_NS = 10000000000
cdef int64_t ANSWERED_WITHIN_NS = 10000000000      # to a client that has closed its side
cdef int64_t COMMAND_PAUSE_NS_MAX = 60000000000    # within a large command, once begun

cdef const char* NO_KEY = b"Authentication required."
cdef const char* SHUTTING_DOWN = b"the server is shutting down"
cdef const char* KEY_GONE = b"the key that this connection was opened with is not valid any more"


# --- coming ------------------------------------------------------------------------------------

cdef void redis_open(Connection* connection) noexcept nogil:
    cdef const Limits* limits = &connection.thread.common.core.limits
    cdef Redis* redis = <Redis*> must_malloc(sizeof(Redis))
    memset(redis, 0, sizeof(Redis))
    decoder_init(
        &redis.decoder, <int64_t> limits.payload_bytes_max, <int> limits.batch_messages_max,
        <int64_t> limits.batch_bytes_max)
    redis.is_dry = True
    redis.protocol = 2
    redis.entry = entry_of_connection(connection.thread, connection)
    connection.redis = redis
    # A reader may wait for hours; this finds out that its machine is gone.
    keep_alive(connection.fd)


cdef void redis_shaken(Connection* connection) noexcept nogil:
    cdef IoThread* io = connection.thread
    cdef Buffer about
    buffer_init(&about)
    header_put(&about, b":peer", 5, connection.peer, strlen(connection.peer))
    if connection.tls != NULL:
        header_put(&about, b":tls", 4, b"", 0)
    put_bytes(&about, connection.names.data, connection.names.length)
    event_put(
        io.common, EVENT_REDIS_OPENED, entry_token(io, connection.redis.entry, False), connection.fd, NULL,
        &about)


cdef void redis_received(Connection* connection, const char* data, size_t length) noexcept nogil:
    cdef Redis* redis = connection.redis
    if redis.is_ending:
        return                      # thrown away, so that it can read why it is sent away
    if not redis.is_known:
        redis.unknown_bytes += length
    reader_feed(&redis.decoder.reader, data, length)
    redis.is_dry = False
    _work(connection)
    reader_keep(&redis.decoder.reader)
    _count_held(connection)


cdef void _count_held(Connection* connection) noexcept nogil:
    """Keep account of half-read commands, of all clients and together with gRPC's half-read messages."""
    cdef IoThread* io = connection.thread
    cdef Redis* redis = connection.redis
    cdef size_t unread = reader_unread(&redis.decoder.reader)
    cdef bint is_half = redis.is_dry and not redis.has_item and unread > PARTIAL_BYTES_FREE
    cdef size_t held = unread - PARTIAL_BYTES_FREE if is_half else 0
    if held != redis.held_bytes:
        redis.held_ns = io.now_ns
    io.partial_bytes -= redis.held_bytes
    io.partial_bytes += held
    redis.held_bytes = held
    if held and io.partial_bytes > PARTIAL_BYTES_MAX and not redis.is_ending:
        reply_refuse(
            reply_add(connection, ITEM_REPLY), RESOURCE_EXHAUSTED,
            b"too many bytes of unfinished commands are held for all clients; send smaller ones",
            b"OVERLOADED", 1000)
        redis.is_ending = True
        _forget_unstarted(redis)
        connection_mark(connection)


cdef void redis_input_ended(Connection* connection) noexcept nogil:
    """Answer what was asked for with what there is, and wait for nothing: a client that closed both sides
    looks the same, and would be given messages that nobody reads.
    """
    cdef Redis* redis = connection.redis
    if redis.is_ending and redis.first == NULL:
        _over(connection)
        return
    request_wait_over(connection)
    _queue(connection)


# --- carrying out ------------------------------------------------------------------------------

cdef void _queue(Connection* connection) noexcept nogil:
    cdef IoThread* io = connection.thread
    if connection.is_queued:
        return
    connection.is_queued = True
    connection.next_queued = NULL
    if io.redis_queued == NULL:
        io.redis_queued = connection
    else:
        io.redis_queued_last.next_queued = connection
    io.redis_queued_last = connection


cdef void redis_again(IoThread* io) noexcept nogil:
    cdef Connection* connection = io.redis_queued
    cdef Connection* following
    io.redis_queued = io.redis_queued_last = NULL
    while connection != NULL:
        following = connection.next_queued
        connection.is_queued = False
        if not connection.is_dead:
            _work(connection)
        elif not connection.is_dirty:
            free(connection)
        connection = following


cdef bint _is_too_much_unknown(Redis* redis) noexcept nogil:
    """Of what it began, or of one command alone. Not of what lies behind its key while Python judges that."""
    cdef int64_t unread = <int64_t> reader_unread(&redis.decoder.reader)
    cdef int64_t unstarted = unread + <int64_t> (redis.item.body.length if redis.has_item else 0)
    if not redis.is_welcome or redis.is_known:
        return False
    if <int64_t> redis.unknown_bytes - unstarted > UNKNOWN_BYTES_MAX:
        return True
    if redis.asked != NULL:
        return False
    if redis.has_item:
        return redis.item.body.length > UNKNOWN_BYTES_MAX
    return redis.is_dry and unread > UNKNOWN_BYTES_MAX


cdef void _work(Connection* connection) noexcept nogil:
    """Start what may be started, then say what is known, and see whether more should be read."""
    cdef Redis* redis = connection.redis
    cdef int64_t left = COST_A_TURN
    redis.is_out_full = False
    while redis.is_welcome and not redis.is_ending:
        if replies_are_many(connection):
            redis.is_out_full = True
            break
        if not redis.has_item and not _decode(connection):
            break
        if _is_too_much_unknown(redis) or not request_may_start(connection, &redis.item):
            break
        if left <= 0:
            _queue(connection)
            break
        left -= redis.item.number if redis.item.kind == ITEM_PUSHES else COST_OF_ITEM
        redis.has_item = False
        request_start(connection, &redis.item)
    if _is_too_much_unknown(redis) and not redis.is_ending:
        reply_refuse(reply_add(connection, ITEM_REPLY), UNAUTHENTICATED, NO_KEY, b"UNAUTHENTICATED", 0)
        redis.is_ending = True
    if redis.is_ending:
        _forget_unstarted(redis)
    _steer_reading(connection)
    connection_mark(connection)


cdef bint _decode(Connection* connection) noexcept nogil:
    cdef Redis* redis = connection.redis
    if not redis.is_dry:
        redis.has_item = decoder_next(&redis.decoder, &connection.thread.scratch, &redis.item)
        redis.is_dry = not redis.has_item
    return redis.has_item


cdef void _forget_unstarted(Redis* redis) noexcept nogil:
    if redis.has_item:
        buffer_free(&redis.item.body)
        redis.has_item = False
    redis.is_dry = True


cdef void _steer_reading(Connection* connection) noexcept nogil:
    """Stop reading while enough waits to be started; go on when it does not."""
    cdef Redis* redis = connection.redis
    cdef bint is_behind = redis.has_item or not redis.is_dry
    cdef bint is_full = is_behind and reader_unread(&redis.decoder.reader) >= UNSTARTED_BYTES_MAX
    if is_full and not redis.is_ending:
        # That a client leaves is seen by reading only: it would hold its place, and be given messages, for as
        # long as it meant to wait. So its read is answered as if the time were over.
        request_wait_over(connection)
    else:
        is_full = False
    if connection.is_paused != is_full:
        connection.is_paused = is_full
        connection_watch(connection)


# --- answers and orders ------------------------------------------------------------------------

cdef void redis_take(IoThread* io, TokenEntry* entry, Out* answer) noexcept nogil:
    cdef Reply* reply = entry.reply
    cdef Connection* connection = entry.connection
    if reply != NULL and (answer.kind < ORDER_SEND or answer.kind == ORDER_REFUSED):
        connection = reply.connection
        request_answer(io, reply, answer)
        _queue(connection)
    elif connection != NULL and answer.kind == ORDER_REDIS_REPLY:
        request_answered(connection, answer)
        _queue(connection)
    elif connection != NULL and answer.kind == ORDER_REDIS_END:
        free(answer.payload)
        if answer.status:
            _over(connection)
        else:
            redis_end(connection)
    else:
        free(answer.payload)


cdef void redis_judge(Connection* connection) noexcept nogil:
    cdef Redis* redis = connection.redis
    cdef Slice queue
    cdef Slice channel
    cdef uint32_t everywhere, somewhere
    if redis.read == NULL or redis.caller == 0:
        return
    queue.at, queue.length = redis.holds.data, redis.holds_queue_length
    channel.at = redis.holds.data + queue.length
    channel.length = <uint32_t> redis.holds.length - queue.length
    rights_on(connection.thread.common.rights, redis.caller, queue, channel, &everywhere, &somewhere)
    if not everywhere & CONSUME:
        request_end_wait(connection, NULL)
        _queue(connection)


# --- the end -----------------------------------------------------------------------------------

cdef void _over(Connection* connection) noexcept nogil:
    connection.is_over = True
    connection_mark(connection)


cdef bint redis_flushed(Connection* connection) noexcept nogil:
    cdef Redis* redis = connection.redis
    cdef bint is_done = redis.first == NULL
    if is_done and connection.input_ended_ns and (redis.is_ending or (redis.is_dry and not redis.has_item)):
        return False
    if is_done and redis.is_ending and redis.leaves_at_once:
        return False
    if is_done and redis.is_ending and redis.lingers_ns == 0:
        # What comes is taken in for a moment longer: a reset would take our last reply away.
        redis.lingers_ns = connection.thread.now_ns
        if connection.tls != NULL:
            tls_farewell(connection)
        shut_output(connection.fd)
    elif redis.is_out_full and not replies_are_many(connection):
        _queue(connection)
    return True


cdef void redis_look(Connection* connection) noexcept nogil:
    cdef Redis* redis = connection.redis
    cdef int64_t now_ns = connection.thread.now_ns
    if connection.out_capacity > OUT_BYTES_KEPT and connection.out_length == 0:
        free(connection.out)
        connection.out = NULL
        connection.out_capacity = 0
    if reader_unread(&redis.decoder.reader) == 0:
        reader_keep(&redis.decoder.reader)      # gives back what a large pipeline took
    if (
        (redis.lingers_ns and now_ns - redis.lingers_ns > LINGER_NS)
        or (connection.input_ended_ns and now_ns - connection.input_ended_ns > ANSWERED_WITHIN_NS)
        or (not connection.is_shaken and now_ns - connection.opened_ns > SHAKEN_WITHIN_NS)
        or (redis.held_bytes and now_ns - redis.held_ns > COMMAND_PAUSE_NS_MAX)
    ):
        _over(connection)
    elif connection.certificate_ends_ns and now_ns >= connection.certificate_ends_ns:
        redis_end(connection)       # its client is nobody from here on


cdef void redis_end(Connection* connection) noexcept nogil:
    cdef Redis* redis = connection.redis
    redis.is_ending = True
    _forget_unstarted(redis)
    request_end_wait(connection, SHUTTING_DOWN if connection.thread.is_draining else KEY_GONE)
    if redis.first == NULL and connection.out_length == connection.out_done:
        connection.is_over = True
    connection_mark(connection)


cdef void redis_close(Connection* connection) noexcept nogil:
    cdef IoThread* io = connection.thread
    cdef Redis* redis = connection.redis
    request_forget_wait(connection)
    replies_free(connection)
    if connection.is_shaken:            # else Python has never heard of it
        event_put(io.common, EVENT_REDIS_GONE, entry_token(io, redis.entry, False), 0, NULL, NULL)
    io.partial_bytes -= redis.held_bytes
    entry_free(io, redis.entry)
    _forget_unstarted(redis)
    decoder_free(&redis.decoder)
    buffer_free(&redis.holds)
    free(redis)
    connection.redis = NULL
