from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport strlen

from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport (
    CANCEL, CONSUMER_CLOSE, DELIVERY, END, INVALID_ARGUMENT, LEASE, OK, REPLY, SESSION, WRITTEN,
)
from fila_server.core.protocol.problem cimport Problem
from fila_server.core.protocol.protobuf cimport LEN, VARINT, Fields, fields_parse, put_tag
from fila_server.core.structures.buffer cimport Buffer, buffer_init, put_bytes, put_u8, put_varint
from fila_server.core.threads.mailbox cimport Command, command_free
from fila_server.edge.grpc.nghttp2 cimport NGHTTP2_CANCEL, NGHTTP2_FLAG_NONE, nghttp2_submit_rst_stream
from fila_server.edge.grpc.status cimport CANCELLED, status_of_reply
from fila_server.edge.grpc.submission cimport (
    SUBMITTED, HandedOver, frame_hand_over, frame_parse, outstanding_take, refuse_draining, refuse_problem,
    refuse_unposted, refuse_unread,
)
from fila_server.edge.io.callers cimport caller_holds
from fila_server.edge.io.iothread cimport OPENING_BYTES_MAX, PULL, SESSION_CONSUMER, Parcel
from fila_server.edge.io.leases_within cimport leases_give_back
from fila_server.edge.io.posting cimport post_surely
from fila_server.edge.io.response cimport (
    call_end, call_finish, call_queue, call_refuse, call_sent, call_wait_for_room, connection_mark,
    parcel_add, parcel_fill, parcels_free, respond,
)
from fila_server.edge.io.sockets cimport atomic_add
from fila_server.edge.io.token_entries cimport entry_free, entry_new, entry_token
from fila_server.edge.io.unread cimport unread_add, unread_has_room

cdef enum:
    NS_A_MS = 1000000
    PREFIX = 5                      # of a message on the wire

cdef const char* HALF_CLOSED = b"half-closed"
cdef const char* DRAIN = b"drain"
cdef const char* RELEASE = b"release"
cdef const char* INPUT_ENDED = b"the client closed its side of the connection while it waited for messages"


# --- opening ---------------------------------------------------------------------------------

cdef bint _is_too_long(Call* call, const Received* message) noexcept nogil:
    cdef char text[96]
    if message.length <= OPENING_BYTES_MAX:
        return False
    snprintf(
        text, sizeof(text), b"request must be at most %d bytes, got %zu", <int> OPENING_BYTES_MAX,
        message.length)
    call_refuse(call, INVALID_ARGUMENT, text, b"LIMIT_EXCEEDED")
    return True


cdef void _open(Call* call, int32_t kind, Received* message) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    cdef Problem problem
    cdef HandedOver done
    cdef Command* command = frame_parse(call, kind, message, &problem)
    if command == NULL:
        refuse_problem(call, &problem)
        return
    caller_holds(call, command)
    if not outstanding_take(call):
        command_free(command)
        return
    call.entry = entry_new(io, call, NULL)
    call.is_opening = True
    done = frame_hand_over(io.common, command, entry_token(io, call.entry, call.shape == PULL), False)
    if done != SUBMITTED:
        command_free(command)
        _opened(call)
        _forget(call)
        refuse_unposted(call, done)


cdef void _opened(Call* call) noexcept nogil:
    """The core has answered, or was never asked."""
    if call.is_opening:
        call.is_opening = False
        atomic_add(&call.connection.thread.common.calls_outstanding, -1)


cdef void _forget(Call* call) noexcept nogil:
    if call.entry:
        entry_free(call.connection.thread, call.entry)
        call.entry = 0


cdef void pull_message(Call* call, Received* message) noexcept nogil:
    if _is_too_long(call, message):
        return
    put_bytes(&call.request, message.at, message.length)
    _open(call, LEASE, message)


cdef void consumer_message(Call* call, Received* message) noexcept nogil:
    cdef Received with_peer
    cdef Buffer request
    cdef size_t peer_length
    if call.messages > 1:
        _session_frame(call, message)
        return
    if _is_too_long(call, message):
        return
    # Behind what the client sent, so that what it may have put there does not count.
    peer_length = strlen(call.connection.peer)
    buffer_init(&request)
    put_bytes(&request, message.at, message.length)
    put_u8(&request, seam.OPENER_PEER << 3 | LEN)
    put_u8(&request, <unsigned char> peer_length)
    put_bytes(&request, call.connection.peer, peer_length)
    with_peer.at = with_peer.owned = request.data
    with_peer.length = request.length
    _open(call, call.method.kind, &with_peer)


