"""A producer's trace context goes with its message, so that a consumer's span can link to the producer's.

Only of sampled traces, and only where the message does not say so itself (W3C Trace Context): an unsampled
trace has nothing to link to, and what a producer wrote into its headers is its own business.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t

from fila_server.core.structures.buffer cimport Buffer
from fila_server.edge.io.iothread cimport Call

# True: `to` holds the EnqueueRequest with the call's context among its headers.
cdef bint trace_put(
    Buffer* to, const Call* call, const char* request, size_t length, uint32_t headers_max) noexcept nogil
