from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t

from fila_server.edge.grpc.calls cimport call_begin, call_discards, call_gone, call_new, call_threw_away
from fila_server.edge.grpc.intake cimport intake_bytes, intake_discard, intake_end
from fila_server.edge.grpc.nghttp2 cimport *
from fila_server.edge.grpc.request_headers cimport header_take
from fila_server.edge.io.iothread cimport (
    CONNECTION_WINDOW, FRAME_BYTES_MAX, HEADER_LIST_BYTES_MAX, STREAMS_MAX, STREAM_WINDOW, Call,
)
from fila_server.edge.io.response cimport connection_mark, data_send

cdef enum:
    RESETS_BURST = 2000
    RESETS_A_SECOND = 200
    OUTBOUND_ACKS_MAX = 1000
    SETTINGS_MAX = 32
    CONTINUATIONS_MAX = 8
    TRIFLES_MAX = 10000
    PING_STRIKES_MAX = 2
    DATA_BYTES_MAX = 131072         # of one DATA frame, where the client takes so much
    LEAVING_SOON = 1
    LEAVING = 2
    CONTINUATION = 9
    WINDOW_UPDATE = 8

cdef int64_t PING_NS_MIN = 5000000000
cdef int64_t SECOND_NS = 1000000000


# --- what misbehaves -------------------------------------------------------------------------

cdef void session_calm(Connection* connection) noexcept nogil:
    if not connection.is_faulty:
        connection.is_faulty = True
        nghttp2_session_terminate_session(connection.session, NGHTTP2_ENHANCE_YOUR_CALM)
        connection_mark(connection)


cdef void _trifle(Connection* connection) noexcept nogil:
    connection.trifles += 1
    if connection.trifles > TRIFLES_MAX:
        session_calm(connection)


cdef void _count_reset(Connection* connection) noexcept nogil:
    """Faults that make us reset a stream cost us as much as the client's own resets (CVE-2025-8671)."""
    cdef int64_t now_ns = connection.thread.now_ns
    cdef int64_t earned = (now_ns - connection.resets_ns) * RESETS_A_SECOND // SECOND_NS
    if earned > 0:
        connection.resets_left = min(connection.resets_left + earned, <int64_t> RESETS_BURST)
        connection.resets_ns = now_ns
    connection.resets_left -= 1
    if connection.resets_left < 0:
        session_calm(connection)


cdef void _pinged(Connection* connection) noexcept nogil:
    """Pings that measure the way are welcome: strikes end whenever we send something (gRPC, A8 and A9)."""
    cdef int64_t now_ns = connection.thread.now_ns
    if connection.client_pinged_ns and now_ns - connection.client_pinged_ns < PING_NS_MIN:
        connection.ping_strikes += 1
        if connection.ping_strikes > PING_STRIKES_MAX and not connection.is_faulty:
            connection.is_faulty = True
            nghttp2_submit_goaway(
                connection.session, NGHTTP2_FLAG_NONE,
                nghttp2_session_get_last_proc_stream_id(connection.session),
                NGHTTP2_ENHANCE_YOUR_CALM, b"too_many_pings", 14)
    connection.client_pinged_ns = now_ns


# --- what nghttp2 calls ----------------------------------------------------------------------

cdef int _on_begin_frame(nghttp2_session* session, const nghttp2_frame_hd* head, void* user) noexcept nogil:
    cdef Connection* connection = <Connection*> user
    if head.type == NGHTTP2_HEADERS:
        connection.headers_began_ns = 0 if head.flags & NGHTTP2_FLAG_END_HEADERS else connection.thread.now_ns
    elif head.type != CONTINUATION:
        connection.headers_began_ns = 0
    elif head.flags & NGHTTP2_FLAG_END_HEADERS:
        connection.headers_began_ns = 0
    return 0


cdef int _on_begin_headers(nghttp2_session* session, const nghttp2_frame* frame, void* user) noexcept nogil:
    cdef Connection* connection = <Connection*> user
    if frame.hd.type == NGHTTP2_HEADERS and frame.headers.cat == NGHTTP2_HCAT_REQUEST:
        nghttp2_session_set_stream_user_data(
            session, frame.hd.stream_id, call_new(connection, frame.hd.stream_id))
    return 0


