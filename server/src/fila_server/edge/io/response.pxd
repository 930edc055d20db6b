"""A call's answer: response headers, messages in order, trailers; nghttp2 asks as flow control lets it.

    Trailers-only   a call that ends with nothing to say but its status
    placeholders    a parcel may stand in line before it has its answer: answers leave in the requests' order
    early answer    a status before the client half-closed: behind the trailers its stream is reset with
                    NO_ERROR (RFC 9113, 8.1), or its upload never ended
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint32_t, uint64_t, uint8_t

from fila_server.edge.grpc.nghttp2 cimport nghttp2_data_source, nghttp2_frame, nghttp2_session
from fila_server.edge.io.iothread cimport Call, Connection, Parcel

cdef Parcel* parcel_add(Call* call) noexcept nogil                     # awaits its answer
# The payload's bytes, from malloc, are the parcel's; what is counted of them was counted by the caller.
cdef void parcel_fill(
    Call* call, Parcel* parcel, char* payload, size_t length, uint32_t counted) noexcept nogil
cdef void parcels_free(Call* call, bint unanswered_only) noexcept nogil
cdef void respond(Call* call) noexcept nogil                           # something changed: tell nghttp2
# The status is in the call. What is ready goes first; what is not answered yet is waited for by nobody.
cdef void call_end(Call* call) noexcept nogil
cdef void call_refuse(Call* call, int32_t code, const char* message, const char* reason) noexcept nogil
cdef void call_finish(Call* call) noexcept nogil                       # OK
cdef void http_answer(Call* call) noexcept nogil                       # to what is not gRPC: its http_status
# look at it again in this turn of the loop
cdef void call_queue(Call* call) noexcept nogil
# and once there may be room for answers
cdef void call_wait_for_room(Call* call) noexcept nogil
# Its trailers are made, and leave behind the deliveries in the out buffer: those count as written from
# now on, for the core is told of the stream's end before the socket has taken them.
cdef void call_sent(Call* call) noexcept nogil
cdef void connection_mark(Connection* connection) noexcept nogil       # it may have something to send
cdef int data_send(
    nghttp2_session* session, nghttp2_frame* frame, const uint8_t* head, size_t length,
    nghttp2_data_source* source, void* user) noexcept nogil
# Something ends at this place in the stream of the connection's bytes, and is written when the socket has it.
cdef void mark_put(
    Connection* connection, uint64_t at, uint64_t token, bint is_delivery, uint32_t counted) noexcept nogil
# Room for so many bytes at the end of what leaves.
cdef char* out_room(Connection* connection, size_t length) noexcept nogil
