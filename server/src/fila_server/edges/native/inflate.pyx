"""See inflate.pxd."""

from libc.stddef cimport size_t
from libc.string cimport memset

from fila_server.core.structures.buffer cimport Buffer, buffer_free, buffer_reserve
from fila_server.edges.native.iothread cimport GZIP, Encoding

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


cdef Inflated inflate_message(
        Encoding encoding, const char* at, size_t length, size_t bytes_max, Buffer* to) noexcept nogil:
    cdef z_stream stream
    cdef size_t step
    cdef int rc = Z_OK
    cdef Inflated found = INFLATED
    memset(&stream, 0, sizeof(z_stream))
    # gRPC's "deflate" is zlib's format (RFC 1950), not the bare one.
    if inflateInit2(&stream, MAX_WBITS + (GZIP_WINDOW if encoding == GZIP else 0)) != Z_OK:
        return INFLATED_BADLY
    stream.next_in = <unsigned char*> at
    stream.avail_in = <unsigned int> length
    while rc == Z_OK:
        # One byte more than allowed shows that there is more, without making it.
        step = min(max(to.length, length * 2, <size_t> STEP_MIN), bytes_max + 1 - to.length)
        buffer_reserve(to, step)
        stream.next_out = <unsigned char*> to.data + to.length
        stream.avail_out = <unsigned int> step
        rc = inflate(&stream, Z_NO_FLUSH)
        to.length += step - stream.avail_out
        if to.length > bytes_max:
            found = INFLATED_TOO_LARGE
            break
        if rc == Z_OK and stream.avail_in == 0 and stream.avail_out:
            break                   # cut short
    if found == INFLATED and (rc != Z_STREAM_END or stream.avail_in):
        found = INFLATED_BADLY
    inflateEnd(&stream)
    if found != INFLATED:
        buffer_free(to)
    return found
