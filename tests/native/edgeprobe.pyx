"""A call of the edge without a socket: a test says what time it is, and who holds up its message."""

from libc.string cimport memset

from fila_server.core.structures.buffer cimport buffer_free
from fila_server.edge.io.connection cimport connection_look
from fila_server.edge.io.iothread cimport Call, Connection, IoThread

cdef long long SECOND_NS = 1000000000


cdef class HalfSent:
    """One whose message has begun to come at `began_s`."""

    cdef IoThread thread
    cdef Connection connection
    cdef Call call

    def __cinit__(self, int began_s):
        memset(&self.thread, 0, sizeof(IoThread))
        memset(&self.connection, 0, sizeof(Connection))
        memset(&self.call, 0, sizeof(Call))
        self.connection.thread = &self.thread
        self.connection.is_settled = True
        self.connection.calls = &self.call
        self.call.connection = &self.connection
        self.call.prefix_got = 5
        self.call.partial_ns = began_s * SECOND_NS
        self.call.is_started = True         # so that its end is only noted

    def __dealloc__(self):
        buffer_free(&self.call.message)
        buffer_free(&self.call.details)

    def look(self, int now_s, *, bint window_held=False):
        """What is said of it when its connection is looked at, once a second: nothing while it may go on."""
        self.thread.now_ns = self.connection.heard_ns = now_s * SECOND_NS
        self.connection.window_held = 65536 if window_held else 0
        connection_look(&self.connection)
        if not self.call.is_ended:
            return ""
        return (<bytes> self.call.message.data[:self.call.message.length]).decode()
