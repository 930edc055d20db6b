"""Each check walks the frame once and stops at the first thing that is wrong. What it leaves behind, a
table of positions, spares the scheduler the walk.
"""

from libc.stdint cimport uint32_t, uint8_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy

from fila_server.core.doors.mailbox cimport StageKey, command_adopt, command_free, command_new
from fila_server.core.store.checksum cimport crc32c
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc, take_varint,
)
from fila_server.core.wire.commands cimport (
    ACK, ACK_BATCH, CONSUME_OPEN, ENQUEUE, ENQUEUE_ATOMIC, ENQUEUE_BATCH, ENQUEUE_STREAM, EXTEND_LEASE,
    INVALID_ARGUMENT, LEASE, NACK, NACK_BATCH, SESSION, SESSION_OPEN, STAGE,
)
from fila_server.core.wire.protobuf cimport (
    Fields, Item, fields_parse, item_parse, name_valid, next_field, utf8_valid, uuid_parse,
)
from fila_server.core.wire.refusals cimport (
    EXTEND_MS_MAX, EXTEND_MS_MIN, REFUSED_MALFORMED, REFUSED_QUEUE_NAME, refusal_code, refusal_reason,
    refusal_text,
)

cdef enum:
    CONSUMER_NAME_BYTES_MAX = 128
    LEASE_MS_MAX = 43200000
    LEASE_IDS_MAX = 10000
    MAX_IN_FLIGHT_MAX = 65535       # leases of one stream; they all end with it
    BATCH_MAX = 0xFFFFFFFF          # deliver.pyx gives no more than it sees fit; a
                                    # number beyond its type is a mistake

cdef const char* RELEASE_ALONE = (
    b"release: not together with dead_letter or delay_ms; a message that did "
    b"not fail goes back as it was"
)


cdef void _problem(Problem* p, const char* reason, const char* text, unsigned long long bound) noexcept nogil:
    p.code = INVALID_ARGUMENT
    p.retry_ms = 0
    snprintf(p.reason, sizeof(p.reason), b"%s", reason)
    snprintf(p.text, sizeof(p.text), text, bound)


cdef bint _check_name(Problem* p, Slice name, const char* field) noexcept nogil:
    if name_valid(name):
        return True
    p.code = INVALID_ARGUMENT
    snprintf(p.reason, sizeof(p.reason), b"INVALID_FIELD")
    if name.length == 0:
        snprintf(p.text, sizeof(p.text), b"%s: must not be empty", field)
    else:
        snprintf(
            p.text, sizeof(p.text),
            b"%s: a name is 1 to 251 bytes of A-Z a-z 0-9 . _ - and does not start with a dot", field)
    return False


cdef uint32_t _count(const char* bytes, size_t length, uint32_t wanted) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef uint32_t found = 0
    c.at, c.end, c.bad = bytes, bytes + length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == wanted and kind == 2:
            found += 1
    return found


cdef bint _parse_batch(Command* command, Slice batch, const Limits* limits, Problem* problem) noexcept nogil:
    """Fill the command's items from an EnqueueBatchRequest. A bad message is its own problem only."""
    cdef Cursor c
    cdef uint32_t field, kind, i
    cdef Slice text
    cdef uint64_t number
    cdef Buffer spare
    cdef Fields fields
    cdef Item* item
    if not fields_parse(&fields, batch.at, batch.length):
        _problem(problem, b"INVALID_FIELD", b"messages: the frame is no valid EnqueueBatchRequest", 0)
        return False
    command.queue = fields.text[1]
    if command.queue.length and not _check_name(problem, command.queue, b"queue"):
        return False
    command.count = _count(batch.at, batch.length, 2)
    if command.count > limits.batch_messages_max:
        command.count = 0
        _problem(
            problem, b"LIMIT_EXCEEDED", b"messages: at most %llu a batch; send several",
            limits.batch_messages_max)
        return False
    command.items = <Item*> must_malloc(command.count * sizeof(Item))
    buffer_init(&spare)
    c.at, c.end, c.bad = batch.at, batch.at + batch.length, False
    i = 0
    while next_field(&c, &field, &kind, &text, &number):
        if field == 2 and kind == 2:
            item = &command.items[i]
            item_parse(item, command.bytes, text, &spare, command.length, limits)
            if item.queue.length == 0:
                item.queue = command.queue
            if not item.refused and item.queue.length == 0:
                item.refused = REFUSED_QUEUE_NAME
            i += 1
    if spare.length:
        spare_adopt(command, &spare)
    buffer_free(&spare)
    return True