cdef int _on_header(
        nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name, size_t name_length,
        const uint8_t* value, size_t length, uint8_t flags, void* user) noexcept nogil:
    cdef Call* call = <Call*> nghttp2_session_get_stream_user_data(session, frame.hd.stream_id)
    if call == NULL or frame.headers.cat != NGHTTP2_HCAT_REQUEST:
        return 0                    # a client's trailers say nothing to us
    call.header_bytes += <uint32_t> (name_length + length + 32)
    if call.header_bytes <= HEADER_LIST_BYTES_MAX:
        header_take(call, <const char*> name, name_length, <const char*> value, length)
    elif call.header_bytes > 4 * HEADER_LIST_BYTES_MAX:
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE    # the stream is reset
    return 0


cdef int _on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* user) noexcept nogil:
    cdef Connection* connection = <Connection*> user
    cdef Call* call
    if frame.hd.type == NGHTTP2_PING:
        if not frame.hd.flags & NGHTTP2_FLAG_ACK:
            _pinged(connection)
        elif connection.leaving == LEAVING_SOON:
            _leave_now(connection)
        connection_mark(connection)
        return 0
    connection.is_settled = True    # nghttp2 takes nothing else before the first SETTINGS
    if frame.hd.type != NGHTTP2_HEADERS and frame.hd.type != NGHTTP2_DATA:
        if frame.hd.type == NGHTTP2_PRIORITY or frame.hd.type == WINDOW_UPDATE:
            _trifle(connection)
        connection_mark(connection)     # it may be an answer, or open a window
        return 0
    call = <Call*> nghttp2_session_get_stream_user_data(session, frame.hd.stream_id)
    if frame.hd.type == NGHTTP2_DATA and not frame.hd.flags & NGHTTP2_FLAG_END_STREAM:
        _trifle(connection)         # its bytes, if any, have set this to nothing before
    if call == NULL:
        return 0
    if frame.hd.type == NGHTTP2_HEADERS and frame.headers.cat == NGHTTP2_HCAT_REQUEST:
        connection.trifles = 0
        call_begin(call)
    if frame.hd.flags & NGHTTP2_FLAG_END_STREAM:
        call.is_half_closed = True
        intake_end(call)
    return 0


cdef int _on_data(
        nghttp2_session* session, uint8_t flags, int32_t stream_id, const uint8_t* at, size_t length,
        void* user) noexcept nogil:
    cdef Connection* connection = <Connection*> user
    cdef Call* call = <Call*> nghttp2_session_get_stream_user_data(session, stream_id)
    connection.trifles = 0
    if call == NULL or call_discards(call):
        intake_discard(connection, stream_id, length)
        if call != NULL:
            call_threw_away(call, length)
    else:
        intake_bytes(call, <const char*> at, length)
    return 0


cdef int _on_close(nghttp2_session* session, int32_t stream_id, uint32_t code, void* user) noexcept nogil:
    cdef Call* call = <Call*> nghttp2_session_get_stream_user_data(session, stream_id)
    if call != NULL:
        nghttp2_session_set_stream_user_data(session, stream_id, NULL)
        call_gone(call)
    return 0


cdef int _on_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user) noexcept nogil:
    cdef Connection* connection = <Connection*> user
    cdef Call* call
    if frame.hd.type == NGHTTP2_RST_STREAM:
        if frame.rst_stream.error_code not in (NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM, NGHTTP2_CANCEL):
            _count_reset(connection)
    elif frame.hd.type == NGHTTP2_HEADERS or frame.hd.type == NGHTTP2_DATA:
        connection.ping_strikes = 0
        if frame.hd.flags & NGHTTP2_FLAG_END_STREAM:
            call = <Call*> nghttp2_session_get_stream_user_data(session, frame.hd.stream_id)
            if call != NULL and not call.is_half_closed:
                # An early answer: without the reset the client would go on uploading (RFC 9113, 8.1).
                nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_NO_ERROR)
    return 0


