"""Each check walks the frame once and stops at the first thing that is wrong."""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport CONSUME_OPEN, LEASE, SESSION_OPEN
from fila_server.core.protocol.feedback cimport Feedbacks, feedback_checked, feedback_in
from fila_server.core.protocol.problem cimport name_checked, problem_is, release_alone
from fila_server.core.protocol.protobuf cimport (
    LEN, QUEUE_FIELD, VARINT, Fields, channel_field, fields_parse, next_field, utf8_valid, uuid_parse,
)
from fila_server.core.structures.buffer cimport Cursor, Slice, take_varint

cdef enum:
    CONSUMER_NAME_BYTES_MAX = 128
    LEASE_MS_MAX = 43200000
    LEASE_IDS_MAX = 10000
    MAX_IN_FLIGHT_MAX = 65535       # leases of one stream; they all end with it
    BATCH_MAX = 0xFFFFFFFF          # deliver.pyx gives no more than it sees fit; a
                                    # number beyond its type is a mistake


cdef bint consumer_checked(Command* command, Problem* problem) noexcept nogil:
    """A LeaseRequest, a ConsumeRequest, or a session's Open."""
    cdef Fields fields
    cdef Slice opening
    cdef Slice channel
    cdef int in_flight = v1.CONSUME_REQUEST_MAX_IN_FLIGHT
    cdef bint good = fields_parse(&fields, command.bytes, command.length)
    if good and command.kind == SESSION_OPEN:
        if not fields.seen & (1 << v1.CONSUME_SESSION_REQUEST_OPEN):
            problem_is(problem, b"INVALID_FIELD", b"open: a session's first frame must be `open`", 0)
            return False
        opening = fields.text[v1.CONSUME_SESSION_REQUEST_OPEN]
        good = fields_parse(&fields, opening.at, opening.length)
    if not good:
        problem_is(
            problem, b"INVALID_FIELD",
            b"request: the bytes are no valid message of its kind; check the client's encoder", 0)
        return False
    if not name_checked(problem, fields.text[QUEUE_FIELD], b"queue"):
        return False
    channel = fields.text[channel_field(command.kind)]
    if channel.length and not name_checked(problem, channel, b"channel"):
        return False
    if command.kind == LEASE and fields.number[v1.LEASE_REQUEST_MAX_MESSAGES] > 10000:
        problem_is(problem, b"LIMIT_EXCEEDED", b"max_messages: at most 10000", 0)
        return False
    if command.kind == SESSION_OPEN:
        in_flight = v1.CONSUME_SESSION_REQUEST_OPEN_MAX_IN_FLIGHT
    if command.kind != LEASE and fields.number[in_flight] > MAX_IN_FLIGHT_MAX:
        problem_is(
            problem, b"LIMIT_EXCEEDED", b"max_in_flight: at most %llu a stream; open several",
            MAX_IN_FLIGHT_MAX)
        return False
    if command.kind == CONSUME_OPEN and fields.number[v1.CONSUME_REQUEST_MAX_BATCH] > BATCH_MAX:
        problem_is(problem, b"LIMIT_EXCEEDED", b"max_batch: at most %llu messages a frame", BATCH_MAX)
        return False
    return command.kind != SESSION_OPEN or _check_open(&fields, problem)


