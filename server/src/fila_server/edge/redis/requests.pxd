"""What Redis clients ask: each item of the decoder from its start to its answer.

    PUSHES, PUSH_MANY, ACKS, LEASE ──► the mailbox, under its reply's token ──► request_answer
    COMMAND ──────────────────────► Python, one of a connection at a time ──► request_answered
    REPLY, CLOSE ─────────────────► answered already

A client may send many commands without reading a reply, and each must see what those before it did. So one
starts when nothing of its connection runs, or when what runs is of its own lane: pushes beside pushes, acks
beside acks, reads that do not wait beside their like. The mailbox keeps the order within a lane; changing
lanes waits for the answers.
"""

from fila_server.core.threads.outbox cimport Out
from fila_server.edge.io.iothread cimport Connection, IoThread, Reply
from fila_server.edge.redis.decoder cimport Item

cdef bint request_may_start(const Connection* connection, const Item* item) noexcept nogil
cdef void request_start(Connection* connection, Item* item) noexcept nogil         # takes its body
# The core has answered, or Python has refused the frame at its script. Takes the payload.
cdef void request_answer(IoThread* io, Reply* reply, Out* answer) noexcept nogil
# What Python says to the command it was asked, or to the client as it comes in. Takes the payload.
cdef void request_answered(Connection* connection, Out* order) noexcept nogil
# The read that waits goes on as if its time were over: it gets what there is, or null.
cdef void request_wait_over(Connection* connection) noexcept nogil
# The read that waits is given nothing any more: it is answered null, or with `why` it was ended.
cdef void request_end_wait(Connection* connection, const char* why) noexcept nogil
# Nothing waits any more: its place among the waiting is given back.
cdef void request_forget_wait(Connection* connection) noexcept nogil