cdef bint _check_atomic(Command* command, Problem* problem) noexcept nogil:
    """All of it is stored or none: so it is one frame of one queue, and
    no message of it stands for an earlier one."""
    cdef Slice first
    cdef uint32_t i
    if command.count == 0:
        return True
    first = command.items[0].queue
    for i in range(command.count):
        if (
            command.items[i].queue.length != first.length
            or memcmp(command.items[i].queue.at, first.at, first.length)
        ):
            _problem(
                problem, b"INVALID_FIELD",
                b"queue: all messages of an atomic batch go to one queue; send a batch for each", 0)
            return False
        if command.items[i].options != NULL and command.items[i].options.dedup_key.length:
            _problem(
                problem, b"INVALID_FIELD",
                b"dedup_key: not in an atomic batch, where a repeated message could not be told from a "
                b"stored one; leave it out",
                0)
            return False
    return True


cdef void spare_adopt(Command* command, Buffer* spare) noexcept nogil:
    cdef char* old = command.bytes
    cdef ptrdiff_t moved
    cdef uint32_t i
    cdef Item* item
    command.bytes = <char*> must_malloc(command.length + spare.length)
    memcpy(command.bytes, old, command.length)
    memcpy(command.bytes + command.length, spare.data, spare.length)
    moved = command.bytes - old
    if command.queue.length:
        command.queue.at += moved
    for i in range(command.count):
        item = &command.items[i]
        if item.queue.length:
            item.queue.at += moved
        if item.options != NULL and item.options.dedup_key.length:
            item.options.dedup_key.at += moved
    command.length += <uint32_t> spare.length
    command.rewritten = <uint32_t> spare.length
    free(old)


cdef bint _parse_single(Command* command, const Limits* limits, Problem* problem) noexcept nogil:
    cdef Buffer spare
    cdef Slice whole
    cdef Item* item
    whole.at, whole.length = command.bytes, command.length
    command.count = 1
    command.items = <Item*> must_malloc(sizeof(Item))
    item = command.items
    buffer_init(&spare)
    item_parse(item, command.bytes, whole, &spare, command.length, limits)
    if not item.refused and item.queue.length == 0:
        buffer_free(&spare)
        _problem(problem, b"INVALID_FIELD", b"queue: must not be empty", 0)
        return False
    if item.refused:
        buffer_free(&spare)
        problem.code = refusal_code(item.refused)
        problem.retry_ms = 0
        snprintf(problem.reason, sizeof(problem.reason), b"%s", refusal_reason(item.refused))
        if item.refused == REFUSED_MALFORMED:
            snprintf(
                problem.text, sizeof(problem.text),
                b"request: the bytes are no valid EnqueueRequest; check the client's encoder")
        else:
            refusal_text(item.refused, limits, problem.text, sizeof(problem.text))
        return False
    command.queue = item.queue
    if spare.length:
        spare_adopt(command, &spare)
    buffer_free(&spare)
    return True


cdef bint _check_settle(Command* command, const Limits* limits, Problem* problem) noexcept nogil:
    """AckRequest and NackRequest carry the message at 2, the batches their items at 3."""
    cdef Fields fields
    cdef uint64_t high, low
    cdef int channel_field = 3
    if not fields_parse(&fields, command.bytes, command.length):
        _problem(
            problem, b"INVALID_FIELD",
            b"request: the bytes are no valid message of its kind; check the client's encoder", 0)
        return False
    if not _check_name(problem, fields.text[1], b"queue"):
        return False
    if command.kind == NACK:
        channel_field = 4
    elif command.kind in (ACK_BATCH, NACK_BATCH, EXTEND_LEASE):
        channel_field = 2
    if fields.text[channel_field].length and not _check_name(problem, fields.text[channel_field], b"channel"):
        return False
    if command.kind in (ACK, NACK):
        if not uuid_parse(fields.text[2], &high, &low):
            _problem(problem, b"INVALID_FIELD", b"message_id: must be a UUID of 36 characters", 0)
            return False
        if command.kind == NACK and not utf8_valid(fields.text[3].at, fields.text[3].length):
            _problem(problem, b"INVALID_FIELD", b"error: must be valid UTF-8", 0)
            return False
        if command.kind == NACK and fields.number[8] and (fields.number[7] or fields.seen & (1 << 6)):
            _problem(problem, b"INVALID_FIELD", RELEASE_ALONE, 0)
            return False
    elif command.kind == EXTEND_LEASE:
        if fields.text[3].length and not uuid_parse(fields.text[3], &high, &low):
            _problem(problem, b"INVALID_FIELD", b"message_id: must be a UUID of 36 characters", 0)
            return False
        if fields.number[5] < EXTEND_MS_MIN or fields.number[5] > EXTEND_MS_MAX:
            _problem(problem, b"INVALID_FIELD", b"extend_ms: must be 1000 (1 s) to 43200000 (12 h)", 0)
            return False
    elif _count(command.bytes, command.length, 3) > limits.batch_messages_max:
        _problem(
            problem, b"LIMIT_EXCEEDED", b"items: at most %llu a batch; send several",
            limits.batch_messages_max)
        return False
    return True


