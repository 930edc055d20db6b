"""Whatever can be refused is looked at first and reserved; the INTENT is the last thing that is put. An
intent that is refused is forgotten with what it had reserved, and nothing of it was written."""

from libc.stdint cimport uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.index.visits cimport visit_soon
from fila_server.core.lifecycle.answers cimport answer, answer_status
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport (
    FAILED_PRECONDITION, INVALID_ARGUMENT, OK, RESOURCE_EXHAUSTED, UNAVAILABLE,
)
from fila_server.core.protocol.protobuf cimport LEN, Fields, fields_parse, next_field, put_number_field
from fila_server.core.sinks.attempts cimport attempt_drop, attempt_find
from fila_server.core.sinks.registry cimport sink_of_call, sink_used
from fila_server.core.sinks.sink_records cimport intent_record_put
from fila_server.core.state.sinks cimport PUBLISH_WAITERS_MAX, Attempt, StagedFrame
from fila_server.core.state.state cimport Queue
from fila_server.core.structures.buffer cimport Buffer, Cursor, Slice, buffer_init, must_malloc
from fila_server.core.structures.maps cimport Map64, map64_free, map64_get, map64_init, map64_put

cdef struct Listed:                 # a StagedAttempt of a request
    uint32_t partition
    uint64_t attempt
    uint64_t messages
    uint64_t checksum


cdef bint _next_listed(Cursor* c, Listed* listed) noexcept nogil:
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef Fields fields
    while next_field(c, &field, &kind, &text, &number):
        if field == v1.PUBLISH_REQUEST_ATTEMPTS and kind == LEN:
            fields_parse(&fields, text.at, text.length)
            listed.partition = <uint32_t> fields.number[v1.STAGED_ATTEMPT_PARTITION]
            listed.attempt = fields.number[v1.STAGED_ATTEMPT_ATTEMPT]
            listed.messages = fields.number[v1.STAGED_ATTEMPT_MESSAGES]
            listed.checksum = fields.number[v1.STAGED_ATTEMPT_CHECKSUM]
            return True
    return False


cdef uint32_t _listed_count(Command* command) noexcept nogil:
    cdef Cursor c
    cdef Listed listed
    cdef uint32_t count = 0
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while _next_listed(&c, &listed):
        count += 1
    return count


# --- what stands against it --------------------------------------------------------------------

cdef void _precondition(Core* core, Command* command, const char* text, const char* reason) noexcept nogil:
    answer_status(core, command.token, FAILED_PRECONDITION, text, reason)


cdef bint _is_out_of_order(
        Core* core, Command* command, Sink* sink, uint64_t batch, bint reset) noexcept nogil:
    """Published already, on its way, behind one that is, or not the next; answered, or waiting."""
    cdef Buffer payload
    cdef Intent* intent = sink.intent
    cdef char text[512]
    if batch < sink.next_batch:
        buffer_init(&payload)
        put_number_field(&payload, v1.PUBLISH_RESPONSE_ALREADY_PUBLISHED, 1)
        answer(core, command.token, OK, &payload, False)
    elif intent != NULL and intent.batch == batch and intent.waiter_count < PUBLISH_WAITERS_MAX:
        intent.waiters[intent.waiter_count] = command.token
        intent.waiter_count += 1
    elif intent != NULL:
        snprintf(
            text, sizeof(text),
            b"batch: %llu of sink \"%.*s\" is still on its way into its queues; try again shortly",
            <unsigned long long> intent.batch, <int> sink.text.length, sink.text.bytes)
        answer_status(core, command.token, RESOURCE_EXHAUSTED, text, b"OVERLOADED")
    elif batch > sink.next_batch and not reset:
        snprintf(
            text, sizeof(text),
            b"batch: the next of sink \"%.*s\" is %llu, got %llu; whether those between were published "
            b"nobody can tell, "
            b"so it is refused unless `reset` is set",
            <int> sink.text.length, sink.text.bytes, <unsigned long long> sink.next_batch,
            <unsigned long long> batch)
        _precondition(core, command, text, b"BATCH_GAP")
    else:
        return False
    return True


cdef bint _is_no_time(Core* core, Command* command) noexcept nogil:
    if core.stopping:
        answer_status(
            core, command.token, UNAVAILABLE, b"the broker is shutting down; connect again", b"SHUTTING_DOWN")
        return True
    if core.disk_low:
        answer_status(
            core, command.token, RESOURCE_EXHAUSTED,
            b"the broker's disk is below storage.min_free_bytes; make room, then publish again",
            b"DISK_FLOOR")
        return True
    return False


