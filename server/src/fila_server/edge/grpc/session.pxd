"""One connection's HTTP/2: what nghttp2 calls back, and what no client may do to us.

    frame of a client       bound                                   how it ends
    RST_STREAM              2,000, then 200/s (nghttp2's own; deadlines and left pulls are RST_STREAMs too)
    faults we reset         2,000, then 200/s                       ENHANCE_YOUR_CALM, as all that follows
    PING                    2 in a row within 5 s each, while nothing is sent to it
    PRIORITY, empty DATA,
    WINDOW_UPDATE           10,000 in a row with nothing else between
    SETTINGS                32 entries; 1,000 answers that it does not read (nghttp2's own)
    CONTINUATION            8 a header block (nghttp2's own)
    header list             64 KiB: the call is refused; four times that: its stream is reset
    streams                 10,000, told with the first SETTINGS
"""

from fila_server.edge.io.iothread cimport Connection, IoThread

# Callbacks and options, once a thread. False: this nghttp2 has no limits against floods.
cdef bint session_prepare(IoThread* io) noexcept nogil
cdef void session_unprepare(IoThread* io) noexcept nogil
cdef bint session_open(Connection* connection) noexcept nogil
# Its client misbehaves: GOAWAY with ENHANCE_YOUR_CALM, and the connection ends.
cdef void session_calm(Connection* connection) noexcept nogil
# We leave: streams that come until a PING is back are still served (RFC 9113, 6.8), then none. Asked again,
# it does not wait for the PING any more.
cdef void session_leave(Connection* connection) noexcept nogil
