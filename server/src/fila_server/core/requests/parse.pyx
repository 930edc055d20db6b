"""Each check walks the frame once and stops at the first thing that is wrong. What it leaves behind, a
table of positions, spares the scheduler the walk.
"""

from libc.stdint cimport uint32_t, uint8_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy

from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport (
    ACK, ACK_BATCH, CANCEL_MESSAGES, CONSUME_OPEN, ENQUEUE, ENQUEUE_ATOMIC, ENQUEUE_BATCH, ENQUEUE_STREAM,
    EXTEND_LEASE, FIRE, LEASE, NACK, NACK_BATCH, SESSION, SESSION_OPEN, STAGE,
)
from fila_server.core.protocol.feedback cimport Feedbacks, feedback_checked, feedback_in
from fila_server.core.protocol.items cimport item_parse
from fila_server.core.protocol.problem cimport name_checked, problem_is, release_alone
from fila_server.core.protocol.protobuf cimport (
    LEN, QUEUE_FIELD, Fields, Item, channel_field, fields_parse, next_field, utf8_valid,
    uuid_parse,
)
from fila_server.core.protocol.refusals cimport (
    EXTEND_MS_MAX, EXTEND_MS_MIN, REFUSED_MALFORMED, REFUSED_QUEUE_NAME, refusal_code, refusal_reason,
    refusal_text,
)
from fila_server.core.requests.consuming cimport cancel_checked, consumer_checked, session_checked
from fila_server.core.structures.checksum cimport crc32c
from fila_server.core.structures.buffer cimport Cursor, Slice, buffer_free, buffer_init, must_malloc
from fila_server.core.threads.mailbox cimport StageKey, command_adopt, command_free, command_new


