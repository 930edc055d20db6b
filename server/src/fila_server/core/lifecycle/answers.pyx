"""Two lists in order of epoch, what may leave with the pass and what waits for its sync. A frame that
is being revealed holds back only what comes behind it in its own queue.
"""

from libc.stdint cimport UINT64_MAX, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memset, strlen

from fila_server.core.formats.records cimport audit_record_put
from fila_server.core.index.bodies cimport body_release
from fila_server.core.lifecycle.reveal cimport frame_reveal
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport (
    CANCEL_MESSAGES, NOT_FOUND, OK, PERMISSION_DENIED, REPLY, SESSION_OPEN,
)
from fila_server.core.protocol.protobuf cimport QUEUE_FIELD, Fields, channel_field, fields_parse, put_status
from fila_server.core.state.budget cimport WORK_PER_STAGE, stage_goes_on
from fila_server.core.state.state cimport Channel, Effect
from fila_server.core.structures.buffer cimport (
    Slice, buffer_free, buffer_init, must_malloc, put_bytes, put_slice, put_u8,
)
from fila_server.core.structures.maps cimport map64_get, textmap_get
from fila_server.core.threads.mailbox cimport HIDDEN
from fila_server.core.threads.outbox cimport outboxes_put, outs_add

cdef enum:
    CHANNELS_NAMED_MAX = 8
    GONE = -1                       # kinds of effects that nobody hears
    BODY_STAYED = -2                # `token` is the body's address

cdef uint64_t AT_ONCE = UINT64_MAX      # an epoch: for none


cdef Effect* _add(Core* core, bint durable) noexcept nogil:
    cdef Effect* effect = <Effect*> must_malloc(sizeof(Effect))
    memset(effect, 0, sizeof(Effect))
    if durable:
        effect.epoch = core.epoch
        core.sync_wanted = True
    if core.passing_last == NULL:
        core.passing = effect
    else:
        core.passing_last.next = effect
    core.passing_last = effect
    return effect


cdef void emit(
        Core* core, uint64_t token, int32_t kind, int32_t status, Buffer* payload,
        bint durable) noexcept nogil:
    cdef Effect* effect = _add(core, durable)
    effect.token = token
    effect.kind = kind
    effect.status = status
    effect.payload = payload[0]
    buffer_init(payload)


cdef void answer(Core* core, uint64_t token, int32_t status, Buffer* payload, bint durable) noexcept nogil:
    if core.auditing.length and status == OK and token == core.auditing_token:
        answer_audited(core)
    emit(core, token, REPLY, status, payload, durable)


cdef void answer_at_once(Core* core, uint64_t token, Buffer* payload) noexcept nogil:
    answer(core, token, OK, payload, False)
    core.passing_last.epoch = AT_ONCE


cdef bint answers_tell(Core* core) noexcept nogil:
    cdef Effect* effect = core.passing
    while effect != NULL and effect.epoch == AT_ONCE:
        effect = effect.next
    return effect != NULL


cdef void body_stays(Core* core, Body* body) noexcept nogil:
    cdef Effect* effect
    if core.shared.in_group:
        body.refs += 1
        effect = _add(core, True)
        effect.kind, effect.token = BODY_STAYED, <uint64_t> body


cdef void answer_audited(Core* core) noexcept nogil:
    if core.auditing.length:
        audit_record_put(core, core.auditing)
    core.auditing.length = 0


cdef void answer_refused(Core* core, Command* command) noexcept nogil:
    cdef Slice queue
    cdef Slice channel
    cdef char text[384]
    if command.verdict == HIDDEN:
        answer_no_queue(core, command)
        return
    _names(command, &queue, &channel)
    snprintf(
        text, sizeof(text), b"%s: this key has no such right on queue \"%.*s\"; an admin gives it with "
        b"fila auth grant", <const char*> (b"cancel" if command.kind == CANCEL_MESSAGES else b"consume"),
        <int> queue.length, queue.at)
    answer_status(core, command.token, PERMISSION_DENIED, text, b"PERMISSION_DENIED")


cdef void answer_enqueued(Core* core, Command* command, Buffer* payload) noexcept nogil:
    emit(core, command.token, REPLY, OK, payload, command.durable)
    core.passing_last.queue_number = command.queue_number


