from libc.stddef cimport size_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.structures.buffer cimport Buffer, buffer_free, buffer_init, buffer_reserve, must_malloc
from fila_server.edge.io.iothread cimport GZIP, Encoding

cdef extern from "<zlib.h>" nogil:
    enum:
        Z_OK
        Z_STREAM_END
        Z_NO_FLUSH
        MAX_WBITS
    ctypedef struct z_stream:
        unsigned char* next_in
        unsigned int   avail_in
        unsigned char* next_out
        unsigned int   avail_out
    int inflateInit2(z_stream* stream, int window_bits)
    int inflate(z_stream* stream, int flush)
    int inflateEnd(z_stream* stream)

cdef enum:
    GZIP_WINDOW = 16                # added to the window's bits: a gzip header is expected, not zlib's
    STEP_MIN = 4096
    READ_COST = 8                   # a byte read costs up to so many made: blocks may be nothing but heads


cdef Inflated inflation_begin(
        Inflation* inflation, Encoding encoding, const char* at, size_t length) noexcept nogil:
    cdef z_stream* stream = <z_stream*> must_malloc(sizeof(z_stream))
    memset(stream, 0, sizeof(z_stream))
    inflation.rest = NULL
    buffer_init(&inflation.whole)
    # gRPC's "deflate" is zlib's format (RFC 1950), not the bare one.
    if inflateInit2(stream, MAX_WBITS + (GZIP_WINDOW if encoding == GZIP else 0)) != Z_OK:
        free(stream)
        inflation.stream = NULL
        return INFLATED_BADLY
    stream.next_in = <unsigned char*> at
    stream.avail_in = <unsigned int> length
    inflation.stream = stream
    return INFLATED_SO_FAR


cdef Inflated inflation_some(
        Inflation* inflation, size_t bytes_max, size_t some, size_t* done) noexcept nogil:
    cdef z_stream* stream = <z_stream*> inflation.stream
    cdef Buffer* to = &inflation.whole
    cdef size_t left = some
    cdef size_t step, cost
    cdef unsigned int shown, kept
    cdef int rc = Z_OK
    while rc == Z_OK and left:
        # One byte more than allowed shows that there is more, without making it.
        step = min(
            max(to.length, <size_t> stream.avail_in * 2, <size_t> STEP_MIN), bytes_max + 1 - to.length, left)
        buffer_reserve(to, step)
        stream.next_out = <unsigned char*> to.data + to.length
        stream.avail_out = <unsigned int> step
        shown = min(stream.avail_in, <unsigned int> (left // READ_COST + 1))
        kept = stream.avail_in - shown
        stream.avail_in = shown
        rc = inflate(stream, Z_NO_FLUSH)
        cost = step - stream.avail_out + READ_COST * <size_t> (shown - stream.avail_in)
        left -= min(left, cost)
        done[0] += cost
        stream.avail_in += kept
        to.length += step - stream.avail_out
        if to.length > bytes_max:
            return INFLATED_TOO_LARGE
        if rc == Z_OK and stream.avail_in == 0 and stream.avail_out:
            return INFLATED_BADLY   # cut short
    if rc == Z_OK:
        return INFLATED_SO_FAR
    return INFLATED if rc == Z_STREAM_END and stream.avail_in == 0 else INFLATED_BADLY


cdef void inflation_keep(Inflation* inflation, char* owned) noexcept nogil:
    cdef z_stream* stream = <z_stream*> inflation.stream
    inflation.rest = owned
    if owned == NULL:
        inflation.rest = <char*> must_malloc(stream.avail_in + 1)
        memcpy(inflation.rest, stream.next_in, stream.avail_in)
        stream.next_in = <unsigned char*> inflation.rest


cdef void inflation_over(Inflation* inflation) noexcept nogil:
    if inflation.stream != NULL:
        inflateEnd(<z_stream*> inflation.stream)
    free(inflation.stream)
    free(inflation.rest)
    inflation.stream = NULL
    inflation.rest = NULL
    inflation.call = NULL


cdef void inflation_drop(Inflation* inflation) noexcept nogil:
    inflation_over(inflation)
    buffer_free(&inflation.whole)
