from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove, memset, strlen

from fila_server.core.protocol.commands cimport OK, WRITTEN
from fila_server.core.structures.buffer cimport (
    Buffer, buffer_free, buffer_init, must_malloc, must_realloc, write_u32be,
)
from fila_server.edge.grpc.nghttp2 cimport (
    NGHTTP2_DATA_FLAG_EOF, NGHTTP2_DATA_FLAG_NO_COPY, NGHTTP2_DATA_FLAG_NO_END_STREAM, NGHTTP2_ERR_DEFERRED,
    nghttp2_data_provider, nghttp2_nv, nghttp2_session_resume_data, nghttp2_submit_response,
    nghttp2_submit_trailer,
)
from fila_server.edge.grpc.status cimport TRAILERS_MAX, nv_put, status_refuse, trailers_put
from fila_server.edge.io.iothread cimport GZIP, IoThread, Mark
from fila_server.edge.io.posting cimport post_surely
from fila_server.edge.io.sockets cimport atomic_add
from fila_server.edge.io.token_entries cimport entry_free, entry_token
from fila_server.edge.io.unread cimport unread_give

cdef enum:
    # a byte that says whether it is compressed, and the length (PROTOCOL-HTTP2)
    PREFIX = 5
    FRAME_HEAD = 9
    HEADERS_MAX = 4                 # before the trailers
    OUT_BYTES_FIRST = 512           # of a connection: ten thousand that only wait are not to have pages of it

cdef const char* CONTENT_TYPE = b"application/grpc"
cdef const char* ACCEPTS = b"identity,deflate,gzip"
cdef const char* NOT_A_POST = (
    b"This port speaks gRPC, whose requests are POST. For HTTP there is a gateway: fila http.\n")
cdef const char* NOT_GRPC = (
    b"This port speaks gRPC: a request has content-type application/grpc. For HTTP and JSON there is a "
    b"gateway: fila http.\n")


# --- parcels ---------------------------------------------------------------------------------

cdef Parcel* parcel_add(Call* call) noexcept nogil:
    cdef Parcel* parcel = <Parcel*> must_malloc(sizeof(Parcel))
    memset(parcel, 0, sizeof(Parcel))
    if call.last == NULL:
        call.first = parcel
    else:
        call.last.next = parcel
    call.last = parcel
    call.parcels += 1
    call.owed += 1
    return parcel


cdef void parcel_fill(
        Call* call, Parcel* parcel, char* payload, size_t length, uint32_t counted) noexcept nogil:
    parcel.payload = payload
    parcel.length = length + PREFIX
    parcel.counted = counted
    parcel.prefix[0] = 0
    write_u32be(parcel.prefix + 1, <uint32_t> length)
    parcel.is_ready = True
    call.owed -= 1


cdef void _parcel_free(Call* call, Parcel* parcel) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    if parcel.entry:
        entry_free(io, parcel.entry)
        atomic_add(&io.common.calls_outstanding, -1)
    if not parcel.is_ready:
        call.owed -= 1
    unread_give(call.connection, parcel.counted)
    call.parcels -= 1
    free(parcel.payload)
    free(parcel)


cdef void parcels_free(Call* call, bint unanswered_only) noexcept nogil:
    cdef Parcel** at = &call.first
    cdef Parcel* parcel
    call.last = NULL
    while at[0] != NULL:
        parcel = at[0]
        if unanswered_only and parcel.is_ready:
            call.last = parcel
            at = &parcel.next
        else:
            at[0] = parcel.next
            _parcel_free(call, parcel)


# --- what nghttp2 asks for -------------------------------------------------------------------

cdef ssize_t _data_read(
        nghttp2_session* session, int32_t stream_id, uint8_t* to, size_t length, uint32_t* flags,
        nghttp2_data_source* source, void* user) noexcept nogil:
    """How much of the call's parcels the next DATA frame takes; `data_send` copies it."""
    cdef Call* call = <Call*> source.ptr
    cdef Parcel* parcel = call.first
    cdef size_t ready = 0
    cdef bint all_of_it
    while parcel != NULL and parcel.is_ready and ready < length:
        ready += parcel.length - parcel.done
        parcel = parcel.next
    all_of_it = parcel == NULL and ready <= length
    if ready > length:
        ready = length
    if ready == 0 and not (all_of_it and call.is_ended):
        call.is_deferred = True
        return NGHTTP2_ERR_DEFERRED
    flags[0] |= NGHTTP2_DATA_FLAG_NO_COPY
    if all_of_it and call.is_ended:
        flags[0] |= NGHTTP2_DATA_FLAG_EOF
        if call.http_status != NULL:
            call.is_over = True
        else:
            # The trailers end the stream, not this frame.
            flags[0] |= NGHTTP2_DATA_FLAG_NO_END_STREAM
            _trailers(call)
    return <ssize_t> ready


