"""gRPC where nobody serves: each call of a connection is refused with the same words, and health is
NOT_SERVING. One question may be answered: how the group is.

It holds no socket and knows no clock. Its caller gives the bytes, and writes what comes back. What one
connection may make it hold is bounded by nghttp2's limits and by STREAMS_MAX.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t, uintptr_t
from libc.string cimport memcmp, memcpy

from fila_server.edge.grpc.nghttp2 cimport *
from fila_server.edge.grpc.status cimport nv_put

cdef extern from "<nghttp2/nghttp2.h>" nogil:
    int nghttp2_session_get_stream_remote_close(nghttp2_session* session, int32_t stream_id)

cdef enum:
    STREAMS_MAX = 100
    HEADER_LIST_BYTES_MAX = 65536
    RESETS_BURST = 200
    RESETS_A_SECOND = 20
    OUTBOUND_ACKS_MAX = 100
    SETTINGS_MAX = 32
    CONTINUATIONS_MAX = 8
    FIELDS_MAX = 5
    NOT_SERVING_BYTES = 7
    REPORT_BYTES_MAX = 16000          # what every client takes as one frame, of 16,384
    STATUS_PATH_BYTES = 35

# What a stream asks for; 0 is any other call.
cdef enum Asks:
    CHECKS = 1
    WATCHES = 2
    WATCHES_ON = 3                  # it has been told
    LOOKS = 4                       # how the group is

cdef const char* HEALTH = b"/grpc.health.v1.Health/"    # 23 characters
cdef const char* STATUS_PATH = b"/fila.v1.FilaAdmin/GetClusterStatus"
# A gRPC frame: HealthCheckResponse.status = NOT_SERVING.
cdef const char* NOT_SERVING = b"\0\0\0\0\2\x08\2"


cdef struct Refusal:
    nghttp2_nv fields[FIELDS_MAX]
    size_t count
    int64_t calls
    const char* reported                # a gRPC frame: how the group is
    size_t reported_bytes               # 0: that is refused, too


cdef int _on_header(
        nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name, size_t name_length,
        const uint8_t* value, size_t length, uint8_t flags, void* user) noexcept nogil:
    cdef const char* rest = <const char*> value + 23
    cdef uintptr_t asks = 0
    if frame.headers.cat != NGHTTP2_HCAT_REQUEST or name_length != 5 or memcmp(name, b":path", 5) != 0:
        return 0
    if length == 28 and memcmp(value, HEALTH, 23) == 0:
        if memcmp(rest, b"Check", 5) == 0:
            asks = CHECKS
        elif memcmp(rest, b"Watch", 5) == 0:
            asks = WATCHES
    elif length == STATUS_PATH_BYTES and memcmp(value, STATUS_PATH, STATUS_PATH_BYTES) == 0:
        asks = LOOKS if (<Refusal*> user).reported_bytes else 0
    nghttp2_session_set_stream_user_data(session, frame.hd.stream_id, <void*> asks)
    return 0


cdef ssize_t _read_health(
        nghttp2_session* session, int32_t stream_id, uint8_t* room, size_t length, uint32_t* flags,
        nghttp2_data_source* source, void* user) noexcept nogil:
    cdef uintptr_t asks = <uintptr_t> nghttp2_session_get_stream_user_data(session, stream_id)
    cdef nghttp2_nv ok
    if asks == WATCHES_ON or length < NOT_SERVING_BYTES:
        return NGHTTP2_ERR_DEFERRED     # the next answer is the connection's end
    memcpy(room, NOT_SERVING, NOT_SERVING_BYTES)
    if asks == WATCHES:
        nghttp2_session_set_stream_user_data(session, stream_id, <void*> <uintptr_t> WATCHES_ON)
    else:
        flags[0] |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM
        nv_put(&ok, b"grpc-status", b"0", 1)
        nghttp2_submit_trailer(session, stream_id, &ok, 1)
    return NOT_SERVING_BYTES


cdef ssize_t _read_report(
        nghttp2_session* session, int32_t stream_id, uint8_t* room, size_t length, uint32_t* flags,
        nghttp2_data_source* source, void* user) noexcept nogil:
    cdef Refusal* refusal = <Refusal*> user
    cdef nghttp2_nv ok
    if length < refusal.reported_bytes:     # a client that takes so little at once
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
    memcpy(room, refusal.reported, refusal.reported_bytes)
    flags[0] |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM
    nv_put(&ok, b"grpc-status", b"0", 1)
    nghttp2_submit_trailer(session, stream_id, &ok, 1)
    return <ssize_t> refusal.reported_bytes


cdef int _on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* user) noexcept nogil:
    cdef Refusal* refusal = <Refusal*> user
    cdef nghttp2_data_provider answer
    cdef uintptr_t asks
    if frame.hd.type != NGHTTP2_HEADERS or frame.headers.cat != NGHTTP2_HCAT_REQUEST:
        return 0
    refusal.calls += 1
    asks = <uintptr_t> nghttp2_session_get_stream_user_data(session, frame.hd.stream_id)
    if asks == 0:
        nghttp2_submit_response(session, frame.hd.stream_id, refusal.fields, refusal.count, NULL)
    else:
        answer.read_callback = _read_report if asks == LOOKS else _read_health
        nghttp2_submit_response(session, frame.hd.stream_id, refusal.fields, 2, &answer)
    return 0


cdef int _on_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user) noexcept nogil:
    # An early answer: without the reset the client would go on uploading (RFC 9113, 8.1).
    if frame.hd.type == NGHTTP2_HEADERS and frame.hd.flags & NGHTTP2_FLAG_END_STREAM:
        if nghttp2_session_get_stream_remote_close(session, frame.hd.stream_id) == 0:
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_NO_ERROR)
    return 0


cdef class RefusingSession:
    """One connection. Raises RuntimeError where the machine's nghttp2 lacks its limits against floods."""

    cdef nghttp2_session* _session
    cdef Refusal _refusal
    cdef bytes _message, _details, _reported

    def __cinit__(self):
        cdef nghttp2_session_callbacks* callbacks = NULL
        cdef nghttp2_option* option = NULL
        cdef nghttp2_settings_entry settings[2]
        cdef int failed
        if not has_limits():
            raise RuntimeError("the loaded nghttp2 lacks its limits against floods; upgrade libnghttp2")
        nghttp2_session_callbacks_new(&callbacks)
        nghttp2_session_callbacks_set_on_header_callback(callbacks, _on_header)
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, _on_frame)
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, _on_sent)
        nghttp2_option_new(&option)
        nghttp2_option_set_no_closed_streams(option, 1)
        nghttp2_option_set_max_outbound_ack(option, OUTBOUND_ACKS_MAX)
        nghttp2_option_set_max_settings(option, SETTINGS_MAX)
        set_reset_limit(option, RESETS_BURST, RESETS_A_SECOND)
        set_max_continuations(option, CONTINUATIONS_MAX)
        failed = nghttp2_session_server_new2(&self._session, callbacks, &self._refusal, option)
        nghttp2_session_callbacks_del(callbacks)
        nghttp2_option_del(option)
        if failed:
            raise MemoryError
        settings[0].settings_id, settings[0].value = NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX
        settings[1].settings_id = NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE
        settings[1].value = HEADER_LIST_BYTES_MAX
        nghttp2_submit_settings(self._session, NGHTTP2_FLAG_NONE, settings, 2)
        self.says(b"14", b"", b"")
        self.tells(b"")

    def __dealloc__(self):
        if self._session != NULL:
            nghttp2_session_del(self._session)

    def says(self, bytes status, bytes message, bytes details):
        """With what calls are refused from here on: the values of its trailers, as on the wire."""
        cdef nghttp2_nv* fields = self._refusal.fields
        self._message, self._details = status + message, details
        cdef const char* at = self._message
        nv_put(&fields[0], b":status", b"200", 3)
        nv_put(&fields[1], b"content-type", b"application/grpc", 16)
        nv_put(&fields[2], b"grpc-status", at, len(status))
        nv_put(&fields[3], b"grpc-message", at + len(status), len(message))
        nv_put(&fields[4], b"grpc-status-details-bin", self._details, len(details))
        self._refusal.count = FIELDS_MAX

    def tells(self, bytes reported):
        """What GetClusterStatus is answered with from here on, as on the wire; b"": it is refused, too."""
        cdef uint32_t length = <uint32_t> len(reported)
        self._reported = b""
        if 0 < length <= REPORT_BYTES_MAX:
            self._reported = b"\0" + length.to_bytes(4, "big") + reported
        self._refusal.reported, self._refusal.reported_bytes = self._reported, len(self._reported)

    @property
    def calls(self):
        """How many calls have come."""
        return self._refusal.calls

    def leave(self):
        """What to write so that the client makes a new connection for its next calls, and for those that it
        sends on this one meanwhile: they are not looked at."""
        nghttp2_submit_goaway(
            self._session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(self._session),
            NGHTTP2_NO_ERROR, NULL, 0)
        return self.take(b"")[0]

    def take(self, bytes received):
        """Bytes of the client; returns what to write to it, and whether the connection goes on after that."""
        cdef const char* at = received
        cdef const uint8_t* piece
        cdef ssize_t length
        # Of a client that breaks the protocol nghttp2 says so with its last frame.
        cdef bint is_read = nghttp2_session_mem_recv(self._session, <const uint8_t*> at, len(received)) >= 0
        to_write = []
        while True:
            length = nghttp2_session_mem_send(self._session, &piece)
            if length <= 0:
                break
            to_write.append((<const char*> piece)[:length])
        goes_on = is_read and length == 0 and (
            nghttp2_session_want_read(self._session) or nghttp2_session_want_write(self._session))
        return b"".join(to_write), bool(goes_on)