cdef bint _check_consumer(Command* command, Problem* problem) noexcept nogil:
    """LeaseRequest, ConsumeRequest and a session's Open name queue and channel at 1 and 2."""
    cdef Fields fields
    cdef Fields inner
    cdef bint good = fields_parse(&fields, command.bytes, command.length)
    if good and command.kind == SESSION_OPEN:
        if not fields.seen & 2:
            _problem(problem, b"INVALID_FIELD", b"open: a session's first frame must be `open`", 0)
            return False
        good = fields_parse(&inner, fields.text[1].at, fields.text[1].length)
        fields = inner
    if not good:
        _problem(
            problem, b"INVALID_FIELD",
            b"request: the bytes are no valid message of its kind; check the client's encoder", 0)
        return False
    if not _check_name(problem, fields.text[1], b"queue"):
        return False
    if fields.text[2].length and not _check_name(problem, fields.text[2], b"channel"):
        return False
    if command.kind == LEASE and fields.number[3] > 10000:
        _problem(problem, b"LIMIT_EXCEEDED", b"max_messages: at most 10000", 0)
        return False
    if command.kind != LEASE and fields.number[3] > MAX_IN_FLIGHT_MAX:
        _problem(
            problem, b"LIMIT_EXCEEDED", b"max_in_flight: at most %llu a stream; open several",
            MAX_IN_FLIGHT_MAX)
        return False
    if command.kind == CONSUME_OPEN and fields.number[4] > BATCH_MAX:
        _problem(problem, b"LIMIT_EXCEEDED", b"max_batch: at most %llu messages a frame", BATCH_MAX)
        return False
    return command.kind != SESSION_OPEN or _check_open(&fields, problem)


cdef bint _check_open(const Fields* fields, Problem* problem) noexcept nogil:
    """What a session's Open says of itself."""
    cdef uint64_t lease_ids = 0
    cdef bint is_text = True
    if fields.text[6].length > CONSUMER_NAME_BYTES_MAX:
        _problem(problem, b"LIMIT_EXCEEDED", b"name: at most %llu bytes", CONSUMER_NAME_BYTES_MAX)
    elif not utf8_valid(fields.text[6].at, fields.text[6].length):
        _problem(problem, b"INVALID_FIELD", b"name: must be UTF-8 text", 0)
    elif fields.number[7] > LEASE_MS_MAX:
        _problem(problem, b"INVALID_FIELD", b"max_lease_renewal_ms: at most %llu (12 h)", LEASE_MS_MAX)
    elif fields.number[7] and not fields.number[5]:
        _problem(
            problem, b"INVALID_FIELD",
            b"max_lease_renewal_ms: only with tracks_begun; leases of other sessions last the visibility "
            b"timeout",
            0)
    elif not _session_part_valid(8, fields.text[8], &lease_ids, &is_text):
        _problem(
            problem, b"INVALID_FIELD",
            b"resume: the bytes are no valid message of its kind; check the client's encoder", 0)
    elif lease_ids > LEASE_IDS_MAX:
        _problem(problem, b"LIMIT_EXCEEDED", b"resume.lease_ids: at most %llu", LEASE_IDS_MAX)
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
        return RELEASE_ALONE
    if field == 8 and fields.number[1] > LEASE_IDS_MAX:
        return b"window.size: at most %llu"
    return NULL


cdef bint _check_session(Command* command, const Limits* limits, Problem* problem) noexcept nogil:
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
            _problem(problem, b"INVALID_FIELD", b"request: one thing a frame; send several frames", 0)
            return False
        if field == 1:
            _problem(problem, b"INVALID_FIELD", b"open: a session is opened once, by its first frame", 0)
            return False
        if 3 <= field <= 9:
            good = kind == 2 and _session_part_valid(field, text, &lease_ids, &is_text)
            if good and wrong == NULL:
                wrong = _session_part_wrong(field, text)
    if not good or c.bad:
        _problem(
            problem, b"INVALID_FIELD",
            b"request: the bytes are no valid message of its kind; check the client's encoder", 0)
    elif not is_text:
        _problem(problem, b"INVALID_FIELD", b"error: must be UTF-8 text", 0)
    elif wrong != NULL:
        _problem(problem, b"INVALID_FIELD", wrong, LEASE_IDS_MAX)
    elif lease_ids > limits.batch_messages_max:
        _problem(problem, b"LIMIT_EXCEEDED", b"lease_ids: at most %llu a frame", limits.batch_messages_max)
    else:
        return True
    return False


