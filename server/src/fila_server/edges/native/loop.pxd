"""An I/O thread: what is ready is read, what is answered is written, what is due happens."""

from fila_server.edges.native.iothread cimport Common, IoThread

cdef IoThread* loop_new(Common* common, int number) noexcept nogil     # NULL: no descriptors (errno)
cdef void loop_run(IoThread* io) noexcept nogil                        # until it was told to drain, and has
cdef void loop_free(IoThread* io) noexcept nogil
