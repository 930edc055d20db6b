"""The first thing that is wrong refuses a message, and refuses it alone."""

from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from fila_server.core.protocol cimport v1
from fila_server.core.protocol.protobuf cimport (
    LEN, MAP_KEY, MAP_VALUE, PRIORITY_MAX, Fields, Options, fields_parse, name_valid, next_field,
    put_text_field, timestamp_ms, utf8_valid,
)
from fila_server.core.protocol.refusals cimport (
    REFUSED_DEDUP_KEY, REFUSED_DELAY, REFUSED_HEADER_COUNT, REFUSED_HEADER_KEY, REFUSED_HEADER_TEXT,
    REFUSED_HEADER_VALUE, REFUSED_MALFORMED, REFUSED_MAX_WAIT, REFUSED_ON_DUPLICATE, REFUSED_OPTION_KEY,
    REFUSED_OPTION_SHARE, REFUSED_PAYLOAD, REFUSED_PRIORITY, REFUSED_QUEUE_NAME, REFUSED_TTL,
    REFUSED_TTL_PAST, TAKEN,
)
from fila_server.core.structures.buffer cimport Cursor, must_malloc

cdef enum:
    WEIGHT_MAX = 1000


cdef uint8_t _header_check(Slice entry, const Limits* limits) noexcept nogil:
    """Whether a header may be stored. Of a repeated name or value the
    last counts, but clients read them all. A header without a name is none that anybody could ask for;
    without limits it passes, since what was staged is held against no rule again."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef bint named = False
    c.at, c.end, c.bad = entry.at, entry.at + entry.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field > MAP_VALUE:
            continue
        if field == MAP_KEY:
            named = text.length > 0
        if kind != LEN:
            return REFUSED_MALFORMED
        if field == MAP_KEY and text.length > limits.header_key_bytes_max:
            return REFUSED_HEADER_KEY
        if field == MAP_VALUE and text.length > limits.header_value_bytes_max:
            return REFUSED_HEADER_VALUE
        if not utf8_valid(text.at, text.length):
            return REFUSED_HEADER_TEXT
    if c.bad:
        return REFUSED_MALFORMED
    return TAKEN if named or limits.header_key_bytes_max == <uint32_t> 0xFFFFFFFF else REFUSED_HEADER_TEXT


cdef uint8_t _options_parse(Item* item, Slice text, const Limits* limits) noexcept nogil:
    cdef Fields fields
    cdef bint bad = False
    cdef Options* o
    if not fields_parse(&fields, text.at, text.length):
        return REFUSED_MALFORMED
    if fields.seen == 0:
        return TAKEN
    if item.options == NULL:
        item.options = <Options*> must_malloc(sizeof(Options))
        memset(item.options, 0, sizeof(Options))
        item.options.delay_ms = item.options.deliver_at_ms = item.options.ttl_ms = -1
        item.options.priority = -1
    o = item.options
    if fields.seen & (1 << v1.ENQUEUE_OPTIONS_DELAY_MS):
        if fields.number[v1.ENQUEUE_OPTIONS_DELAY_MS] > <uint64_t> 1 << 52:
            return REFUSED_DELAY
        o.delay_ms = <int64_t> fields.number[v1.ENQUEUE_OPTIONS_DELAY_MS]
    if fields.seen & (1 << v1.ENQUEUE_OPTIONS_DELIVER_AT):
        o.deliver_at_ms = timestamp_ms(fields.text[v1.ENQUEUE_OPTIONS_DELIVER_AT], &bad)
        if bad or o.deliver_at_ms < 0 or o.delay_ms > 0:
            return REFUSED_DELAY
    if fields.seen & (1 << v1.ENQUEUE_OPTIONS_TTL_MS):
        if fields.number[v1.ENQUEUE_OPTIONS_TTL_MS] == 0:
            return REFUSED_TTL_PAST
        if fields.number[v1.ENQUEUE_OPTIONS_TTL_MS] > <uint64_t> 1 << 52:
            return REFUSED_TTL
        o.ttl_ms = <int64_t> fields.number[v1.ENQUEUE_OPTIONS_TTL_MS]
    o.dedup_key = fields.text[v1.ENQUEUE_OPTIONS_DEDUP_KEY]
    if o.dedup_key.length > limits.dedup_key_bytes_max or not utf8_valid(o.dedup_key.at, o.dedup_key.length):
        return REFUSED_DEDUP_KEY
    if fields.number[v1.ENQUEUE_OPTIONS_ON_DUPLICATE] > v1.ENQUEUE_OPTIONS_ON_DUPLICATE_REPLACE:
        return REFUSED_ON_DUPLICATE
    o.replaces = fields.number[v1.ENQUEUE_OPTIONS_ON_DUPLICATE] == v1.ENQUEUE_OPTIONS_ON_DUPLICATE_REPLACE
    if o.replaces and o.dedup_key.length == 0:
        return REFUSED_ON_DUPLICATE
    if fields.number[v1.ENQUEUE_OPTIONS_MAX_WAIT_MS] > <uint64_t> 1 << 52:
        return REFUSED_MAX_WAIT
    o.max_wait_ms = <int64_t> fields.number[v1.ENQUEUE_OPTIONS_MAX_WAIT_MS]
    if o.max_wait_ms and not o.replaces:
        return REFUSED_MAX_WAIT
    if fields.seen & (1 << v1.ENQUEUE_OPTIONS_PRIORITY):
        if fields.number[v1.ENQUEUE_OPTIONS_PRIORITY] > PRIORITY_MAX:
            return REFUSED_PRIORITY
        o.priority = <int32_t> fields.number[v1.ENQUEUE_OPTIONS_PRIORITY]
    return _routing_options(o, &fields, limits)


cdef uint8_t _routing_options(Options* o, const Fields* fields, const Limits* limits) noexcept nogil:
    """What its producer says of its fairness key; whether the queue lets it is asked where it is routed."""
    o.fairness_key = fields.text[v1.ENQUEUE_OPTIONS_FAIRNESS_KEY]
    if o.fairness_key.length > limits.fairness_key_bytes_max:
        return REFUSED_OPTION_KEY
    if not utf8_valid(o.fairness_key.at, o.fairness_key.length):
        return REFUSED_OPTION_KEY
    if fields.number[v1.ENQUEUE_OPTIONS_WEIGHT] > WEIGHT_MAX:
        return REFUSED_OPTION_SHARE
    o.weight = <uint32_t> fields.number[v1.ENQUEUE_OPTIONS_WEIGHT]
    memcpy(&o.cost, &fields.number[v1.ENQUEUE_OPTIONS_COST], 8)
    return TAKEN if o.cost == 0 or (o.cost >= 0.001 and o.cost <= 1000000) else REFUSED_OPTION_SHARE


cdef void item_parse(
        Item* item, const char* frame, Slice message, Buffer* spare, uint32_t spare_base,
        const Limits* limits) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef const char* begin = NULL       # of the run of headers and payload
    cdef const char* end = NULL
    cdef const char* before
    cdef bint scattered = False
    cdef uint32_t payloads = 0
    cdef uint8_t problem, refused = TAKEN
    memset(item, 0, sizeof(Item))
    c.at, c.end, c.bad = message.at, message.at + message.length, False
    while True:
        before = c.at
        if not next_field(&c, &field, &kind, &text, &number):
            break
        if (field == v1.ENQUEUE_MESSAGE_HEADERS or field == v1.ENQUEUE_MESSAGE_PAYLOAD) and kind == LEN:
            if begin == NULL:
                begin = before
            elif before != end:
                scattered = True
            end = c.at
            if field == v1.ENQUEUE_MESSAGE_PAYLOAD:
                payloads += 1
                item.payload_length = text.length
                if text.length > limits.payload_bytes_max and refused == TAKEN:
                    refused = REFUSED_PAYLOAD
            else:
                item.header_count += item.header_count < 0xFFFF
                problem = _header_check(text, limits)
                if problem and refused == TAKEN:
                    refused = problem
        elif field == v1.ENQUEUE_MESSAGE_QUEUE and kind == LEN:
            item.queue = text
        elif field == v1.ENQUEUE_MESSAGE_OPTIONS and kind == LEN:
            problem = _options_parse(item, text, limits)
            if problem and refused == TAKEN:
                refused = problem
        elif field <= v1.ENQUEUE_MESSAGE_OPTIONS:
            c.bad = True                # a known field of a wrong type
    if c.bad:
        refused = REFUSED_MALFORMED
    elif item.header_count > limits.headers_max and refused == TAKEN:
        refused = REFUSED_HEADER_COUNT
    if item.queue.length and refused == TAKEN and not name_valid(item.queue):
        refused = REFUSED_QUEUE_NAME
    item.refused = refused
    if refused:
        return
    if begin == NULL:
        item.at = <uint32_t> (message.at - frame)
        item.length = 0
    elif not scattered and payloads <= 1:
        item.at = <uint32_t> (begin - frame)
        item.length = <uint32_t> (end - begin)
    else:
        _gather(item, message, spare, spare_base)


cdef void _gather(Item* item, Slice message, Buffer* spare, uint32_t spare_base) noexcept nogil:
    """Rewrite a body whose fields were scattered or repeated as one run: headers, then the last payload."""
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef Slice payload
    cdef uint64_t number
    cdef size_t from_ = spare.length
    payload.at, payload.length = NULL, 0
    c.at, c.end, c.bad = message.at, message.at + message.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == v1.ENQUEUE_MESSAGE_HEADERS:
            put_text_field(spare, v1.ENQUEUE_MESSAGE_HEADERS, text)
        elif field == v1.ENQUEUE_MESSAGE_PAYLOAD:
            payload = text
    if payload.at != NULL:
        put_text_field(spare, v1.ENQUEUE_MESSAGE_PAYLOAD, payload)
    item.at = spare_base + <uint32_t> from_
    item.length = <uint32_t> (spare.length - from_)
