"""One client's socket, whatever it speaks: accepted, read, written, closed."""

from fila_server.edge.io.iothread cimport Connection, IoThread

# Takes the socket.
cdef void connection_new(IoThread* io, int fd, const char* peer, bint is_redis) noexcept nogil
cdef void connection_read(Connection* connection) noexcept nogil
cdef void connection_flush(Connection* connection) noexcept nogil
# Its calls end, its socket is closed; it is freed at the end of the turn.
cdef void connection_close(Connection* connection) noexcept nogil
cdef void connection_free(Connection* connection) noexcept nogil
# Once a second: whether it is there still, and whether it sends what it began.
cdef void connection_look(Connection* connection) noexcept nogil
