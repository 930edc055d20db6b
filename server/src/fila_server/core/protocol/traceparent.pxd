"""W3C Trace Context: where in somebody's trace a message belongs."""

from libc.stddef cimport size_t
from libc.stdint cimport uint64_t

cdef struct TraceContext:
    uint64_t trace_high, trace_low
    uint64_t span                   # of who sent it

# True: it is a traceparent, and its trace is recorded.
cdef bint traceparent_parse(const char* at, size_t length, TraceContext* context) noexcept nogil
