from libc.stddef cimport size_t
from libc.stdint cimport uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove

from fila_server.core.protocol.commands cimport INTERNAL, RESOURCE_EXHAUSTED, UNIMPLEMENTED
from fila_server.core.structures.buffer cimport Buffer, buffer_free, must_realloc, put_bytes, read_u32be
from fila_server.edge.grpc.calls cimport (
    call_discards, call_half_closed, call_is_blocked, call_message, call_retry, input_free,
)
from fila_server.edge.grpc.inflate cimport (
    INFLATED, INFLATED_SO_FAR, INFLATED_TOO_LARGE, Inflated, inflation_begin, inflation_drop, inflation_keep,
    inflation_over, inflation_some,
)
from fila_server.edge.grpc.nghttp2 cimport nghttp2_session_consume_connection, nghttp2_session_consume_stream
from fila_server.edge.grpc.single_request cimport single_keep
from fila_server.edge.grpc.submission cimport Received
from fila_server.edge.io.iothread cimport (
    IDENTITY, PARTIAL_BYTES_FREE, PARTIAL_BYTES_MAX, PENDING_BYTES_MAX, Encoding, IoThread,
)
from fila_server.edge.io.response cimport call_queue, call_refuse, connection_mark

cdef enum:
    PREFIX = 5
    PARTIAL_BYTES_FIRST = 16384     # a prefix alone takes no more memory, whatever length it announces
    INFLATED_BYTES_A_TURN = 1048576 # some 3 ms, 13 at worst: then the other connections have their turn
    HEALTH_BYTES_MAX = 4096         # of a request that anybody may send: the name of a service


cdef void intake_discard(Connection* connection, int stream_id, size_t length) noexcept nogil:
    nghttp2_session_consume_connection(connection.session, length)
    nghttp2_session_consume_stream(connection.session, stream_id, length)
    connection_mark(connection)


cdef inline uint32_t _bytes_max(const Call* call) noexcept nogil:
    cdef uint32_t most = call.connection.thread.common.message_bytes_max
    return min(most, <uint32_t> HEALTH_BYTES_MAX) if call.is_open_to_all else most


cdef void _refuse_too_large(Call* call, size_t length) noexcept nogil:
    """`length` is 0 of a message that was inflated as far as is taken, and goes on."""
    cdef char text[256]
    cdef const char* then = (
        b"it names one service" if call.is_open_to_all
        else b"send several smaller ones, or ask an operator to raise limits.batch_bytes_max")
    if length:
        snprintf(
            text, sizeof(text), b"the message has %zu bytes; at most %u are taken: %s", length,
            _bytes_max(call), then)
    else:
        snprintf(
            text, sizeof(text),
            b"the message has more than %u bytes once it is inflated, the most that is taken: %s",
            _bytes_max(call), then)
    call_refuse(call, RESOURCE_EXHAUSTED, text, b"LIMIT_EXCEEDED")


cdef void _inflated(Call* call, Received* message) noexcept nogil:
    """A message whose prefix says that it is compressed."""
    cdef IoThread* io = call.connection.thread
    cdef Inflated how
    if call.encoding == IDENTITY:
        call_refuse(
            call, INTERNAL, b"a message is marked as compressed, and grpc-encoding does not say how",
            b"INTERNAL")
        return
    how = inflation_begin(&io.inflation, <Encoding> call.encoding, message.at, message.length)
    if how == INFLATED_SO_FAR:
        how = inflation_some(&io.inflation, _bytes_max(call), INFLATED_BYTES_A_TURN, &io.inflated_bytes)
    if how != INFLATED_SO_FAR:
        _inflated_whole(call, how)
        return
    io.inflation.call = call            # see intake_turn
    inflation_keep(&io.inflation, message.owned)
    message.owned = NULL


