"""The edge has validated names, settings and masks; what is checked here is state."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from fila_server.core.admin.chores cimport chore_waits, purge_begin, remains_begin
from fila_server.core.admin.deleting cimport channel_delete, queue_delete, queues_clear
from fila_server.core.admin.operation_records cimport kept_put
from fila_server.core.admin.runtime_config cimport config_get, config_list, config_set
from fila_server.core.formats.records cimport (
    channel_record_put, key_record_delete, key_record_put, queue_record_put,
)
from fila_server.core.formats.reservations cimport OFFSETS_RESERVED
from fila_server.core.history.changes cimport (
    CHANGED_CHANNEL_CREATED, CHANGED_QUEUE_CREATED, CHANGED_QUEUE_UPDATED, channel_changed, key_changed,
    queue_changed,
)
from fila_server.core.index.keys cimport key_drop_if_idle, key_intern
from fila_server.core.index.policy cimport queue_configure
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel, answer_no_queue, answer_status
from fila_server.core.lifecycle.queues cimport channel_new, number_next, queue_new
from fila_server.core.lifecycle.seek cimport channel_seek, channel_start
from fila_server.core.protocol.commands cimport (
    ALREADY_EXISTS, CREATE_CHANNEL, CREATE_QUEUE, DELETE_CHANNEL, DELETE_QUEUE, FAILED_PRECONDITION,
    GET_CONFIG, GET_QUEUE, INVALID_ARGUMENT, LIST_CONFIG, OK, PURGE_CHANNEL, PURGE_QUEUE, SEEK_CHANNEL,
    SET_CONFIG, SET_KEY_POLICY, UPDATE_QUEUE,
)
from fila_server.core.protocol.protobuf cimport (
    Fields, fields_parse, next_field, put_double_field, put_nested, put_number_field, put_text_field,
    put_timestamp_field, timestamp_ms,
)
from fila_server.core.scheduling.flows cimport key_reconsider
from fila_server.core.scheduling.pace cimport cap_set, pace_set
from fila_server.core.scheduling.parking cimport channel_activate
from fila_server.core.state.directory cimport queue_offset_at, queue_oldest
from fila_server.core.state.paths cimport (
    channel_find, dlq_source, key_cap, key_has_policy, key_pace, queue_find,
)
from fila_server.core.state.state cimport Channel, Flow, Key, Queue
from fila_server.core.structures.buffer cimport Buffer, Cursor, Slice, buffer_free, buffer_init, put_bytes
from fila_server.core.structures.maps cimport textmap_get

cdef enum:
    CHANNELS_MAX = 1000             # of a queue; queue_rules.py refuses more of them in CreateQueue

cdef double RATE_MAX = 1e9


cdef inline Slice _text(const char* at, uint32_t length) noexcept nogil:
    cdef Slice s
    s.at, s.length = at, length
    return s


cdef void _no_queue(Core* core, Command* command) noexcept nogil:
    answer_no_queue(core, command)


cdef void _no_channel(Core* core, Command* command) noexcept nogil:
    answer_no_channel(core, command)


cdef bint _waits_its_turn(int kind) noexcept nogil:
    return kind in (PURGE_QUEUE, PURGE_CHANNEL, SEEK_CHANNEL, CREATE_CHANNEL, DELETE_CHANNEL, DELETE_QUEUE)


cdef bint admin_command(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Queue* queue
    fields_parse(&fields, command.bytes, command.length)
    core.auditing, core.auditing_token = fields.text[14], command.token
    queue = queue_find(core, fields.text[1]) if _waits_its_turn(command.kind) else NULL
    if queue != NULL:
        if chore_waits(core, queue, command):
            return False
        if command.kind == PURGE_QUEUE or command.kind == PURGE_CHANNEL:
            purge_begin(core, queue, command)
            core.auditing.length = 0
            return False
    _at_once(core, command, &fields)
    core.auditing.length = 0            # its bytes go with the command
    return True


cdef void _at_once(Core* core, Command* command, Fields* fields) noexcept nogil:
    cdef Queue* queue
    if command.kind == CREATE_QUEUE:
        _create_queue(core, command, fields)
        return
    if command.kind == SET_CONFIG:
        config_set(core, command, fields)
        return
    if command.kind == GET_CONFIG:
        config_get(core, command, fields)
        return
    if command.kind == LIST_CONFIG:
        config_list(core, command, fields)
        return
    queue = queue_find(core, fields.text[1])
    if queue == NULL:
        _no_queue(core, command)
    elif command.kind == UPDATE_QUEUE:
        _update_queue(core, command, fields, queue)
    elif command.kind == DELETE_QUEUE:
        _delete_queue(core, command, fields, queue)
    elif command.kind == GET_QUEUE:
        _get_queue(core, command, queue)
    elif command.kind == SET_KEY_POLICY:
        _set_key_policy(core, command, fields, queue)
    elif command.kind == CREATE_CHANNEL:
        _create_channel(core, command, fields, queue)
    else:
        _channel_command(core, command, fields, queue)


# --- queues ----------------------------------------------------------------------------------

cdef Queue* _make(Core* core, Slice name, Slice config) noexcept nogil:
    cdef Queue* queue = queue_new(core, name, number_next(core))
    queue_configure(core, queue, config)
    queue.offset_reserved = OFFSETS_RESERVED
    queue.offset_reserved_epoch = core.epoch
    return queue


cdef void _make_channels(Core* core, Queue* queue, Slice config) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    c.at, c.end, c.bad = config.at, config.at + config.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == 16 and channel_find(queue, text) == NULL:
            channel_record_put(core, channel_new(core, queue, text, number_next(core), 1))
    if queue.channels == NULL:
        channel_record_put(core, channel_new(core, queue, _text(b"default", 7), number_next(core), 1))
    queue_changed(core, CHANGED_QUEUE_CREATED, queue)


cdef void _connect(Core* core, Queue* dlq) noexcept nogil:
    """Give it to the queue whose dead letters its name says it takes, where that one has lost its own: to
    damage, or to an operator of a Fila that let it be deleted. One that expires never had any."""
    cdef Queue* source = queue_find(core, _text(dlq.text.bytes, dlq.text.length - 4))
    if source != NULL and source.dlq == NULL and not source.policy.idle_ms:
        source.dlq, source.owns_dlq = dlq, False
        queue_record_put(core, source)


cdef void _create_queue(Core* core, Command* command, Fields* fields) noexcept nogil:
    cdef Slice name = fields.text[1]
    cdef Queue* queue
    cdef Queue* dlq
    cdef Slice dlq_name
    cdef Buffer buffer
    cdef Buffer config
    cdef char refusal[384]
    if queue_find(core, name) != NULL:
        snprintf(
            refusal, sizeof(refusal), b"queue \"%.*s\" exists already; change it, or choose another name",
            <int> name.length, name.at)
        answer_status(core, command.token, ALREADY_EXISTS, refusal, b"QUEUE_EXISTS")
        return
    queue = _make(core, name, fields.text[2])
    _make_channels(core, queue, fields.text[2])
    if queue.is_dlq:
        _connect(core, queue)
    if not queue.is_dlq and not queue.policy.idle_ms:   # one that expires leaves no dead letters behind
        buffer_init(&buffer)
        put_bytes(&buffer, name.at, name.length)
        put_bytes(&buffer, b".dlq", 4)
        dlq_name = _text(buffer.data, <uint32_t> buffer.length)
        dlq = queue_find(core, dlq_name)
        if dlq == NULL:
            buffer_init(&config)
            put_number_field(&config, 3, queue.policy.visibility_ms)
            put_number_field(&config, 5, 1 if queue.policy.durable else 2)
            dlq = _make(core, dlq_name, _text(config.data, <uint32_t> config.length))
            _make_channels(core, dlq, _text(b"", 0))
            queue_record_put(core, dlq)
            buffer_free(&config)
            queue.owns_dlq = True
        queue.dlq = dlq
        buffer_free(&buffer)
    queue_record_put(core, queue)
    kept_put(core, command)
    buffer_init(&buffer)
    put_text_field(&buffer, 1, name)
    answer(core, command.token, OK, &buffer, True)


cdef void _update_queue(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Buffer buffer
    cdef bint was_paused = queue.policy.paused
    cdef Channel* channel = queue.channels
    queue_configure(core, queue, fields.text[2])
    queue_record_put(core, queue)
    queue_changed(core, CHANGED_QUEUE_UPDATED, queue)
    kept_put(core, command)
    while was_paused and not queue.policy.paused and channel != NULL:
        channel_activate(core, channel)
        channel = channel.next
    buffer_init(&buffer)
    put_text_field(&buffer, 1, fields.text[2])
    answer(core, command.token, OK, &buffer, True)


cdef void _delete_queue(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Queue* source = dlq_source(core, queue)
    cdef Queue* dlq
    cdef Buffer buffer
    cdef char refusal[384]
    if queue.promised and not fields.number[2]:
        snprintf(
            refusal, sizeof(refusal),
            b"queue: %llu messages of a published batch are still on their way into \"%.*s\"; try again "
            b"shortly, or "
            b"set force to lose them",
            <unsigned long long> queue.promised, <int> queue.text.length, queue.text.bytes)
        answer_status(core, command.token, FAILED_PRECONDITION, refusal, b"SINK_PUBLISHING")
        return
    if source != NULL:                  # without it, what fails for good there had nowhere to go
        answer_status(
            core, command.token, FAILED_PRECONDITION,
            b"queue: it is the dead-letter queue of another queue and goes with that one; purge it "
            b"instead" if source.owns_dlq else
            b"queue: it is the dead-letter queue of another queue; delete that one first, or purge this "
            b"one instead",
            b"DLQ_IN_USE")
        return
    dlq = queue.dlq if queue.owns_dlq else NULL
    queue_delete(core, queue)
    if dlq != NULL:
        queue_delete(core, dlq)
    queues_clear(core)                  # most are small, and gone with this
    kept_put(core, command)
    buffer_init(&buffer)
    answer(core, command.token, OK, &buffer, True)


cdef void _get_queue(Core* core, Command* command, Queue* queue) noexcept nogil:
    cdef Buffer buffer
    buffer_init(&buffer)
    put_text_field(&buffer, 1, _text(queue.text.bytes, queue.text.length))
    put_nested(&buffer, 2, &queue.config)
    put_timestamp_field(&buffer, 3, queue.created_ms)
    answer(core, command.token, OK, &buffer, False)


# --- channels --------------------------------------------------------------------------------

cdef void _create_channel(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Channel* channel
    cdef uint64_t start = queue.next_offset
    cdef bint bad = False
    cdef Buffer buffer
    cdef char refusal[640]
    if channel_find(queue, fields.text[2]) != NULL:
        snprintf(
            refusal, sizeof(refusal),
            b"queue \"%.*s\" has a channel \"%.*s\" already; move it, or choose another name",
            <int> fields.text[1].length, fields.text[1].at, <int> fields.text[2].length, fields.text[2].at)
        answer_status(core, command.token, ALREADY_EXISTS, refusal, b"CHANNEL_EXISTS")
        return
    if queue.channel_count >= CHANNELS_MAX:
        snprintf(
            refusal, sizeof(refusal),
            b"channel: queue \"%.*s\" has %d channels, the most a queue may have; delete one first",
            <int> fields.text[1].length, fields.text[1].at, <int> CHANNELS_MAX)
        answer_status(core, command.token, INVALID_ARGUMENT, refusal, b"LIMIT_EXCEEDED")
        return
    if fields.seen & (1 << 4) and fields.number[4]:
        start = queue_oldest(queue)
    elif fields.seen & (1 << 5):
        start = fields.number[5]
    elif fields.seen & (1 << 6):
        start = queue_offset_at(queue, timestamp_ms(fields.text[6], &bad))
    if start > queue.next_offset:
        start = queue.next_offset
    channel = channel_new(core, queue, fields.text[2], number_next(core), start)
    channel.idle_after_ms = fields.number[7]
    if start < queue.next_offset:
        channel_start(core, channel, start)
    else:
        channel_record_put(core, channel)
    channel_changed(core, CHANGED_CHANNEL_CREATED, channel)
    buffer_init(&buffer)
    put_number_field(&buffer, 1, channel.start_offset)
    answer(core, command.token, OK, &buffer, True)


cdef void _channel_command(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Channel* channel
    cdef Buffer buffer
    cdef uint64_t offset
    cdef bint bad = False
    channel = channel_find(queue, fields.text[2])
    if channel == NULL:
        _no_channel(core, command)
        return
    buffer_init(&buffer)
    if command.kind == DELETE_CHANNEL:
        channel_delete(core, channel)
    elif command.kind == SEEK_CHANNEL:
        offset = fields.number[3]
        if fields.seen & (1 << 4):
            offset = queue_offset_at(queue, timestamp_ms(fields.text[4], &bad))
        channel = channel_seek(core, channel, offset)
        put_number_field(&buffer, 1, channel.start_offset)
    remains_begin(core, queue)
    answer(core, command.token, OK, &buffer, True)


# --- keys ------------------------------------------------------------------------------------

cdef void _set_key_policy(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    """Weight, pause, cap and rate of one fairness key; effective at once on what waits."""
    cdef Key* key = <Key*> textmap_get(&queue.keys, fields.text[2].at, fields.text[2].length)
    cdef double rate = 0
    cdef double burst = 0
    cdef Buffer buffer
    cdef Flow* flow
    cdef uint64_t pending = 0
    if key != NULL and key_pace(key) != NULL:
        rate, burst = key_pace(key).bucket.rate, key_pace(key).bucket.burst
    if fields.seen & (1 << 6):
        memcpy(&rate, &fields.number[6], 8)
    if fields.seen & (1 << 7):
        memcpy(&burst, &fields.number[7], 8)
    if (burst != 0 and rate == 0 and not fields.seen & (1 << 6)) or not 0 <= rate <= RATE_MAX:
        answer_status(
            core, command.token, INVALID_ARGUMENT,
            b"burst: the key has no rate, and nothing can be saved up; give rate_per_second (0 to 1e9), too",
            b"INVALID_FIELD")
        return
    key = key_intern(core, queue, fields.text[2])
    key.refs -= 1                       # the policy itself keeps the key from here on
    if fields.seen & (1 << 3):
        key.admin_weight = <unsigned short> fields.number[3]
    if fields.seen & (1 << 4):
        key.paused = fields.number[4] != 0
    if fields.seen & (1 << 5):
        cap_set(core, key, <uint32_t> fields.number[5])
    if fields.seen & (1 << 6 | 1 << 7):
        pace_set(core, key, rate, burst if burst >= 1 else max(rate, 1.0))
    buffer_init(&buffer)
    put_number_field(&buffer, 1, key.admin_weight)
    put_number_field(&buffer, 2, key.paused)
    put_number_field(&buffer, 3, key_cap(key))
    if key_pace(key) != NULL:
        put_double_field(&buffer, 4, key_pace(key).bucket.rate)
        put_double_field(&buffer, 5, key_pace(key).bucket.burst)
    flow = key.flows
    while flow != NULL:
        pending = max(pending, <uint64_t> flow.backlog + flow.delayed)
        flow = flow.next_of_key
    put_number_field(&buffer, 6, pending)
    key_changed(core, key)
    key_reconsider(core, key)
    if key_has_policy(key) or key.refs:
        key_record_put(core, core.settles, key)
    else:
        if not key.recorded:
            key_record_delete(core, key)
        key_drop_if_idle(core, key)
    answer(core, command.token, OK, &buffer, True)
