"""Each check walks the frame once and stops at the first thing that is wrong."""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.protocol.commands cimport CONSUME_OPEN, LEASE, SESSION_OPEN
from fila_server.core.protocol.problem cimport name_checked, problem_is, release_alone
from fila_server.core.protocol.protobuf cimport Fields, fields_parse, next_field, utf8_valid
from fila_server.core.structures.buffer cimport Cursor, Slice, take_varint

cdef enum:
    CONSUMER_NAME_BYTES_MAX = 128
    LEASE_MS_MAX = 43200000
    LEASE_IDS_MAX = 10000
    MAX_IN_FLIGHT_MAX = 65535       # leases of one stream; they all end with it
    BATCH_MAX = 0xFFFFFFFF          # deliver.pyx gives no more than it sees fit; a
                                    # number beyond its type is a mistake


cdef bint consumer_checked(Command* command, Problem* problem) noexcept nogil:
    """LeaseRequest, ConsumeRequest and a session's Open name queue and channel at 1 and 2."""
    cdef Fields fields
    cdef Fields inner
    cdef bint good = fields_parse(&fields, command.bytes, command.length)
    if good and command.kind == SESSION_OPEN:
        if not fields.seen & 2:
            problem_is(problem, b"INVALID_FIELD", b"open: a session's first frame must be `open`", 0)
            return False
        good = fields_parse(&inner, fields.text[1].at, fields.text[1].length)
        fields = inner
    if not good:
        problem_is(
            problem, b"INVALID_FIELD",
            b"request: the bytes are no valid message of its kind; check the client's encoder", 0)
        return False
    if not name_checked(problem, fields.text[1], b"queue"):
        return False
    if fields.text[2].length and not name_checked(problem, fields.text[2], b"channel"):
        return False
    if command.kind == LEASE and fields.number[3] > 10000:
        problem_is(problem, b"LIMIT_EXCEEDED", b"max_messages: at most 10000", 0)
        return False
    if command.kind != LEASE and fields.number[3] > MAX_IN_FLIGHT_MAX:
        problem_is(
            problem, b"LIMIT_EXCEEDED", b"max_in_flight: at most %llu a stream; open several",
            MAX_IN_FLIGHT_MAX)
        return False
    if command.kind == CONSUME_OPEN and fields.number[4] > BATCH_MAX:
        problem_is(problem, b"LIMIT_EXCEEDED", b"max_batch: at most %llu messages a frame", BATCH_MAX)
        return False
    return command.kind != SESSION_OPEN or _check_open(&fields, problem)


cdef bint _check_open(const Fields* fields, Problem* problem) noexcept nogil:
    """What a session's Open says of itself."""
    cdef uint64_t lease_ids = 0
    cdef bint is_text = True
    if fields.text[6].length > CONSUMER_NAME_BYTES_MAX:
        problem_is(problem, b"LIMIT_EXCEEDED", b"name: at most %llu bytes", CONSUMER_NAME_BYTES_MAX)
    elif not utf8_valid(fields.text[6].at, fields.text[6].length):
        problem_is(problem, b"INVALID_FIELD", b"name: must be UTF-8 text", 0)
    elif fields.number[7] > LEASE_MS_MAX:
        problem_is(problem, b"INVALID_FIELD", b"max_lease_renewal_ms: at most %llu (12 h)", LEASE_MS_MAX)
    elif fields.number[7] and not fields.number[5]:
        problem_is(
            problem, b"INVALID_FIELD",
            b"max_lease_renewal_ms: only with tracks_begun; leases of other sessions last the visibility "
            b"timeout",
            0)
    elif not _session_part_valid(8, fields.text[8], &lease_ids, &is_text):
        problem_is(
            problem, b"INVALID_FIELD",
            b"resume: the bytes are no valid message of its kind; check the client's encoder", 0)
    elif lease_ids > LEASE_IDS_MAX:
        problem_is(problem, b"LIMIT_EXCEEDED", b"resume.lease_ids: at most %llu", LEASE_IDS_MAX)
    else:
        return True
    return False


cdef bint _lease_ids_valid(Slice packed, uint64_t* count) noexcept nogil:
    cdef Cursor ids
    ids.at, ids.end, ids.bad = packed.at, packed.at + packed.length, False
    while ids.at < ids.end and not ids.bad:
        take_varint(&ids)
        count[0] += 1
    return not ids.bad


cdef bint _session_part_valid(uint32_t field, Slice part, uint64_t* lease_ids, bint* is_text) noexcept nogil:
    """One of a session's messages by its number there, or an Open's Resume (8, as Window has its
    ids at 2, too); `is_text` turns false where an error's text is none."""
    cdef Cursor c
    cdef uint32_t inner, kind
    cdef Slice text
    cdef uint64_t number
    cdef uint32_t ids = 2 if field in (3, 4, 8) else (1 if field in (5, 7) else 0)
    c.at, c.end, c.bad = part.at, part.at + part.length, False
    while next_field(&c, &inner, &kind, &text, &number):
        if inner == ids and kind == 2 and not _lease_ids_valid(text, lease_ids):
            return False
        if inner == ids and kind == 0:
            lease_ids[0] += 1
        if field < 5 and inner == 3 and kind == 2 and not utf8_valid(text.at, text.length):
            is_text[0] = False
    return not c.bad


cdef const char* _session_part_wrong(uint32_t field, Slice part) noexcept nogil:
    """Wishes that can't be met, or NULL."""
    cdef Fields fields
    if not fields_parse(&fields, part.at, part.length):
        return NULL
    if field == 4 and fields.number[6] and (fields.number[5] or fields.seen & (1 << 4)):
        return release_alone()
    if field == 8 and fields.number[1] > LEASE_IDS_MAX:
        return b"window.size: at most %llu"
    return NULL


cdef bint session_checked(Command* command, const Limits* limits, Problem* problem) noexcept nogil:
    """A later frame of a session. One that was ignored would leave its sender waiting for an answer."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef uint64_t lease_ids = 0
    cdef uint32_t parts = 0
    cdef bint is_text = True
    cdef bint good = True
    cdef const char* wrong = NULL
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while good and next_field(&c, &field, &kind, &text, &number):
        # A frame is a oneof. Each part is answered by itself, so one small frame of a million empty parts
        # would occupy the scheduler for seconds and fill the memory with answers.
        parts += 2 <= field <= 9
        if parts > 1:
            problem_is(problem, b"INVALID_FIELD", b"request: one thing a frame; send several frames", 0)
            return False
        if field == 1:
            problem_is(problem, b"INVALID_FIELD", b"open: a session is opened once, by its first frame", 0)
            return False
        if 3 <= field <= 9:
            good = kind == 2 and _session_part_valid(field, text, &lease_ids, &is_text)
            if good and wrong == NULL:
                wrong = _session_part_wrong(field, text)
    if not good or c.bad:
        problem_is(
            problem, b"INVALID_FIELD",
            b"request: the bytes are no valid message of its kind; check the client's encoder", 0)
    elif not is_text:
        problem_is(problem, b"INVALID_FIELD", b"error: must be UTF-8 text", 0)
    elif wrong != NULL:
        problem_is(problem, b"INVALID_FIELD", wrong, LEASE_IDS_MAX)
    elif lease_ids > limits.batch_messages_max:
        problem_is(problem, b"LIMIT_EXCEEDED", b"lease_ids: at most %llu a frame", limits.batch_messages_max)
    else:
        return True
    return False