cdef void answer_status(
        Core* core, uint64_t token, int32_t status, const char* message, const char* reason) noexcept nogil:
    cdef Buffer payload
    buffer_init(&payload)
    put_status(&payload, status, message, reason)
    answer(core, token, status, &payload, False)


cdef void _names(Command* command, Slice* queue, Slice* channel) noexcept nogil:
    """Queue and channel as the request wrote them."""
    cdef Fields fields
    cdef Slice opening
    fields_parse(&fields, command.bytes, command.length)
    if command.kind == SESSION_OPEN:
        opening = fields.text[v1.CONSUME_SESSION_REQUEST_OPEN]
        fields_parse(&fields, opening.at, opening.length)
    queue[0] = fields.text[QUEUE_FIELD]
    channel[0] = fields.text[channel_field(command.kind)]


cdef void answer_no_queue(Core* core, Command* command) noexcept nogil:
    cdef Slice queue
    cdef Slice channel
    cdef char text[384]
    _names(command, &queue, &channel)
    snprintf(
        text, sizeof(text), b"queue \"%.*s\" does not exist; check its name, or create it",
        <int> queue.length, queue.at)
    answer_status(core, command.token, NOT_FOUND, text, b"QUEUE_NOT_FOUND")


cdef void answer_no_channel(Core* core, Command* command) noexcept nogil:
    cdef Slice queue
    cdef Slice channel
    cdef Queue* found
    cdef Buffer text
    _names(command, &queue, &channel)
    if channel.length == 0:
        channel.at, channel.length = b"default", 7
    found = <Queue*> textmap_get(&core.queues, queue.at, queue.length)
    buffer_init(&text)
    _put(&text, b"queue \"")
    put_slice(&text, queue)
    _put(&text, b"\" has no channel \"")
    put_slice(&text, channel)
    _put(&text, b"\"")
    if not command.sees_a_part:
        _put_channels(&text, found.channels if found != NULL else NULL)
    put_u8(&text, 0)
    answer_status(core, command.token, NOT_FOUND, text.data, b"CHANNEL_NOT_FOUND")
    buffer_free(&text)


cdef inline void _put(Buffer* text, const char* words) noexcept nogil:
    put_bytes(text, words, strlen(words))


cdef void _put_channels(Buffer* text, Channel* channel) noexcept nogil:
    """The next step: name one of those there are, or make the missing one."""
    cdef uint32_t named = 0
    if channel == NULL:
        _put(text, b"; it has none: CreateChannel makes one")
        return
    _put(text, b"; it has ")
    while channel != NULL and named < CHANNELS_NAMED_MAX:
        if named:
            _put(text, b", ")
        _put(text, b"\"")
        put_bytes(text, channel.text.bytes, channel.text.length)
        _put(text, b"\"")
        named += 1
        channel = channel.next
    if channel != NULL:
        _put(text, b" and more")
    _put(text, b": name one of them, or make this one with CreateChannel")


cdef void reveal_later(Core* core, Frame* frame, bint durable) noexcept nogil:
    _add(core, durable).frame = frame


cdef inline void _append(Effect** first, Effect** last, Effect* effect) noexcept nogil:
    if last[0] == NULL:
        first[0] = effect
    else:
        last[0].next = effect
    last[0] = effect
    effect.next = NULL


cdef void answers_written(Core* core) noexcept nogil:
    cdef Effect* effect = core.passing
    cdef Effect* following
    core.passing = core.passing_last = NULL
    while effect != NULL:
        following = effect.next
        if effect.epoch == 0 and core.shared.in_group:
            effect.epoch = core.epoch
        if effect.epoch == 0 or effect.epoch == AT_ONCE:
            _append(&core.outgoing, &core.outgoing_last, effect)
        else:
            _append(&core.unsynced, &core.unsynced_last, effect)
        effect = following


cdef void refusals_written(Core* core, Effect* last) noexcept nogil:
    cdef Effect* effect = core.passing if last == NULL else last.next
    cdef Effect* following
    if last == NULL:
        core.passing = NULL
    else:
        last.next = NULL
    core.passing_last = last
    while effect != NULL:
        following = effect.next
        if effect.frame == NULL and effect.epoch == 0:
            _append(&core.outgoing, &core.outgoing_last, effect)
        else:
            _append(&core.passing, &core.passing_last, effect)
        effect = following


