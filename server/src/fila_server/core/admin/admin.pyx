"""The edge has validated names, settings and masks; what is checked here is state."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from fila_server.core.admin.chores cimport chore_waits, purge_begin, remains_begin
from fila_server.core.admin.deleting cimport channel_delete, queue_delete, queues_clear
from fila_server.core.admin.key_head cimport skip_message
from fila_server.core.admin.limits cimport limit_command
from fila_server.core.admin.operation_records cimport operation_records_put
from fila_server.core.admin.runtime_config cimport config_get, config_list, config_set
from fila_server.core.formats.key_records cimport key_record_put
from fila_server.core.formats.records cimport channel_record_put, key_record_delete, queue_record_put
from fila_server.core.formats.reservations cimport OFFSETS_RESERVED
from fila_server.core.history.changes cimport (
    CHANGED_CHANNEL_CREATED, CHANGED_QUEUE_CREATED, CHANGED_QUEUE_UPDATED, channel_changed, key_changed,
    queue_changed,
)
from fila_server.core.index.keys cimport key_drop_if_idle, key_intern
from fila_server.core.index.policy cimport queue_configure
from fila_server.core.index.schedules cimport schedule_put, schedule_remove
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel, answer_no_queue, answer_status
from fila_server.core.lifecycle.queues cimport channel_new, number_next, queue_new
from fila_server.core.lifecycle.seek cimport channel_seek, channel_start
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport (
    ALREADY_EXISTS, CREATE_CHANNEL, CREATE_QUEUE, DELETE_CHANNEL, DELETE_QUEUE, FAILED_PRECONDITION,
    GET_CONFIG, GET_QUEUE, INVALID_ARGUMENT, LIST_CONFIG, OK, PURGE_CHANNEL, PURGE_QUEUE,
    RESET_LIMIT, SCHEDULE_CHANGE, SEEK_CHANNEL, SET_CONFIG, SET_KEY_POLICY, SET_LIMIT, SKIP_MESSAGE,
    UPDATE_QUEUE,
)
from fila_server.core.protocol.protobuf cimport (
    QUEUE_FIELD, Fields, fields_parse, next_field, put_double_field, put_nested, put_number_field,
    put_text_field, put_timestamp_field, timestamp_ms,
)
from fila_server.core.scheduling.allowances cimport (
    cap_set, committed_set, pause_set, rate_limit_set, word_taken_back,
)
from fila_server.core.scheduling.eligibility cimport channel_activate
from fila_server.core.scheduling.flows cimport key_reconsider
from fila_server.core.state.directory cimport queue_offset_at, queue_oldest
from fila_server.core.state.kinds cimport OWN_CAP, OWN_COMMITTED, OWN_RATE
from fila_server.core.state.paths cimport (
    cap_is_default, channel_find, committed_is_default, dlq_source, key_cap, key_committed, key_has_policy,
    key_rate_limit, queue_find, rate_is_default,
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
    core.auditing, core.auditing_token = fields.text[seam.AUDITED_AUDIT], command.token
    queue = queue_find(core, fields.text[QUEUE_FIELD]) if _waits_its_turn(command.kind) else NULL
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
    if SET_LIMIT <= command.kind <= RESET_LIMIT:
        limit_command(core, command, fields)
        return
    queue = queue_find(core, fields.text[QUEUE_FIELD])
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
    elif command.kind == SKIP_MESSAGE:
        skip_message(core, command, fields, queue)
    elif command.kind == SCHEDULE_CHANGE:
        _schedule_change(core, command, fields, queue)
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
        if field == v1.QUEUE_CONFIG_CHANNELS and channel_find(queue, text) == NULL:
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
    cdef Slice name = fields.text[v1.CREATE_QUEUE_REQUEST_NAME]
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
    queue = _make(core, name, fields.text[v1.CREATE_QUEUE_REQUEST_CONFIG])
    _make_channels(core, queue, fields.text[v1.CREATE_QUEUE_REQUEST_CONFIG])
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
            put_number_field(&config, v1.QUEUE_CONFIG_VISIBILITY_TIMEOUT_MS, queue.policy.visibility_ms)
            put_number_field(
                &config, v1.QUEUE_CONFIG_DURABILITY,
                v1.DURABILITY_FSYNC if queue.policy.durable else v1.DURABILITY_OS)
            dlq = _make(core, dlq_name, _text(config.data, <uint32_t> config.length))
            _make_channels(core, dlq, _text(b"", 0))
            queue_record_put(core, dlq)
            buffer_free(&config)
            queue.owns_dlq = True
        queue.dlq = dlq
        buffer_free(&buffer)
    queue_record_put(core, queue)
    operation_records_put(core, command)
    buffer_init(&buffer)
    put_text_field(&buffer, v1.CREATE_QUEUE_RESPONSE_QUEUE_ID, name)
    answer(core, command.token, OK, &buffer, True)


cdef void _update_queue(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Buffer buffer
    cdef bint was_paused = queue.policy.paused != 0
    cdef Channel* channel = queue.channels
    queue_configure(core, queue, fields.text[v1.UPDATE_QUEUE_REQUEST_CONFIG])
    queue_record_put(core, queue)
    queue_changed(core, CHANGED_QUEUE_UPDATED, queue)
    operation_records_put(core, command)
    while was_paused and channel != NULL:       # one that is paused still goes off the list again
        channel_activate(core, channel)
        channel = channel.next
    buffer_init(&buffer)
    put_text_field(&buffer, v1.UPDATE_QUEUE_RESPONSE_CONFIG, fields.text[v1.UPDATE_QUEUE_REQUEST_CONFIG])
    answer(core, command.token, OK, &buffer, True)


cdef void _delete_queue(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Queue* source = dlq_source(core, queue)
    cdef Queue* dlq
    cdef Buffer buffer
    cdef char refusal[384]
    if queue.promised and not fields.number[v1.DELETE_QUEUE_REQUEST_FORCE]:
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
    operation_records_put(core, command)
    buffer_init(&buffer)
    answer(core, command.token, OK, &buffer, True)


cdef void _get_queue(Core* core, Command* command, Queue* queue) noexcept nogil:
    cdef Buffer buffer
    buffer_init(&buffer)
    put_text_field(&buffer, v1.GET_QUEUE_RESPONSE_QUEUE, _text(queue.text.bytes, queue.text.length))
    put_nested(&buffer, v1.GET_QUEUE_RESPONSE_CONFIG, &queue.config)
    put_timestamp_field(&buffer, v1.GET_QUEUE_RESPONSE_CREATED_AT, queue.created_ms)
    answer(core, command.token, OK, &buffer, False)


# --- channels --------------------------------------------------------------------------------

cdef void _create_channel(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Channel* channel
    cdef uint64_t start = queue.next_offset
    cdef bint bad = False
    cdef Buffer buffer
    cdef char refusal[640]
    cdef Slice name = fields.text[v1.CREATE_CHANNEL_REQUEST_CHANNEL]
    if channel_find(queue, name) != NULL:
        snprintf(
            refusal, sizeof(refusal),
            b"queue \"%.*s\" has a channel \"%.*s\" already; move it, or choose another name",
            <int> queue.text.length, queue.text.bytes, <int> name.length, name.at)
        answer_status(core, command.token, ALREADY_EXISTS, refusal, b"CHANNEL_EXISTS")
        return
    if queue.channel_count >= CHANNELS_MAX:
        snprintf(
            refusal, sizeof(refusal),
            b"channel: queue \"%.*s\" has %d channels, the most a queue may have; delete one first",
            <int> queue.text.length, queue.text.bytes, <int> CHANNELS_MAX)
        answer_status(core, command.token, INVALID_ARGUMENT, refusal, b"LIMIT_EXCEEDED")
        return
    if fields.number[v1.CREATE_CHANNEL_REQUEST_OLDEST]:
        start = queue_oldest(queue)
    elif fields.seen & (1 << v1.CREATE_CHANNEL_REQUEST_OFFSET):
        start = fields.number[v1.CREATE_CHANNEL_REQUEST_OFFSET]
    elif fields.seen & (1 << v1.CREATE_CHANNEL_REQUEST_TIME):
        start = queue_offset_at(queue, timestamp_ms(fields.text[v1.CREATE_CHANNEL_REQUEST_TIME], &bad))
    if start > queue.next_offset:
        start = queue.next_offset
    channel = channel_new(core, queue, name, number_next(core), start)
    channel.idle_after_ms = fields.number[v1.CREATE_CHANNEL_REQUEST_EXPIRES_AFTER_IDLE_MS]
    if start < queue.next_offset:
        channel_start(core, channel, start)
    else:
        channel_record_put(core, channel)
    channel_changed(core, CHANGED_CHANNEL_CREATED, channel)
    buffer_init(&buffer)
    put_number_field(&buffer, v1.CREATE_CHANNEL_RESPONSE_START_OFFSET, channel.start_offset)
    answer(core, command.token, OK, &buffer, True)


cdef void _channel_command(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Channel* channel
    cdef Buffer buffer
    cdef uint64_t offset
    cdef bint bad = False
    channel = channel_find(queue, fields.text[v1.SEEK_CHANNEL_REQUEST_CHANNEL])
    if channel == NULL:
        _no_channel(core, command)
        return
    buffer_init(&buffer)
    if command.kind == DELETE_CHANNEL:
        channel_delete(core, channel)
    elif command.kind == SEEK_CHANNEL:
        offset = fields.number[v1.SEEK_CHANNEL_REQUEST_OFFSET]
        if fields.seen & (1 << v1.SEEK_CHANNEL_REQUEST_TIME):
            offset = queue_offset_at(queue, timestamp_ms(fields.text[v1.SEEK_CHANNEL_REQUEST_TIME], &bad))
        channel = channel_seek(core, channel, offset)
        put_number_field(&buffer, v1.SEEK_CHANNEL_RESPONSE_OFFSET, channel.start_offset)
    remains_begin(core, queue)
    answer(core, command.token, OK, &buffer, True)


# --- keys ------------------------------------------------------------------------------------

cdef void _put_key_policy(Buffer* b, Key* key) noexcept nogil:
    """A SetKeyPolicyResponse."""
    cdef Flow* flow = key.flows
    cdef uint64_t pending = 0
    put_number_field(b, v1.SET_KEY_POLICY_RESPONSE_WEIGHT, key.admin_weight)
    put_number_field(b, v1.SET_KEY_POLICY_RESPONSE_PAUSED, key.paused)
    put_number_field(b, v1.SET_KEY_POLICY_RESPONSE_MAX_IN_FLIGHT, key_cap(key))
    if key_rate_limit(key) != NULL:
        put_double_field(b, v1.SET_KEY_POLICY_RESPONSE_RATE_PER_SECOND, key_rate_limit(key).bucket.rate)
        put_double_field(b, v1.SET_KEY_POLICY_RESPONSE_BURST, key_rate_limit(key).bucket.burst)
    while flow != NULL:
        pending = max(pending, <uint64_t> flow.backlog + flow.delayed)
        flow = flow.next_of_key
    put_number_field(b, v1.SET_KEY_POLICY_RESPONSE_PENDING, pending)
    put_number_field(b, v1.SET_KEY_POLICY_RESPONSE_CAP_BY_DEFAULT, cap_is_default(key))
    put_number_field(b, v1.SET_KEY_POLICY_RESPONSE_RATE_BY_DEFAULT, rate_is_default(key))
    if key_committed(key) != NULL:
        put_double_field(
            b, v1.SET_KEY_POLICY_RESPONSE_COMMITTED_PER_SECOND, key_committed(key).limit.bucket.rate)
    put_number_field(b, v1.SET_KEY_POLICY_RESPONSE_COMMITTED_BY_DEFAULT, committed_is_default(key))


cdef void _set_key_policy(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    """Weight, pause, cap and rates of one fairness key; effective at once on what waits."""
    cdef Slice name = fields.text[v1.SET_KEY_POLICY_REQUEST_FAIRNESS_KEY]
    cdef Key* key = <Key*> textmap_get(&queue.keys, name.at, name.length)
    cdef double rate = 0
    cdef double burst = 0
    cdef double committed = 0
    cdef uint32_t cap
    cdef Buffer buffer
    cdef bint is_rate_given = fields.seen & (1 << v1.SET_KEY_POLICY_REQUEST_RATE_PER_SECOND) != 0
    if key != NULL and key_rate_limit(key) != NULL:
        rate, burst = key_rate_limit(key).bucket.rate, key_rate_limit(key).bucket.burst
    if is_rate_given:
        memcpy(&rate, &fields.number[v1.SET_KEY_POLICY_REQUEST_RATE_PER_SECOND], 8)
    if fields.seen & (1 << v1.SET_KEY_POLICY_REQUEST_BURST):
        memcpy(&burst, &fields.number[v1.SET_KEY_POLICY_REQUEST_BURST], 8)
    if (burst != 0 and rate == 0 and not is_rate_given) or not 0 <= rate <= RATE_MAX:
        answer_status(
            core, command.token, INVALID_ARGUMENT,
            b"burst: the key has no rate, and nothing can be saved up; give rate_per_second (0 to 1e9), too",
            b"INVALID_FIELD")
        return
    key = key_intern(core, queue, name)
    key.refs -= 1                       # the policy itself keeps the key from here on
    if fields.seen & (1 << v1.SET_KEY_POLICY_REQUEST_WEIGHT):
        key.admin_weight = <unsigned short> fields.number[v1.SET_KEY_POLICY_REQUEST_WEIGHT]
    if fields.seen & (1 << v1.SET_KEY_POLICY_REQUEST_PAUSED):
        pause_set(core, key, fields.number[v1.SET_KEY_POLICY_REQUEST_PAUSED] != 0, core.wall_ms)
    if fields.seen & (1 << v1.SET_KEY_POLICY_REQUEST_MAX_IN_FLIGHT):
        # A number, or none: over a default that is a word, too.
        cap = <uint32_t> fields.number[v1.SET_KEY_POLICY_REQUEST_MAX_IN_FLIGHT]
        cap_set(core, key, cap, cap != 0 or queue.policy.default_cap != 0)
    elif fields.number[v1.SET_KEY_POLICY_REQUEST_CAP_BY_DEFAULT]:
        word_taken_back(core, key, OWN_CAP)
    if is_rate_given or fields.seen & (1 << v1.SET_KEY_POLICY_REQUEST_BURST):
        rate_limit_set(
            core, key, rate, burst if burst >= 1 else max(rate, 1.0),
            rate > 0 or queue.policy.default_rate > 0)
    elif fields.number[v1.SET_KEY_POLICY_REQUEST_RATE_BY_DEFAULT]:
        word_taken_back(core, key, OWN_RATE)
    if fields.seen & (1 << v1.SET_KEY_POLICY_REQUEST_COMMITTED_PER_SECOND):
        memcpy(&committed, &fields.number[v1.SET_KEY_POLICY_REQUEST_COMMITTED_PER_SECOND], 8)
        committed_set(core, key, committed, committed > 0 or queue.policy.default_committed > 0)
    elif fields.number[v1.SET_KEY_POLICY_REQUEST_COMMITTED_BY_DEFAULT]:
        word_taken_back(core, key, OWN_COMMITTED)
    buffer_init(&buffer)
    _put_key_policy(&buffer, key)
    key_changed(core, key)
    key_reconsider(core, key)
    if key_has_policy(key) or key.refs:
        key_record_put(core, core.settles, key)
    else:
        if not key.recorded:
            key_record_delete(core, key)
        key_drop_if_idle(core, key)
    operation_records_put(core, command)
    answer(core, command.token, OK, &buffer, True)


# --- schedules -------------------------------------------------------------------------------

cdef void _schedule_change(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    """The records say everything; the core keeps the next moment, against which it holds each firing."""
    cdef Slice name = fields.text[seam.SCHEDULE_CHANGE_SCHEDULE]
    cdef Buffer buffer
    if fields.number[seam.SCHEDULE_CHANGE_GONE]:
        schedule_remove(queue, name)
    else:
        schedule_put(queue, name, fields.number[seam.SCHEDULE_CHANGE_DUE_MS])
    operation_records_put(core, command)
    buffer_init(&buffer)
    answer(core, command.token, OK, &buffer, True)
