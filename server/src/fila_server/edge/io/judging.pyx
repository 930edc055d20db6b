from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf

from fila_server.core.protocol.commands cimport PERMISSION_DENIED, UNAUTHENTICATED
from fila_server.core.requests.rights cimport CONSUME, RightsTable, rights_holds, rights_on
from fila_server.core.structures.buffer cimport Slice
from fila_server.edge.grpc.consumers cimport consumer_revoked
from fila_server.edge.grpc.producers cimport producer_ends
from fila_server.edge.io.iothread cimport CONSUMER, PRODUCER, PULL, SESSION_CONSUMER, Call
from fila_server.edge.io.sockets cimport atomic_load
from fila_server.edge.redis.connection cimport redis_judge

cdef enum:
    CONNECTIONS_A_TURN = 256        # each has few open calls, and ten thousand at most

cdef int64_t JUDGE_EVERY_NS = 250000000

cdef const char* KEY_GONE = b"the key was revoked or has expired; ask an admin for another"


cdef void _judge(Call* call) noexcept nogil:
    cdef RightsTable* table = call.connection.thread.common.rights
    cdef uint32_t everywhere, somewhere
    cdef Slice queue
    cdef Slice channel
    cdef char text[384]
    if call.caller == 0 or call.is_ended:
        return
    if not rights_holds(table, call.caller):
        if call.shape == PRODUCER:
            producer_ends(call, UNAUTHENTICATED, KEY_GONE, b"UNAUTHENTICATED")
        elif call.shape in (PULL, CONSUMER, SESSION_CONSUMER):
            consumer_revoked(call, UNAUTHENTICATED, KEY_GONE, b"UNAUTHENTICATED")
    elif call.holds.length:
        queue.at, queue.length = call.holds.data, call.holds_queue_length
        channel.at = call.holds.data + queue.length
        channel.length = <uint32_t> call.holds.length - queue.length
        rights_on(table, call.caller, queue, channel, &everywhere, &somewhere)
        if everywhere & CONSUME:
            return
        snprintf(
            text, sizeof(text),
            b"the right on queue \"%.*s\" was taken back while it was in use; an admin gives it with "
            b"fila auth grant",
            <int> queue.length, queue.at)
        consumer_revoked(call, PERMISSION_DENIED, text, b"PERMISSION_DENIED")


cdef bint judging_turn(IoThread* io) noexcept nogil:
    cdef uint64_t generation = <uint64_t> atomic_load(<int64_t*> &io.common.rights.generation)
    cdef Call* call
    cdef Call* following
    cdef int i
    if io.judged == NULL:
        if generation == io.generation or io.now_ns - io.judged_ns < JUDGE_EVERY_NS:
            return False
        io.generation = generation
        io.judged_ns = io.now_ns
        io.judged = io.connections
    for i in range(CONNECTIONS_A_TURN):
        if io.judged == NULL:
            break
        if io.judged.redis != NULL:
            redis_judge(io.judged)
        call = io.judged.calls
        io.judged = io.judged.next
        while call != NULL:
            following = call.next
            _judge(call)
            call = following
    return io.judged != NULL