cdef void _session_frame(Call* call, Received* message) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    cdef Problem problem
    cdef HandedOver done
    cdef Command* command
    if not call.is_open:
        return                      # the core has ended it
    command = frame_parse(call, SESSION, message, &problem)
    if command == NULL:
        refuse_problem(call, &problem)
        return
    done = frame_hand_over(io.common, command, entry_token(io, call.entry, False), True)
    if done != SUBMITTED:
        call.refused_command = command
        call_queue(call)


cdef void session_retry(Call* call) noexcept nogil:
    cdef Command* command = call.refused_command
    if command == NULL:
        return
    if call.is_ended:
        call.refused_command = NULL
        command_free(command)
        return
    if frame_hand_over(call.connection.thread.common, command, command.token, True) == SUBMITTED:
        call.refused_command = NULL
    else:
        call_queue(call)


cdef void session_half_closed(Call* call) noexcept nogil:
    if call.messages == 0:
        call_refuse(
            call, INVALID_ARGUMENT, b"open must be the first frame of a session", b"INVALID_FIELD")
    elif call.entry and call.shape == SESSION_CONSUMER:
        # The core answers what is due, then ends the stream.
        post_surely(
            call.connection.thread, CONSUMER_CLOSE, entry_token(call.connection.thread, call.entry, False),
            HALF_CLOSED, strlen(HALF_CLOSED))


# --- answers ---------------------------------------------------------------------------------

cdef void pull_answer_unread(IoThread* io, Out* answer) noexcept nogil:
    if answer.kind == REPLY and answer.status == OK and answer.length:
        leases_give_back(io, answer.payload, answer.length, LEASE)
    free(answer.payload)


cdef void _put(Call* call, Out* answer, bint is_delivery) noexcept nogil:
    cdef Parcel* parcel = parcel_add(call)
    parcel.is_delivery = is_delivery
    parcel_fill(
        call, parcel, answer.payload, answer.length,
        unread_add(call.connection, answer.length))


cdef int64_t _wait_ns(const Call* call) noexcept nogil:
    cdef Fields fields
    if not fields_parse(&fields, call.request.data, call.request.length):
        return 0
    return <int64_t> (<uint32_t> fields.number[v1.LEASE_REQUEST_WAIT_MS]) * NS_A_MS


cdef void _pulled(Call* call, Out* answer) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    _opened(call)
    _forget(call)
    if answer.status != OK:
        status_of_reply(call, answer.status, answer.payload, answer.length)
        free(answer.payload)
        call_end(call)
    elif unread_has_room(call.connection, answer.length):
        _put(call, answer, False)
        call_finish(call)
    else:
        # It waits for room as long as it meant to wait for messages.
        leases_give_back(io, answer.payload, answer.length, LEASE)
        free(answer.payload)
        if call.room_until_ns == 0:
            call.room_until_ns = io.now_ns + _wait_ns(call)
        call.room_bytes = <uint32_t> answer.length
        call.waits_for_room = True
        call_wait_for_room(call)


cdef void consumer_answer(Call* call, Out* answer) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    if call.is_ended and call.shape == PULL:
        _opened(call)
        _forget(call)
        pull_answer_unread(io, answer)
    elif call.is_ended:
        free(answer.payload)        # CONSUMER_CLOSE follows: what was not written is pending again
    elif call.shape == PULL:
        _pulled(call, answer)
    elif answer.kind == REPLY and answer.status != OK:
        _opened(call)
        _forget(call)               # there is nobody to close
        status_of_reply(call, answer.status, answer.payload, answer.length)
        free(answer.payload)
        call_end(call)
    elif answer.kind == REPLY:
        _opened(call)
        call.is_open = True
        if call.shape == SESSION_CONSUMER:
            _put(call, answer, False)
            respond(call)
        else:
            free(answer.payload)
        call_queue(call)            # what the client sent meanwhile
    elif answer.kind == END:
        if answer.status != OK:
            status_of_reply(call, answer.status, answer.payload, answer.length)
        free(answer.payload)
        call_end(call)
    elif answer.kind == DELIVERY and not unread_has_room(call.connection, answer.length):
        # Not reported as written it still fills its place in the core, which sends no more.
        leases_give_back(io, answer.payload, answer.length, call.method.kind)
        call.room_bytes = <uint32_t> answer.length
        free(answer.payload)
        call.withheld += 1
        call_wait_for_room(call)
    else:
        _put(call, answer, answer.kind == DELIVERY)
        respond(call)


