"""Messages that came compressed (the gRPC document "Compression"): gzip and deflate, and never more out than
allowed."""

from libc.stddef cimport size_t

from fila_server.core.structures.buffer cimport Buffer
from fila_server.edges.native.iothread cimport Encoding

cdef enum Inflated:
    INFLATED = 0
    INFLATED_BADLY                  # not what its encoding says, or cut short
    INFLATED_TOO_LARGE

# `to` is empty before, and holds the message only when it was inflated.
cdef Inflated inflate_message(
    Encoding encoding, const char* at, size_t length, size_t bytes_max, Buffer* to) noexcept nogil
