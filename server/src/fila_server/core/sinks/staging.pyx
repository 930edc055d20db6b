"""The answer waits for the pass to be written: then a refusing disk is told, and what it refused is taken
back from the attempt, its last frame first."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport snprintf

from fila_server.core.lifecycle.answers cimport answer, answer_no_queue, answer_status
from fila_server.core.lifecycle.routing cimport route_check
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport FAILED_PRECONDITION, OK, RESOURCE_EXHAUSTED
from fila_server.core.protocol.protobuf cimport FIXED64, put_number_field, put_tag
from fila_server.core.protocol.refusals cimport (
    REFUSED_BYTES, REFUSED_DISK_FLOOR, REFUSED_STOPPING, refusal_code, refusal_reason, refusal_text_of,
)
from fila_server.core.sinks.attempts cimport (
    attempt_add, attempt_find, attempt_new, frame_counted, frame_taken_back,
)
from fila_server.core.sinks.registry cimport sink_of_call
from fila_server.core.sinks.sink_records cimport staged_record_put
from fila_server.core.state.paths cimport queue_find
from fila_server.core.state.sinks cimport Attempt, Sink, StagedFrame
from fila_server.core.state.state cimport Queue
from fila_server.core.structures.buffer cimport Buffer, buffer_init, put_bytes
from fila_server.core.threads.mailbox cimport StageKey, command_free

cdef enum:
    # what a frame counts beside its messages: two records, and a row in memory
    FRAME_BYTES = 1024


cdef void _answer_staged(Core* core, Command* command, Attempt* attempt, bint published) noexcept nogil:
    cdef Buffer payload
    buffer_init(&payload)
    if published:
        put_number_field(&payload, v1.STAGE_RESPONSE_ALREADY_PUBLISHED, 1)
    else:
        put_number_field(&payload, v1.STAGE_RESPONSE_MESSAGES, attempt.messages)
        put_tag(&payload, v1.STAGE_RESPONSE_CHECKSUM, FIXED64)
        put_bytes(&payload, &attempt.checksum, 8)
    answer(core, command.token, OK, &payload, not published)


cdef void _refuse(Core* core, Command* command, uint8_t refused) noexcept nogil:
    cdef char text[384]
    refusal_text_of(refused, command.queue, &core.limits, text, sizeof(text))
    answer_status(core, command.token, refusal_code(refused), text, refusal_reason(refused))


cdef uint8_t _refused(Core* core, Queue* queue, Command* command, uint64_t bytes) noexcept nogil:
    """Why the frame is not taken: for the first of its messages that is not, or the broker's state."""
    cdef uint32_t i
    if core.stopping:
        return REFUSED_STOPPING
    if core.disk_low:
        return REFUSED_DISK_FLOOR
    for i in range(command.count):
        core.counters.work += 1
        if not command.items[i].refused:
            command.items[i].refused = route_check(core, queue, command, &command.items[i])
        if command.items[i].refused:
            return command.items[i].refused
    if (
        queue.policy.max_bytes
        and queue.stored_bytes - queue.unwanted_bytes + queue.building.bytes + queue.staged_bytes + bytes
        > queue.policy.max_bytes
    ):
        return REFUSED_BYTES
    return 0


cdef bint _is_full(Core* core, Sink* sink, Command* command, uint64_t bytes, bint is_new) noexcept nogil:
    """The bounds of what is staged; answered where one is met."""
    cdef char text[384]
    if core.sinks.staged_bytes + bytes > core.sinks.staged_bytes_max:
        snprintf(
            text, sizeof(text),
            b"sinks.staged_bytes_max: %llu bytes are staged and not published yet, of at most %llu; publish "
            b"or drop "
            b"some, or try again when others have",
            <unsigned long long> core.sinks.staged_bytes, <unsigned long long> core.sinks.staged_bytes_max)
    elif is_new and sink.attempts_by_key.count >= core.sinks.attempts_max:
        snprintf(
            text, sizeof(text),
            b"sinks.attempts_max: sink \"%.*s\" has %u attempts staged, the most it may have; use fewer "
            b"partitions",
            <int> sink.text.length, sink.text.bytes, <unsigned int> core.sinks.attempts_max)
    else:
        return False
    answer_status(core, command.token, RESOURCE_EXHAUSTED, text, b"LIMIT_EXCEEDED")
    return True


