"""See admin.pxd. The edge has validated names, settings and masks; what is checked here is state."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, strtod
from libc.string cimport memcmp, memcpy, memset

from fila_server.core.answers cimport answer, answer_status
from fila_server.core.buffer cimport Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc, must_realloc, put_bytes
from fila_server.core.commands cimport (
    ALREADY_EXISTS, CREATE_CHANNEL, CREATE_QUEUE, DELETE_CHANNEL, DELETE_QUEUE, FAILED_PRECONDITION, GET_CONFIG,
    GET_QUEUE, INVALID_ARGUMENT, LIST_CONFIG, NOT_FOUND, OK, PURGE_CHANNEL, PURGE_QUEUE, SEEK_CHANNEL, SET_CONFIG,
    SET_KEY_POLICY, UPDATE_QUEUE,
)
from fila_server.core.enqueue cimport queue_find
from fila_server.core.flows cimport bucket_set, flow_reconsider
from fila_server.core.frames cimport key_drop_if_idle, key_intern
from fila_server.core.maps cimport textmap_get, textmap_next, textmap_put, textmap_remove
from fila_server.core.queues cimport (
    channel_drop, channel_find, channel_need, channel_new, channel_purge, channel_seek, number_next, queue_configure,
    queue_drop, queue_new, queue_offset_at, queue_oldest,
)
from fila_server.core.records cimport (
    channel_record_put, key_record_delete, key_record_put, queue_record_put,
)
from fila_server.core.state cimport Channel, ConfigRow, Flow, Key, Queue, ThrottleKey
from fila_server.core.store cimport CONFIG, batch_delete, batch_put
from fila_server.core.throttle cimport throttle_key_drop_if_idle, throttle_key_intern
from fila_server.core.wire cimport (
    Fields, fields_parse, next_field, put_nested, put_number_field, put_text_field, put_timestamp_field, timestamp_ms,
)

cdef enum:
    OFFSETS_RESERVED = 1000000


cdef inline Slice _text(const char* at, uint32_t length) noexcept nogil:
    cdef Slice s
    s.at, s.length = at, length
    return s


cdef bint _starts(Slice text, const char* prefix, uint32_t length) noexcept nogil:
    return text.length >= length and memcmp(text.at, prefix, length) == 0


cdef void _no_queue(Core* core, Command* command) noexcept nogil:
    answer_status(core, command.token, NOT_FOUND, b"queue: no such queue; create it first", b"QUEUE_NOT_FOUND")


cdef void _no_channel(Core* core, Command* command) noexcept nogil:
    answer_status(core, command.token, NOT_FOUND, b"channel: the queue has no such channel", b"CHANNEL_NOT_FOUND")


cdef void admin(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Queue* queue
    fields_parse(&fields, command.bytes, command.length)
    if command.kind == CREATE_QUEUE:
        _create_queue(core, command, &fields)
        return
    if command.kind == SET_CONFIG:
        _set_config(core, command, &fields)
        return
    if command.kind == GET_CONFIG:
        _get_config(core, command, &fields)
        return
    if command.kind == LIST_CONFIG:
        _list_config(core, command, &fields)
        return
    queue = queue_find(core, fields.text[1])
    if queue == NULL:
        _no_queue(core, command)
    elif command.kind == UPDATE_QUEUE:
        _update_queue(core, command, &fields, queue)
    elif command.kind == DELETE_QUEUE:
        _delete_queue(core, command, queue)
    elif command.kind == GET_QUEUE:
        _get_queue(core, command, queue)
    elif command.kind == SET_KEY_POLICY:
        _set_key_policy(core, command, &fields, queue)
    elif command.kind == PURGE_QUEUE:
        _purge(core, command, &fields, queue, fields.text[3], 2, fields.seen & (1 << 3) == 0)
    elif command.kind == CREATE_CHANNEL:
        _create_channel(core, command, &fields, queue)
    else:
        _channel_command(core, command, &fields, queue)


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


cdef void _create_queue(Core* core, Command* command, Fields* fields) noexcept nogil:
    cdef Slice name = fields.text[1]
    cdef Queue* queue
    cdef Queue* dlq
    cdef Slice dlq_name
    cdef Buffer buffer
    cdef Buffer config
    if queue_find(core, name) != NULL:
        answer_status(core, command.token, ALREADY_EXISTS, b"name: a queue of this name exists; use UpdateQueue to change it", b"QUEUE_EXISTS")
        return
    queue = _make(core, name, fields.text[2])
    _make_channels(core, queue, fields.text[2])
    if not queue.is_dlq:
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
    buffer_init(&buffer)
    put_text_field(&buffer, 1, name)
    answer(core, command.token, OK, &buffer, True)


cdef void _update_queue(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Buffer buffer
    queue_configure(core, queue, fields.text[2])
    queue_record_put(core, queue)
    buffer_init(&buffer)
    put_text_field(&buffer, 1, fields.text[2])
    answer(core, command.token, OK, &buffer, True)


cdef void _delete_queue(Core* core, Command* command, Queue* queue) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef Queue* other
    cdef Queue* dlq
    cdef Buffer buffer
    while True:
        other = <Queue*> textmap_next(&core.queues, &cursor)
        if other == NULL:
            break
        if other.dlq == queue and other.owns_dlq:
            answer_status(
                core, command.token, FAILED_PRECONDITION,
                b"queue: it is the dead-letter queue of another queue and goes with that one; purge it instead", b"DLQ_IN_USE")
            return
    dlq = queue.dlq if queue.owns_dlq else NULL
    queue_drop(core, queue)
    if dlq != NULL:
        queue_drop(core, dlq)
    buffer_init(&buffer)
    answer(core, command.token, OK, &buffer, True)


cdef void _get_queue(Core* core, Command* command, Queue* queue) noexcept nogil:
    cdef Buffer buffer
    buffer_init(&buffer)
    put_text_field(&buffer, 1, _text(queue.text.bytes, queue.text.length))
    put_nested(&buffer, 2, &queue.config)
    put_timestamp_field(&buffer, 3, queue.created_ms)
    answer(core, command.token, OK, &buffer, False)


cdef void _purge(Core* core, Command* command, Fields* fields, Queue* queue, Slice channel_name, int key_field, bint all_channels) noexcept nogil:
    cdef Channel* channel
    cdef uint64_t purged = 0
    cdef uint64_t here
    cdef bint all_keys = fields.seen & (1 << key_field) == 0
    cdef Buffer buffer
    if all_channels:
        channel = queue.channels
        while channel != NULL:
            here = channel_purge(core, channel, fields.text[key_field], all_keys)
            purged = here if here > purged else purged
            channel = channel.next
    else:
        channel = channel_need(core, queue, channel_name)
        if channel == NULL:
            _no_channel(core, command)
            return
        purged = channel_purge(core, channel, fields.text[key_field], all_keys)
    buffer_init(&buffer)
    put_number_field(&buffer, 1, purged)
    answer(core, command.token, OK, &buffer, True)


# --- channels --------------------------------------------------------------------------------

cdef void _create_channel(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Channel* channel
    cdef uint64_t start = queue.next_offset
    cdef bint bad = False
    cdef Buffer buffer
    if channel_find(queue, fields.text[2]) != NULL:
        answer_status(core, command.token, ALREADY_EXISTS, b"channel: the queue has a channel of this name", b"CHANNEL_EXISTS")
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
    if start < queue.next_offset:
        channel_seek(core, channel, start)
    else:
        channel_record_put(core, channel)
    buffer_init(&buffer)
    put_number_field(&buffer, 1, channel.start_offset)
    answer(core, command.token, OK, &buffer, True)


cdef void _channel_command(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Channel* channel
    cdef Buffer buffer
    cdef bint bad = False
    if command.kind == DELETE_CHANNEL:
        channel = channel_find(queue, fields.text[2])
    else:
        channel = channel_need(core, queue, fields.text[2])
    if channel == NULL:
        _no_channel(core, command)
        return
    if command.kind == PURGE_CHANNEL:
        _purge(core, command, fields, queue, fields.text[2], 3, False)
        return
    buffer_init(&buffer)
    if command.kind == DELETE_CHANNEL:
        channel_drop(core, channel)
    elif command.kind == SEEK_CHANNEL:
        if fields.seen & (1 << 4):
            channel_seek(core, channel, queue_offset_at(queue, timestamp_ms(fields.text[4], &bad)))
        else:
            channel_seek(core, channel, fields.number[3])
        put_number_field(&buffer, 1, channel.start_offset)
    answer(core, command.token, OK, &buffer, True)


# --- keys ------------------------------------------------------------------------------------

cdef void _set_key_policy(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    """Weight, pause and cap of one fairness key; effective at once on what waits."""
    cdef Key* key = key_intern(core, queue, fields.text[2])
    cdef Flow* flow
    cdef Buffer buffer
    key.refs -= 1                       # the policy itself keeps the key from here on
    if fields.seen & (1 << 3):
        key.admin_weight = <unsigned short> fields.number[3]
    if fields.seen & (1 << 4):
        key.paused = fields.number[4] != 0
    if fields.seen & (1 << 5):
        key.cap = <uint32_t> fields.number[5]
    key.has_policy = key.admin_weight != 0 or key.paused or key.cap != 0
    buffer_init(&buffer)
    put_number_field(&buffer, 1, key.admin_weight)
    put_number_field(&buffer, 2, key.paused)
    put_number_field(&buffer, 3, key.cap)
    flow = key.flows
    while flow != NULL:
        flow_reconsider(core, flow)
        flow = flow.next_of_key
    if key.has_policy or key.refs:
        key_record_put(core, key)
    else:
        if not key.stored_weight:
            key_record_delete(core, key)
        key_drop_if_idle(core, key)
    answer(core, command.token, OK, &buffer, True)


# --- runtime config --------------------------------------------------------------------------

cdef ConfigRow* _config_get(Core* core, Slice name) noexcept nogil:
    return <ConfigRow*> textmap_get(&core.config, name.at, name.length)


cdef bint _number(const char* at, uint32_t length, double* value) noexcept nogil:
    cdef char digits[64]
    cdef char* end
    if length == 0 or length >= 64:
        return False
    memcpy(digits, at, length)
    digits[length] = 0
    value[0] = strtod(digits, &end)
    return end == digits + length and value[0] == value[0] and value[0] <= 1e300 and value[0] >= 0


cdef bint _burst_good(double burst) noexcept nogil:
    return burst == 0 or burst >= 1


cdef bint _throttle_parse(Slice name, Slice value, Slice* bucket, double* rate, double* burst, int* form) noexcept nogil:
    """`throttle.<key>` = "rate,burst", or `throttle:<key>:rate` and `throttle:<key>:burst`.

    form: 0 no throttle key at all, 1 both, 2 rate, 3 burst. False: a bad value.
    """
    cdef uint32_t i, comma = 0
    form[0] = 0
    if _starts(name, b"throttle.", 9) and name.length > 9:
        form[0] = 1
        bucket[0] = _text(name.at + 9, name.length - 9)
    elif _starts(name, b"throttle:", 9) and name.length > 14 and memcmp(name.at + name.length - 5, b":rate", 5) == 0:
        form[0] = 2
        bucket[0] = _text(name.at + 9, name.length - 14)
    elif _starts(name, b"throttle:", 9) and name.length > 15 and memcmp(name.at + name.length - 6, b":burst", 6) == 0:
        form[0] = 3
        bucket[0] = _text(name.at + 9, name.length - 15)
    if form[0] == 0 or value.length == 0:
        return True
    if form[0] == 2:
        return _number(value.at, value.length, rate)
    if form[0] == 3:
        return _number(value.at, value.length, burst) and _burst_good(burst[0])
    for i in range(value.length):
        if value.at[i] == c',':
            comma = i
            break
    if comma == 0:
        return False
    return (
        _number(value.at, comma, rate) and _number(value.at + comma + 1, value.length - comma - 1, burst)
        and _burst_good(burst[0])
    )


cdef void config_apply(Core* core, Slice name, Slice value) noexcept nogil:
    """Keep a row of the runtime config in memory, and turn what is a throttle into its bucket."""
    cdef ConfigRow* row = _config_get(core, name)
    cdef Slice bucket_name
    cdef ThrottleKey* bucket
    cdef double rate = 0
    cdef double burst = 0
    cdef int form
    cdef char* bytes
    if row != NULL:
        textmap_remove(&core.config, &row.text)
        free(row.value)
        free(row)
    if value.length:
        row = <ConfigRow*> must_malloc(sizeof(ConfigRow) + name.length)
        memset(row, 0, sizeof(ConfigRow))
        bytes = <char*> row + sizeof(ConfigRow)
        memcpy(bytes, name.at, name.length)
        row.text.bytes = bytes
        row.text.length = name.length
        row.value = <char*> must_malloc(value.length)
        memcpy(row.value, value.at, value.length)
        row.length = value.length
        textmap_put(&core.config, &row.text)
    if not _throttle_parse(name, value, &bucket_name, &rate, &burst, &form) or form == 0:
        return
    bucket = throttle_key_intern(core, bucket_name)
    if form == 1 or form == 2:
        bucket.has_rate = value.length > 0
        bucket.rate = rate
    if form == 1 or form == 3:
        bucket.has_burst = value.length > 0
        bucket.burst = burst
    if value.length == 0:               # an empty value on any of the forms removes the limit
        bucket.has_rate = bucket.has_burst = False
    bucket_set(core, bucket)


cdef void _config_store(Core* core, Slice name, Slice value) noexcept nogil:
    if value.length:
        batch_put(&core.store, core.settles, CONFIG, name.at, name.length, value.at, value.length)
    else:
        batch_delete(&core.store, core.settles, CONFIG, name.at, name.length)
    config_apply(core, name, value)


cdef Slice _join(Buffer* b, const char* prefix, Slice middle, const char* suffix) noexcept nogil:
    cdef size_t n = 0
    b.length = 0
    while prefix[n]:
        n += 1
    put_bytes(b, prefix, n)
    put_bytes(b, middle.at, middle.length)
    n = 0
    while suffix[n]:
        n += 1
    put_bytes(b, suffix, n)
    return _text(b.data, <uint32_t> b.length)


cdef void _set_config(Core* core, Command* command, Fields* fields) noexcept nogil:
    """Both forms of a throttle are kept in step, so that each reads back what the other set."""
    cdef Slice name = fields.text[1]
    cdef Slice value = fields.text[2]
    cdef Slice bucket
    cdef Slice rate_text
    cdef Slice burst_text
    cdef double rate = 0
    cdef double burst = 0
    cdef int form
    cdef uint32_t i
    cdef ConfigRow* other
    cdef Buffer b
    cdef Buffer both
    if not _throttle_parse(name, value, &bucket, &rate, &burst, &form):
        answer_status(
            core, command.token, INVALID_ARGUMENT,
            b"value: a throttle is \"rate,burst\" with rate >= 0 and burst >= 1 (or burst 0 to stop), finite numbers", b"INVALID_FIELD")
        return
    buffer_init(&b)
    buffer_init(&both)
    if form and value.length == 0:
        _config_store(core, _join(&b, b"throttle.", bucket, b""), value)
        _config_store(core, _join(&b, b"throttle:", bucket, b":rate"), value)
        _config_store(core, _join(&b, b"throttle:", bucket, b":burst"), value)
    elif form == 1:
        for i in range(value.length):
            if value.at[i] == c',':
                break
        _config_store(core, name, value)
        _config_store(core, _join(&b, b"throttle:", bucket, b":rate"), _text(value.at, i))
        _config_store(core, _join(&b, b"throttle:", bucket, b":burst"), _text(value.at + i + 1, value.length - i - 1))
    elif form:
        _config_store(core, name, value)
        other = _config_get(core, _join(&b, b"throttle:", bucket, b":burst" if form == 2 else b":rate"))
        if other != NULL:
            rate_text = value if form == 2 else _text(other.value, other.length)
            burst_text = _text(other.value, other.length) if form == 2 else value
            put_bytes(&both, rate_text.at, rate_text.length)
            put_bytes(&both, b",", 1)
            put_bytes(&both, burst_text.at, burst_text.length)
            _config_store(core, _join(&b, b"throttle.", bucket, b""), _text(both.data, <uint32_t> both.length))
    else:
        _config_store(core, name, value)
    buffer_free(&b)
    buffer_free(&both)
    answer(core, command.token, OK, &b, True)


cdef void _get_config(Core* core, Command* command, Fields* fields) noexcept nogil:
    cdef ConfigRow* row = _config_get(core, fields.text[1])
    cdef Buffer buffer
    if row == NULL:
        answer_status(core, command.token, NOT_FOUND, b"key: no such config key", b"CONFIG_KEY_NOT_FOUND")
        return
    buffer_init(&buffer)
    put_text_field(&buffer, 1, _text(row.value, row.length))
    answer(core, command.token, OK, &buffer, False)


cdef bint _row_below(ConfigRow* a, ConfigRow* b) noexcept nogil:
    cdef uint32_t n = a.text.length if a.text.length < b.text.length else b.text.length
    cdef int order = memcmp(a.text.bytes, b.text.bytes, n)
    return order < 0 or (order == 0 and a.text.length < b.text.length)


cdef void _sort(ConfigRow** rows, int64_t count) noexcept nogil:
    """Heap sort: no recursion, no worst case."""
    cdef int64_t start = count // 2
    cdef int64_t end = count
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            rows[0], rows[end] = rows[end], rows[0]
        _sift(rows, start, end)


cdef void _sift(ConfigRow** rows, int64_t root, int64_t end) noexcept nogil:
    cdef int64_t child
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and _row_below(rows[child], rows[child + 1]):
            child += 1
        if not _row_below(rows[root], rows[child]):
            return
        rows[root], rows[child] = rows[child], rows[root]
        root = child


cdef void _list_config(Core* core, Command* command, Fields* fields) noexcept nogil:
    cdef Slice prefix = fields.text[1]
    cdef ConfigRow** rows = <ConfigRow**> must_malloc((core.config.count + 1) * sizeof(void*))
    cdef ConfigRow* row
    cdef uint32_t cursor = 0
    cdef int64_t count = 0
    cdef int64_t i
    cdef Buffer buffer
    cdef Buffer entry
    while True:
        row = <ConfigRow*> textmap_next(&core.config, &cursor)
        if row == NULL:
            break
        if _starts(_text(row.text.bytes, row.text.length), prefix.at, prefix.length):
            rows[count] = row
            count += 1
    _sort(rows, count)
    buffer_init(&buffer)
    buffer_init(&entry)
    for i in range(count):
        entry.length = 0
        put_text_field(&entry, 1, _text(rows[i].text.bytes, rows[i].text.length))
        put_text_field(&entry, 2, _text(rows[i].value, rows[i].length))
        put_nested(&buffer, 1, &entry)
    put_number_field(&buffer, 2, <uint64_t> count)
    buffer_free(&entry)
    free(rows)
    answer(core, command.token, OK, &buffer, False)