cdef bint _check_stage(Command* command, uint32_t request_length, Problem* problem) noexcept nogil:
    """What a Stage request says beside its messages, kept apart: the scheduler reads none of it again."""
    cdef Fields fields
    cdef uint32_t i
    cdef StageKey* key
    fields_parse(&fields, command.bytes, request_length)    # it is a message: _parse_batch read it
    if not _check_name(problem, fields.text[1], b"queue"):
        return False
    if not _check_name(problem, fields.text[3], b"sink_id"):
        return False
    if fields.number[6] > <uint64_t> 0xFFFFFFFF or fields.number[8] > <uint64_t> 0xFFFFFFFF:
        _problem(problem, b"INVALID_FIELD", b"partition, frame: at most %llu", 0xFFFFFFFF)
        return False
    if command.count == 0:
        _problem(problem,
        b"INVALID_FIELD", b"messages: at least one; an attempt without any stages nothing", 0)
        return False
    for i in range(command.count):
        if command.items[i].refused == 0 and (
            command.items[i].queue.length != command.queue.length
            or memcmp(command.items[i].queue.at, command.queue.at, command.queue.length)
        ):
            _problem(
                problem, b"INVALID_FIELD",
                b"messages: all of a frame go to one queue; stage a frame for each", 0)
            return False
    key = command.stage = <StageKey*> must_malloc(sizeof(StageKey))
    key.sink = fields.text[3]
    key.epoch, key.batch, key.attempt = fields.number[4], fields.number[5], fields.number[7]
    key.partition, key.frame = <uint32_t> fields.number[6], <uint32_t> fields.number[8]
    key.request_length = request_length
    key.checksum = crc32c(<const uint8_t*> command.bytes, request_length)
    key.is_repeat = False
    return True


cdef Command* command_parse(
        int32_t kind, uint64_t token, const char* bytes, size_t length, const Limits* limits,
        Problem* problem) noexcept nogil:
    if _too_long(length, limits, problem):
        return NULL
    return _parsed(command_new(kind, token, bytes, length), limits, problem)


cdef Command* command_parse_adopted(
        int32_t kind, uint64_t token, char* bytes, size_t length, const Limits* limits,
        Problem* problem) noexcept nogil:
    if _too_long(length, limits, problem):
        free(bytes)
        return NULL
    return _parsed(command_adopt(kind, token, bytes, length), limits, problem)


cdef bint _too_long(size_t length, const Limits* limits, Problem* problem) noexcept nogil:
    if length <= limits.batch_bytes_max:
        return False
    _problem(problem, b"LIMIT_EXCEEDED", b"request: at most %llu bytes; send several", limits.batch_bytes_max)
    return True


cdef Command* _parsed(Command* command, const Limits* limits, Problem* problem) noexcept nogil:
    """The command, its bytes checked and its items found; or NULL, and it is freed."""
    cdef int32_t kind = command.kind
    cdef uint32_t request_length = command.length       # without what is rewritten behind it
    cdef Fields fields
    cdef bint good = True
    if kind == ENQUEUE:
        good = _parse_single(command, limits, problem)
    elif kind == ENQUEUE_BATCH or kind == ENQUEUE_ATOMIC:
        fields.text[2].at = command.bytes
        fields.text[2].length = command.length
        good = _parse_batch(command, fields.text[2], limits, problem)
    elif kind == STAGE:
        fields.text[2].at = command.bytes
        fields.text[2].length = command.length
        good = (
            _parse_batch(command, fields.text[2], limits, problem)
            and _check_stage(command, request_length, problem)
        )
    elif kind == ENQUEUE_STREAM:
        if not fields_parse(&fields, command.bytes, command.length):
            _problem(problem, b"INVALID_FIELD", b"request: the bytes are no valid EnqueueStreamRequest", 0)
            good = False
        else:
            command.sequence = fields.number[1]
            if fields.text[2].length == 0:
                fields.text[2].at = command.bytes
            good = _parse_batch(command, fields.text[2], limits, problem)
    elif kind in (ACK, NACK, ACK_BATCH, NACK_BATCH, EXTEND_LEASE):
        good = _check_settle(command, limits, problem)
    elif kind in (LEASE, CONSUME_OPEN, SESSION_OPEN):
        good = _check_consumer(command, problem)
    elif kind == SESSION:
        good = _check_session(command, limits, problem)
    elif kind >= 32:
        if not fields_parse(&fields, command.bytes, command.length):
            _problem(
                problem, b"INVALID_FIELD",
                b"request: the bytes are no valid message of its kind; check the client's encoder", 0)
            good = False
    if good and kind == ENQUEUE_ATOMIC:
        good = _check_atomic(command, problem)
    if not good:
        command_free(command)
        return NULL
    return command
