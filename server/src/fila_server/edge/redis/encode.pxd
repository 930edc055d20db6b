"""Answers of the core as replies of the Redis protocol, without the GIL.

    EnqueueBatchResponse ──► :1 :1 :1              one reply a push, each with its own error
    LeaseResponse ─────────► *2 [id, ticket, body] [id, ticket, body]
    SettleBatchResponse ───► :n
    ItemStatus ────────────► -QNF queue "orders" does not exist; SETNX queue channel makes both

The core's answers are read in place; unknown fields are skipped, so a newer core may add some. What Fila's
errors are called here:

    QNF   queue not found      IPA   invalid parameter      ERR   everything else: capacity, shutdown,
    CNF   channel not found    MPA   missing parameter            our mistakes, and what Redis itself
    QAE   queue exists         ICOM  invalid command              answers with ERR
    CAE   channel exists       UCOM  unknown command
    NOAUTH, NOPERM, WRONGPASS  as Redis has them
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t

from fila_server.core.structures.buffer cimport Buffer, Slice

# `-PREFIX text`, one line of printable ASCII whatever the text holds, and of bounded length.
cdef void put_error(Buffer* to, const char* prefix, const char* text, size_t length) noexcept nogil
# `retry_ms`: when to come back, where that is told; 0 = not.
cdef void put_refusal(
    Buffer* to, int32_t code, Slice message, Slice reason, int32_t retry_ms) noexcept nogil
# When to come back, of a refusal for want of room; 0 = not told.
cdef int32_t retry_ms_of(int32_t code, Slice reason) noexcept nogil
# Of an ItemStatus that a whole command was answered with: with the time to come back by, if it was refused
# for want of room.
cdef void put_failure(Buffer* to, int32_t code, const char* item, size_t length) noexcept nogil
cdef void put_integer(Buffer* to, int64_t number) noexcept nogil
# The rest return False where the core's answer does not parse, or is not of so many.
cdef bint put_pushed(Buffer* to, const char* answer, size_t length, uint32_t count) noexcept nogil
cdef bint put_pushed_many(Buffer* to, const char* answer, size_t length, uint32_t count) noexcept nogil
cdef bint put_leased(Buffer* to, const char* answer, size_t length) noexcept nogil
# `refused` is the first ItemStatus that is none of OK; of no length where there is none.
cdef bint count_acked(const char* answer, size_t length, int64_t* acked, Slice* refused) noexcept nogil
# Whether this ItemStatus says that its queue or channel does not exist.
cdef bint is_nowhere(Slice status) noexcept nogil
cdef void put_status(Buffer* to, Slice status) noexcept nogil
