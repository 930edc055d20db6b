"""What a request's headers say of its call (the gRPC document PROTOCOL-HTTP2, "Requests")."""

from libc.stddef cimport size_t

from fila_server.edge.io.iothread cimport Call

cdef void header_take(
    Call* call, const char* name, size_t name_length, const char* value, size_t length) noexcept nogil
