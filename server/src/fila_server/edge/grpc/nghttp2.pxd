"""What the edge uses of nghttp2: HTTP/2 frames, header compression, flow control and their bounds (RFC 9113,
7541)."""

from libc.stdint cimport int32_t, uint32_t, uint8_t

cdef extern from "<nghttp2/nghttp2.h>" nogil:
    enum:
        NGHTTP2_DATA
        NGHTTP2_HEADERS
        NGHTTP2_PRIORITY
        NGHTTP2_RST_STREAM
        NGHTTP2_PING
        NGHTTP2_HCAT_REQUEST
        NGHTTP2_FLAG_END_STREAM
        NGHTTP2_FLAG_END_HEADERS
        NGHTTP2_FLAG_ACK
        NGHTTP2_FLAG_NONE
        NGHTTP2_NV_FLAG_NO_COPY_NAME
        NGHTTP2_DATA_FLAG_NO_COPY
        NGHTTP2_DATA_FLAG_EOF
        NGHTTP2_DATA_FLAG_NO_END_STREAM
        NGHTTP2_ERR_DEFERRED
        NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
        NGHTTP2_ERR_CALLBACK_FAILURE
        NGHTTP2_NO_ERROR
        NGHTTP2_PROTOCOL_ERROR
        NGHTTP2_INTERNAL_ERROR
        NGHTTP2_REFUSED_STREAM
        NGHTTP2_CANCEL
        NGHTTP2_ENHANCE_YOUR_CALM
        NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS
        NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE
        NGHTTP2_SETTINGS_MAX_FRAME_SIZE
        NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE

    ctypedef struct nghttp2_session:
        pass
    ctypedef struct nghttp2_session_callbacks:
        pass
    ctypedef struct nghttp2_option:
        pass
    ctypedef struct nghttp2_info:
        int version_num
        const char* version_str
    ctypedef struct nghttp2_settings_entry:
        int32_t settings_id
        uint32_t value
    ctypedef struct nghttp2_nv:
        uint8_t* name
        uint8_t* value
        size_t namelen
        size_t valuelen
        uint8_t flags
    ctypedef struct nghttp2_frame_hd:
        size_t length
        int32_t stream_id
        uint8_t type
        uint8_t flags
    ctypedef struct nghttp2_headers:
        nghttp2_frame_hd hd
        int cat
    ctypedef struct nghttp2_rst_stream:
        nghttp2_frame_hd hd
        uint32_t error_code
    ctypedef union nghttp2_frame:
        nghttp2_frame_hd hd
        nghttp2_headers headers
        nghttp2_rst_stream rst_stream
    ctypedef union nghttp2_data_source:
        int fd
        void* ptr
    ctypedef ssize_t (*nghttp2_data_source_read_callback)(
        nghttp2_session*, int32_t, uint8_t*, size_t, uint32_t*, nghttp2_data_source*, void*) noexcept nogil
    ctypedef struct nghttp2_data_provider:
        nghttp2_data_source source
        nghttp2_data_source_read_callback read_callback

    nghttp2_info* nghttp2_version(int least_version)
    const char* nghttp2_strerror(int code)
    int nghttp2_session_callbacks_new(nghttp2_session_callbacks** to)
    void nghttp2_session_callbacks_del(nghttp2_session_callbacks* callbacks)
    int nghttp2_option_new(nghttp2_option** to)
    void nghttp2_option_del(nghttp2_option* option)
    void nghttp2_option_set_no_auto_window_update(nghttp2_option* option, int value)
    void nghttp2_option_set_no_closed_streams(nghttp2_option* option, int value)
    void nghttp2_option_set_max_outbound_ack(nghttp2_option* option, size_t value)
    void nghttp2_option_set_max_settings(nghttp2_option* option, size_t value)
    void nghttp2_option_set_peer_max_concurrent_streams(nghttp2_option* option, uint32_t value)

    void nghttp2_session_callbacks_set_on_begin_headers_callback(
        nghttp2_session_callbacks*, int (*)(nghttp2_session*, const nghttp2_frame*, void*) noexcept nogil)
    void nghttp2_session_callbacks_set_on_header_callback(
        nghttp2_session_callbacks*,
        int (
            *)(nghttp2_session*, const nghttp2_frame*, const uint8_t*, size_t, const uint8_t*, size_t,
            uint8_t,
                void*) noexcept nogil)
    void nghttp2_session_callbacks_set_on_frame_recv_callback(
        nghttp2_session_callbacks*, int (*)(nghttp2_session*, const nghttp2_frame*, void*) noexcept nogil)
    void nghttp2_session_callbacks_set_on_begin_frame_callback(
        nghttp2_session_callbacks*, int (*)(nghttp2_session*, const nghttp2_frame_hd*, void*) noexcept nogil)
    void nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        nghttp2_session_callbacks*,
        int (*)(nghttp2_session*, uint8_t, int32_t, const uint8_t*, size_t, void*) noexcept nogil)
    void nghttp2_session_callbacks_set_on_stream_close_callback(
        nghttp2_session_callbacks*, int (*)(nghttp2_session*, int32_t, uint32_t, void*) noexcept nogil)
    void nghttp2_session_callbacks_set_on_frame_send_callback(
        nghttp2_session_callbacks*, int (*)(nghttp2_session*, const nghttp2_frame*, void*) noexcept nogil)
    void nghttp2_session_callbacks_set_send_data_callback(
        nghttp2_session_callbacks*,
        int (
            *)(nghttp2_session*, nghttp2_frame*, const uint8_t*, size_t, nghttp2_data_source*,
            void*) noexcept nogil)
    void nghttp2_session_callbacks_set_data_source_read_length_callback(
        nghttp2_session_callbacks*,
        ssize_t (*)(nghttp2_session*, uint8_t, int32_t, int32_t, int32_t, uint32_t, void*) noexcept nogil)

    int nghttp2_session_server_new2(
        nghttp2_session** to, const nghttp2_session_callbacks* callbacks, void* user,
        const nghttp2_option* option)
    void nghttp2_session_del(nghttp2_session* session)
    ssize_t nghttp2_session_mem_recv(nghttp2_session* session, const uint8_t* at, size_t length)
    ssize_t nghttp2_session_mem_send(nghttp2_session* session, const uint8_t** at)
    int nghttp2_session_want_read(nghttp2_session* session)
    int nghttp2_session_want_write(nghttp2_session* session)
    size_t nghttp2_session_get_outbound_queue_size(nghttp2_session* session)
    void* nghttp2_session_get_stream_user_data(nghttp2_session* session, int32_t stream_id)
    int nghttp2_session_set_stream_user_data(nghttp2_session* session, int32_t stream_id, void* data)
    int nghttp2_session_consume_connection(nghttp2_session* session, size_t size)
    int nghttp2_session_consume_stream(nghttp2_session* session, int32_t stream_id, size_t size)
    int nghttp2_session_set_local_window_size(
        nghttp2_session* session, uint8_t flags, int32_t stream_id, int32_t size)
    int nghttp2_session_resume_data(nghttp2_session* session, int32_t stream_id)
    int nghttp2_session_terminate_session(nghttp2_session* session, uint32_t error_code)
    int32_t nghttp2_session_get_last_proc_stream_id(nghttp2_session* session)
    int nghttp2_submit_settings(
        nghttp2_session* session, uint8_t flags, const nghttp2_settings_entry* entries, size_t count)
    int nghttp2_submit_response(
        nghttp2_session* session, int32_t stream_id, const nghttp2_nv* headers, size_t count,
        const nghttp2_data_provider* data)
    int nghttp2_submit_trailer(
        nghttp2_session* session, int32_t stream_id, const nghttp2_nv* headers, size_t count)
    int nghttp2_submit_rst_stream(
        nghttp2_session* session, uint8_t flags, int32_t stream_id, uint32_t error_code)
    int nghttp2_submit_ping(nghttp2_session* session, uint8_t flags, const uint8_t* opaque)
    int nghttp2_submit_goaway(
        nghttp2_session* session, uint8_t flags, int32_t last_stream_id, uint32_t error_code,
        const uint8_t* debug,
        size_t length)
    int nghttp2_submit_shutdown_notice(nghttp2_session* session)

# Backported to the distribution's 1.52 with the fixes of CVE-2023-44487 and CVE-2024-28182, so the headers of
# other builds of that version may not have them: weak, so that their lack is told at the start.
cdef extern from *:
    """
    #include <nghttp2/nghttp2.h>
    extern void nghttp2_option_set_stream_reset_rate_limit(nghttp2_option *, uint64_t, uint64_t)
        __attribute__((weak));
    extern void nghttp2_option_set_max_continuations(nghttp2_option *, size_t) __attribute__((weak));
    static int fila_has_limits(void) {
        return nghttp2_option_set_stream_reset_rate_limit != 0 && nghttp2_option_set_max_continuations != 0;
    }
    """
    int has_limits "fila_has_limits" () nogil
    void set_reset_limit "nghttp2_option_set_stream_reset_rate_limit" (
        nghttp2_option* option, unsigned long long burst, unsigned long long rate) nogil
    void set_max_continuations "nghttp2_option_set_max_continuations" (nghttp2_option* option,
    size_t most) nogil