cdef Attempt* _attempt_of(
        Core* core, Command* command, Sink* sink, uint64_t batch, Listed* listed,
        Map64* partitions) noexcept nogil:
    """The staged attempt that is meant; NULL: it is not there as it is said to be, and that is answered."""
    cdef char text[512]
    cdef Attempt* attempt = attempt_find(sink, sink.epoch, batch, listed.partition, listed.attempt)
    if map64_get(partitions, listed.partition) != NULL:
        snprintf(
            text, sizeof(text), b"attempts: partition %u is listed twice; one attempt of each is published",
            <unsigned int> listed.partition)
        answer_status(core, command.token, INVALID_ARGUMENT, text, b"INVALID_FIELD")
        return NULL
    if (
        attempt == NULL or attempt.messages != listed.messages or attempt.checksum != listed.checksum
        or attempt.staged_pass == core.counters.passes      # not on the disk yet, and not answered
    ):
        snprintf(
            text, sizeof(text),
            b"attempts: partition %u, attempt %llu staged %llu messages as far as is known, and is listed "
            b"with %llu%s; "
            b"nothing was published, stage it again",
            <unsigned int> listed.partition, <unsigned long long> listed.attempt,
            <unsigned long long> (attempt.messages if attempt != NULL else 0),
            <unsigned long long> listed.messages,
            <const char*> (
                b", or with another checksum"
                if attempt != NULL and attempt.messages == listed.messages else b""))
        _precondition(core, command, text, b"NOT_STAGED")
        return NULL
    map64_put(partitions, listed.partition, attempt)
    return attempt


cdef bint _queue_refuses(Core* core, Command* command, StagedFrame* frame) noexcept nogil:
    """Whether a queue of the batch is gone, or has no room for what was promised to it; answered."""
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, frame.queue_number)
    cdef char text[384]
    if queue == NULL:
        _precondition(
            core, command,
            b"attempts: a queue they were staged for was deleted since; drop the batch and stage it again",
            b"QUEUE_NOT_FOUND")
        return True
    if queue.policy.max_depth and (
        queue.depth + queue.arriving + queue.building.count + queue.promised > queue.policy.max_depth
    ):
        snprintf(
            text, sizeof(text),
            b"queue \"%.*s\" has no room for this batch below its max_depth; try again when "
            b"consumers have caught up",
            <int> queue.text.length, queue.text.bytes)
        answer_status(core, command.token, RESOURCE_EXHAUSTED, text, b"QUEUE_FULL")
        return True
    return False


cdef bint _has_no_room(Core* core, Command* command, Intent* intent) noexcept nogil:
    """With what it needs reserved already; answered."""
    cdef uint32_t i, at
    for i in range(intent.count):
        for at in range(intent.attempts[i].count):
            if _queue_refuses(core, command, &intent.attempts[i].frames[at]):
                return True
    if core.sinks.promised_dedup_keys and (
        core.dedup_rows + core.sinks.promised_dedup_keys > core.dedup_rows_max
    ):
        answer_status(
            core, command.token, RESOURCE_EXHAUSTED,
            b"dedup_key: the table of dedup keys has no room for those of this batch; try again later, or "
            b"stage it "
            b"without them",
            b"OVERLOADED")
        return True
    return False


# --- the commit point --------------------------------------------------------------------------

cdef Intent* intent_new(Core* core, Sink* sink, uint32_t count) noexcept nogil:
    cdef Intent* intent = <Intent*> must_malloc(sizeof(Intent))
    memset(intent, 0, sizeof(Intent))
    intent.attempts = <Attempt**> must_malloc(count * sizeof(void*))
    sink.intent = intent
    if core.sinks.moving == NULL:
        sink.next_moving = sink
    else:
        sink.next_moving = core.sinks.moving.next_moving
        core.sinks.moving.next_moving = sink
    core.sinks.moving = sink
    core.sinks.moving_count += 1
    return intent


cdef void intent_promise(Core* core, Intent* intent, bint takes_back) noexcept nogil:
    cdef uint32_t i, at
    cdef StagedFrame* frame
    cdef Queue* queue
    for i in range(intent.count):
        core.counters.work += 1 + intent.attempts[i].count // 16
        for at in range(intent.attempts[i].gone, intent.attempts[i].count):
            frame = &intent.attempts[i].frames[at]
            queue = <Queue*> map64_get(&core.queues_by_number, frame.queue_number)
            if takes_back:
                core.sinks.promised_dedup_keys -= frame.dedup_keys
            else:
                core.sinks.promised_dedup_keys += frame.dedup_keys
            if queue != NULL and takes_back:
                queue.promised -= frame.count
            elif queue != NULL:
                queue.promised += frame.count
                visit_soon(core, queue)


