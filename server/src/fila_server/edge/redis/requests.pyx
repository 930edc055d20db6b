from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcpy, strlen
from posix.strings cimport strncasecmp

from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport (
    ACK_BATCH, CANCEL, ENQUEUE_ATOMIC, ENQUEUE_BATCH, LEASE, OK, RESOURCE_EXHAUSTED, UNAUTHENTICATED,
    UNAVAILABLE,
)
from fila_server.core.protocol.problem cimport Problem
from fila_server.core.protocol.protobuf cimport LEN, Fields, fields_parse, next_field
from fila_server.core.requests.rights cimport rights_names
from fila_server.core.structures.buffer cimport (
    Cursor, Slice, buffer_free, buffer_init, must_malloc, put_bytes, put_slice, read_u32be, read_u64be,
)
from fila_server.core.threads.mailbox cimport ALLOWED, Command, command_free
from fila_server.edge.grpc.submission cimport (
    AT_HOOKS, NO_DISK, SUBMITTED, HandedOver, Received, frame_hand_over, frame_take,
)
from fila_server.edge.io.bridge cimport (
    CLIENT_KNOWN, CLIENT_LEAVES_AT_ONCE, CLIENT_QUITS, CLIENT_SPEAKS_3, EVENT_REDIS_COMMAND, ORDER_REFUSED,
    event_put,
)
from fila_server.edge.io.iothread cimport Common, Redis
from fila_server.edge.io.leases_within cimport leases_give_back
from fila_server.edge.io.posting cimport post_surely
from fila_server.edge.io.sockets cimport atomic_add
from fila_server.edge.io.token_entries cimport entry_of_reply, entry_token
from fila_server.edge.io.unread cimport unread_add, unread_has_room, unread_total
from fila_server.edge.redis.decoder cimport (
    ITEM_ACKS, ITEM_CLOSE, ITEM_COMMAND, ITEM_LEASE, ITEM_PUSHES, ITEM_PUSH_MANY, ITEM_REPLY, lease_at_once,
)
from fila_server.edge.redis.encode cimport (
    count_acked, is_nowhere, put_integer, put_pushed, put_pushed_many, put_status,
)
from fila_server.edge.redis.replies cimport (
    reply_add, reply_awaits, reply_fail, reply_internal, reply_is_answered, reply_is_known, reply_refuse,
)

cdef enum:
    REPLIES_MAX = 512               # that a connection may be owed; items beyond it are not started
    STARTED_BYTES_MAX = 4194304     # frames of one connection that the core may be working on
    READS_MAX = 4                   # side by side: each may answer with 4 MiB
    UNREAD_RETRY_MS = 1000          # clients have to read first
    VERB_LENGTH = 4                 # of PING and ECHO

cdef enum Lane:
    ALONE = 0
    PUSHING
    ACKING
    READING

cdef const char* NO_KEY = b"Authentication required."
cdef const char* OVER = b"over"                 # what a CANCEL says that is to be answered


cdef Lane _lane_of(const Item* item) noexcept nogil:
    if item.kind == ITEM_PUSHES or item.kind == ITEM_PUSH_MANY:
        return PUSHING
    if item.kind == ITEM_ACKS:
        return ACKING
    # A read that waits may do so for minutes, and what follows must not overtake it.
    return READING if item.kind == ITEM_LEASE and item.number == 0 else ALONE


cdef bint request_may_start(const Connection* connection, const Item* item) noexcept nogil:
    cdef const Redis* redis = connection.redis
    cdef Lane lane = _lane_of(item)
    if redis.waiting == 0:
        return True
    if lane == ALONE or lane != redis.lane or (lane == READING and redis.waiting >= READS_MAX):
        return False
    return redis.replies < REPLIES_MAX and redis.started_bytes < STARTED_BYTES_MAX


