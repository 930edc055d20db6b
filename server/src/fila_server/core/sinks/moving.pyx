"""A piece is a frame that the reader thread brought, enqueued as a command and remembered until its pass is
written. Sinks with a batch on its way stand in a circle, and all of them are looked at, some a pass, after
anything happened that one of them may have waited for."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.lifecycle.answers cimport answer
from fila_server.core.lifecycle.enqueue cimport enqueue_command
from fila_server.core.lifecycle.revoked cimport SINK_LOST, notice_of
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport MOVE_STAGED, OK, STAGE
from fila_server.core.protocol.packed_routing cimport Routing, take_routing
from fila_server.core.protocol.problem cimport Problem
from fila_server.core.protocol.protobuf cimport put_number_field
from fila_server.core.protocol.refusals cimport Limits
from fila_server.core.requests.parse cimport command_parse
from fila_server.core.sinks.attempts cimport attempt_free, attempts_drop, attempts_turn, frame_moved
from fila_server.core.sinks.registry cimport sink_used
from fila_server.core.sinks.sink_records cimport (
    StagedBody, cursor_record_put, intent_records_delete, sink_record_put, staged_body_read,
    staged_record_delete,
)
from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.state.sinks cimport Attempt, Intent, Sink, StagedFrame
from fila_server.core.state.state cimport Queue
from fila_server.core.storage.families cimport STAGED
from fila_server.core.storage.status cimport STORE_DAMAGED, STORE_NOT_FOUND, STORE_OK
from fila_server.core.structures.buffer cimport Buffer, Cursor, Slice, buffer_init, must_malloc, take_u8
from fila_server.core.structures.maps cimport map64_get
from fila_server.core.threads.mailbox cimport Command, HookRoutings, command_free
from fila_server.core.threads.reader cimport Load, loader_ask

cdef int64_t PAUSE_NS = 50000000    # after the disk refused a piece

cdef enum:
    LOOKED_AT_ONCE_MAX = 64         # sinks; the next pass goes on


cdef inline Attempt* _attempt(Intent* intent) noexcept nogil:
    """The attempt whose frames move now; NULL: all have."""
    while intent.at < intent.count and intent.attempts[intent.at].gone == intent.attempts[intent.at].count:
        intent.at += 1
    return intent.attempts[intent.at] if intent.at < intent.count else NULL


cdef void _frame_over(Core* core, Sink* sink) noexcept nogil:
    """The frame at hand is staged no more: what was reserved for it is free."""
    cdef Attempt* attempt = _attempt(sink.intent)
    cdef StagedFrame* frame = &attempt.frames[attempt.gone]
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, frame.queue_number)
    core.sinks.promised_dedup_keys -= frame.dedup_keys
    if queue != NULL:
        queue.promised -= frame.count
    frame_moved(core, sink, attempt)


# --- one piece ---------------------------------------------------------------------------------

cdef void _no_limits(Limits* limits) noexcept nogil:
    """It was held against them when it was staged; what they are by now does not count."""
    memset(limits, 0xFF, sizeof(Limits))


cdef bint _route_as_staged(Command* command, Slice routings) noexcept nogil:
    """Give each message what a hook decided for it."""
    cdef HookRoutings* copy
    cdef Cursor c
    cdef Routing routing
    cdef uint32_t i
    if routings.length == 0:
        return True
    copy = <HookRoutings*> must_malloc(sizeof(HookRoutings) + routings.length)
    copy.next = command.routings
    command.routings = copy
    memcpy(copy.bytes, routings.at, routings.length)
    c.at, c.end, c.bad = copy.bytes, copy.bytes + routings.length, False
    for i in range(command.count):
        if take_u8(&c):
            command.items[i].routing = c.at
            take_routing(&c, &routing)
    return not c.bad


cdef Command* _command_of(Sink* sink, StagedFrame* frame, Load* load) noexcept nogil:
    """The frame's messages as they would come from the mailbox; NULL where its record is no such thing."""
    cdef StagedBody body
    cdef Limits limits
    cdef Problem problem
    cdef Command* command
    if load.status != STORE_OK or not staged_body_read(&body, load.bytes, load.length):
        return NULL
    _no_limits(&limits)
    command = command_parse(STAGE, sink.number, body.request.at, body.request.length, &limits, &problem)
    if command == NULL:
        return NULL
    if command.count != frame.count or not _route_as_staged(command, body.routings):
        command_free(command)
        return NULL
    command.kind = MOVE_STAGED
    command.durable = True              # seen by nobody before it is synced
    return command


