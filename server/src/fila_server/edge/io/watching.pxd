"""What epoll is to tell of a connection; that nobody is at its other end any more it tells unasked."""

from fila_server.edge.io.iothread cimport Connection
from fila_server.edge.io.sockets cimport EPOLLIN, EPOLLOUT, EPOLL_CTL_MOD, epoll_ctl, epoll_event

cdef inline bint is_unread(const Connection* connection) noexcept nogil:
    return connection.input_ended_ns != 0 or connection.is_paused

cdef inline void connection_watch(Connection* connection) noexcept nogil:
    cdef epoll_event event
    event.events = 0 if is_unread(connection) else EPOLLIN
    if connection.wants_out:
        event.events |= EPOLLOUT
    event.data.ptr = connection
    epoll_ctl(connection.thread.epoll_fd, EPOLL_CTL_MOD, connection.fd, &event)
