"""An I/O thread: what is ready is read, what is answered is written, what is due happens."""

from fila_server.edge.io.iothread cimport Common, IoThread
from fila_server.edge.io.sockets cimport epoll_event

cdef IoThread* loop_new(Common* common, int number) noexcept nogil     # NULL: no descriptors (errno)
cdef void loop_run(IoThread* io) noexcept nogil                        # until it was told to drain, and has
# One turn of it, as of io.now_ns: what these events tell, then what is due. Never waits.
cdef void loop_turn(IoThread* io, const epoll_event* events, int count) noexcept nogil
cdef void loop_free(IoThread* io) noexcept nogil