# --- room ------------------------------------------------------------------------------------

cdef bint consumer_waits_for_room(const Call* call) noexcept nogil:
    return call.waits_for_room or call.withheld > 0


cdef void consumer_room(Call* call) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    cdef Received again
    cdef Buffer request
    cdef int64_t left_ns
    if call.is_ended:
        call.waits_for_room = False
        call.withheld = 0
        return
    if call.waits_for_room and io.now_ns >= call.room_until_ns:
        call.waits_for_room = False
        refuse_unread(call)
        return
    if not unread_has_room(call.connection, call.room_bytes):
        return
    if call.waits_for_room:
        call.waits_for_room = False
        left_ns = call.room_until_ns - io.now_ns
        buffer_init(&request)
        put_bytes(&request, call.request.data, call.request.length)
        put_tag(&request, v1.LEASE_REQUEST_WAIT_MS, VARINT)         # of several the last one counts
        put_varint(&request, <uint64_t> (left_ns // NS_A_MS))
        again.at = again.owned = request.data
        again.length = request.length
        _open(call, LEASE, &again)
        return
    while call.withheld:
        call.withheld -= 1
        post_surely(io, WRITTEN, entry_token(io, call.entry, False), b"", 0)


# --- the end ---------------------------------------------------------------------------------

cdef void consumer_drains(Call* call) noexcept nogil:
    if call.is_ended:
        return
    if call.shape == PULL and call.entry:
        # A pull may wait for hours, and has nothing in hand that could be lost.
        consumer_gone(call)
    call.waits_for_room = False
    refuse_draining(call)


cdef void consumer_revoked(
        Call* call, int32_t code, const char* why, const char* reason) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    cdef bint is_cut = call.first != NULL and call.first.done > 0
    if call.shape == PULL:
        consumer_gone(call)
    elif call.entry:
        _opened(call)
        # All it holds is pending again at once, whether it reads or not.
        post_surely(io, CONSUMER_CLOSE, entry_token(io, call.entry, False), RELEASE, strlen(RELEASE))
        _forget(call)
    call.waits_for_room = False
    call.withheld = 0
    parcels_free(call, False)
    if is_cut:
        # The rest of a message whose beginning it has is not its any more, and nothing else may follow that.
        call.is_ended = True
        nghttp2_submit_rst_stream(call.connection.session, NGHTTP2_FLAG_NONE, call.stream_id, NGHTTP2_CANCEL)
        connection_mark(call.connection)
    else:
        call_refuse(call, code, why, reason)


cdef void consumer_input_ended(Call* call) noexcept nogil:
    # Asked for at once it is answered; a session that has said its last is ended by the core.
    if call.is_half_closed and call.shape == SESSION_CONSUMER:
        return
    if call.is_half_closed and call.shape == PULL and _wait_ns(call) == 0:
        return
    consumer_gone(call)
    call.waits_for_room = False
    call_refuse(call, CANCELLED, INPUT_ENDED, b"CANCELLED")


cdef void consumer_gone(Call* call) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    _opened(call)
    if call.shape == PULL and call.first != NULL and call.first.is_ready and call.first.done == 0:
        # Answered, and not a byte of it sent: nobody has these messages.
        leases_give_back(io, call.first.payload, call.first.length - PREFIX, LEASE)
    if call.entry == 0:
        return
    if call.is_over and not call.connection.is_dead:
        call_sent(call)
    if call.shape == PULL:
        # The core answers a CANCEL with nothing; an answer that is on its way already is given back.
        post_surely(io, CANCEL, entry_token(io, call.entry, True), b"", 0)
    elif io.is_draining:
        # A broker that stops is not its consumers' failure: what they hold waits for them over the restart.
        post_surely(io, CONSUMER_CLOSE, entry_token(io, call.entry, False), DRAIN, strlen(DRAIN))
    else:
        post_surely(io, CONSUMER_CLOSE, entry_token(io, call.entry, False), b"", 0)
    _forget(call)