cdef void _lose(Core* core, Sink* sink, uint64_t messages, Queue* queue) noexcept nogil:
    """Its queue was deleted by force, or its record is damaged: it goes without its messages."""
    cdef Intent* intent = sink.intent
    cdef Attempt* attempt = _attempt(intent)
    if queue != NULL:                   # damage, then
        core.counters.lost_ranges += 1
        core.counters.lost_messages += messages
    intent.lost += messages
    staged_record_delete(core, core.settles, attempt, attempt.gone)
    cursor_record_put(core, core.settles, sink, intent.moved, intent.duplicates, intent.lost)
    _frame_over(core, sink)


cdef void _piece(Core* core, Sink* sink, Load* load) noexcept nogil:
    """The frame that was asked for is here: into its queue, with this pass."""
    cdef Intent* intent = sink.intent
    cdef Attempt* attempt = _attempt(intent)
    cdef StagedFrame* frame
    cdef Queue* queue
    cdef Command* command
    if attempt == NULL or attempt.frames[attempt.gone].serial != load.first_offset or not intent.asked:
        return
    frame = &attempt.frames[attempt.gone]
    intent.asked = False
    if load.status != STORE_OK and load.status != STORE_DAMAGED and load.status != STORE_NOT_FOUND:
        return                          # a disk that is in trouble just now: asked for again
    queue = <Queue*> map64_get(&core.queues_by_number, frame.queue_number)
    command = _command_of(sink, frame, load) if queue != NULL else NULL
    if command == NULL:
        _lose(core, sink, frame.count, queue)
        return
    intent.running = True
    enqueue_command(core, command)
    # With the new messages, which the disk takes or refuses together. How many of them are new is known now.
    staged_record_delete(core, core.enqueues, attempt, attempt.gone)
    cursor_record_put(
        core, core.enqueues, sink, intent.moved + command.count - command.duplicates,
        intent.duplicates + command.duplicates, intent.lost)


cdef void _pieces_written(Core* core) noexcept nogil:
    cdef Command* command
    cdef Sink* sink
    while core.sinks.moved != NULL:
        command = core.sinks.moved
        core.sinks.moved = command.next
        sink = <Sink*> map64_get(&core.sinks.by_number, command.token)
        sink.intent.running = False
        sink.intent.moved += command.count - command.duplicates
        sink.intent.duplicates += command.duplicates
        _frame_over(core, sink)
        command_free(command)
    while core.sinks.unmoved != NULL:
        command = core.sinks.unmoved
        core.sinks.unmoved = command.next
        sink = <Sink*> map64_get(&core.sinks.by_number, command.token)
        sink.intent.running = False
        sink.intent.paused_until_ns = core.mono_ns + PAUSE_NS
        command_free(command)


# --- the end -----------------------------------------------------------------------------------

cdef void _answer_waiters(Core* core, Intent* intent) noexcept nogil:
    cdef Buffer payload
    cdef uint32_t i
    for i in range(intent.waiter_count):
        buffer_init(&payload)
        if i or not intent.begun_here:
            put_number_field(&payload, v1.PUBLISH_RESPONSE_ALREADY_PUBLISHED, 1)
        put_number_field(&payload, v1.PUBLISH_RESPONSE_MESSAGES, intent.moved)
        put_number_field(&payload, v1.PUBLISH_RESPONSE_DUPLICATES, intent.duplicates)
        put_number_field(&payload, v1.PUBLISH_RESPONSE_LOST, intent.lost)
        answer(core, intent.waiters[i], OK, &payload, True)