cdef bint _is_out_of_turn(Core* core, Command* command, Attempt* attempt) noexcept nogil:
    """A frame that was staged already with other bytes, or one that leaves a gap; answered."""
    cdef char text[384]
    cdef uint32_t frame = command.stage.frame
    cdef uint32_t count = attempt.count if attempt != NULL else 0
    if frame < count and attempt.frames[frame].checksum != command.stage.checksum:
        snprintf(
            text, sizeof(text),
            b"frame: %u of this attempt was staged with other bytes; a try with other messages needs an "
            b"attempt of "
            b"its own",
            <unsigned int> frame)
        answer_status(core, command.token, FAILED_PRECONDITION, text, b"STAGED_OTHERWISE")
        return True
    if frame > count:
        snprintf(
            text, sizeof(text),
            b"frame: the next of this attempt is %u, got %u; frames are staged in order",
            <unsigned int> count,
            <unsigned int> frame)
        answer_status(core, command.token, FAILED_PRECONDITION, text, b"STAGE_GAP")
        return True
    return False


cdef uint32_t _dedup_keys(Command* command) noexcept nogil:
    cdef uint32_t i
    cdef uint32_t found = 0
    for i in range(command.count):
        found += command.items[i].options != NULL and command.items[i].options.dedup_key.length != 0
    return found


cdef void _keep_for_answer(Core* core, Command* command) noexcept nogil:
    command.next = NULL
    if core.sinks.staging_last == NULL:
        core.sinks.staging = command
    else:
        core.sinks.staging_last.next = command
    core.sinks.staging_last = command


cdef bint stage(Core* core, Command* command) noexcept nogil:
    cdef StageKey* key = command.stage
    cdef Sink* sink = sink_of_call(core, command, key.sink, key.epoch)
    cdef Queue* queue
    cdef Attempt* attempt
    cdef StagedFrame* frame
    cdef uint64_t bytes = <uint64_t> command.length + FRAME_BYTES
    cdef uint8_t refused
    if sink == NULL:
        return True
    if key.batch < sink.next_batch or (sink.intent != NULL and sink.intent.batch == key.batch):
        _answer_staged(core, command, NULL, True)
        return True
    attempt = attempt_find(sink, key.epoch, key.batch, key.partition, key.attempt)
    if _is_out_of_turn(core, command, attempt):
        return True
    sink.staged_ns = sink.used_ns = core.mono_ns
    if attempt != NULL and key.frame < attempt.count:
        # its answer waits like the first one's, which may be in this very pass
        key.is_repeat = True
        _keep_for_answer(core, command)
        return False
    queue = queue_find(core, command.queue)
    if queue == NULL:
        answer_no_queue(core, command)
        return True
    refused = _refused(core, queue, command, bytes)
    if refused:
        queue.counters.refused += command.count
        _refuse(core, command, refused)
        return True
    if _is_full(core, sink, command, bytes, attempt == NULL):
        return True
    if attempt == NULL:
        attempt = attempt_new(sink, key.epoch, key.batch, key.partition, key.attempt)
    frame = attempt_add(attempt)
    frame.serial = sink.next_serial
    sink.next_serial += 1
    frame.queue_number = queue.number
    frame.bytes, frame.count = <uint32_t> bytes, command.count
    frame.dedup_keys, frame.checksum = _dedup_keys(command), key.checksum
    frame_counted(core, sink, attempt, frame)
    attempt.staged_pass = core.counters.passes
    staged_record_put(core, attempt, command)
    _keep_for_answer(core, command)
    return False


cdef void staged_written(Core* core, uint8_t refused) noexcept nogil:
    """Answer the Stage calls of this pass; or, where the disk refused, take them back and say so."""
    cdef Command* command = core.sinks.staging
    cdef Command* following
    cdef StageKey* key
    cdef Sink* sink
    cdef Attempt* attempt
    core.sinks.staging = core.sinks.staging_last = NULL
    while command != NULL:
        following = command.next
        key = command.stage
        # a later run may have come in this very pass
        sink = sink_of_call(core, command, key.sink, key.epoch)
        attempt = NULL
        if sink != NULL:
            attempt = attempt_find(sink, key.epoch, key.batch, key.partition, key.attempt)
        if sink != NULL and attempt == NULL:
            answer_status(
                core, command.token, FAILED_PRECONDITION,
                b"attempt: it was dropped while this frame was on its way", b"STAGED_DROPPED")
        elif sink != NULL and refused:
            if not key.is_repeat and key.frame < attempt.count:
                _take_back_from(core, sink, attempt, key.frame)
            _refuse(core, command, refused)
        elif sink != NULL:
            core.sinks.counters.staged += command.count if not key.is_repeat else 0
            _answer_staged(core, command, attempt, False)
        command_free(command)
        command = following


cdef void _take_back_from(Core* core, Sink* sink, Attempt* attempt, uint32_t frame) noexcept nogil:
    """The frame and those behind it, of which none was written."""
    while attempt.count > frame:
        frame_taken_back(core, sink, attempt)