cdef void _forget(Core* core, Sink* sink) noexcept nogil:
    """An intent that was refused: nothing of it was written."""
    cdef Intent* intent = sink.intent
    cdef uint32_t i
    intent_promise(core, intent, True)
    for i in range(intent.count):
        intent.attempts[i].listed = False
    # It was put last, behind which the circle goes on.
    core.sinks.moving = _before(sink)
    core.sinks.moving_count -= 1
    if core.sinks.moving == sink:
        core.sinks.moving = NULL
    else:
        core.sinks.moving.next_moving = sink.next_moving
    sink.intent = NULL
    free(intent.attempts)
    free(intent)


cdef Sink* _before(Sink* sink) noexcept nogil:
    cdef Sink* before = sink
    while before.next_moving != sink:
        before = before.next_moving
    return before


cdef bint _fill(Core* core, Command* command, Sink* sink, uint64_t batch) noexcept nogil:
    """Its attempts, as the request lists them; False: one is not as it is said to be."""
    cdef Intent* intent = sink.intent
    cdef Cursor c
    cdef Listed listed
    cdef Map64 partitions
    cdef Attempt* attempt = NULL
    map64_init(&partitions)
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while _next_listed(&c, &listed):
        core.counters.work += 1
        attempt = _attempt_of(core, command, sink, batch, &listed, &partitions)
        if attempt == NULL:
            map64_free(&partitions)
            return False
        attempt.listed = True
        intent.attempts[intent.count] = attempt
        intent.count += 1
        intent.messages += attempt.messages
    map64_free(&partitions)
    return True


cdef void publish(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Sink* sink
    cdef Intent* intent
    cdef uint64_t batch
    cdef bint is_whole
    fields_parse(&fields, command.bytes, command.length)
    batch = fields.number[v1.PUBLISH_REQUEST_BATCH]
    sink = sink_of_call(
        core, command, fields.text[v1.PUBLISH_REQUEST_SINK_ID], fields.number[v1.PUBLISH_REQUEST_EPOCH])
    if sink == NULL or _is_out_of_order(
        core, command, sink, batch, fields.number[v1.PUBLISH_REQUEST_RESET] != 0
    ):
        return
    if _is_no_time(core, command):
        return
    intent = intent_new(core, sink, _listed_count(command))
    intent.batch = batch
    is_whole = _fill(core, command, sink, intent.batch)
    intent_promise(core, intent, False)
    if not is_whole or _has_no_room(core, command, intent):
        _forget(core, sink)
        return
    intent.waiters[0] = command.token
    intent.waiter_count = 1
    intent.begun_here = True
    intent.epoch = core.epoch
    core.sync_wanted = True
    sink_used(core, sink)
    intent_record_put(core, sink)


# --- giving up ---------------------------------------------------------------------------------

cdef void drop_staged(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Cursor c
    cdef Listed listed
    cdef Buffer payload
    cdef Attempt* attempt
    cdef uint64_t batch
    cdef uint32_t dropped = 0
    cdef Sink* sink
    fields_parse(&fields, command.bytes, command.length)
    batch = fields.number[v1.DROP_REQUEST_BATCH]
    sink = sink_of_call(
        core, command, fields.text[v1.DROP_REQUEST_SINK_ID], fields.number[v1.DROP_REQUEST_EPOCH])
    if sink == NULL:
        return
    if batch < sink.next_batch or (sink.intent != NULL and sink.intent.batch == batch):
        _precondition(
            core, command,
            b"batch: it was published, and stays so; nothing was dropped", b"ALREADY_PUBLISHED")
        return
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    if _listed_count(command) == 0:
        dropped = _drop_batch(core, sink, batch)
    while _next_listed(&c, &listed):
        attempt = attempt_find(sink, sink.epoch, batch, listed.partition, listed.attempt)
        if attempt != NULL:
            attempt_drop(core, sink, attempt)
            dropped += 1
    buffer_init(&payload)
    put_number_field(&payload, v1.DROP_RESPONSE_ATTEMPTS, dropped)
    answer(core, command.token, OK, &payload, True)


cdef uint32_t _drop_batch(Core* core, Sink* sink, uint64_t batch) noexcept nogil:
    cdef Attempt* attempt = sink.attempts
    cdef Attempt* following
    cdef uint32_t dropped = 0
    while attempt != NULL:
        following = attempt.next
        if attempt.batch == batch and not attempt.listed:
            attempt_drop(core, sink, attempt)
            dropped += 1
        attempt = following
    return dropped