cdef void _inflated_whole(Call* call, Inflated how) noexcept nogil:
    """Or as far as it can be."""
    cdef IoThread* io = call.connection.thread
    cdef Buffer whole = io.inflation.whole
    cdef Received plain
    inflation_over(&io.inflation)
    if how == INFLATED:
        plain.at = plain.owned = whole.data
        plain.length = whole.length
        call_message(call, &plain)
        free(plain.owned)
        return
    buffer_free(&whole)
    if how == INFLATED_TOO_LARGE:
        _refuse_too_large(call, 0)
    else:
        call_refuse(call, INTERNAL, b"a message is not what grpc-encoding says", b"INTERNAL")


cdef void intake_turn(IoThread* io) noexcept nogil:
    cdef Call* call = io.inflation.call
    cdef Inflated how
    if call == NULL:
        return
    if call_discards(call):
        inflation_drop(&io.inflation)
    else:
        how = inflation_some(
            &io.inflation, io.common.message_bytes_max, INFLATED_BYTES_A_TURN, &io.inflated_bytes)
        if how == INFLATED_SO_FAR:
            return
        _inflated_whole(call, how)
    call_queue(call)                    # behind those that wait to be inflated


cdef void _whole(Call* call, const char* at, size_t length, char* owned) noexcept nogil:
    cdef Received message
    message.at, message.length, message.owned = at, length, owned
    if call.prefix[0] == 0:
        call_message(call, &message)
    elif call.prefix[0] == 1:
        _inflated(call, &message)
    else:
        call_refuse(call, INTERNAL, b"a message's first byte must be 0 or 1", b"INTERNAL")
    free(message.owned)
    call.prefix_got = 0


cdef bint _grow_partial(Call* call, size_t wanted) noexcept nogil:
    """Room for so much of a half-read message; doubled, so that only what was sent takes memory."""
    cdef IoThread* io = call.connection.thread
    cdef size_t capacity = max(<size_t> call.partial_capacity * 2, max(wanted, <size_t> PARTIAL_BYTES_FIRST))
    if wanted <= call.partial_capacity:
        return True
    capacity = min(capacity, <size_t> call.partial_length)
    if call.partial_capacity > PARTIAL_BYTES_FREE:
        io.partial_bytes -= call.partial_capacity
    call.partial = <char*> must_realloc(call.partial, capacity)
    call.partial_capacity = <uint32_t> capacity
    if capacity > PARTIAL_BYTES_FREE:
        io.partial_bytes += capacity
    if io.partial_bytes <= PARTIAL_BYTES_MAX or capacity <= PARTIAL_BYTES_FREE:
        return True
    call_refuse(
        call, RESOURCE_EXHAUSTED, b"too many large messages are being received at a time; send fewer at once",
        b"OVERLOADED")
    return False


cdef size_t _part(Call* call, const char* at, size_t length) noexcept nogil:
    """The next piece of a message that does not lie in one piece."""
    cdef size_t some = min(<size_t> (call.partial_length - call.partial_got), length)
    cdef char* owned
    call.partial_ns = call.connection.thread.now_ns
    if not _grow_partial(call, call.partial_got + some):
        return length
    memcpy(call.partial + call.partial_got, at, some)
    call.partial_got += <uint32_t> some
    if call.partial_got == call.partial_length:
        if call.partial_capacity > PARTIAL_BYTES_FREE:
            call.connection.thread.partial_bytes -= call.partial_capacity
        owned = call.partial
        call.partial = NULL
        call.partial_capacity = call.partial_got = 0
        _whole(call, owned, call.partial_length, owned)
    return some


cdef bint _begin_message(Call* call) noexcept nogil:
    call.partial_length = read_u32be(<const char*> call.prefix + 1)
    call.partial_got = 0
    if call.partial_length <= _bytes_max(call):
        return True
    _refuse_too_large(call, call.partial_length)
    return False