cdef void _trailers(Call* call) noexcept nogil:
    cdef nghttp2_nv trailers[TRAILERS_MAX]
    cdef Buffer room
    cdef size_t count
    buffer_init(&room)
    count = trailers_put(call, trailers, &room)
    nghttp2_submit_trailer(call.connection.session, call.stream_id, trailers, count)
    buffer_free(&room)
    call.is_over = True


cdef char* out_room(Connection* connection, size_t length) noexcept nogil:
    if connection.out_length + length > connection.out_capacity:
        if connection.out_done:
            connection.out_length -= connection.out_done
            memmove(connection.out, connection.out + connection.out_done, connection.out_length)
            connection.out_done = 0
        if connection.out_length + length > connection.out_capacity:
            connection.out_capacity = max((connection.out_length + length) * 2, <size_t> OUT_BYTES_FIRST)
            connection.out = <char*> must_realloc(connection.out, connection.out_capacity)
    connection.out_length += length
    connection.out_made += length
    return connection.out + connection.out_length - length


cdef int data_send(
        nghttp2_session* session, nghttp2_frame* frame, const uint8_t* head, size_t length,
        nghttp2_data_source* source, void* user) noexcept nogil:
    cdef Connection* connection = <Connection*> user
    cdef Call* call = <Call*> source.ptr
    cdef char* to = out_room(connection, FRAME_HEAD + length)
    cdef uint64_t end = connection.out_made - length     # where what follows begins
    cdef Parcel* parcel
    cdef size_t some
    memcpy(to, head, FRAME_HEAD)
    to += FRAME_HEAD
    while length:
        parcel = call.first
        if parcel.done < PREFIX:
            some = min(PREFIX - parcel.done, length)
            memcpy(to, parcel.prefix + parcel.done, some)
        else:
            some = min(parcel.length - parcel.done, length)
            memcpy(to, parcel.payload + parcel.done - PREFIX, some)
        parcel.done += some
        to += some
        end += some
        length -= some
        if parcel.done == parcel.length:
            _parcel_sent(call, parcel, end)
    connection.ping_strikes = 0     # a client that gets data may measure the way
    connection.trifles = 0
    return 0


cdef void mark_put(
        Connection* connection, uint64_t at, uint64_t token, bint is_delivery,
        uint32_t counted) noexcept nogil:
    cdef Mark* mark
    cdef Mark* ring
    cdef uint32_t capacity, i
    if connection.marks_count == connection.marks_capacity:
        capacity = connection.marks_capacity * 2 + 16
        ring = <Mark*> must_malloc(capacity * sizeof(Mark))
        for i in range(connection.marks_count):
            ring[i] = connection.marks[(connection.marks_first + i) % connection.marks_capacity]
        free(connection.marks)
        connection.marks, connection.marks_capacity, connection.marks_first = ring, capacity, 0
    i = (connection.marks_first + connection.marks_count) % connection.marks_capacity
    mark = &connection.marks[i]
    connection.marks_count += 1
    mark.at = at
    mark.token = token
    mark.is_delivery = is_delivery
    mark.counted = counted


cdef void _parcel_sent(Call* call, Parcel* parcel, uint64_t end) noexcept nogil:
    """All of it is in the out buffer: a mark says when the socket has taken it."""
    cdef Connection* connection = call.connection
    cdef uint64_t token = 0
    call.first = parcel.next
    if call.first == NULL:
        call.last = NULL
    if parcel.is_delivery or parcel.is_reported or parcel.counted:
        if call.entry and (parcel.is_delivery or parcel.is_reported):
            token = entry_token(connection.thread, call.entry, False)
        mark_put(connection, end, token, parcel.is_delivery, parcel.counted)
        parcel.counted = 0
    _parcel_free(call, parcel)
    if call.pending.length:
        call_queue(call)                # its input may have waited for this


