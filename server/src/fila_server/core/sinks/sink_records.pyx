"""Keys begin with the sink's number, so that all of one sink is a range; a mark or the frame's place
follows."""

from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from fila_server.core.formats.records cimport VERSION
from fila_server.core.protocol.packed_routing cimport ROUTING_BYTES_MAX, Routing, take_routing
from fila_server.core.state.sinks cimport ATTEMPT_KEY_BYTES, Intent, StagedFrame
from fila_server.core.storage.families cimport SINKS, STAGED
from fila_server.core.storage.store cimport batch_delete, batch_delete_range, batch_put, batch_put_parts
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, put_bytes, put_u32be, put_u64be, put_u8, put_varint, take_slice, take_u8, take_varint,
    write_u32be, write_u64be,
)


cdef void sink_record_put(Core* core, Sink* sink) noexcept nogil:
    cdef char key[SINK_KEY_BYTES]
    cdef Buffer* b = &core.tail
    b.length = 0
    put_u8(b, VERSION)
    put_varint(b, sink.text.length)
    put_bytes(b, sink.text.bytes, sink.text.length)
    put_varint(b, sink.epoch)
    put_varint(b, sink.next_batch)
    put_varint(b, sink.keep_ms)
    put_varint(b, <uint64_t> sink.used_ms)
    put_varint(b, sink.runs.length)
    put_bytes(b, sink.runs.data, sink.runs.length)
    write_u64be(key, sink.number)
    batch_put(core.store, core.settles, SINKS, key, sizeof(key), b.data, b.length)


cdef void sink_records_delete(Core* core, Sink* sink) noexcept nogil:
    cdef char first[SINK_KEY_BYTES]
    cdef char end[SINK_KEY_BYTES]
    write_u64be(first, sink.number)
    write_u64be(end, sink.number + 1)
    batch_delete_range(core.store, core.settles, SINKS, first, sizeof(first), end, sizeof(end))
    batch_delete_range(core.store, core.settles, STAGED, first, sizeof(first), end, sizeof(end))


# --- staged frames -----------------------------------------------------------------------------

cdef void _note_key(char* key, Attempt* attempt, uint32_t at) noexcept nogil:
    write_u64be(key, attempt.sink_number)
    memcpy(key + SINK_KEY_BYTES, attempt.key, ATTEMPT_KEY_BYTES)
    write_u32be(key + SINK_KEY_BYTES + ATTEMPT_KEY_BYTES, attempt.first + at)


cdef void _body_key(char* key, Attempt* attempt, uint32_t at) noexcept nogil:
    write_u64be(key, attempt.sink_number)
    write_u64be(key + 8, attempt.frames[at].serial)


cdef void _put_routings(Buffer* b, Command* command) noexcept nogil:
    """What a hook decided for each message, as it packed it; 0 where it decided nothing."""
    cdef Cursor c
    cdef Routing routing
    cdef uint32_t i
    for i in range(command.count):
        if command.items[i].routing == NULL:
            put_u8(b, 0)
            continue
        c.at, c.bad = command.items[i].routing, False
        c.end = c.at + ROUTING_BYTES_MAX    # read once before it was kept (ParsedFrame.route)
        take_routing(&c, &routing)
        put_u8(b, 1)
        put_bytes(b, command.items[i].routing, c.at - command.items[i].routing)


cdef void staged_record_put(Core* core, Attempt* attempt, Command* command) noexcept nogil:
    cdef char key[NOTE_KEY_BYTES]
    cdef StagedFrame* frame = &attempt.frames[attempt.count - 1]
    cdef Buffer* b = &core.tail
    cdef const char* parts[3]
    cdef size_t lengths[3]
    cdef size_t head
    b.length = 0
    put_u8(b, VERSION)
    put_u64be(b, frame.serial)
    put_u64be(b, frame.queue_number)
    put_varint(b, frame.bytes)
    put_varint(b, frame.count)
    put_varint(b, frame.dedup_keys)
    put_u32be(b, frame.checksum)
    _note_key(key, attempt, attempt.count - 1)
    batch_put(core.store, core.enqueues, SINKS, key, NOTE_KEY_BYTES, b.data, b.length)
    b.length = 0
    put_u8(b, VERSION)
    put_varint(b, command.stage.request_length)
    head = b.length
    if command.routings != NULL:
        _put_routings(b, command)
    parts[0], lengths[0] = b.data, head
    parts[1], lengths[1] = command.bytes, command.stage.request_length
    parts[2], lengths[2] = b.data + head, b.length - head
    _body_key(key, attempt, attempt.count - 1)
    batch_put_parts(core.store, core.enqueues, STAGED, key, 16, 3, parts, lengths)


cdef void staged_record_delete(
        Core* core, rocksdb_writebatch_t* batch, Attempt* attempt, uint32_t at) noexcept nogil:
    cdef char key[NOTE_KEY_BYTES]
    _note_key(key, attempt, at)
    batch_delete(core.store, batch, SINKS, key, NOTE_KEY_BYTES)
    _body_key(key, attempt, at)
    batch_delete(core.store, batch, STAGED, key, 16)


cdef bint staged_body_read(StagedBody* body, const char* bytes, size_t length) noexcept nogil:
    cdef Cursor c
    cdef uint8_t version
    c.at, c.end, c.bad = bytes, bytes + length, False
    version = take_u8(&c)
    body.request = take_slice(&c, take_varint(&c))
    body.routings.at, body.routings.length = c.at, <uint32_t> (c.end - c.at)
    return not c.bad and version == VERSION


# --- what is published -------------------------------------------------------------------------

cdef void _mark_key(char* key, Sink* sink, char mark) noexcept nogil:
    write_u64be(key, sink.number)
    key[SINK_KEY_BYTES] = mark


cdef void intent_record_put(Core* core, Sink* sink) noexcept nogil:
    cdef char key[MARK_KEY_BYTES]
    cdef Buffer* b = &core.tail
    cdef Intent* intent = sink.intent
    cdef Attempt* attempt
    cdef uint32_t i
    b.length = 0
    put_u8(b, VERSION)
    put_varint(b, intent.batch)
    put_varint(b, intent.messages)
    put_varint(b, intent.count)
    for i in range(intent.count):
        attempt = intent.attempts[i]
        put_bytes(b, attempt.key, ATTEMPT_KEY_BYTES)
    _mark_key(key, sink, INTENT_MARK)
    batch_put(core.store, core.settles, SINKS, key, MARK_KEY_BYTES, b.data, b.length)


cdef void intent_records_delete(Core* core, Sink* sink) noexcept nogil:
    cdef char key[MARK_KEY_BYTES]
    _mark_key(key, sink, INTENT_MARK)
    batch_delete(core.store, core.settles, SINKS, key, MARK_KEY_BYTES)
    _mark_key(key, sink, CURSOR_MARK)
    batch_delete(core.store, core.settles, SINKS, key, MARK_KEY_BYTES)


cdef void cursor_record_put(
        Core* core, rocksdb_writebatch_t* batch, Sink* sink, uint64_t moved, uint64_t duplicates,
        uint64_t lost) noexcept nogil:
    cdef char key[MARK_KEY_BYTES]
    cdef Buffer* b = &core.tail
    b.length = 0
    put_u8(b, VERSION)
    put_varint(b, moved)
    put_varint(b, duplicates)
    put_varint(b, lost)
    _mark_key(key, sink, CURSOR_MARK)
    batch_put(core.store, batch, SINKS, key, MARK_KEY_BYTES, b.data, b.length)
