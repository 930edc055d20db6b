"""A run is remembered by its name, the last few of them in one small buffer behind each other. Old sinks
are looked for some at a time, where the last look ended."""

from libc.stdint cimport int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from fila_server.core.lifecycle.answers cimport answer, answer_status
from fila_server.core.lifecycle.queues cimport number_next
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport FAILED_PRECONDITION, NOT_FOUND, OK, RESOURCE_EXHAUSTED
from fila_server.core.protocol.protobuf cimport Fields, fields_parse, put_number_field
from fila_server.core.sinks.attempts cimport attempt_free, attempts_drop, attempts_forget
from fila_server.core.sinks.name_order cimport name_put, name_remove, names_forget
from fila_server.core.sinks.sink_records cimport sink_record_put, sink_records_delete
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, buffer_free, buffer_init, must_malloc, put_bytes, put_slice, put_u8, take_slice, take_u8,
)
from fila_server.core.structures.maps cimport (
    map64_free, map64_put, map64_remove, textmap_free, textmap_get, textmap_init, textmap_next, textmap_put,
    textmap_remove,
)
from fila_server.core.threads.mailbox cimport command_free
from fila_server.core.threads.reader cimport Load

cdef enum:
    RUNS_REMEMBERED = 16
    KEEP_MS_MAX = 2592000000        # 30 days
    SWEPT_AT_ONCE_MAX = 64          # sinks looked at; the next look goes on


cdef Sink* sink_new(Core* core, Slice name, uint64_t number) noexcept nogil:
    cdef Sink* sink = <Sink*> must_malloc(sizeof(Sink) + name.length)
    cdef char* bytes = <char*> sink + sizeof(Sink)
    memset(sink, 0, sizeof(Sink))
    memcpy(bytes, name.at, name.length)
    sink.text.bytes, sink.text.length = bytes, name.length
    sink.number = number
    textmap_init(&sink.attempts_by_key)
    buffer_init(&sink.runs)
    textmap_put(&core.sinks.by_name, &sink.text)
    map64_put(&core.sinks.by_number, number, sink)
    return sink


cdef Sink* sink_of_call(Core* core, Command* command, Slice name, uint64_t epoch) noexcept nogil:
    cdef Sink* sink = <Sink*> textmap_get(&core.sinks.by_name, name.at, name.length)
    cdef char text[640]
    if sink == NULL:
        snprintf(
            text, sizeof(text),
            b"sink \"%.*s\" is not open, or was forgotten because nobody used it; call OpenSink first",
            <int> name.length, name.at)
        answer_status(core, command.token, NOT_FOUND, text, b"SINK_NOT_FOUND")
        return NULL
    if epoch != sink.epoch:
        snprintf(
            text, sizeof(text),
            b"epoch: sink \"%.*s\" belongs to a later run (epoch %llu, this call has %llu); stop this one",
            <int> name.length, name.at, <unsigned long long> sink.epoch, <unsigned long long> epoch)
        answer_status(core, command.token, FAILED_PRECONDITION, text, b"SINK_FENCED")
        return NULL
    return sink


cdef void sink_used(Core* core, Sink* sink) noexcept nogil:
    sink.used_ns = core.mono_ns
    sink.used_ms = core.wall_ms


# --- runs --------------------------------------------------------------------------------------

cdef bint _run_at(Cursor* c, Slice* run) noexcept nogil:
    if c.at >= c.end:
        return False
    run[0] = take_slice(c, take_u8(c))
    return not c.bad


cdef uint32_t _run_place(Sink* sink, Slice wanted, uint32_t* count) noexcept nogil:
    """Its place among the runs that are remembered, from 1; 0: it is not there."""
    cdef Cursor c
    cdef Slice run
    cdef uint32_t place = 0
    c.at, c.end, c.bad = sink.runs.data, sink.runs.data + sink.runs.length, False
    count[0] = 0
    while _run_at(&c, &run):
        count[0] += 1
        if run.length == wanted.length and memcmp(run.at, wanted.at, run.length) == 0:
            place = count[0]
    return place


cdef void _run_add(Sink* sink, Slice run) noexcept nogil:
    cdef Buffer kept
    cdef Cursor c
    cdef Slice oldest
    cdef uint32_t count = 0
    buffer_init(&kept)
    c.at, c.end, c.bad = sink.runs.data, sink.runs.data + sink.runs.length, False
    _run_place(sink, run, &count)
    if count >= RUNS_REMEMBERED:
        _run_at(&c, &oldest)
    put_bytes(&kept, c.at, c.end - c.at)
    put_u8(&kept, <unsigned char> run.length)
    put_slice(&kept, run)
    buffer_free(&sink.runs)
    sink.runs = kept


