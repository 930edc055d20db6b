from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.protocol.commands cimport INTERNAL, OK, REPLY, RESOURCE_EXHAUSTED, UNIMPLEMENTED
from fila_server.core.structures.buffer cimport (
    Buffer, buffer_free, buffer_init, must_malloc, put_bytes, read_u32be,
)
from fila_server.core.structures.timers cimport timer_cancel, timer_set
from fila_server.core.threads.mailbox cimport command_free
from fila_server.edge.grpc.consumers cimport (
    consumer_answer, consumer_drains, consumer_gone, consumer_input_ended, consumer_message, consumer_room,
    consumer_waits_for_room, pull_answer_unread, pull_message, session_half_closed, session_retry,
)
from fila_server.edge.grpc.inflate cimport inflation_drop
from fila_server.edge.grpc.nghttp2 cimport (
    NGHTTP2_CANCEL, NGHTTP2_FLAG_NONE, nghttp2_session_consume_connection, nghttp2_submit_rst_stream,
)
from fila_server.edge.grpc.producers cimport (
    parcel_answer, producer_drains, producer_ends, producer_frame, producer_half_closed, producer_is_slowed,
    producer_retry, producer_room, unary_message,
)
from fila_server.edge.grpc.single_request cimport single_free, single_put, single_take
from fila_server.edge.grpc.status cimport CANCELLED, DEADLINE_EXCEEDED
from fila_server.edge.grpc.submission cimport outstanding_is_full, refuse_draining
from fila_server.edge.io.bridge cimport (
    EVENT_CALL, EVENT_GONE, EVENT_HALF_CLOSED, EVENT_MESSAGE, ORDER_END, ORDER_MORE, ORDER_REFUSED,
    ORDER_ROUTED, ORDER_SEND, event_put,
)
from fila_server.edge.io.callers cimport caller_enter, caller_leaves, caller_offered, caller_report
from fila_server.edge.io.iothread cimport (
    CONSUMER, FRAMES_OWED_MAX, HEADER_LIST_BYTES_MAX, INBOX_FRAMES_MAX, PARTIAL_BYTES_FREE, PRODUCER, PULL,
    SESSION_CONSUMER, TIMEOUT_MALFORMED, TO_PYTHON, UNARY, UNKNOWN_ENCODING, Common, Parcel, TokenEntry,
)
from fila_server.edge.io.response cimport (
    call_end, call_queue, call_refuse, connection_mark, http_answer, parcel_add, parcel_fill, parcels_free,
    respond,
)
from fila_server.edge.io.token_entries cimport entry_find, entry_free, entry_new, entry_token, token_is_pull
from fila_server.edge.io.unread cimport unread_is_refused

cdef enum:
    THROWN_AWAY_BYTES_MAX = 1048576 # of a request that is not gRPC

cdef const char* INPUT_ENDED = b"the client closed its side of the connection before its request ended"


cdef Call* call_new(Connection* connection, int32_t stream_id) noexcept nogil:
    cdef Call* call = <Call*> must_malloc(sizeof(Call))
    memset(call, 0, sizeof(Call))
    call.connection = connection
    call.stream_id = stream_id
    call.shape = TO_PYTHON
    call.next = connection.calls
    if call.next != NULL:
        call.next.previous = call
    connection.calls = call
    return call


cdef void call_begin(Call* call) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    call.partial_ns = io.now_ns
    if not call.is_post or not call.has_content_type:
        # As PROTOCOL-HTTP2 asks for what is not gRPC.
        call.http_status = b"415" if call.is_post else b"405"
        call.caller = 0
    elif call.header_bytes > HEADER_LIST_BYTES_MAX:
        call_refuse(
            call, RESOURCE_EXHAUSTED, b"the call's metadata is larger than 64 KiB; send less",
            b"LIMIT_EXCEEDED")
    elif call.encoding == UNKNOWN_ENCODING:
        call_refuse(
            call, UNIMPLEMENTED, b"grpc-encoding is none of identity, gzip and deflate", b"UNIMPLEMENTED")
    elif not call.has_te:
        call_refuse(
            call, INTERNAL,
            b"te: must be \"trailers\"; a proxy on the way that drops it would drop the status too",
            b"INVALID_FIELD")
    elif call.timeout_ns == TIMEOUT_MALFORMED:
        call_refuse(
            call, INTERNAL, b"grpc-timeout: must be one to eight digits and one of H, M, S, m, u, n",
            b"INVALID_FIELD")
    elif io.is_draining and call.shape != TO_PYTHON:
        refuse_draining(call)
    else:
        if call.timeout_ns:
            timer_set(&io.timers, &call.timer, io.now_ns + call.timeout_ns)
        if caller_enter(call) and call.shape == TO_PYTHON and caller_offered(call):
            call.entry = entry_new(io, call, NULL)
            caller_report(call)
            event_put(
                io.common, EVENT_CALL, entry_token(io, call.entry, False), call.timeout_ns, NULL,
                &call.metadata)
    # Python has it, or nobody wants it: a call may stay open for long.
    buffer_free(&call.metadata)