cdef uint32_t _count(const char* bytes, size_t length, uint32_t wanted) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef uint32_t found = 0
    c.at, c.end, c.bad = bytes, bytes + length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == wanted and kind == LEN:
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
        problem_is(problem, b"INVALID_FIELD", b"messages: the frame is no valid EnqueueBatchRequest", 0)
        return False
    command.queue = fields.text[v1.ENQUEUE_BATCH_REQUEST_QUEUE]
    if command.queue.length and not name_checked(problem, command.queue, b"queue"):
        return False
    command.count = _count(batch.at, batch.length, 2)
    if command.count > limits.batch_messages_max:
        command.count = 0
        problem_is(
            problem, b"LIMIT_EXCEEDED", b"messages: at most %llu a batch; send several",
            limits.batch_messages_max)
        return False
    command.items = <Item*> must_malloc(command.count * sizeof(Item))
    buffer_init(&spare)
    c.at, c.end, c.bad = batch.at, batch.at + batch.length, False
    i = 0
    while next_field(&c, &field, &kind, &text, &number):
        if field == v1.ENQUEUE_BATCH_REQUEST_MESSAGES and kind == LEN:
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
            problem_is(
                problem, b"INVALID_FIELD",
                b"queue: all messages of an atomic batch go to one queue; send a batch for each", 0)
            return False
        if command.items[i].options != NULL and command.items[i].options.dedup_key.length:
            problem_is(
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
        if item.options != NULL and item.options.fairness_key.length:
            item.options.fairness_key.at += moved
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
        problem_is(problem, b"INVALID_FIELD", b"queue: must not be empty", 0)
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


cdef bint _errors_are_text(const char* bytes, size_t length) noexcept nogil:
    """Each is kept with its dead letter, and one that is no UTF-8 spoils every answer that letter is in."""
    cdef Cursor c
    cdef Fields item
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    c.at, c.end, c.bad = bytes, bytes + length, False
    while next_field(&c, &field, &kind, &text, &number):
        if (
            field == v1.NACK_BATCH_REQUEST_ITEMS and kind == LEN and fields_parse(&item, text.at, text.length)
            and not utf8_valid(item.text[v1.SETTLE_ITEM_ERROR].at, item.text[v1.SETTLE_ITEM_ERROR].length)
        ):
            return False
    return True


cdef bint _feedback_checked(Command* command, const Fields* fields, Problem* problem) noexcept nogil:
    cdef uint32_t field = v1.ACK_REQUEST_FEEDBACK if command.kind == ACK else v1.NACK_REQUEST_FEEDBACK
    cdef Slice whole
    cdef Feedbacks said
    if not fields.seen & (1 << field):
        return True
    whole.at, whole.length = command.bytes, command.length
    said = feedback_in(whole, field)
    return feedback_checked(&said, problem)


cdef bint _check_settle(Command* command, const Limits* limits, Problem* problem) noexcept nogil:
    cdef Fields fields
    cdef uint64_t high, low
    cdef Slice channel
    cdef Slice message_id
    cdef Slice error
    if not fields_parse(&fields, command.bytes, command.length):
        problem_is(
            problem, b"INVALID_FIELD",
            b"request: the bytes are no valid message of its kind; check the client's encoder", 0)
        return False
    if not name_checked(problem, fields.text[QUEUE_FIELD], b"queue"):
        return False
    channel = fields.text[channel_field(command.kind)]
    if channel.length and not name_checked(problem, channel, b"channel"):
        return False
    if command.kind in (ACK, NACK):
        message_id = fields.text[
            v1.ACK_REQUEST_MESSAGE_ID if command.kind == ACK else v1.NACK_REQUEST_MESSAGE_ID]
        if not uuid_parse(message_id, &high, &low):
            problem_is(problem, b"INVALID_FIELD", b"message_id: must be a UUID of 36 characters", 0)
            return False
        error = fields.text[v1.NACK_REQUEST_ERROR]
        if command.kind == NACK and not utf8_valid(error.at, error.length):
            problem_is(problem, b"INVALID_FIELD", b"error: must be valid UTF-8", 0)
            return False
        if command.kind == NACK and fields.number[v1.NACK_REQUEST_RELEASE] and (
            fields.number[v1.NACK_REQUEST_DEAD_LETTER] or fields.seen & (1 << v1.NACK_REQUEST_DELAY_MS)
        ):
            problem_is(problem, b"INVALID_FIELD", release_alone(), 0)
            return False
        return _feedback_checked(command, &fields, problem)
    elif command.kind == EXTEND_LEASE:
        message_id = fields.text[v1.EXTEND_LEASE_REQUEST_MESSAGE_ID]
        if message_id.length and not uuid_parse(message_id, &high, &low):
            problem_is(problem, b"INVALID_FIELD", b"message_id: must be a UUID of 36 characters", 0)
            return False
        if not EXTEND_MS_MIN <= fields.number[v1.EXTEND_LEASE_REQUEST_EXTEND_MS] <= EXTEND_MS_MAX:
            problem_is(problem, b"INVALID_FIELD", b"extend_ms: must be 1000 (1 s) to 43200000 (12 h)", 0)
            return False
    elif _count(command.bytes, command.length, v1.NACK_BATCH_REQUEST_ITEMS) > limits.batch_messages_max:
        problem_is(
            problem, b"LIMIT_EXCEEDED", b"items: at most %llu a batch; send several",
            limits.batch_messages_max)
        return False
    elif command.kind == NACK_BATCH and not _errors_are_text(command.bytes, command.length):
        problem_is(problem, b"INVALID_FIELD", b"items.error: must be valid UTF-8", 0)
        return False
    return True


cdef bint _check_stage(Command* command, uint32_t request_length, Problem* problem) noexcept nogil:
    """What a Stage request says beside its messages, kept apart: the scheduler reads none of it again."""
    cdef Fields fields
    cdef uint64_t partition, frame
    cdef uint32_t i
    cdef StageKey* key
    fields_parse(&fields, command.bytes, request_length)    # it is a message: _parse_batch read it
    if not name_checked(problem, fields.text[v1.STAGE_REQUEST_QUEUE], b"queue"):
        return False
    if not name_checked(problem, fields.text[v1.STAGE_REQUEST_SINK_ID], b"sink_id"):
        return False
    partition, frame = fields.number[v1.STAGE_REQUEST_PARTITION], fields.number[v1.STAGE_REQUEST_FRAME]
    if partition > <uint64_t> 0xFFFFFFFF or frame > <uint64_t> 0xFFFFFFFF:
        problem_is(problem, b"INVALID_FIELD", b"partition, frame: at most %llu", 0xFFFFFFFF)
        return False
    if command.count == 0:
        problem_is(problem,
        b"INVALID_FIELD", b"messages: at least one; an attempt without any stages nothing", 0)
        return False
    for i in range(command.count):
        if command.items[i].refused == 0 and (
            command.items[i].queue.length != command.queue.length
            or memcmp(command.items[i].queue.at, command.queue.at, command.queue.length)
        ):
            problem_is(
                problem, b"INVALID_FIELD",
                b"messages: all of a frame go to one queue; stage a frame for each", 0)
            return False
    key = command.stage = <StageKey*> must_malloc(sizeof(StageKey))
    key.sink = fields.text[v1.STAGE_REQUEST_SINK_ID]
    key.epoch = fields.number[v1.STAGE_REQUEST_EPOCH]
    key.batch = fields.number[v1.STAGE_REQUEST_BATCH]
    key.attempt = fields.number[v1.STAGE_REQUEST_ATTEMPT]
    key.partition, key.frame = <uint32_t> partition, <uint32_t> frame
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
    problem_is(
        problem, b"LIMIT_EXCEEDED", b"request: at most %llu bytes; send several", limits.batch_bytes_max)
    return True


cdef Command* _parsed(Command* command, const Limits* limits, Problem* problem) noexcept nogil:
    """The command, its bytes checked and its items found; or NULL, and it is freed."""
    cdef int32_t kind = command.kind
    cdef uint32_t request_length = command.length       # without what is rewritten behind it
    cdef Fields fields
    cdef Slice whole
    cdef Slice batch
    cdef bint good = True
    whole.at, whole.length = command.bytes, command.length
    if kind == ENQUEUE:
        good = _parse_single(command, limits, problem)
    elif kind == ENQUEUE_BATCH or kind == ENQUEUE_ATOMIC:
        good = _parse_batch(command, whole, limits, problem)
    elif kind == STAGE:
        good = (
            _parse_batch(command, whole, limits, problem)
            and _check_stage(command, request_length, problem)
        )
    elif kind == ENQUEUE_STREAM:
        if not fields_parse(&fields, command.bytes, command.length):
            problem_is(problem, b"INVALID_FIELD", b"request: the bytes are no valid EnqueueStreamRequest", 0)
            good = False
        else:
            command.sequence = fields.number[v1.ENQUEUE_STREAM_REQUEST_SEQUENCE]
            batch = fields.text[v1.ENQUEUE_STREAM_REQUEST_BATCH]
            if batch.length == 0:
                batch.at = command.bytes
            good = _parse_batch(command, batch, limits, problem)
    elif kind == FIRE:
        good = fields_parse(&fields, command.bytes, command.length)
        good = good and _parse_batch(command, fields.text[seam.FIRING_BATCH], limits, problem)
        if good and command.count != 1:
            problem_is(problem, b"INVALID_FIELD", b"batch: a schedule fires one message", 0)
            good = False
    elif kind in (ACK, NACK, ACK_BATCH, NACK_BATCH, EXTEND_LEASE):
        good = _check_settle(command, limits, problem)
    elif kind == CANCEL_MESSAGES:
        good = cancel_checked(command, limits, problem)
    elif kind in (LEASE, CONSUME_OPEN, SESSION_OPEN):
        good = consumer_checked(command, problem)
    elif kind == SESSION:
        good = session_checked(command, limits, problem)
    elif kind >= 32:
        if not fields_parse(&fields, command.bytes, command.length):
            problem_is(
                problem, b"INVALID_FIELD",
                b"request: the bytes are no valid message of its kind; check the client's encoder", 0)
            good = False
    if good and kind == ENQUEUE_ATOMIC:
        good = _check_atomic(command, problem)
    if not good:
        command_free(command)
        return NULL
    return command