cdef ssize_t _data_length(
        nghttp2_session* session, uint8_t frame_type, int32_t stream_id, int32_t connection_window,
        int32_t stream_window, uint32_t frame_max, void* user) noexcept nogil:
    """Without it DATA frames have 16 KiB, whatever the client takes."""
    cdef int32_t most = min(connection_window, stream_window)
    return min(most, <int32_t> min(frame_max, <uint32_t> DATA_BYTES_MAX))


# --- setting up ------------------------------------------------------------------------------

cdef bint session_prepare(IoThread* io) noexcept nogil:
    if not has_limits():
        return False
    nghttp2_session_callbacks_new(&io.callbacks)
    nghttp2_session_callbacks_set_on_begin_frame_callback(io.callbacks, _on_begin_frame)
    nghttp2_session_callbacks_set_on_begin_headers_callback(io.callbacks, _on_begin_headers)
    nghttp2_session_callbacks_set_on_header_callback(io.callbacks, _on_header)
    nghttp2_session_callbacks_set_on_frame_recv_callback(io.callbacks, _on_frame)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(io.callbacks, _on_data)
    nghttp2_session_callbacks_set_on_stream_close_callback(io.callbacks, _on_close)
    nghttp2_session_callbacks_set_on_frame_send_callback(io.callbacks, _on_sent)
    nghttp2_session_callbacks_set_send_data_callback(io.callbacks, data_send)
    nghttp2_session_callbacks_set_data_source_read_length_callback(io.callbacks, _data_length)
    nghttp2_option_new(&io.option)
    nghttp2_option_set_no_auto_window_update(io.option, 1)
    # Kept, they would take some 300 bytes each, up to 10,000 a connection: frames that come late for a closed
    # stream are left unread instead of refused, which RFC 9113, 5.1 allows.
    nghttp2_option_set_no_closed_streams(io.option, not io.common.keeps_closed_streams)
    nghttp2_option_set_max_outbound_ack(io.option, OUTBOUND_ACKS_MAX)
    nghttp2_option_set_max_settings(io.option, SETTINGS_MAX)
    set_reset_limit(io.option, RESETS_BURST, RESETS_A_SECOND)
    set_max_continuations(io.option, CONTINUATIONS_MAX)
    return True


cdef void session_unprepare(IoThread* io) noexcept nogil:
    nghttp2_session_callbacks_del(io.callbacks)
    nghttp2_option_del(io.option)


cdef bint session_open(Connection* connection) noexcept nogil:
    cdef nghttp2_settings_entry settings[4]
    # Told with the first SETTINGS and never lowered: beyond what was told nghttp2 ends the connection.
    settings[0].settings_id = NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS
    settings[0].value = STREAMS_MAX
    settings[1].settings_id = NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE
    settings[1].value = STREAM_WINDOW
    settings[2].settings_id = NGHTTP2_SETTINGS_MAX_FRAME_SIZE
    settings[2].value = FRAME_BYTES_MAX
    settings[3].settings_id = NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE
    settings[3].value = HEADER_LIST_BYTES_MAX
    if nghttp2_session_server_new2(
            &connection.session, connection.thread.callbacks, connection, connection.thread.option) != 0:
        return False
    connection.resets_left = RESETS_BURST
    connection.resets_ns = connection.thread.now_ns
    nghttp2_submit_settings(connection.session, NGHTTP2_FLAG_NONE, settings, 4)
    nghttp2_session_set_local_window_size(connection.session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW)
    return True


cdef void session_leave(Connection* connection) noexcept nogil:
    if connection.leaving == LEAVING or connection.is_faulty:
        return
    if connection.leaving == LEAVING_SOON:
        _leave_now(connection)          # it does not answer pings
        return
    connection.leaving = LEAVING_SOON
    nghttp2_submit_shutdown_notice(connection.session)
    nghttp2_submit_ping(connection.session, NGHTTP2_FLAG_NONE, NULL)
    connection_mark(connection)


cdef void _leave_now(Connection* connection) noexcept nogil:
    connection.leaving = LEAVING
    nghttp2_submit_goaway(
        connection.session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(connection.session),
        NGHTTP2_NO_ERROR, NULL, 0)
    connection_mark(connection)