cdef bint cancel_checked(Command* command, const Limits* limits, Problem* problem) noexcept nogil:
    cdef Cursor c
    cdef Fields fields
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number, high, low
    cdef uint64_t named = 0
    if not fields_parse(&fields, command.bytes, command.length):
        problem_is(
            problem, b"INVALID_FIELD",
            b"request: the bytes are no valid message of its kind; check the client's encoder", 0)
        return False
    if not name_checked(problem, fields.text[QUEUE_FIELD], b"queue"):
        return False
    text = fields.text[v1.CANCEL_MESSAGES_REQUEST_CHANNEL]
    if text.length and not name_checked(problem, text, b"channel"):
        return False
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == v1.CANCEL_MESSAGES_REQUEST_MESSAGE_IDS and not uuid_parse(text, &high, &low):
            problem_is(
                problem, b"INVALID_FIELD",
                b"message_ids: each must be a UUID of 36 characters, and one is not; nothing was taken back",
                0)
            return False
        if field == v1.CANCEL_MESSAGES_REQUEST_DEDUP_KEYS and not (
            1 <= text.length <= limits.dedup_key_bytes_max
        ):
            problem_is(
                problem, b"LIMIT_EXCEEDED",
                b"dedup_keys: each must have 1 to %llu bytes, and one has not; nothing was taken back",
                limits.dedup_key_bytes_max)
            return False
        named += v1.CANCEL_MESSAGES_REQUEST_CHANNEL < field <= v1.CANCEL_MESSAGES_REQUEST_DEDUP_KEYS
    if named == 0:
        problem_is(
            problem, b"INVALID_FIELD",
            b"message_ids, dedup_keys: at least one; name the messages to take back", 0)
    elif named > limits.batch_messages_max:
        problem_is(
            problem, b"LIMIT_EXCEEDED", b"message_ids, dedup_keys: at most %llu a call; send several",
            limits.batch_messages_max)
    else:
        return True
    return False


cdef bint _check_open(const Fields* fields, Problem* problem) noexcept nogil:
    """What a session's Open says of itself."""
    cdef uint64_t lease_ids = 0
    cdef bint is_text = True
    cdef Slice name = fields.text[v1.CONSUME_SESSION_REQUEST_OPEN_NAME]
    cdef uint64_t renewal_ms = fields.number[v1.CONSUME_SESSION_REQUEST_OPEN_MAX_LEASE_RENEWAL_MS]
    if name.length > CONSUMER_NAME_BYTES_MAX:
        problem_is(problem, b"LIMIT_EXCEEDED", b"name: at most %llu bytes", CONSUMER_NAME_BYTES_MAX)
    elif not utf8_valid(name.at, name.length):
        problem_is(problem, b"INVALID_FIELD", b"name: must be UTF-8 text", 0)
    elif renewal_ms > LEASE_MS_MAX:
        problem_is(problem, b"INVALID_FIELD", b"max_lease_renewal_ms: at most %llu (12 h)", LEASE_MS_MAX)
    elif renewal_ms and not fields.number[v1.CONSUME_SESSION_REQUEST_OPEN_TRACKS_BEGUN]:
        problem_is(
            problem, b"INVALID_FIELD",
            b"max_lease_renewal_ms: only with tracks_begun; leases of other sessions last the visibility "
            b"timeout",
            0)
    elif not _part_valid(
        fields.text[v1.CONSUME_SESSION_REQUEST_OPEN_RESUME], v1.CONSUME_SESSION_REQUEST_RESUME_LEASE_IDS, 0,
        &lease_ids, &is_text,
    ):
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


cdef uint32_t _lease_ids_field(uint32_t part) noexcept nogil:
    """Which field lists leases in that part of a session's frame; 0 = none does."""
    if part == v1.CONSUME_SESSION_REQUEST_ACK or part == v1.CONSUME_SESSION_REQUEST_NACK:
        return v1.SETTLE_LEASE_IDS
    if part == v1.CONSUME_SESSION_REQUEST_EXTEND:
        return v1.CONSUME_SESSION_REQUEST_EXTEND_LEASE_IDS
    if part == v1.CONSUME_SESSION_REQUEST_BEGUN:
        return v1.CONSUME_SESSION_REQUEST_BEGUN_LEASE_IDS
    if part == v1.CONSUME_SESSION_REQUEST_WINDOW:
        return v1.CONSUME_SESSION_REQUEST_WINDOW_GIVE_BACK
    return 0


