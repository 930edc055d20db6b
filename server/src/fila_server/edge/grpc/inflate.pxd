"""Messages that came compressed (the gRPC document "Compression"): gzip and deflate, and never more out than
allowed. A large one is inflated some bytes at a time, so that a thread has its other work in between.

    inflation_begin ──► inflation_some, until it says something else than INFLATED_SO_FAR ──► inflation_over
"""

from libc.stddef cimport size_t

from fila_server.edge.io.iothread cimport Encoding, Inflation

cdef enum Inflated:
    INFLATED = 0
    INFLATED_SO_FAR
    INFLATED_BADLY                  # not what its encoding says, or cut short
    INFLATED_TOO_LARGE

cdef Inflated inflation_begin(
    Inflation* inflation, Encoding encoding, const char* at, size_t length) noexcept nogil
# Into `whole`, of `bytes_max` at most: what costs as much as making `some` bytes does; `done` grows by that.
cdef Inflated inflation_some(
    Inflation* inflation, size_t bytes_max, size_t some, size_t* done) noexcept nogil
# It goes on later: what was not read yet is copied, or lies in `owned`, which it takes over.
cdef void inflation_keep(Inflation* inflation, char* owned) noexcept nogil
# What it needed is freed, but for `whole`.
cdef void inflation_over(Inflation* inflation) noexcept nogil
# Nobody wants the rest, nor what there is.
cdef void inflation_drop(Inflation* inflation) noexcept nogil