cdef void request_start(Connection* connection, Item* item) noexcept nogil:
    cdef IoThread* io = connection.thread
    cdef Redis* redis = connection.redis
    cdef Reply* reply
    redis.lane = _lane_of(item)
    reply = reply_add(connection, item.kind)
    if item.kind == ITEM_PUSHES or item.kind == ITEM_PUSH_MANY:
        reply.copies = <uint32_t> item.number
    atomic_add(&io.common.redis_commands, reply.copies if item.kind == ITEM_PUSHES else 1)
    if item.kind == ITEM_REPLY or item.kind == ITEM_CLOSE:
        reply.text = item.body
        reply_is_known(reply)
        redis.is_ending |= item.kind == ITEM_CLOSE
    elif item.kind == ITEM_COMMAND and redis.is_known and _echoed(reply, item):
        buffer_free(&item.body)
    elif item.kind == ITEM_COMMAND:
        redis.asked = reply
        reply_awaits(reply)
        event_put(
            io.common, EVENT_REDIS_COMMAND, entry_token(io, redis.entry, False), item.number, NULL,
            &item.body)
    elif not redis.is_known:
        buffer_free(&item.body)
        _refuse(reply, UNAUTHENTICATED, NO_KEY, b"UNAUTHENTICATED", 0)
    elif item.kind == ITEM_ACKS:
        reply.frames = item.body
        _ack_some(reply)
    else:
        reply.wait_ms = item.number if item.kind == ITEM_LEASE else 0
        if reply.wait_ms and connection.input_ended_ns:
            lease_at_once(item)     # it gets what is there; nobody is left to wait
        _submit(reply, item.body.data, item.body.length)
    buffer_init(&item.body)


cdef bint _echoed(Reply* reply, const Item* item) noexcept nogil:
    """PING and ECHO ask nothing of anybody, so they wait for no turn of the asyncio loop, which a health
    check would take for a slow broker. False: another command, or one with too many words or too few.
    """
    cdef const char* name = item.body.data + 4
    cdef const char* word
    cdef char head[16]
    cdef uint32_t length
    if item.number > 2 or read_u32be(item.body.data) != VERB_LENGTH:
        return False
    if item.number == 1:
        if strncasecmp(name, b"ping", VERB_LENGTH) != 0:
            return False
        put_bytes(&reply.text, b"+PONG\r\n", 7)
    elif strncasecmp(name, b"ping", VERB_LENGTH) == 0 or strncasecmp(name, b"echo", VERB_LENGTH) == 0:
        length = read_u32be(name + VERB_LENGTH)
        word = name + VERB_LENGTH + 4
        put_bytes(&reply.text, head, snprintf(head, sizeof(head), b"$%u\r\n", length))
        put_bytes(&reply.text, word, length)
        put_bytes(&reply.text, b"\r\n", 2)
    else:
        return False
    reply_is_known(reply)
    return True


cdef void _refuse(
        Reply* reply, int32_t code, const char* why, const char* reason, int32_t retry_ms) noexcept nogil:
    """A push of many is one command, with one reply."""
    if reply.kind == ITEM_PUSH_MANY:
        reply.copies = 1
    reply_refuse(reply, code, why, reason, retry_ms)


# --- to the core -------------------------------------------------------------------------------

cdef int32_t _command_of(const Reply* reply) noexcept nogil:
    if reply.kind == ITEM_PUSHES:
        return ENQUEUE_BATCH
    if reply.kind == ITEM_PUSH_MANY:
        return ENQUEUE_ATOMIC
    return LEASE if reply.kind == ITEM_LEASE else ACK_BATCH


cdef bint _outstanding_take(Common* common, Reply* reply) noexcept nogil:
    cdef char text[128]
    if atomic_add(&common.calls_outstanding, 1) <= common.calls_outstanding_max:
        return True
    atomic_add(&common.calls_outstanding, -1)
    snprintf(
        text, sizeof(text), b"%lld calls are already waiting for an answer",
        <long long> common.calls_outstanding_max)
    _refuse(reply, RESOURCE_EXHAUSTED, text, b"OVERLOADED", 0)
    return False


cdef void _submit(Reply* reply, char* frame, size_t length) noexcept nogil:
    """Takes the frame, which came from malloc."""
    cdef Connection* connection = reply.connection
    cdef IoThread* io = connection.thread
    cdef Problem problem
    cdef Received message
    cdef HandedOver done
    cdef Command* command
    message.at = message.owned = frame
    message.length = length
    command = frame_take(io, connection.redis.caller, False, _command_of(reply), &message, &problem)
    free(message.owned)
    if command == NULL:
        _refuse(reply, problem.code, problem.text, problem.reason, problem.retry_ms)
        return
    if not _outstanding_take(io.common, reply):
        command_free(command)
        return
    reply.size = max(length, reply.frames.length)      # of an HDEL all its frames are kept meanwhile
    reply.entry = entry_of_reply(io, reply)
    # One that has no right waits for nothing: the core refuses it.
    if reply.wait_ms and connection.input_ended_ns == 0 and command.verdict == ALLOWED:
        _begin_wait(reply, command)
    reply_awaits(reply)
    # The command may be gone when this returns.
    done = frame_hand_over(
        io.common, command, entry_token(io, reply.entry, reply.kind == ITEM_LEASE), False)
    if done == AT_HOOKS:
        connection.redis.lane = ALONE       # the mailbox does not keep the order with what follows
    elif done != SUBMITTED:
        command_free(command)
        _unposted(reply, done)


