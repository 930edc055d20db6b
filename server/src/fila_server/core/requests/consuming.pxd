"""The part of the parse for those who take messages, or take them back: a pull, a stream's or a session's
opening, what a session says, and cancels. What is checked here nobody checks again."""

from fila_server.core.protocol.problem cimport Problem
from fila_server.core.protocol.refusals cimport Limits
from fila_server.core.threads.mailbox cimport Command

# LEASE, CONSUME_OPEN, SESSION_OPEN
cdef bint consumer_checked(Command* command, Problem* problem) noexcept nogil
# CANCEL_MESSAGES
cdef bint cancel_checked(Command* command, const Limits* limits, Problem* problem) noexcept nogil
# SESSION
cdef bint session_checked(Command* command, const Limits* limits, Problem* problem) noexcept nogil