cdef void answers_durable(Core* core, uint64_t durable) noexcept nogil:
    cdef Effect* effect
    while core.unsynced != NULL and core.unsynced.epoch <= durable:
        effect = core.unsynced
        core.unsynced = effect.next
        if core.unsynced == NULL:
            core.unsynced_last = NULL
        _append(&core.outgoing, &core.outgoing_last, effect)


# --- leaving ---------------------------------------------------------------------------------

cdef void _out(Core* core, Effect* effect) noexcept nogil:
    if effect.kind >= 0:
        outs_add(core.outboxes, effect.token, effect.kind, effect.status, &effect.payload)
    elif effect.kind == BODY_STAYED:
        body_release(core, <Body*> effect.token)
    free(effect)


cdef void _behind(Core* core, Queue* queue, Effect* effect) noexcept nogil:
    if queue.revealing == NULL:
        _line_up(core, queue)
    _append(&queue.revealing, &queue.revealing_last, effect)


cdef void _line_up(Core* core, Queue* queue) noexcept nogil:
    queue.next_revealing = NULL
    if core.revealing_last == NULL:
        core.revealing = queue
    else:
        core.revealing_last.next_revealing = queue
    core.revealing_last = queue


cdef void answers_leave(Core* core) noexcept nogil:
    cdef Effect* effect
    cdef Queue* queue
    while core.outgoing != NULL and stage_goes_on(core):
        effect = core.outgoing
        core.outgoing = effect.next
        if core.outgoing == NULL:
            core.outgoing_last = NULL
        if effect.frame != NULL:
            queue = effect.frame.queue
            if queue.revealing != NULL or not frame_reveal(core, effect.frame, core.stage_end):
                _behind(core, queue, effect)
            else:
                free(effect)
            continue
        if effect.queue_number and core.revealing != NULL:
            queue = <Queue*> map64_get(&core.queues_by_number, effect.queue_number)
            if queue != NULL and queue.revealing != NULL:
                _behind(core, queue, effect)
                continue
        _out(core, effect)
    outboxes_put(core.outboxes)


cdef bint reveals_turn(Core* core) noexcept nogil:
    cdef Queue* queue
    cdef Effect* effect
    while core.revealing != NULL and stage_goes_on(core):
        queue = core.revealing
        core.revealing = queue.next_revealing
        if core.revealing == NULL:
            core.revealing_last = NULL
        effect = queue.revealing
        if effect.frame == NULL or frame_reveal(core, effect.frame, core.counters.work + WORK_PER_STAGE // 8):
            queue.revealing = effect.next
            if queue.revealing == NULL:
                queue.revealing_last = NULL
            if effect.frame == NULL:
                _out(core, effect)
            else:
                free(effect)
        if queue.revealing != NULL:
            _line_up(core, queue)
    outboxes_put(core.outboxes)
    return core.revealing != NULL


# --- what is gone meanwhile ------------------------------------------------------------------

cdef void answers_forget(Core* core, Queue* queue) noexcept nogil:
    cdef Queue** at = &core.revealing
    cdef Queue* last = NULL
    _forget(core.outgoing, queue)
    _forget(core.unsynced, queue)
    _forget(core.passing, queue)
    _forget(queue.revealing, queue)
    if queue.revealing == NULL:
        return
    while at[0] != queue:
        last = at[0]
        at = &last.next_revealing
    at[0] = queue.next_revealing
    if core.revealing_last == queue:
        core.revealing_last = last
    if core.outgoing_last == NULL:       # the answers that waited behind its frames go as they are
        core.outgoing = queue.revealing
    else:
        core.outgoing_last.next = queue.revealing
    core.outgoing_last = queue.revealing_last


cdef void _forget(Effect* effect, Queue* queue) noexcept nogil:
    while effect != NULL:
        if effect.frame != NULL and effect.frame.queue == queue:
            effect.frame = NULL
            effect.kind = GONE
        effect = effect.next


cdef void reveal_ends(Core* core, Frame* frame) noexcept nogil:
    if frame.queue.revealing != NULL and frame.queue.revealing.frame == frame:
        frame.queue.revealing.frame = NULL
        frame.queue.revealing.kind = GONE
