from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from fila_server.core.protocol.commands cimport LISTENED
from fila_server.core.requests.submit cimport POSTED, request_post
from fila_server.core.threads.mailbox cimport Command, command_free, command_new
from fila_server.edge.io.sockets cimport atomic_load, atomic_store

cdef enum:
    LISTENED_EVERY_NS = 100000000
    HEARD_WITHIN_NS = 150000000
    THREADS_MAX = 16


cdef void post_surely(
        IoThread* io, int32_t kind, uint64_t token, const char* bytes, size_t length) noexcept nogil:
    cdef Command* command = command_new(kind, token, bytes, length)
    if io.unposted == NULL and request_post(io.common.core, command) == POSTED:
        return
    command.next = NULL
    if io.unposted == NULL:
        io.unposted = command
    else:
        io.unposted_last.next = command
    io.unposted_last = command


cdef void post_again(IoThread* io) noexcept nogil:
    cdef Command* command
    while io.unposted != NULL:
        command = io.unposted
        io.unposted = command.next
        if request_post(io.common.core, command) != POSTED:
            command.next = io.unposted
            io.unposted = command
            if command.next == NULL:
                io.unposted_last = command
            return


cdef void post_deaf(IoThread* io) noexcept nogil:
    atomic_store(&io.common.listened_ns[io.number], 0)


cdef void post_listened(IoThread* io) noexcept nogil:
    cdef Command* command
    cdef uint32_t i
    cdef int64_t heard_ns
    atomic_store(&io.common.listened_ns[io.number], io.now_ns)
    if io.number != FIRST_THREAD or io.now_ns - io.looked_ns < LISTENED_EVERY_NS:
        return
    for i in range(1, THREADS_MAX + 1):
        heard_ns = atomic_load(&io.common.listened_ns[i])
        if heard_ns and io.now_ns - heard_ns > HEARD_WITHIN_NS:
            return
    io.looked_ns = io.now_ns
    command = command_new(LISTENED, 0, b"", 0)
    if request_post(io.common.core, command) != POSTED:
        command_free(command)       # a full mailbox hears of nobody: that is no silence of theirs