cdef void call_sent(Call* call) noexcept nogil:
    cdef Connection* connection = call.connection
    cdef uint64_t token = entry_token(connection.thread, call.entry, False)
    cdef Mark* mark
    cdef uint32_t i
    for i in range(connection.marks_count):
        mark = &connection.marks[(connection.marks_first + i) % connection.marks_capacity]
        if mark.is_delivery and mark.token == token:
            mark.token = 0
            post_surely(connection.thread, WRITTEN, token, b"", 0)


# --- what calls do ---------------------------------------------------------------------------

cdef void connection_mark(Connection* connection) noexcept nogil:
    if not connection.is_dirty:
        connection.is_dirty = True
        connection.next_dirty = connection.thread.dirty
        connection.thread.dirty = connection


cdef void call_queue(Call* call) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    if call.is_queued:
        return
    call.is_queued = True
    call.next_queued = NULL
    if io.queued == NULL:
        io.queued = call
    else:
        io.queued_last.next_queued = call
    io.queued_last = call


cdef void call_wait_for_room(Call* call) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    if not call.is_withheld_queued:
        call.is_withheld_queued = True
        call.next_withheld = io.withheld
        io.withheld = call


cdef void respond(Call* call) noexcept nogil:
    cdef nghttp2_nv headers[HEADERS_MAX + TRAILERS_MAX]
    cdef nghttp2_data_provider provider
    cdef Buffer room
    cdef const char* encoding
    cdef size_t count = 3
    connection_mark(call.connection)
    if call.is_started:
        if call.is_deferred:
            call.is_deferred = False
            nghttp2_session_resume_data(call.connection.session, call.stream_id)
        return
    if not call.is_ended and (call.first == NULL or not call.first.is_ready):
        return
    call.is_started = True
    nv_put(&headers[0], b":status", b"200", 3)
    nv_put(&headers[1], b"content-type", CONTENT_TYPE, strlen(CONTENT_TYPE))
    nv_put(&headers[2], b"grpc-accept-encoding", ACCEPTS, strlen(ACCEPTS))
    if call.first != NULL and call.first.prefix[0]:
        # In the request's own encoding: its client reads it, too.
        encoding = b"gzip" if call.encoding == GZIP else b"deflate"
        nv_put(&headers[3], b"grpc-encoding", encoding, strlen(encoding))
        count += 1
    if call.first == NULL:
        buffer_init(&room)
        count += trailers_put(call, headers + count, &room)
        nghttp2_submit_response(call.connection.session, call.stream_id, headers, count, NULL)
        buffer_free(&room)
        call.is_over = True
        return
    provider.source.ptr = call
    provider.read_callback = _data_read
    nghttp2_submit_response(call.connection.session, call.stream_id, headers, count, &provider)


cdef void call_end(Call* call) noexcept nogil:
    if call.is_ended:
        return
    call.is_ended = True
    if call.status != OK:
        parcels_free(call, True)
    respond(call)


cdef void call_refuse(Call* call, int32_t code, const char* message, const char* reason) noexcept nogil:
    if not call.is_ended:
        status_refuse(call, code, message, strlen(message), reason)
        call_end(call)


cdef void call_finish(Call* call) noexcept nogil:
    if not call.is_ended:
        call.status = OK
        call_end(call)


cdef void http_answer(Call* call) noexcept nogil:
    """Once its request has ended: a sending client might take an earlier answer for a broken connection."""
    cdef nghttp2_nv headers[HEADERS_MAX]
    cdef nghttp2_data_provider provider
    cdef const char* text = NOT_A_POST if not call.is_post else NOT_GRPC
    cdef size_t length = strlen(text)
    cdef size_t count = 2
    cdef Parcel* parcel
    cdef char* copy
    if call.is_ended:
        return
    call.is_started = call.is_ended = True
    connection_mark(call.connection)
    nv_put(&headers[0], b":status", call.http_status, strlen(call.http_status))
    nv_put(&headers[1], b"content-type", b"text/plain", 10)
    if not call.is_post:
        nv_put(&headers[2], b"allow", b"POST", 4)
        count = 3
    if call.is_head:
        call.is_over = True
        nghttp2_submit_response(call.connection.session, call.stream_id, headers, count, NULL)
        return
    copy = <char*> must_malloc(length)
    memcpy(copy, text, length)
    parcel = parcel_add(call)
    parcel_fill(call, parcel, copy, length, 0)
    parcel.done = PREFIX                # it is no message
    provider.source.ptr = call
    provider.read_callback = _data_read
    nghttp2_submit_response(call.connection.session, call.stream_id, headers, count, &provider)