cdef void _unposted(Reply* reply, HandedOver why) noexcept nogil:
    cdef char text[160]
    if reply.wait_ms:
        request_forget_wait(reply.connection)
    reply_is_answered(reply)
    if why == NO_DISK:
        _refuse(
            reply, RESOURCE_EXHAUSTED, b"the disk is full; nothing is stored until there is room again",
            b"DISK_FLOOR", 0)
        return
    snprintf(
        text, sizeof(text), b"%u requests are already waiting for the scheduler; try again shortly",
        reply.connection.thread.common.core.mailbox.capacity)
    _refuse(reply, RESOURCE_EXHAUSTED, text, b"OVERLOADED", 0)


cdef void _ack_some(Reply* reply) noexcept nogil:
    """The next frame of an HDEL, which may have more tickets than one may hold."""
    cdef const char* at = reply.frames.data + reply.frames_done
    cdef uint32_t length = read_u32be(at)
    cdef char* frame = <char*> must_malloc(length)
    memcpy(frame, at + 4, length)
    reply.frames_done += 4 + <size_t> length
    _submit(reply, frame, length)


# --- reads that wait ---------------------------------------------------------------------------

cdef void _begin_wait(Reply* reply, const Command* command) noexcept nogil:
    """It waits as long as its client has the right to what it names."""
    cdef Redis* redis = reply.connection.redis
    cdef Slice queue
    cdef Slice channel
    rights_names(command, &queue, &channel)
    redis.read = reply
    redis.holds.length = 0
    put_slice(&redis.holds, queue)
    put_slice(&redis.holds, channel)
    redis.holds_queue_length = queue.length
    atomic_add(&reply.connection.thread.common.redis_blocked, 1)


cdef void request_forget_wait(Connection* connection) noexcept nogil:
    if connection.redis.read == NULL:
        return
    connection.redis.read = NULL
    buffer_free(&connection.redis.holds)
    atomic_add(&connection.thread.common.redis_blocked, -1)


cdef void request_wait_over(Connection* connection) noexcept nogil:
    cdef Reply* reply = connection.redis.read
    if reply == NULL:
        return
    # Its messages may be on their way already: the core answers once, with them or with nothing.
    post_surely(
        connection.thread, CANCEL, entry_token(connection.thread, reply.entry, True), OVER, strlen(OVER))
    request_forget_wait(connection)


cdef void _put_null(Reply* reply) noexcept nogil:
    if reply.connection.redis.protocol == 3:
        put_bytes(&reply.text, b"_\r\n", 3)
    else:
        put_bytes(&reply.text, b"*-1\r\n", 5)
    reply_is_known(reply)


cdef void request_end_wait(Connection* connection, const char* why) noexcept nogil:
    cdef Reply* reply = connection.redis.read
    if reply == NULL:
        return
    # Its place is free at once: the core answers a CANCEL with nothing.
    post_surely(connection.thread, CANCEL, entry_token(connection.thread, reply.entry, True), b"", 0)
    request_forget_wait(connection)
    reply_is_answered(reply)
    if why == NULL:
        _put_null(reply)
    elif connection.thread.is_draining:
        _refuse(reply, UNAVAILABLE, why, b"SHUTTING_DOWN", 0)
    else:
        _refuse(reply, UNAUTHENTICATED, why, b"UNAUTHENTICATED", 0)


# --- answers -----------------------------------------------------------------------------------

cdef void _leased(Reply* reply, Out* answer) noexcept nogil:
    cdef IoThread* io = reply.connection.thread
    cdef char text[256]
    if answer.length == 0 and reply.wait_ms:
        _put_null(reply)
    elif unread_has_room(reply.connection, answer.length):
        reply.leased, reply.leased_length = answer.payload, answer.length
        reply.counted = unread_add(reply.connection, answer.length)
        answer.payload = NULL
        if reply.leased == NULL:
            put_bytes(&reply.text, b"*0\r\n", 4)
        reply_is_known(reply)
    else:
        leases_give_back(io, answer.payload, answer.length, LEASE)
        snprintf(
            text, sizeof(text),
            b"%lld bytes of answers are not read by their clients yet, and limits.unwritten_bytes_max is "
            b"%lld; read them, or ask for less at a time",
            <long long> unread_total(io.common), <long long> io.common.unread_bytes_max)
        _refuse(reply, RESOURCE_EXHAUSTED, text, b"OVERLOADED", UNREAD_RETRY_MS)