cdef Sink* _sink_to_open(Core* core, Command* command, Slice name) noexcept nogil:
    """The sink of this name, made where there is none; NULL: there are too many, and that is answered."""
    cdef Sink* sink = <Sink*> textmap_get(&core.sinks.by_name, name.at, name.length)
    cdef char text[256]
    if sink == NULL and core.sinks.by_name.count >= core.sinks.sinks_max:
        snprintf(
            text, sizeof(text),
            b"sink_id: %u sinks are remembered, the most there may be; raise sinks.sinks_max, or let jobs "
            b"that "
            b"run once ask for a shorter keep_ms",
            <unsigned int> core.sinks.sinks_max)
        answer_status(core, command.token, RESOURCE_EXHAUSTED, text, b"LIMIT_EXCEEDED")
    elif sink == NULL:
        sink = sink_new(core, name, number_next(core))
        name_put(core, sink)
    return sink


cdef void sink_open(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Buffer payload
    cdef Sink* sink
    cdef uint32_t place
    cdef uint32_t count = 0
    fields_parse(&fields, command.bytes, command.length)
    sink = _sink_to_open(core, command, fields.text[v1.OPEN_SINK_REQUEST_SINK_ID])
    if sink == NULL:
        return
    place = _run_place(sink, fields.text[v1.OPEN_SINK_REQUEST_RUN_ID], &count)
    if place and place < count:
        answer_status(
            core, command.token, FAILED_PRECONDITION,
            b"run_id: a later run has taken this sink over; stop this one, or begin a run of a new name",
            b"SINK_FENCED")
        return
    if not place:
        _run_add(sink, fields.text[v1.OPEN_SINK_REQUEST_RUN_ID])
        sink.epoch += 1
        attempts_drop(core, sink, 0, sink.epoch)
    sink.keep_ms = min(fields.number[v1.OPEN_SINK_REQUEST_KEEP_MS] or KEEP_MS_MAX, <uint64_t> KEEP_MS_MAX)
    sink_used(core, sink)
    sink_record_put(core, sink)
    buffer_init(&payload)
    put_number_field(&payload, v1.OPEN_SINK_RESPONSE_EPOCH, sink.epoch)
    put_number_field(
        &payload, v1.OPEN_SINK_RESPONSE_NEXT_BATCH,
        sink.next_batch if sink.intent == NULL else sink.intent.batch + 1)
    answer(core, command.token, OK, &payload, True)


# --- what goes by itself -----------------------------------------------------------------------

cdef void _sink_free(Core* core, Sink* sink) noexcept nogil:
    textmap_remove(&core.sinks.by_name, &sink.text)
    map64_remove(&core.sinks.by_number, sink.number)
    textmap_free(&sink.attempts_by_key)
    buffer_free(&sink.runs)
    if sink.intent != NULL:
        free(sink.intent.attempts)
        free(sink.intent)
    free(sink)


cdef void sinks_sweep(Core* core) noexcept nogil:
    cdef int looked
    cdef Sink* sink
    for looked in range(SWEPT_AT_ONCE_MAX):
        sink = <Sink*> textmap_next(&core.sinks.by_name, &core.sinks.sweep_cursor)
        if sink == NULL:
            core.sinks.sweep_cursor = 0
            return
        if sink.intent != NULL:
            continue                    # never under a batch that is on its way
        if sink.attempts != NULL and core.mono_ns - sink.staged_ns > core.sinks.orphan_age_ns:
            core.sinks.counters.swept += attempts_drop(core, sink, <uint64_t> -1, 0)
        if sink.attempts == NULL and core.mono_ns - sink.used_ns > <int64_t> sink.keep_ms * 1000000:
            sink_records_delete(core, sink)
            name_remove(core, sink)
            _sink_free(core, sink)
            core.sinks.sweep_cursor = 0     # the table moved under it
            return


cdef void _free_commands(Command* command) noexcept nogil:
    cdef Command* following
    while command != NULL:
        following = command.next
        command_free(command)
        command = following


cdef void sinks_forget(Core* core) noexcept nogil:
    cdef uint32_t cursor
    cdef Sink* sink
    cdef Load* load
    _free_commands(core.sinks.staging)
    _free_commands(core.sinks.moved)
    _free_commands(core.sinks.unmoved)
    core.sinks.staging = core.sinks.staging_last = core.sinks.moved = core.sinks.unmoved = NULL
    while core.sinks.loaded != NULL:
        load = core.sinks.loaded
        core.sinks.loaded = load.next
        free(load.bytes)
        free(load)
    attempts_forget(core)
    names_forget(core)
    while True:
        cursor = 0
        sink = <Sink*> textmap_next(&core.sinks.by_name, &cursor)
        if sink == NULL:
            break
        while sink.attempts != NULL:
            attempt_free(sink, sink.attempts)
        _sink_free(core, sink)
    textmap_free(&core.sinks.by_name)
    map64_free(&core.sinks.by_number)
    core.sinks.moving = NULL
    core.sinks.moving_count = core.sinks.to_look_at = 0
