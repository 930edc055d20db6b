"""A page by name: it begins where the request says, in the order that is kept (name_order), and costs what is
on it. Pages are work as messages are, so that a pass that is asked for many ends behind a few."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp

from fila_server.core.lifecycle.answers cimport answer
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport OK
from fila_server.core.protocol.protobuf cimport (
    Fields, fields_parse, put_nested, put_number_field, put_text_field, put_timestamp_field,
)
from fila_server.core.sinks.name_order cimport name_is, name_place
from fila_server.core.state.sinks cimport Sink
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, take_slice, take_u8,
)

cdef enum:
    SINKS_PER_PAGE = 100            # where the request says nothing
    SINKS_PER_PAGE_MAX = 1000


cdef uint32_t _first(Core* core, Slice prefix, Slice after) noexcept nogil:
    """Where the page begins: at the prefix, or behind the name that the page before ended with."""
    cdef uint32_t first = name_place(core, prefix)
    cdef uint32_t behind
    if after.length == 0:
        return first
    behind = name_place(core, after)
    if behind < core.sinks.in_order_count and name_is(core.sinks.in_order[behind], after):
        behind += 1
    return max(first, behind)


cdef inline bint _belongs(Core* core, uint32_t at, Slice prefix) noexcept nogil:
    """Whether there is a sink, and its name begins with the prefix."""
    cdef Sink* sink
    if at >= core.sinks.in_order_count:
        return False
    sink = core.sinks.in_order[at]
    return sink.text.length >= prefix.length and memcmp(sink.text.bytes, prefix.at, prefix.length) == 0


cdef Slice _present_run(Sink* sink) noexcept nogil:
    cdef Cursor c
    cdef Slice run
    run.at, run.length = NULL, 0
    c.at, c.end, c.bad = sink.runs.data, sink.runs.data + sink.runs.length, False
    while c.at < c.end:
        run = take_slice(&c, take_u8(&c))
    return run


cdef void _put(Buffer* out, Sink* sink) noexcept nogil:
    cdef Buffer row
    cdef Buffer publishing
    cdef Slice name
    name.at, name.length = sink.text.bytes, sink.text.length
    buffer_init(&row)
    put_text_field(&row, v1.SINK_INFO_SINK_ID, name)
    put_number_field(&row, v1.SINK_INFO_EPOCH, sink.epoch)
    put_text_field(&row, v1.SINK_INFO_RUN_ID, _present_run(sink))
    put_number_field(&row, v1.SINK_INFO_NEXT_BATCH, sink.next_batch)
    put_number_field(&row, v1.SINK_INFO_ATTEMPTS, sink.attempts_by_key.count)
    put_number_field(&row, v1.SINK_INFO_STAGED_MESSAGES, sink.staged_messages)
    put_number_field(&row, v1.SINK_INFO_STAGED_BYTES, sink.staged_bytes)
    if sink.intent != NULL:
        buffer_init(&publishing)
        put_number_field(&publishing, v1.PUBLISHING_BATCH_BATCH, sink.intent.batch)
        put_number_field(&publishing, v1.PUBLISHING_BATCH_MESSAGES, sink.intent.messages)
        put_number_field(
            &publishing, v1.PUBLISHING_BATCH_MOVED,
            sink.intent.moved + sink.intent.duplicates + sink.intent.lost)
        put_nested(&row, v1.SINK_INFO_PUBLISHING, &publishing)
        buffer_free(&publishing)
    put_timestamp_field(&row, v1.SINK_INFO_USED_AT, sink.used_ms)
    put_number_field(&row, v1.SINK_INFO_KEEP_MS, sink.keep_ms)
    put_nested(out, v1.LIST_SINKS_RESPONSE_SINKS, &row)
    buffer_free(&row)


cdef void sinks_list(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Buffer payload
    cdef Slice prefix
    cdef Slice last
    cdef int64_t left = SINKS_PER_PAGE
    cdef uint32_t at
    fields_parse(&fields, command.bytes, command.length)
    prefix = fields.text[v1.LIST_SINKS_REQUEST_PREFIX]
    if fields.number[v1.LIST_SINKS_REQUEST_LIMIT]:
        left = <int64_t> min(fields.number[v1.LIST_SINKS_REQUEST_LIMIT], <uint64_t> SINKS_PER_PAGE_MAX)
    at = _first(core, prefix, fields.text[v1.LIST_SINKS_REQUEST_AFTER])
    buffer_init(&payload)
    while left and _belongs(core, at, prefix):
        _put(&payload, core.sinks.in_order[at])
        core.counters.work += 1
        at += 1
        left -= 1
    if left == 0 and _belongs(core, at, prefix):
        last.at, last.length = core.sinks.in_order[at - 1].text.bytes, core.sinks.in_order[at - 1].text.length
        put_text_field(&payload, v1.LIST_SINKS_RESPONSE_NEXT_AFTER, last)
    put_number_field(&payload, v1.LIST_SINKS_RESPONSE_STAGED_BYTES, core.sinks.staged_bytes)
    put_number_field(&payload, v1.LIST_SINKS_RESPONSE_STAGED_BYTES_MAX, core.sinks.staged_bytes_max)
    answer(core, command.token, OK, &payload, False)