cdef void _acked(Reply* reply, Out* answer) noexcept nogil:
    """An unknown queue or channel is an error; a lost lease is just no ack."""
    cdef Slice refused
    cdef int64_t acked
    if not count_acked(answer.payload, answer.length, &acked, &refused):
        reply_internal(reply)
    elif refused.length and is_nowhere(refused):
        put_status(&reply.text, refused)
        reply_is_known(reply)
    else:
        reply.acked += acked
        if reply.frames_done < reply.frames.length:
            _ack_some(reply)
        else:
            put_integer(&reply.text, reply.acked)
            reply_is_known(reply)


cdef void _pushed(Reply* reply, Out* answer) noexcept nogil:
    cdef bint is_whole
    if reply.kind == ITEM_PUSHES:
        is_whole = put_pushed(&reply.text, answer.payload, answer.length, reply.copies)
    else:
        is_whole = put_pushed_many(&reply.text, answer.payload, answer.length, reply.copies)
        reply.copies = 1
    if is_whole:
        reply_is_known(reply)
    else:
        reply_internal(reply)


cdef Slice _reason_of(const char* status, size_t length) noexcept nogil:
    """Of a google.rpc.Status, whose first detail is an Any of an ErrorInfo."""
    cdef Cursor c
    cdef Fields any
    cdef Fields info
    cdef Slice text
    cdef uint32_t field, kind
    cdef uint64_t number
    c.at, c.end, c.bad = status, status + length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == v1.STATUS_DETAILS and kind == LEN:
            if fields_parse(&any, text.at, text.length):
                if fields_parse(&info, any.text[v1.ANY_VALUE].at, any.text[v1.ANY_VALUE].length):
                    return info.text[v1.ERROR_INFO_REASON]
            break
    text.at, text.length = status, 0
    return text


cdef void _refused_at_script(Reply* reply, Out* order) noexcept nogil:
    """Payload: u32 bytes of the message, message, google.rpc.Status."""
    cdef uint32_t length = read_u32be(order.payload)
    cdef Slice reason = _reason_of(order.payload + 4 + length, order.length - 4 - length)
    cdef char text[600]
    cdef char name[64]
    snprintf(text, sizeof(text), b"%.*s", <int> length, order.payload + 4)
    snprintf(name, sizeof(name), b"%.*s", <int> reason.length, reason.at)
    _refuse(reply, order.status, text, name, 0)


cdef void request_answer(IoThread* io, Reply* reply, Out* answer) noexcept nogil:
    if reply == reply.connection.redis.read:
        request_forget_wait(reply.connection)
    reply_is_answered(reply)
    if answer.kind == ORDER_REFUSED:
        _refused_at_script(reply, answer)
    elif answer.status != OK:
        if reply.kind == ITEM_PUSH_MANY:
            reply.copies = 1
        reply_fail(reply, answer.status, answer.payload, answer.length)
    elif reply.kind == ITEM_LEASE:
        _leased(reply, answer)
    elif reply.kind == ITEM_ACKS:
        _acked(reply, answer)
    else:
        _pushed(reply, answer)
    free(answer.payload)


cdef void request_answered(Connection* connection, Out* order) noexcept nogil:
    cdef Redis* redis = connection.redis
    cdef Reply* reply = redis.asked
    cdef bint was_known = redis.is_known
    redis.caller = read_u64be(order.payload)
    redis.is_known = (order.status & CLIENT_KNOWN) != 0
    redis.protocol = 3 if order.status & CLIENT_SPEAKS_3 else 2
    if redis.is_known != was_known:
        redis.unknown_bytes = 0
    redis.is_welcome = True
    redis.asked = NULL
    if reply != NULL:
        reply_is_answered(reply)
    elif order.length > 8:
        reply = reply_add(connection, ITEM_REPLY)
    if reply != NULL:
        put_bytes(&reply.text, order.payload + 8, order.length - 8)
        reply_is_known(reply)
    if order.status & CLIENT_QUITS:
        redis.is_ending = True
        redis.leaves_at_once = (order.status & CLIENT_LEAVES_AT_ONCE) != 0
    free(order.payload)