cdef void _to_python(Call* call, Received* message) noexcept nogil:
    cdef Buffer payload
    buffer_init(&payload)
    if message.owned != NULL:
        payload.data = message.owned
        payload.length = payload.capacity = message.length
        message.owned = NULL
    else:
        put_bytes(&payload, message.at, message.length)
    call.is_paused = True
    event_put(
        call.connection.thread.common, EVENT_MESSAGE,
        entry_token(call.connection.thread, call.entry, False), 0,
        NULL, &payload)


cdef void call_message(Call* call, Received* message) noexcept nogil:
    call.messages += 1
    if call.shape == TO_PYTHON:
        _to_python(call, message)
    elif call.shape == PRODUCER:
        producer_frame(call, message)
    elif call.shape == SESSION_CONSUMER:
        consumer_message(call, message)
    elif call.messages > 1:
        call_refuse(call, UNIMPLEMENTED, b"this method takes one message a call", b"UNIMPLEMENTED")
    else:
        single_put(call, message)


cdef void _run_single(Call* call) noexcept nogil:
    cdef Received message
    single_take(call, &message)
    if call.shape == UNARY:
        unary_message(call, &message)
    elif call.shape == PULL:
        pull_message(call, &message)
    else:
        consumer_message(call, &message)
    free(message.owned)


cdef void call_half_closed(Call* call) noexcept nogil:
    call.half_close_taken = True
    if call.is_ended:
        return
    if call.http_status != NULL:
        http_answer(call)
        return
    if call.prefix_got:
        call_refuse(call, INTERNAL, b"the stream ended inside a message", b"INTERNAL")
    elif call.shape == TO_PYTHON:
        event_put(
            call.connection.thread.common, EVENT_HALF_CLOSED,
            entry_token(call.connection.thread, call.entry, False), 0, NULL, NULL)
    elif call.shape == PRODUCER:
        producer_half_closed(call)
    elif call.shape == SESSION_CONSUMER:
        session_half_closed(call)
    elif call.messages == 0:
        call_refuse(
            call, UNIMPLEMENTED, b"this method takes one message a call, and there was none",
            b"UNIMPLEMENTED")
    else:
        _run_single(call)


cdef bint call_is_blocked(Call* call) noexcept nogil:
    cdef Common* common = call.connection.thread.common
    if call.refused_command != NULL:
        return True
    if call.shape == PRODUCER:
        if call.caller and call.prefix_got == 0 and producer_is_slowed(call):
            return True
        if outstanding_is_full(common) or unread_is_refused(common):
            call_queue(call)            # others make room, and nobody tells this call
            return True
        return call.is_at_hooks or call.parcels >= FRAMES_OWED_MAX
    if call.shape == SESSION_CONSUMER:
        return call.is_opening or call.parcels >= INBOX_FRAMES_MAX
    return call.is_paused


cdef bint call_discards(Call* call) noexcept nogil:
    return call.is_ended or call.last_is_known or call.is_unwelcome or call.http_status != NULL


cdef void call_threw_away(Call* call, size_t length) noexcept nogil:
    """What is not gRPC is read to its end, so that its answer is seen, but not for ever."""
    if call.http_status == NULL or call.is_ended:
        return
    call.thrown_away += <uint32_t> length
    if call.thrown_away > THROWN_AWAY_BYTES_MAX:
        http_answer(call)


cdef void call_retry(Call* call) noexcept nogil:
    if call.shape == PRODUCER:
        producer_retry(call)
    elif call.shape == SESSION_CONSUMER:
        session_retry(call)


cdef void call_room(IoThread* io) noexcept nogil:
    cdef Call* call = io.withheld
    cdef Call* following
    io.withheld = NULL
    while call != NULL:
        following = call.next_withheld
        call.is_withheld_queued = False
        if call.is_gone:
            call_free(call)
        else:
            if call.shape == PRODUCER:
                producer_room(call)
            else:
                consumer_room(call)
            if (call.slowed_until_ns or consumer_waits_for_room(call)) and not call.is_withheld_queued:
                call.is_withheld_queued = True
                call.next_withheld = io.withheld
                io.withheld = call
        call = following


cdef void call_expires(Call* call) noexcept nogil:
    if call.is_ended:
        # Its client reads no more, or is gone: what it did not read in time it does not want.
        nghttp2_submit_rst_stream(call.connection.session, NGHTTP2_FLAG_NONE, call.stream_id, NGHTTP2_CANCEL)
        connection_mark(call.connection)
        return
    call_refuse(call, DEADLINE_EXCEEDED, b"Deadline Exceeded", b"DEADLINE_EXCEEDED")
    # And the same again for a client that does not read the end.
    timer_set(&call.connection.thread.timers, &call.timer, call.connection.thread.now_ns + 1000000000)


