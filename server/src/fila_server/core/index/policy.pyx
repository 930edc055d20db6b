"""The stored config is walked field by field; what it does not name keeps its default."""

from libc.stdint cimport INT64_MAX, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from fila_server.core.index.key_defaults cimport defaults_changed
from fila_server.core.index.visits cimport visit_soon
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.protobuf cimport MAP_KEY, MAP_VALUE, Fields, fields_parse, next_field
from fila_server.core.scheduling.flows cimport key_reconsider
from fila_server.core.state.settings cimport WeightRow
from fila_server.core.state.state cimport Key
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, buffer_free, buffer_init, must_malloc, put_slice,
)
from fila_server.core.structures.maps cimport (
    TextMap, textmap_free, textmap_get, textmap_init, textmap_next, textmap_put,
)

cdef enum:
    VISIBILITY_MS = 30000
    MAX_ATTEMPTS = 20
    RETRY_BASE_MS = 100
    RETRY_CAP_MS = 60000
    DEDUP_WINDOW_MS = 300000
    GRACE_MS = 5000


cdef void policy_free(Policy* policy) noexcept nogil:
    _weights_free(&policy.weights)


cdef void _weights_free(TextMap* weights) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef void* row
    while True:
        row = textmap_next(weights, &cursor)
        if row == NULL:
            break
        free(row)
    textmap_free(weights)


cdef void _weights_apply(Core* core, Queue* queue, TextMap* named) noexcept nogil:
    """The keys that `named` names, an old table or the new one, go by the
    queue's table from now on: what waits too."""
    cdef uint32_t cursor = 0
    cdef WeightRow* row
    cdef WeightRow* now
    cdef Key* key
    cdef uint32_t weight
    while True:
        row = <WeightRow*> textmap_next(named, &cursor)
        if row == NULL:
            return
        key = <Key*> textmap_get(&queue.keys, row.text.bytes, row.text.length)
        if key == NULL:
            continue
        now = <WeightRow*> textmap_get(&queue.policy.weights, row.text.bytes, row.text.length)
        weight = now.weight if now != NULL else 0
        if key.table_weight != weight:
            key.table_weight = <unsigned short> weight
            key_reconsider(core, key)


cdef void _defaults(Core* core, Policy* policy) noexcept nogil:
    memset(policy, 0, sizeof(Policy))
    textmap_init(&policy.weights)
    policy.visibility_ms = VISIBILITY_MS
    policy.max_attempts = MAX_ATTEMPTS
    policy.durable = core.durable_default
    policy.retry_base_ms = RETRY_BASE_MS
    policy.retry_cap_ms = RETRY_CAP_MS
    policy.retry_jitter = 0.5
    policy.dedup_window_ms = DEDUP_WINDOW_MS
    policy.grace_ms = GRACE_MS


cdef void _weight(Policy* policy, Slice entry) noexcept nogil:
    cdef Fields fields
    cdef WeightRow* row
    if not fields_parse(&fields, entry.at, entry.length):
        return
    row = <WeightRow*> must_malloc(sizeof(WeightRow))
    memset(row, 0, sizeof(WeightRow))
    row.text.bytes = fields.text[MAP_KEY].at
    row.text.length = fields.text[MAP_KEY].length
    row.weight = <uint32_t> fields.number[MAP_VALUE]
    if row.weight < 1:
        row.weight = 1
    if row.weight > 1000:
        row.weight = 1000
    textmap_put(&policy.weights, &row.text)


cdef void _routing(Policy* policy, uint32_t field, Slice text) noexcept nogil:
    """Of the fields those that say where a message's key, weight, cost and throttle keys stand."""
    if field == v1.QUEUE_CONFIG_FAIRNESS_KEY_HEADER:
        policy.fairness_key_header = text
    elif field == v1.QUEUE_CONFIG_WEIGHT_HEADER:
        policy.weight_header = text
    elif field == v1.QUEUE_CONFIG_COST_HEADER:
        policy.cost_header = text
    elif field == v1.QUEUE_CONFIG_PRIORITY_HEADER:
        policy.priority_header = text
    elif field == v1.QUEUE_CONFIG_THROTTLE_KEY_HEADERS and policy.throttle_header_count < 16:
        policy.throttle_headers[policy.throttle_header_count] = text
        policy.throttle_header_count += 1
    elif field == v1.QUEUE_CONFIG_KEY_LIMIT:
        policy.key_limit = text
    elif field == v1.QUEUE_CONFIG_WEIGHTS:
        _weight(policy, text)


cdef void _retry(Policy* policy, Slice text) noexcept nogil:
    cdef Fields fields
    if not fields_parse(&fields, text.at, text.length):
        return
    policy.retry_fixed = fields.number[v1.RETRY_POLICY_KIND] == v1.RETRY_POLICY_KIND_FIXED
    if fields.seen & (1 << v1.RETRY_POLICY_BASE_MS):
        policy.retry_base_ms = fields.number[v1.RETRY_POLICY_BASE_MS]
    if fields.seen & (1 << v1.RETRY_POLICY_CAP_MS):
        policy.retry_cap_ms = fields.number[v1.RETRY_POLICY_CAP_MS]
    if fields.seen & (1 << v1.RETRY_POLICY_JITTER):
        memcpy(&policy.retry_jitter, &fields.number[v1.RETRY_POLICY_JITTER], 8)
    elif fields.seen & (1 << v1.RETRY_POLICY_BASE_MS):
        policy.retry_jitter = 0