cdef bint _part_valid(
        Slice part, uint32_t ids, uint32_t error, uint64_t* lease_ids, bint* is_text) noexcept nogil:
    """Whether it is a message. The leases that its field `ids` lists are added to `lease_ids`; `is_text`
    turns false where its field `error` is no text. A number 0 names no field."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    c.at, c.end, c.bad = part.at, part.at + part.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == ids and kind == LEN and not _lease_ids_valid(text, lease_ids):
            return False
        if field == ids and kind == VARINT:
            lease_ids[0] += 1
        if field == error and kind == LEN and not utf8_valid(text.at, text.length):
            is_text[0] = False
    return not c.bad


cdef bint _session_part_checked(uint32_t field, Slice part, Problem* problem) noexcept nogil:
    """Whether its wishes can be met."""
    cdef Fields fields
    cdef Feedbacks said
    if not fields_parse(&fields, part.at, part.length):
        return True
    if (
        (field == v1.CONSUME_SESSION_REQUEST_ACK or field == v1.CONSUME_SESSION_REQUEST_NACK)
        and fields.seen & (1 << v1.SETTLE_FEEDBACK)
    ):
        said = feedback_in(part, v1.SETTLE_FEEDBACK)
        if not feedback_checked(&said, problem):
            return False
    if field == v1.CONSUME_SESSION_REQUEST_NACK and fields.number[v1.SETTLE_RELEASE] and (
        fields.number[v1.SETTLE_DEAD_LETTER] or fields.seen & (1 << v1.SETTLE_DELAY_MS)
    ):
        problem_is(problem, b"INVALID_FIELD", release_alone(), 0)
        return False
    if (
        field == v1.CONSUME_SESSION_REQUEST_WINDOW
        and fields.number[v1.CONSUME_SESSION_REQUEST_WINDOW_SIZE] > LEASE_IDS_MAX
    ):
        problem_is(problem, b"INVALID_FIELD", b"window.size: at most %llu", LEASE_IDS_MAX)
        return False
    return True


cdef bint session_checked(Command* command, const Limits* limits, Problem* problem) noexcept nogil:
    """A later frame of a session. One that was ignored would leave its sender waiting for an answer."""
    cdef Cursor c
    cdef uint32_t field, kind, error
    cdef Slice text
    cdef uint64_t number
    cdef uint64_t lease_ids = 0
    cdef uint32_t parts = 0
    cdef bint is_text = True
    cdef bint good = True
    cdef bint can_be_met = True
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while good and next_field(&c, &field, &kind, &text, &number):
        # A frame is a oneof. Each part is answered by itself, so one small frame of a million empty parts
        # would occupy the scheduler for seconds and fill the memory with answers.
        parts += v1.CONSUME_SESSION_REQUEST_CREDIT <= field <= v1.CONSUME_SESSION_REQUEST_ALIVE
        if parts > 1:
            problem_is(problem, b"INVALID_FIELD", b"request: one thing a frame; send several frames", 0)
            return False
        if field == v1.CONSUME_SESSION_REQUEST_OPEN:
            problem_is(problem, b"INVALID_FIELD", b"open: a session is opened once, by its first frame", 0)
            return False
        if v1.CONSUME_SESSION_REQUEST_ACK <= field <= v1.CONSUME_SESSION_REQUEST_ALIVE:
            error = 0
            if field == v1.CONSUME_SESSION_REQUEST_ACK or field == v1.CONSUME_SESSION_REQUEST_NACK:
                error = v1.SETTLE_ERROR
            good = kind == LEN and _part_valid(text, _lease_ids_field(field), error, &lease_ids, &is_text)
            can_be_met = not good or _session_part_checked(field, text, problem)
    if not good or c.bad:
        problem_is(
            problem, b"INVALID_FIELD",
            b"request: the bytes are no valid message of its kind; check the client's encoder", 0)
    elif not is_text:
        problem_is(problem, b"INVALID_FIELD", b"error: must be UTF-8 text", 0)
    elif not can_be_met:
        return False
    elif lease_ids > limits.batch_messages_max:
        problem_is(problem, b"LIMIT_EXCEEDED", b"lease_ids: at most %llu a frame", limits.batch_messages_max)
    else:
        return True
    return False
