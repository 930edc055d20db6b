"""A call's end on the wire: grpc-status, grpc-message, grpc-status-details-bin.

The rules are those of the gRPC document PROTOCOL-HTTP2, "Responses": the message percent-encoded, binary
values in base64 without padding, and the code inside the details the same as the code outside, or clients
call it a mismatch.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t

from fila_server.core.structures.buffer cimport Buffer
from fila_server.edge.grpc.nghttp2 cimport nghttp2_nv
from fila_server.edge.io.iothread cimport Call

cdef enum:
    TRAILERS_MAX = 3
    CANCELLED = 1
    UNKNOWN = 2
    DEADLINE_EXCEEDED = 4

cdef void nv_put(nghttp2_nv* to, const char* name, const char* value, size_t length) noexcept nogil
# A refusal as all of Fila's: google.rpc.Status with ErrorInfo, and RetryInfo where trying again makes sense.
cdef void status_refuse(
    Call* call, int32_t code, const char* message, size_t length, const char* reason) noexcept nogil
# The same, of an ItemStatus of the core.
cdef void status_of_reply(Call* call, int32_t code, const char* item, size_t length) noexcept nogil
# The same, of one that was made before.
cdef void status_repeat(
    Call* call, int32_t code, const Buffer* message, const Buffer* details) noexcept nogil
# How many entries were filled; their bytes stand in `room`.
cdef size_t trailers_put(const Call* call, nghttp2_nv* to, Buffer* room) noexcept nogil