cdef void _key_defaults(Policy* policy, Slice text) noexcept nogil:
    cdef Fields fields
    if not fields_parse(&fields, text.at, text.length):
        return
    memcpy(&policy.default_rate, &fields.number[v1.KEY_DEFAULTS_RATE_PER_SECOND], 8)
    memcpy(&policy.default_burst, &fields.number[v1.KEY_DEFAULTS_BURST], 8)
    memcpy(&policy.default_committed, &fields.number[v1.KEY_DEFAULTS_COMMITTED_PER_SECOND], 8)
    policy.default_cap = <uint32_t> fields.number[v1.KEY_DEFAULTS_MAX_IN_FLIGHT]
    if policy.default_rate > 0 and not policy.default_burst >= 1:
        policy.default_burst = max(policy.default_rate, 1.0)


cdef void _retention(Policy* policy, Slice text) noexcept nogil:
    cdef Fields fields
    if not fields_parse(&fields, text.at, text.length):
        return
    # Older brokers took periods longer than a time has room for: those are for ever, not a time before any.
    policy.soft_period_ms = min(fields.number[v1.RETENTION_SOFT_PERIOD_MS], <uint64_t> INT64_MAX)
    policy.soft_bytes = fields.number[v1.RETENTION_SOFT_BYTES]
    policy.hard_period_ms = min(fields.number[v1.RETENTION_HARD_PERIOD_MS], <uint64_t> INT64_MAX)
    policy.hard_bytes = fields.number[v1.RETENTION_HARD_BYTES]


cdef void _read(Policy* policy, const char* at, size_t length) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef uint64_t number
    cdef Slice text
    c.at, c.end, c.bad = at, at + length, False
    while next_field(&c, &field, &kind, &text, &number):
        _routing(policy, field, text)
        if field == v1.QUEUE_CONFIG_ON_ENQUEUE_SCRIPT:
            policy.has_on_enqueue = text.length > 0
        elif field == v1.QUEUE_CONFIG_ON_FAILURE_SCRIPT:
            policy.has_on_failure = text.length > 0
        elif field == v1.QUEUE_CONFIG_VISIBILITY_TIMEOUT_MS and number:
            policy.visibility_ms = number
        elif field == v1.QUEUE_CONFIG_MAX_ATTEMPTS:
            policy.max_attempts = <uint32_t> number
        elif field == v1.QUEUE_CONFIG_DURABILITY and number:
            policy.durable = number == v1.DURABILITY_FSYNC
        elif field == v1.QUEUE_CONFIG_MAX_DEPTH:
            policy.max_depth = number
        elif field == v1.QUEUE_CONFIG_MAX_BYTES:
            policy.max_bytes = number
        elif field == v1.QUEUE_CONFIG_RETRY:
            _retry(policy, text)
        elif field == v1.QUEUE_CONFIG_RETENTION:
            _retention(policy, text)
        elif field == v1.QUEUE_CONFIG_DEDUP_WINDOW_MS and number:
            policy.dedup_window_ms = number
        elif field == v1.QUEUE_CONFIG_TTL_TO_DLQ:
            policy.ttl_to_dlq = number != 0
        elif field == v1.QUEUE_CONFIG_DISCONNECT_GRACE_MS:
            policy.grace_ms = number
        elif field == v1.QUEUE_CONFIG_EXPIRES_AFTER_IDLE_MS:
            policy.idle_ms = number
        elif field == v1.QUEUE_CONFIG_PAUSED:
            policy.paused = policy.paused | (QUEUE_PAUSED if number else 0)
        elif field == v1.QUEUE_CONFIG_PAUSED_CHANNELS:
            policy.paused = policy.paused | CHANNELS_PAUSED
        elif field == v1.QUEUE_CONFIG_KEY_ORDER:
            policy.in_order = number == v1.KEY_ORDER_STRICT
        elif field == v1.QUEUE_CONFIG_ALLOW_PRODUCER_ROUTING:
            policy.producers_route = number != 0
        elif field == v1.QUEUE_CONFIG_KEY_DEFAULTS:
            _key_defaults(policy, text)


cdef bint channel_named_paused(Channel* channel) noexcept nogil:
    """By the settings as they are stored, so that a queue has no table for what seldom is."""
    cdef Buffer* config = &channel.queue.config
    cdef Cursor c
    cdef uint32_t field, kind
    cdef uint64_t number
    cdef Slice text
    c.at, c.end, c.bad = config.data, config.data + config.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if (
            field == v1.QUEUE_CONFIG_PAUSED_CHANNELS and text.length == channel.text.length
            and memcmp(text.at, channel.text.bytes, text.length) == 0
        ):
            return True
    return False


cdef void queue_configure(Core* core, Queue* queue, Slice config) noexcept nogil:
    """Adopt a serialized QueueConfig that the edge has validated; what it leaves out is the default."""
    cdef Policy* policy = &queue.policy
    cdef Buffer before = queue.config           # what the old table's texts are part of
    cdef TextMap weights_before = policy.weights
    cdef double rate = policy.default_rate
    cdef double burst = policy.default_burst
    cdef double committed = policy.default_committed
    cdef uint32_t cap = policy.default_cap
    buffer_init(&queue.config)
    put_slice(&queue.config, config)
    queue.retained_at = 0               # other retention: look through all again
    visit_soon(core, queue)
    _defaults(core, policy)
    _read(policy, queue.config.data, queue.config.length)
    _weights_apply(core, queue, &weights_before)
    _weights_apply(core, queue, &policy.weights)
    _weights_free(&weights_before)
    buffer_free(&before)
    if (
        rate != policy.default_rate or burst != policy.default_burst or cap != policy.default_cap
        or committed != policy.default_committed
    ):
        defaults_changed(core, queue)
