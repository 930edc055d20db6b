from libc.stdint cimport uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset, strlen

from fila_server.core.protocol.commands cimport CANCEL, LEASE, RESOURCE_EXHAUSTED
from fila_server.core.structures.buffer cimport (
    Buffer, Slice, buffer_free, buffer_init, must_malloc, put_bytes,
)
from fila_server.edge.io.iothread cimport IoThread, Redis
from fila_server.edge.io.leases_within cimport leases_give_back
from fila_server.edge.io.posting cimport post_surely
from fila_server.edge.io.response cimport mark_put, out_room
from fila_server.edge.io.sockets cimport atomic_add
from fila_server.edge.io.token_entries cimport entry_free, entry_token
from fila_server.edge.io.unread cimport unread_give
from fila_server.edge.redis.decoder cimport ITEM_LEASE
from fila_server.edge.redis.encode cimport put_failure, put_leased, put_refusal, retry_ms_of

cdef enum:
    OUT_BYTES_ENOUGH = 65536        # on its way: nothing more is made until the socket has taken some
    SCRATCH_BYTES_KEPT = 2097152

cdef const char* INTERNAL_ERROR = b"-ERR internal error: the broker's answer could not be read\r\n"


cdef Reply* reply_add(Connection* connection, int32_t kind) noexcept nogil:
    cdef Redis* redis = connection.redis
    cdef Reply* reply = <Reply*> must_malloc(sizeof(Reply))
    memset(reply, 0, sizeof(Reply))
    reply.connection = connection
    reply.kind = kind
    reply.copies = 1
    if redis.last == NULL:
        redis.first = reply
    else:
        redis.last.next = reply
    redis.last = reply
    redis.replies += 1
    return reply


cdef void reply_is_known(Reply* reply) noexcept nogil:
    reply.is_ready = True
    reply.connection.redis.ready_bytes += reply.text.length + reply.leased_length


# --- refusals ----------------------------------------------------------------------------------

cdef void _repeat(Reply* reply) noexcept nogil:
    """What the text says is said of each push."""
    cdef size_t length = reply.text.length
    cdef Buffer one = reply.text
    cdef uint32_t i
    if reply.copies > 1:
        buffer_init(&reply.text)
        for i in range(reply.copies):
            put_bytes(&reply.text, one.data, length)
        buffer_free(&one)
    reply_is_known(reply)


cdef void reply_refuse(
        Reply* reply, int32_t code, const char* why, const char* reason, int32_t retry_ms) noexcept nogil:
    cdef Slice text
    cdef Slice name
    text.at, text.length = why, <uint32_t> strlen(why)
    name.at, name.length = reason, <uint32_t> strlen(reason)
    if code == RESOURCE_EXHAUSTED and retry_ms == 0:
        retry_ms = retry_ms_of(code, name)
    put_refusal(&reply.text, code, text, name, retry_ms)
    _repeat(reply)


cdef void reply_fail(Reply* reply, int32_t code, const char* item, size_t length) noexcept nogil:
    put_failure(&reply.text, code, item, length)
    _repeat(reply)


cdef void reply_internal(Reply* reply) noexcept nogil:
    reply.text.length = 0
    put_bytes(&reply.text, INTERNAL_ERROR, strlen(INTERNAL_ERROR))
    _repeat(reply)


# --- the core's answers ------------------------------------------------------------------------

cdef void reply_awaits(Reply* reply) noexcept nogil:
    reply.connection.redis.waiting += 1
    reply.connection.redis.started_bytes += reply.size


cdef void reply_is_answered(Reply* reply) noexcept nogil:
    cdef IoThread* io = reply.connection.thread
    if reply.entry:
        entry_free(io, reply.entry)
        reply.entry = 0
        atomic_add(&io.common.calls_outstanding, -1)
    reply.connection.redis.waiting -= 1
    reply.connection.redis.started_bytes -= reply.size


# --- on their way ------------------------------------------------------------------------------

cdef bint replies_are_many(const Connection* connection) noexcept nogil:
    return (
        connection.out_length - connection.out_done + connection.redis.ready_bytes >= OUT_BYTES_ENOUGH)


cdef void _leased_leave(Connection* connection, Reply* reply) noexcept nogil:
    """Its messages are the client's from here on: should it be gone, they come back as leases end."""
    cdef Buffer* scratch = &connection.thread.scratch
    if not put_leased(scratch, reply.leased, reply.leased_length):
        scratch.length = 0
        put_bytes(scratch, INTERNAL_ERROR, strlen(INTERNAL_ERROR))
    memcpy(out_room(connection, scratch.length), scratch.data, scratch.length)
    scratch.length = 0
    if scratch.capacity > SCRATCH_BYTES_KEPT:
        buffer_free(scratch)
    if reply.counted:
        mark_put(connection, connection.out_made, 0, False, reply.counted)
        reply.counted = 0
    connection.redis.ready_bytes -= reply.leased_length
    free(reply.leased)
    reply.leased = NULL


cdef void _free(Reply* reply) noexcept nogil:
    unread_give(reply.connection, reply.counted)
    free(reply.leased)
    buffer_free(&reply.text)
    buffer_free(&reply.frames)
    free(reply)


cdef void replies_leave(Connection* connection) noexcept nogil:
    cdef Redis* redis = connection.redis
    cdef Reply* reply
    while (
        redis.first != NULL and redis.first.is_ready
        and connection.out_length - connection.out_done < OUT_BYTES_ENOUGH
    ):
        reply = redis.first
        if reply.leased != NULL:
            _leased_leave(connection, reply)
        elif reply.text.length:
            memcpy(out_room(connection, reply.text.length), reply.text.data, reply.text.length)
            redis.ready_bytes -= reply.text.length
        redis.first = reply.next
        if redis.first == NULL:
            redis.last = NULL
        redis.replies -= 1
        _free(reply)


cdef void replies_free(Connection* connection) noexcept nogil:
    cdef IoThread* io = connection.thread
    cdef Redis* redis = connection.redis
    cdef Reply* reply
    while redis.first != NULL:
        reply = redis.first
        redis.first = reply.next
        if reply.entry:
            if reply.kind == ITEM_LEASE:
                # The core answers a CANCEL with nothing; an answer that is on its way already is given back.
                post_surely(io, CANCEL, entry_token(io, reply.entry, True), b"", 0)
            reply_is_answered(reply)
        if reply.leased != NULL:
            leases_give_back(io, reply.leased, reply.leased_length, LEASE)
        _free(reply)
    redis.last = NULL
    redis.replies = 0
