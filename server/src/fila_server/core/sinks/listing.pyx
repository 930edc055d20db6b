"""A page by name. What a sink has staged is counted when it is asked, frame by frame, so a page also ends
when it has looked at many."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcmp

from fila_server.core.life.answers cimport answer
from fila_server.core.state.sinks cimport Attempt, Sink
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc, take_slice, take_u8,
)
from fila_server.core.structures.maps cimport Text, textmap_next
from fila_server.core.wire.commands cimport OK
from fila_server.core.wire.protobuf cimport (
    Fields, fields_parse, put_nested, put_number_field, put_text_field, put_timestamp_field,
)

cdef enum:
    SINKS_PER_PAGE = 100            # where the request says nothing
    SINKS_PER_PAGE_MAX = 1000
    FRAMES_PER_PAGE_MAX = 100000    # about a millisecond


cdef int _compared(const char* a, uint32_t a_length, const char* b, uint32_t b_length) noexcept nogil:
    cdef int order = memcmp(a, b, min(a_length, b_length))
    if order:
        return order
    return -1 if a_length < b_length else a_length > b_length


cdef int _by_name(const void* a, const void* b) noexcept nogil:
    cdef Text* x = &(<Sink**> a)[0].text
    cdef Text* y = &(<Sink**> b)[0].text
    return _compared(x.bytes, x.length, y.bytes, y.length)


cdef int64_t _gather(Core* core, Sink** rows, Slice prefix, Slice after) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef int64_t count = 0
    cdef Text* name
    while True:
        name = textmap_next(&core.sinks.by_name, &cursor)
        if name == NULL:
            return count
        if name.length < prefix.length or memcmp(name.bytes, prefix.at, prefix.length):
            continue
        if after.length and _compared(name.bytes, name.length, after.at, after.length) <= 0:
            continue
        rows[count] = <Sink*> name
        count += 1


cdef Slice _present_run(Sink* sink) noexcept nogil:
    cdef Cursor c
    cdef Slice run
    run.at, run.length = NULL, 0
    c.at, c.end, c.bad = sink.runs.data, sink.runs.data + sink.runs.length, False
    while c.at < c.end:
        run = take_slice(&c, take_u8(&c))
    return run


cdef uint64_t _put(Buffer* out, Sink* sink) noexcept nogil:
    """One row; returns how many frames were looked at for it."""
    cdef Buffer row
    cdef Buffer publishing
    cdef Slice name
    cdef Attempt* attempt = sink.attempts
    cdef uint64_t bytes = 0, messages = 0, looked = 0
    cdef uint32_t i
    while attempt != NULL:
        for i in range(attempt.gone, attempt.count):
            bytes += attempt.frames[i].bytes
            messages += attempt.frames[i].count
        looked += attempt.count - attempt.gone
        attempt = attempt.next
    name.at, name.length = sink.text.bytes, sink.text.length
    buffer_init(&row)
    put_text_field(&row, 1, name)
    put_number_field(&row, 2, sink.epoch)
    put_text_field(&row, 3, _present_run(sink))
    put_number_field(&row, 4, sink.next_batch)
    put_number_field(&row, 5, sink.attempts_by_key.count)
    put_number_field(&row, 6, messages)
    put_number_field(&row, 7, bytes)
    if sink.intent != NULL:
        buffer_init(&publishing)
        put_number_field(&publishing, 1, sink.intent.batch)
        put_number_field(&publishing, 2, sink.intent.messages)
        put_number_field(&publishing, 3, sink.intent.moved + sink.intent.duplicates + sink.intent.lost)
        put_nested(&row, 8, &publishing)
        buffer_free(&publishing)
    put_timestamp_field(&row, 9, sink.used_ms)
    put_number_field(&row, 10, sink.keep_ms)
    put_nested(out, 1, &row)
    buffer_free(&row)
    return looked + 1


cdef void sinks_list(Core* core, Command* command) noexcept nogil:
    cdef Sink** rows = <Sink**> must_malloc((core.sinks.by_name.count + 1) * sizeof(void*))
    cdef Fields fields
    cdef Buffer payload
    cdef Slice last
    cdef int64_t most
    cdef int64_t count
    cdef int64_t at = 0
    cdef uint64_t looked = 0
    fields_parse(&fields, command.bytes, command.length)
    most = SINKS_PER_PAGE
    if fields.number[3]:
        most = <int64_t> min(fields.number[3], <uint64_t> SINKS_PER_PAGE_MAX)
    count = _gather(core, rows, fields.text[1], fields.text[2])
    qsort(rows, count, sizeof(void*), _by_name)
    buffer_init(&payload)
    while at < count and at < most and looked < FRAMES_PER_PAGE_MAX:
        looked += _put(&payload, rows[at])
        at += 1
    if at < count:
        last.at, last.length = rows[at - 1].text.bytes, rows[at - 1].text.length
        put_text_field(&payload, 2, last)
    put_number_field(&payload, 3, core.sinks.staged_bytes)
    put_number_field(&payload, 4, core.sinks.staged_bytes_max)
    free(rows)
    answer(core, command.token, OK, &payload, False)
