"""Staged messages themselves are not read: their notes say what counts."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.sinks.attempts cimport (
    attempt_add, attempt_drop, attempt_find, attempt_new, frame_counted,
)
from fila_server.core.sinks.name_order cimport names_put_all
from fila_server.core.sinks.publishing cimport intent_new, intent_promise
from fila_server.core.sinks.registry cimport sink_new
from fila_server.core.sinks.sink_records cimport (
    CURSOR_MARK, INTENT_MARK, MARK_KEY_BYTES, NOTE_KEY_BYTES, SINK_KEY_BYTES,
)
from fila_server.core.state.sinks cimport ATTEMPT_KEY_BYTES, Attempt, Intent, Sink, StagedFrame
from fila_server.core.storage.families cimport SINKS, STAGED
from fila_server.core.storage.store cimport batch_delete, batch_delete_range
from fila_server.core.structures.buffer cimport (
    Cursor, Slice, put_slice, read_u32be, read_u64be, take_slice, take_u64be, take_u8, take_varint,
    write_u64be,
)
from fila_server.core.structures.maps cimport map64_get, textmap_get, textmap_next


cdef void sink_read(
        Core* core, const char* key, size_t key_length, const char* value, size_t length) noexcept nogil:
    cdef Cursor c
    cdef Sink* sink
    c.at, c.end, c.bad = value, value + length, False
    take_u8(&c)
    if key_length < SINK_KEY_BYTES:
        return
    sink = <Sink*> map64_get(&core.sinks.by_number, read_u64be(key))
    if key_length == SINK_KEY_BYTES:
        _row_read(core, read_u64be(key), &c)
    elif sink == NULL:
        # Its row is lost to damage: a batch of a sink by this name is refused as a gap, and what was
        # staged goes.
        core.counters.lost_ranges += 1
        _orphans_delete(core, key, key_length)
    elif key_length == NOTE_KEY_BYTES:
        _note_read(core, sink, key, &c)
    elif key_length == MARK_KEY_BYTES and key[SINK_KEY_BYTES] == CURSOR_MARK:
        sink.cursor_moved, sink.cursor_duplicates = take_varint(&c), take_varint(&c)
        sink.cursor_lost = take_varint(&c)
    elif key_length == MARK_KEY_BYTES and key[SINK_KEY_BYTES] == INTENT_MARK:
        _intent_read(core, sink, &c)


cdef void _orphans_delete(Core* core, const char* key, size_t key_length) noexcept nogil:
    cdef char end[SINK_KEY_BYTES]
    batch_delete(core.store, core.settles, SINKS, key, key_length)
    write_u64be(end, read_u64be(key) + 1)
    batch_delete_range(core.store, core.settles, STAGED, key, SINK_KEY_BYTES, end, SINK_KEY_BYTES)


cdef void _row_read(Core* core, uint64_t number, Cursor* c) noexcept nogil:
    cdef Slice name = take_slice(c, take_varint(c))
    cdef Sink* sink
    cdef int64_t idle_ms
    if c.bad or textmap_get(&core.sinks.by_name, name.at, name.length) != NULL:
        core.counters.lost_ranges += 1
        return
    sink = sink_new(core, name, number)
    sink.epoch, sink.next_batch, sink.keep_ms = take_varint(c), take_varint(c), take_varint(c)
    sink.used_ms = <int64_t> take_varint(c)
    put_slice(&sink.runs, take_slice(c, take_varint(c)))
    # Idle time goes on by the wall clock over a restart; where that was set back, none of it counts.
    idle_ms = core.wall_ms - sink.used_ms
    sink.used_ns = core.mono_ns - (idle_ms * 1000000 if idle_ms > 0 else 0)
    sink.staged_ns = core.mono_ns


cdef void _note_read(Core* core, Sink* sink, const char* key, Cursor* c) noexcept nogil:
    cdef uint64_t epoch = read_u64be(key + 8)
    cdef uint64_t batch = read_u64be(key + 16)
    cdef uint32_t partition = read_u32be(key + 24)
    cdef uint64_t attempt_number = read_u64be(key + 28)
    cdef uint32_t number = read_u32be(key + 36)
    cdef Attempt* attempt = attempt_find(sink, epoch, batch, partition, attempt_number)
    cdef StagedFrame* frame
    cdef Slice checksum
    if attempt == NULL:
        attempt = attempt_new(sink, epoch, batch, partition, attempt_number)
        attempt.first = number
    frame = attempt_add(attempt)
    frame.serial, frame.queue_number = take_u64be(c), take_u64be(c)
    frame.bytes, frame.count = <uint32_t> take_varint(c), <uint32_t> take_varint(c)
    frame.dedup_keys = <uint32_t> take_varint(c)
    checksum = take_slice(c, 4)
    # one before it is lost: it can't be published as it was
    if c.bad or number != attempt.first + attempt.count:
        core.counters.lost_ranges += 1
        batch_delete(core.store, core.settles, SINKS, key, NOTE_KEY_BYTES)
        return
    frame.checksum = read_u32be(checksum.at)
    sink.next_serial = max(sink.next_serial, frame.serial + 1)
    frame_counted(core, sink, attempt, frame)


cdef void _intent_read(Core* core, Sink* sink, Cursor* c) noexcept nogil:
    cdef uint64_t batch = take_varint(c)
    cdef uint64_t messages = take_varint(c)
    cdef uint64_t count = take_varint(c)
    cdef uint64_t i
    cdef Intent* intent
    cdef Attempt* attempt
    cdef Slice key
    if c.bad or count > <uint64_t> (c.end - c.at) // ATTEMPT_KEY_BYTES:
        core.counters.lost_ranges += 1
        return
    intent = intent_new(core, sink, <uint32_t> count)
    intent.batch, intent.messages = batch, messages
    intent.moved, intent.duplicates = sink.cursor_moved, sink.cursor_duplicates
    intent.lost = sink.cursor_lost
    for i in range(count):
        key = take_slice(c, ATTEMPT_KEY_BYTES)
        attempt = <Attempt*> textmap_get(&sink.attempts_by_key, key.at, key.length)
        if attempt != NULL:             # else all of it has moved
            attempt.listed = True
            intent.attempts[intent.count] = attempt
            intent.count += 1


cdef void _count_losses(Core* core, Intent* intent) noexcept nogil:
    """What an intent still owes and nobody has staged is lost to damage."""
    cdef uint64_t left = intent.moved + intent.duplicates + intent.lost
    cdef uint32_t i
    for i in range(intent.count):
        left += intent.attempts[i].messages
    if left < intent.messages:
        core.counters.lost_messages += intent.messages - left
        intent.lost += intent.messages - left


cdef void _drop_what_is_over(Core* core, Sink* sink) noexcept nogil:
    """Attempts of earlier runs and published batches, and those whose deletion had begun."""
    cdef Attempt* attempt = sink.attempts
    cdef Attempt* following
    while attempt != NULL:
        following = attempt.next
        if not attempt.listed and (
            attempt.epoch < sink.epoch or attempt.batch < sink.next_batch or attempt.first > 0
        ):
            attempt_drop(core, sink, attempt)
        attempt = following


cdef void sinks_recovered(Core* core) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef Sink* sink
    names_put_all(core)
    while True:
        sink = <Sink*> textmap_next(&core.sinks.by_name, &cursor)
        if sink == NULL:
            return
        if sink.intent != NULL:
            _count_losses(core, sink.intent)
            intent_promise(core, sink.intent, False)
        _drop_what_is_over(core, sink)
