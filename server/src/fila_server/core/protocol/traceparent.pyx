"""version - trace id - span id - flags, in lower-case hex. Version ff is forbidden, ids of zeros are none,
and what a later version writes behind the flags is left to those who know it."""

cdef enum:
    TRACEPARENT_LENGTH = 55
    SAMPLED = 1


cdef inline int _digit(char letter) noexcept nogil:
    if b"0" <= letter <= b"9":
        return letter - 0x30
    if b"a" <= letter <= b"f":
        return letter - 0x61 + 10
    return -1


cdef inline bint _number(const char* at, size_t digits, uint64_t* number) noexcept nogil:
    """At most sixteen hex digits."""
    cdef size_t i
    cdef int digit
    number[0] = 0
    for i in range(digits):
        digit = _digit(at[i])
        if digit < 0:
            return False
        number[0] = number[0] << 4 | <uint64_t> digit
    return True


cdef bint traceparent_parse(const char* at, size_t length, TraceContext* context) noexcept nogil:
    cdef uint64_t version, flags
    if length < TRACEPARENT_LENGTH or (length > TRACEPARENT_LENGTH and at[TRACEPARENT_LENGTH] != b"-"):
        return False
    if at[2] != b"-" or at[35] != b"-" or at[52] != b"-":
        return False
    if not _number(at, 2, &version) or version == 0xFF or not _number(at + 53, 2, &flags):
        return False
    if (
        not _number(at + 3, 16, &context.trace_high) or not _number(at + 19, 16, &context.trace_low)
        or not _number(at + 36, 16, &context.span)
    ):
        return False
    return (context.trace_high | context.trace_low) != 0 and context.span != 0 and flags & SAMPLED
