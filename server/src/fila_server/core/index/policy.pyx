"""The stored config is walked field by field; what it does not name keeps its default."""

from libc.stdint cimport INT64_MAX, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.protocol.protobuf cimport Fields, fields_parse, next_field
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


cdef void _policy_nested(Policy* policy, uint32_t field, Slice text) noexcept nogil:
    cdef Fields inner
    cdef WeightRow* row
    if not fields_parse(&inner, text.at, text.length):
        return
    if field == 10:
        row = <WeightRow*> must_malloc(sizeof(WeightRow))
        memset(row, 0, sizeof(WeightRow))
        row.text.bytes = inner.text[1].at
        row.text.length = inner.text[1].length
        row.weight = <uint32_t> inner.number[2]
        if row.weight < 1:
            row.weight = 1
        if row.weight > 1000:
            row.weight = 1000
        textmap_put(&policy.weights, &row.text)
    elif field == 13:
        policy.retry_fixed = inner.number[1] == 2
        if inner.seen & (1 << 2):
            policy.retry_base_ms = inner.number[2]
        if inner.seen & (1 << 3):
            policy.retry_cap_ms = inner.number[3]
        if inner.seen & (1 << 4):
            memcpy(&policy.retry_jitter, &inner.number[4], 8)
        elif inner.seen & (1 << 2):
            policy.retry_jitter = 0
    elif field == 15:
        policy.soft_period_ms = min(inner.number[1], <uint64_t> INT64_MAX)     # of older brokers: for ever,
        policy.soft_bytes = inner.number[2]
        policy.hard_period_ms = min(inner.number[3], <uint64_t> INT64_MAX)     # not a time before any
        policy.hard_bytes = inner.number[4]


cdef void _policy_header(Policy* policy, uint32_t field, Slice name) noexcept nogil:
    if field == 8:
        policy.fairness_key_header = name
    elif field == 9:
        policy.weight_header = name
    else:
        policy.cost_header = name


cdef void queue_configure(Core* core, Queue* queue, Slice config) noexcept nogil:
    """Adopt a serialized QueueConfig that the edge has validated; what it leaves out is the default."""
    cdef Policy* policy = &queue.policy
    cdef Cursor c
    cdef uint32_t field, kind
    cdef uint64_t number
    cdef Slice text
    cdef Buffer before = queue.config           # what the old table's texts are part of
    cdef TextMap weights_before = policy.weights
    buffer_init(&queue.config)
    put_slice(&queue.config, config)
    queue.retained_at = 0               # other retention: look through all again
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
    c.at, c.end, c.bad = queue.config.data, queue.config.data + queue.config.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == 1:
            policy.has_on_enqueue = text.length > 0
        elif field == 2:
            policy.has_on_failure = text.length > 0
        elif field == 3 and number:
            policy.visibility_ms = number
        elif field == 4:
            policy.max_attempts = <uint32_t> number
        elif field == 5 and number:
            policy.durable = number == 1
        elif field == 6:
            policy.max_depth = number
        elif field == 7:
            policy.max_bytes = number
        elif field == 8 or field == 9 or field == 11:
            _policy_header(policy, field, text)
        elif field == 12 and policy.throttle_header_count < 16:
            policy.throttle_headers[policy.throttle_header_count] = text
            policy.throttle_header_count += 1
        elif field == 10 or field == 13 or field == 15:
            _policy_nested(policy, field, text)
        elif field == 17 and number:
            policy.dedup_window_ms = number
        elif field == 18:
            policy.ttl_to_dlq = number != 0
        elif field == 19:
            policy.grace_ms = number
        elif field == 20:
            policy.idle_ms = number
        elif field == 21:
            policy.paused = number != 0
    _weights_apply(core, queue, &weights_before)
    _weights_apply(core, queue, &policy.weights)
    _weights_free(&weights_before)
    buffer_free(&before)
