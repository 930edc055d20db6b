"""LimitFeedback: what workers tell of their providers' limits with what they settle."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.protocol.problem cimport Problem
from fila_server.core.structures.buffer cimport Cursor, Slice

cdef enum:
    FEEDBACK_MAX = 16               # of one message: as many throttle keys may it have
    FEEDBACK_MS_MAX = 300000

cdef struct Feedback:
    Slice    limit                  # empty: each that the message names and that learns
    bint     limited                # else: what remains
    int64_t  retry_ms, reset_ms
    uint64_t remaining

cdef struct Feedbacks:              # of one message on the wire, unread
    Slice    message                # empty = none
    uint32_t field                  # in which it has them

# Of a message that `next_feedback` is not to read.
cdef inline Feedbacks no_feedback() noexcept nogil:
    cdef Feedbacks none
    none.message.at, none.message.length = NULL, 0
    none.field = 0
    return none

# `message` has field `field`, whatever is in it.
cdef inline Feedbacks feedback_in(Slice message, uint32_t field) noexcept nogil:
    cdef Feedbacks found
    found.message, found.field = message, field
    return found

cdef Cursor feedback_cursor(const Feedbacks* of) noexcept nogil
cdef bint next_feedback(Cursor* c, const Feedbacks* of, Feedback* feedback) noexcept nogil
# Each is whole and within its bounds; else `problem` says which is not.
cdef bint feedback_checked(const Feedbacks* of, Problem* problem) noexcept nogil
