"""What is checked here nobody checks again; whether a message names a limit is known where the message is."""

from fila_server.core.protocol cimport v1
from fila_server.core.protocol.problem cimport problem_is
from fila_server.core.protocol.protobuf cimport LEN, Fields, fields_parse, next_field

cdef enum:
    NAME_BYTES_MAX = 4096           # of a throttle key, as any header's value


cdef Cursor feedback_cursor(const Feedbacks* of) noexcept nogil:
    cdef Cursor c
    c.at, c.end, c.bad = of.message.at, of.message.at + of.message.length, False
    return c


cdef bint _next(Cursor* c, const Feedbacks* of, Fields* fields, bint* good) noexcept nogil:
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    while next_field(c, &field, &kind, &text, &number):
        if field == of.field and kind == LEN:
            good[0] = fields_parse(fields, text.at, text.length)
            return True
    return False


cdef bint next_feedback(Cursor* c, const Feedbacks* of, Feedback* feedback) noexcept nogil:
    cdef Fields fields
    cdef bint good
    if not _next(c, of, &fields, &good):
        return False
    feedback.limit = fields.text[v1.LIMIT_FEEDBACK_LIMIT]
    feedback.limited = fields.number[v1.LIMIT_FEEDBACK_KIND] == v1.LIMIT_FEEDBACK_KIND_LIMITED
    feedback.retry_ms = <int64_t> fields.number[v1.LIMIT_FEEDBACK_RETRY_AFTER_MS]
    feedback.reset_ms = <int64_t> fields.number[v1.LIMIT_FEEDBACK_RESET_MS]
    feedback.remaining = fields.number[v1.LIMIT_FEEDBACK_REMAINING]
    return True


cdef bint feedback_checked(const Feedbacks* of, Problem* problem) noexcept nogil:
    cdef Cursor c = feedback_cursor(of)
    cdef Fields fields
    cdef bint good
    cdef uint64_t kind
    cdef uint32_t count = 0
    while _next(&c, of, &fields, &good):
        count += 1
        if not good:
            problem_is(
                problem, b"INVALID_FIELD",
                b"feedback: the bytes are no valid LimitFeedback; check the client's encoder", 0)
            return False
        kind = fields.number[v1.LIMIT_FEEDBACK_KIND]
        if count > FEEDBACK_MAX:
            problem_is(
                problem, b"LIMIT_EXCEEDED",
                b"feedback: at most %llu a message, which names no more limits than that", FEEDBACK_MAX)
        elif kind != v1.LIMIT_FEEDBACK_KIND_LIMITED and kind != v1.LIMIT_FEEDBACK_KIND_REMAINING:
            problem_is(
                problem, b"INVALID_FIELD",
                b"feedback.kind: must be 1 (limited) or 2 (remaining), got %llu", kind)
        elif fields.text[v1.LIMIT_FEEDBACK_LIMIT].length > NAME_BYTES_MAX:
            problem_is(problem, b"LIMIT_EXCEEDED", b"feedback.limit: at most %llu bytes", NAME_BYTES_MAX)
        elif fields.number[v1.LIMIT_FEEDBACK_RETRY_AFTER_MS] > FEEDBACK_MS_MAX:
            problem_is(
                problem, b"LIMIT_EXCEEDED",
                b"feedback.retry_after_ms: at most %llu (5 min); say that where the provider said more",
                FEEDBACK_MS_MAX)
        elif fields.number[v1.LIMIT_FEEDBACK_RESET_MS] > FEEDBACK_MS_MAX:
            problem_is(
                problem, b"LIMIT_EXCEEDED",
                b"feedback.reset_ms: at most %llu (5 min); say that where the provider said more",
                FEEDBACK_MS_MAX)
        else:
            continue
        return False
    return True
