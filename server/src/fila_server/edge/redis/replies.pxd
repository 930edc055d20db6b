"""What Redis clients are owed: a line of replies, each in its place until those before it have left.

    reply_add ──► [known][known][awaited][known] ──replies_leave──► the out buffer, up to the first awaited
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t

from fila_server.edge.io.iothread cimport Connection, Reply

cdef Reply* reply_add(Connection* connection, int32_t kind) noexcept nogil     # awaited
# Its text, or what was leased, is there.
cdef void reply_is_known(Reply* reply) noexcept nogil
# A refusal as its text, once for each push that it answers. `retry_ms`: 0 = as the reason has it, where it is
# one of want of room.
cdef void reply_refuse(
    Reply* reply, int32_t code, const char* why, const char* reason, int32_t retry_ms) noexcept nogil
# The same, as the core or Python has put it: an ItemStatus.
cdef void reply_fail(Reply* reply, int32_t code, const char* item, size_t length) noexcept nogil
cdef void reply_internal(Reply* reply) noexcept nogil
# The core is asked, or has answered: what waits, and of how many bytes, is counted.
cdef void reply_awaits(Reply* reply) noexcept nogil
cdef void reply_is_answered(Reply* reply) noexcept nogil
# What is known and stands in front goes to the out buffer, as long as that is not full.
cdef void replies_leave(Connection* connection) noexcept nogil
# All of them; what was leased and never left is given back, and what is awaited is waited for by nobody.
cdef void replies_free(Connection* connection) noexcept nogil
# Whether so much is on its way out that nothing more should be started.
cdef bint replies_are_many(const Connection* connection) noexcept nogil