cdef inline bint _waits_to_be_inflated(const Call* call, char next) noexcept nogil:
    """The message at hand, or the one that begins with the next byte: one is inflated at a time."""
    cdef const IoThread* io = call.connection.thread
    cdef bint is_compressed = (call.prefix[0] if call.prefix_got else <unsigned char> next) == 1
    return is_compressed and (io.inflation.call != NULL or io.inflated_bytes >= INFLATED_BYTES_A_TURN)


cdef size_t _eat(Call* call, const char* at, size_t length) noexcept nogil:
    """How many of the bytes the call took; fewer than there are when it is blocked."""
    cdef size_t done = 0
    while done < length:
        if call_discards(call):
            return length
        if call.is_open_to_all and call.messages:
            # While Python is busy with the first, a stranger's others would be kept.
            call_refuse(call, UNIMPLEMENTED, b"this method takes one message a call", b"UNIMPLEMENTED")
            return length
        if call_is_blocked(call) or call.connection.thread.inflation.call == call:
            return done
        if _waits_to_be_inflated(call, at[done]):
            call_queue(call)
            return done
        if call.prefix_got < PREFIX:
            if call.prefix_got == 0:
                call.partial_ns = call.connection.thread.now_ns
            call.prefix[call.prefix_got] = at[done]
            call.prefix_got += 1
            done += 1
            if call.prefix_got < PREFIX:
                continue
            if not _begin_message(call):
                return length
            if call.partial_length and done == length:
                return done
            if length - done >= call.partial_length:        # all of it is here: it is not copied together
                done += call.partial_length
                _whole(call, at + done - call.partial_length, call.partial_length, NULL)
            continue
        done += _part(call, at + done, length - done)
    return done


cdef void _give_back(Call* call) noexcept nogil:
    """To the stream's window: all but what is kept."""
    cdef size_t kept = call.pending.length - call.pending_done
    if call.held > kept:
        nghttp2_session_consume_stream(call.connection.session, call.stream_id, call.held - kept)
        call.held = <uint32_t> kept
        connection_mark(call.connection)


cdef void intake_bytes(Call* call, const char* at, size_t length) noexcept nogil:
    cdef Connection* connection = call.connection
    cdef size_t done
    if call_discards(call):
        intake_discard(connection, call.stream_id, length)
        return
    call.held += <uint32_t> length
    done = _eat(call, at, length) if call.pending.length == 0 else 0
    if done < length and not call_discards(call):
        put_bytes(&call.pending, at + done, length - done)
        connection.pending_bytes += length - done
    if connection.pending_bytes > PENDING_BYTES_MAX:
        connection.window_held += length
    else:
        nghttp2_session_consume_connection(connection.session, length)
    _give_back(call)


cdef inline void _forget_pending(Call* call) noexcept nogil:
    call.connection.pending_bytes -= call.pending.length - call.pending_done
    buffer_free(&call.pending)
    call.pending_done = 0


cdef void intake_again(Call* call) noexcept nogil:
    cdef Connection* connection = call.connection
    cdef size_t done
    call_retry(call)
    if call_discards(call):
        input_free(call)
    elif call.pending.length:
        done = _eat(call, call.pending.data + call.pending_done, call.pending.length - call.pending_done)
        single_keep(connection.thread)
        call.pending_done += done
        connection.pending_bytes -= done
        if call.pending_done == call.pending.length or call_discards(call):
            _forget_pending(call)
        elif call.pending_done > call.pending.length // 2:
            call.pending.length -= call.pending_done
            memmove(call.pending.data, call.pending.data + call.pending_done, call.pending.length)
            call.pending_done = 0
    if connection.window_held and connection.pending_bytes <= PENDING_BYTES_MAX:
        nghttp2_session_consume_connection(connection.session, connection.window_held)
        connection.window_held = 0
    _give_back(call)
    intake_end(call)


cdef void intake_end(Call* call) noexcept nogil:
    if (
        call.is_half_closed and not call.half_close_taken and call.pending.length == 0
        and call.refused_command == NULL and call.connection.thread.inflation.call != call
    ):
        call_half_closed(call)
