"""What is open is judged again when keys or rights changed, and ends where its caller has lost the right."""

from fila_server.edge.io.iothread cimport IoThread

# A part of what is due, in this turn; whether there is more.
cdef bint judging_turn(IoThread* io) noexcept nogil
