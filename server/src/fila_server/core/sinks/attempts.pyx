"""An attempt that was given up waits on a list of its own, out of every table, and its records are deleted
there, some a pass. One that staged in the pass at hand waits for the next: its puts are written behind
these deletions."""

from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.index.visits cimport visit_soon
from fila_server.core.sinks.sink_records cimport staged_record_delete
from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.state.sinks cimport ATTEMPT_KEY_BYTES
from fila_server.core.state.state cimport Queue
from fila_server.core.structures.buffer cimport must_malloc, must_realloc, write_u32be, write_u64be
from fila_server.core.structures.maps cimport map64_get, textmap_get, textmap_put, textmap_remove


cdef void _key(
        char* key, uint64_t epoch, uint64_t batch, uint32_t partition, uint64_t attempt) noexcept nogil:
    write_u64be(key, epoch)
    write_u64be(key + 8, batch)
    write_u32be(key + 16, partition)
    write_u64be(key + 20, attempt)


cdef Attempt* attempt_find(
        Sink* sink, uint64_t epoch, uint64_t batch, uint32_t partition, uint64_t attempt) noexcept nogil:
    cdef char key[ATTEMPT_KEY_BYTES]
    _key(key, epoch, batch, partition, attempt)
    return <Attempt*> textmap_get(&sink.attempts_by_key, key, ATTEMPT_KEY_BYTES)


cdef Attempt* attempt_new(
        Sink* sink, uint64_t epoch, uint64_t batch, uint32_t partition, uint64_t attempt) noexcept nogil:
    cdef Attempt* made = <Attempt*> must_malloc(sizeof(Attempt))
    memset(made, 0, sizeof(Attempt))
    _key(made.key, epoch, batch, partition, attempt)
    made.text.bytes, made.text.length = made.key, ATTEMPT_KEY_BYTES
    made.sink_number = sink.number
    made.epoch, made.batch, made.partition, made.attempt = epoch, batch, partition, attempt
    textmap_put(&sink.attempts_by_key, &made.text)
    made.next = sink.attempts
    if made.next != NULL:
        made.next.prev = made
    sink.attempts = made
    return made


cdef StagedFrame* attempt_add(Attempt* attempt) noexcept nogil:
    if attempt.count == attempt.capacity:
        attempt.capacity = attempt.capacity * 2 + 8
        attempt.frames = <StagedFrame*> must_realloc(attempt.frames, attempt.capacity * sizeof(StagedFrame))
    memset(&attempt.frames[attempt.count], 0, sizeof(StagedFrame))
    return &attempt.frames[attempt.count]


cdef void frame_counted(Core* core, Sink* sink, Attempt* attempt, StagedFrame* frame) noexcept nogil:
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, frame.queue_number)
    attempt.count += 1
    attempt.messages += frame.count
    attempt.checksum += frame.checksum
    attempt.messages_left += frame.count
    attempt.bytes_left += frame.bytes
    sink.staged_messages += frame.count
    sink.staged_bytes += frame.bytes
    core.sinks.staged_bytes += frame.bytes
    if queue != NULL:
        queue.staged_bytes += frame.bytes
        visit_soon(core, queue)


cdef void _uncount(Core* core, Attempt* attempt, StagedFrame* frame) noexcept nogil:
    """One frame less is left of an attempt, which may have left its sink."""
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, frame.queue_number)
    attempt.messages_left -= frame.count
    attempt.bytes_left -= frame.bytes
    core.sinks.staged_bytes -= frame.bytes
    if queue != NULL:
        queue.staged_bytes -= frame.bytes


cdef void frame_taken_back(Core* core, Sink* sink, Attempt* attempt) noexcept nogil:
    cdef StagedFrame* frame
    attempt.count -= 1
    frame = &attempt.frames[attempt.count]
    attempt.messages -= frame.count
    attempt.checksum -= frame.checksum
    sink.staged_messages -= frame.count
    sink.staged_bytes -= frame.bytes
    _uncount(core, attempt, frame)


cdef void frame_moved(Core* core, Sink* sink, Attempt* attempt) noexcept nogil:
    cdef StagedFrame* frame = &attempt.frames[attempt.gone]
    sink.staged_messages -= frame.count
    sink.staged_bytes -= frame.bytes
    _uncount(core, attempt, frame)
    attempt.gone += 1


cdef void _unlink(Sink* sink, Attempt* attempt) noexcept nogil:
    sink.staged_messages -= attempt.messages_left
    sink.staged_bytes -= attempt.bytes_left
    textmap_remove(&sink.attempts_by_key, &attempt.text)
    if attempt.prev == NULL:
        sink.attempts = attempt.next
    else:
        attempt.prev.next = attempt.next
    if attempt.next != NULL:
        attempt.next.prev = attempt.prev
    attempt.next = attempt.prev = NULL


cdef void attempt_drop(Core* core, Sink* sink, Attempt* attempt) noexcept nogil:
    _unlink(sink, attempt)
    attempt.next = core.sinks.dying
    core.sinks.dying = attempt


cdef uint32_t attempts_drop(Core* core, Sink* sink, uint64_t below, uint64_t epoch) noexcept nogil:
    cdef Attempt* attempt = sink.attempts
    cdef Attempt* following
    cdef uint32_t dropped = 0
    while attempt != NULL:
        following = attempt.next
        if not attempt.listed and (attempt.batch < below or attempt.epoch < epoch):
            attempt_drop(core, sink, attempt)
            dropped += 1
        attempt = following
    return dropped


cdef void attempt_free(Sink* sink, Attempt* attempt) noexcept nogil:
    _unlink(sink, attempt)
    free(attempt.frames)
    free(attempt)


cdef bint attempts_turn(Core* core) noexcept nogil:
    cdef Attempt* attempt = core.sinks.dying
    while attempt != NULL and stage_goes_on(core):
        if attempt.staged_pass == core.counters.passes:
            # What it staged in this very pass is written behind these deletions: they wait for the next one.
            return True
        while attempt.gone < attempt.count and stage_goes_on(core):
            staged_record_delete(core, core.settles, attempt, attempt.gone)
            _uncount(core, attempt, &attempt.frames[attempt.gone])
            attempt.gone += 1
            core.counters.work += 1
        if attempt.gone == attempt.count:
            core.sinks.dying = attempt.next
            free(attempt.frames)
            free(attempt)
        attempt = core.sinks.dying
    return attempt != NULL


cdef void attempts_forget(Core* core) noexcept nogil:
    cdef Attempt* attempt
    while core.sinks.dying != NULL:
        attempt = core.sinks.dying
        core.sinks.dying = attempt.next
        free(attempt.frames)
        free(attempt)