cdef void call_drains(Call* call) noexcept nogil:
    if call.shape == PRODUCER:
        producer_drains(call)
    elif call.shape in (PULL, CONSUMER, SESSION_CONSUMER):
        consumer_drains(call)


cdef void call_input_ended(Call* call) noexcept nogil:
    if call.is_ended:
        return
    if call.http_status != NULL:
        http_answer(call)
    elif call.shape == PRODUCER:
        if not call.is_half_closed:
            producer_ends(call, CANCELLED, INPUT_ENDED, b"CANCELLED")
    elif call.shape in (PULL, CONSUMER, SESSION_CONSUMER):
        consumer_input_ended(call)
    elif not call.is_half_closed:
        call_refuse(call, CANCELLED, INPUT_ENDED, b"CANCELLED")


# --- the end ---------------------------------------------------------------------------------

cdef void input_free(Call* call) noexcept nogil:
    cdef Connection* connection = call.connection
    if call.partial_capacity > PARTIAL_BYTES_FREE:
        connection.thread.partial_bytes -= call.partial_capacity
    if connection.thread.inflation.call == call:
        inflation_drop(&connection.thread.inflation)
    free(call.partial)
    call.partial = NULL
    call.partial_capacity = call.partial_got = call.partial_length = 0
    connection.pending_bytes -= call.pending.length - call.pending_done
    buffer_free(&call.pending)
    call.pending_done = 0
    if connection.window_held and not connection.is_dead:
        nghttp2_session_consume_connection(connection.session, connection.window_held)
        connection.window_held = 0


cdef void call_gone(Call* call) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    timer_cancel(&io.timers, &call.timer)
    if call.is_at_hooks:
        event_put(io.common, EVENT_GONE, call.hook_token, 0, NULL, NULL)
    if call.shape == TO_PYTHON:
        if call.entry:
            event_put(
                io.common, EVENT_GONE, entry_token(io, call.entry, False), call.is_over, NULL, NULL)
            entry_free(io, call.entry)
            call.entry = 0
    elif call.shape in (PULL, CONSUMER, SESSION_CONSUMER):
        consumer_gone(call)
    caller_leaves(call)
    single_free(call)
    parcels_free(call, False)
    if call.refused_command != NULL:
        command_free(call.refused_command)
        call.refused_command = NULL
    input_free(call)
    if call.previous != NULL:
        call.previous.next = call.next
    else:
        call.connection.calls = call.next
    if call.next != NULL:
        call.next.previous = call.previous
    call.is_gone = True
    call_free(call)


cdef void call_free(Call* call) noexcept nogil:
    if call.is_queued or call.is_withheld_queued:
        return
    buffer_free(&call.traceparent)
    buffer_free(&call.tracestate)
    buffer_free(&call.metadata)
    buffer_free(&call.request)
    buffer_free(&call.holds)
    buffer_free(&call.message)
    buffer_free(&call.details)
    free(call)


# --- answers and orders ----------------------------------------------------------------------

cdef void _end_as_reported(Call* call, Out* order) noexcept nogil:
    cdef uint32_t length = read_u32be(order.payload)
    if call.is_ended:
        return
    call.status = order.status
    call.message.length = call.details.length = 0
    put_bytes(&call.message, order.payload + 4, length)
    put_bytes(&call.details, order.payload + 4 + length, order.length - 4 - length)
    call_end(call)


cdef void _order(TokenEntry* entry, Out* order) noexcept nogil:
    cdef Call* call = entry.call
    cdef Parcel* parcel
    if order.kind == ORDER_SEND and not call.is_ended:
        parcel = parcel_add(call)
        parcel.is_reported = True
        parcel_fill(call, parcel, order.payload, order.length, 0)
        parcel.prefix[0] = <char> order.status      # 1: compressed, as the request said that it is
        order.payload = NULL
        respond(call)
    elif order.kind == ORDER_END or order.kind == ORDER_REFUSED:
        call.is_at_hooks = False
        _end_as_reported(call, order)
    elif order.kind == ORDER_MORE:
        call.is_paused = False
        call_queue(call)
    elif order.kind == ORDER_ROUTED:
        call.is_at_hooks = False
        call_queue(call)


cdef void answer_take(IoThread* io, Out* answer) noexcept nogil:
    cdef TokenEntry* entry = entry_find(io, answer.token)
    if answer.kind >= ORDER_SEND:
        if entry != NULL:
            _order(entry, answer)
        free(answer.payload)
    elif entry != NULL and entry.parcel != NULL:
        parcel_answer(entry.call, entry.parcel, answer)
    elif entry != NULL:
        consumer_answer(entry.call, answer)
    elif token_is_pull(answer.token):
        pull_answer_unread(io, answer)
    else:
        free(answer.payload)