cdef void _done(Core* core, Sink* sink) noexcept nogil:
    """DONE: the batch is below the next one, and nothing is left of what it was made of."""
    cdef Intent* intent = sink.intent
    cdef uint32_t i
    cdef Slice name
    sink.next_batch = intent.batch + 1
    sink_used(core, sink)
    sink_record_put(core, sink)
    intent_records_delete(core, sink)
    _answer_waiters(core, intent)
    core.sync_wanted = True
    core.sinks.counters.published += 1
    core.sinks.counters.moved += intent.moved
    core.sinks.counters.duplicates += intent.duplicates
    core.sinks.counters.lost += intent.lost
    if intent.lost:
        name.at, name.length = sink.text.bytes, sink.text.length
        notice_of(core, SINK_LOST, name, intent.lost)
    for i in range(intent.count):
        attempt_free(sink, intent.attempts[i])
    sink.intent = NULL
    free(intent.attempts)
    free(intent)
    attempts_drop(core, sink, sink.next_batch, sink.epoch)


cdef bint _may_move(Core* core, Intent* intent) noexcept nogil:
    return (
        intent.epoch <= core.durable and not intent.running and not intent.asked
        and core.mono_ns >= intent.paused_until_ns and not core.disk_low
    )


cdef bint _look_at(Core* core, Sink* sink) noexcept nogil:
    """Ask for its next frame, or end it. True: it ended."""
    cdef Intent* intent = sink.intent
    cdef Attempt* attempt
    if not _may_move(core, intent):
        return False
    attempt = _attempt(intent)
    if attempt == NULL:
        _done(core, sink)
        return True
    loader_ask(core.loader, STAGED, sink.number, attempt.frames[attempt.gone].serial)
    intent.asked = True
    return False


cdef void _look_around(Core* core) noexcept nogil:
    """Some of the sinks with a batch on its way. `moving` is the one behind which the circle begins."""
    cdef Sink* before
    cdef Sink* sink
    cdef uint32_t looked = 0
    while core.sinks.to_look_at and looked < LOOKED_AT_ONCE_MAX:
        before = core.sinks.moving
        sink = before.next_moving
        looked += 1
        core.sinks.to_look_at -= 1
        if not _look_at(core, sink):
            core.sinks.moving = sink
            continue
        core.sinks.moving_count -= 1
        if sink == before:              # the only one
            core.sinks.moving = NULL
        else:
            before.next_moving = sink.next_moving


cdef bint sinks_turn(Core* core) noexcept nogil:
    cdef Load* load
    cdef Sink* sink
    # Those that were looked at already may have waited for what has happened since: the count begins again.
    if (
        core.sinks.to_look_at == 0 or core.sinks.looked_durable != core.durable
        or core.sinks.moved != NULL or core.sinks.unmoved != NULL or core.sinks.loaded != NULL
    ):
        core.sinks.to_look_at = core.sinks.moving_count
        core.sinks.looked_durable = core.durable
    _pieces_written(core)
    while core.sinks.loaded != NULL and stage_goes_on(core):
        load = core.sinks.loaded
        core.sinks.loaded = load.next
        sink = <Sink*> map64_get(&core.sinks.by_number, load.queue_number)
        if sink != NULL and sink.intent != NULL and not core.stopping:
            _piece(core, sink, load)
        free(load.bytes)
        free(load)
    if core.stopping:
        core.sinks.to_look_at = 0
    else:
        _look_around(core)
    if core.sinks.dying != NULL and attempts_turn(core):
        return True
    return core.sinks.loaded != NULL or core.sinks.to_look_at != 0
