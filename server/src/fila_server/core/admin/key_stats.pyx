"""Both walks go over the same cells, one after the other. What a bucket has waiting is summed in a map first,
since its messages lie under many keys."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from fila_server.core.admin.step_budget cimport (
    SUBQUEUES_MAX, StepBudget, flow_age, may_step, steps_begin, steps_end,
)
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport OK
from fila_server.core.protocol.protobuf cimport put_double_field, put_nested, put_number_field, put_text_field
from fila_server.core.state.kinds cimport PARKED_THROTTLED
from fila_server.core.state.paths cimport (
    channel_find, flow_delivered, key_cap, key_has_policy, key_rate_limit, key_weight, subqueue_waits,
)
from fila_server.core.state.state cimport Flow, Key, Subqueue, ThrottleKey
from fila_server.core.structures.bucket cimport bucket_refill
from fila_server.core.structures.buffer cimport Slice, buffer_free, buffer_init, must_malloc
from fila_server.core.structures.maps cimport (
    Map64, map64_free, map64_get, map64_init, map64_next, map64_put, textmap_next,
)
from fila_server.core.structures.ranking cimport Ranked, keep_largest, largest_first

cdef enum:
    KEYS_DEFAULT = 1000
    KEYS_MAX = 100000
    CELLS_PER_PAGE = 8192               # one or two milliseconds of a pass
    SUBQUEUES_PER_PAGE = 8192           # then a page ends with the key it is at


cdef inline Slice _text(const char* at, uint32_t length) noexcept nogil:
    cdef Slice s
    s.at, s.length = at, length
    return s


cdef void _key_stats(
        Core* core, Buffer* b, Key* key, Channel* channel, uint64_t pending,
        StepBudget* steps) noexcept nogil:
    cdef Flow* flow
    cdef Buffer inner
    cdef uint64_t in_flight = 0
    cdef uint64_t age = 0
    cdef uint64_t delivered = 0
    cdef uint64_t served = 0
    cdef int64_t deficit = 0
    cdef bint throttled = False
    flow = key.flows
    while flow != NULL:
        if channel == NULL or flow.channel == channel:
            in_flight += flow.in_flight
            delivered += flow_delivered(flow)
            served += flow.served
            deficit = flow.turn.deficit if flow.turn.deficit > deficit else deficit
            if flow.backlog:
                age = max(age, flow_age(core, flow, steps))
                throttled = throttled or flow.parked == PARKED_THROTTLED
        flow = flow.next_of_key
    buffer_init(&inner)
    put_text_field(&inner, v1.PER_FAIRNESS_KEY_STATS_KEY, _text(key.text.bytes, key.text.length))
    put_number_field(&inner, v1.PER_FAIRNESS_KEY_STATS_PENDING_COUNT, pending)
    put_number_field(&inner, v1.PER_FAIRNESS_KEY_STATS_CURRENT_DEFICIT, <uint64_t> deficit)
    put_number_field(&inner, v1.PER_FAIRNESS_KEY_STATS_WEIGHT, key_weight(key))
    put_number_field(&inner, v1.PER_FAIRNESS_KEY_STATS_IN_FLIGHT, in_flight)
    put_number_field(&inner, v1.PER_FAIRNESS_KEY_STATS_OLDEST_AGE_MS, age)
    put_number_field(&inner, v1.PER_FAIRNESS_KEY_STATS_DELIVERED_TOTAL, delivered)
    put_double_field(&inner, v1.PER_FAIRNESS_KEY_STATS_SERVED_COST_TOTAL, <double> served / 1000.0)
    put_number_field(&inner, v1.PER_FAIRNESS_KEY_STATS_PAUSED, key.paused)
    put_number_field(&inner, v1.PER_FAIRNESS_KEY_STATS_MAX_IN_FLIGHT, key_cap(key))
    put_number_field(&inner, v1.PER_FAIRNESS_KEY_STATS_THROTTLED, throttled)
    if key_rate_limit(key) != NULL:
        put_double_field(&inner, v1.PER_FAIRNESS_KEY_STATS_RATE_PER_SECOND, key_rate_limit(key).bucket.rate)
        put_double_field(&inner, v1.PER_FAIRNESS_KEY_STATS_BURST, key_rate_limit(key).bucket.burst)
    put_nested(b, v1.GET_STATS_RESPONSE_PER_KEY_STATS, &inner)
    buffer_free(&inner)


cdef uint64_t _pending(Key* key, Channel* channel) noexcept nogil:
    cdef Flow* flow = key.flows
    cdef uint64_t pending = 0
    while flow != NULL:
        if channel == NULL or flow.channel == channel:
            pending = max(pending, <uint64_t> flow.backlog + flow.delayed)
        flow = flow.next_of_key
    return pending


cdef void _keys(
        Core* core, Queue* queue, Channel* channel, uint32_t most, uint64_t least, uint32_t end,
        Walked* walked, Buffer* b) noexcept nogil:
    """From the cell `walked.cursor` names to `end`, or to where there is enough to look at."""
    cdef Ranked* rows = <Ranked*> must_malloc(most * sizeof(Ranked))
    cdef uint32_t count = 0
    cdef uint32_t i
    cdef Key* key
    cdef Flow* flow
    cdef uint64_t pending
    cdef uint64_t subqueues = 0
    cdef StepBudget steps = steps_begin()
    while walked.cursor < end and subqueues < SUBQUEUES_PER_PAGE:
        key = <Key*> textmap_next(&queue.keys, &walked.cursor)
        if key == NULL:
            break
        pending = _pending(key, channel)
        if pending:
            walked.active += 1
            flow = key.flows
            while flow != NULL:
                if flow.backlog and (channel == NULL or flow.channel == channel):
                    subqueues += flow.subqueues.by_kind.count if flow.subqueues != NULL else 0
                flow = flow.next_of_key
            if pending >= least:
                keep_largest(rows, &count, most, key, pending)
        elif least == 0 and (key_has_policy(key) or key.refs):
            keep_largest(rows, &count, most, key, 0)
    largest_first(rows, count)
    for i in range(count):
        _key_stats(core, b, <Key*> rows[i].what, channel, rows[i].rank, &steps)
    steps_end(core, &steps)
    free(rows)


cdef void _count_waiting(Map64* waiting, Key* key, Channel* channel, StepBudget* steps) noexcept nogil:
    """Add the key's messages to the buckets they name: address -> 1 + how many wait in its lines."""
    cdef Flow* flow = key.flows
    cdef Subqueue* sub
    cdef ThrottleKey* bucket
    cdef uint64_t before
    cdef uint32_t i, looked
    while flow != NULL:
        sub = (
            flow.subqueues.first if flow.subqueues != NULL and (channel == NULL or flow.channel == channel)
            else NULL
        )
        looked = 0
        while sub != NULL and looked < SUBQUEUES_MAX and may_step(steps):
            looked += 1
            for i in range(sub.set.count):
                bucket = sub.set.members[i]
                before = <uint64_t> map64_get(waiting, <uint64_t> bucket)
                if subqueue_waits(sub) and sub.waiter.waiters.bucket == bucket:
                    map64_put(
                        waiting, <uint64_t> bucket,
                        <void*> ((before if before else <uint64_t> 1) + sub.count))
                elif before == 0 and bucket.limited:
                    map64_put(waiting, <uint64_t> bucket, <void*> 1)
            sub = sub.sibling
        flow = flow.next_of_key


cdef void _bucket_stats(Core* core, Buffer* b, ThrottleKey* bucket, uint64_t waiting) noexcept nogil:
    cdef Buffer inner
    bucket_refill(&bucket.bucket, core.mono_ns, bucket.waiting > 0)
    buffer_init(&inner)
    put_text_field(&inner, v1.PER_THROTTLE_KEY_STATS_KEY, _text(bucket.text.bytes, bucket.text.length))
    put_double_field(&inner, v1.PER_THROTTLE_KEY_STATS_TOKENS, bucket.bucket.level)
    put_double_field(&inner, v1.PER_THROTTLE_KEY_STATS_RATE_PER_SECOND, bucket.bucket.rate)
    put_double_field(&inner, v1.PER_THROTTLE_KEY_STATS_BURST, bucket.bucket.burst)
    put_number_field(&inner, v1.PER_THROTTLE_KEY_STATS_WAITING, waiting)
    put_nested(b, v1.GET_STATS_RESPONSE_PER_THROTTLE_STATS, &inner)
    buffer_free(&inner)


cdef void _buckets(
        Core* core, Queue* queue, Channel* channel, uint32_t most, uint32_t cursor, uint32_t end,
        Buffer* b) noexcept nogil:
    """The buckets that these keys' pending messages name, those with the longest lines first."""
    cdef Map64 waiting
    cdef Ranked* rows
    cdef uint32_t count = 0
    cdef uint32_t at = 0
    cdef uint32_t i
    cdef Key* key
    cdef void* before
    cdef StepBudget steps = steps_begin()
    map64_init(&waiting)
    while cursor < end:
        key = <Key*> textmap_next(&queue.keys, &cursor)
        if key == NULL:
            break
        _count_waiting(&waiting, key, channel, &steps)
    steps_end(core, &steps)
    most = min(most, waiting.count)
    rows = <Ranked*> must_malloc(max(most, <uint32_t> 1) * sizeof(Ranked))
    while True:
        before = map64_next(&waiting, &at)
        if before == NULL:
            break
        keep_largest(rows, &count, most, <void*> waiting.cells[at - 1].key, <uint64_t> before - 1)
    largest_first(rows, count)
    for i in range(count):
        _bucket_stats(core, b, <ThrottleKey*> rows[i].what, rows[i].rank)
    map64_free(&waiting)
    free(rows)


cdef Walked keys_walk(
        Core* core, Queue* queue, Channel* channel, uint64_t most, uint64_t least, uint32_t cursor,
        uint32_t end, bint is_part, Buffer* b) noexcept nogil:
    cdef Walked walked
    cdef uint32_t cells
    cdef uint32_t rows_max = <uint32_t> min(most, <uint64_t> KEYS_MAX) if most else KEYS_DEFAULT
    walked.cursor, walked.active = cursor, 0
    end = min(end, queue.keys.capacity)
    cells = max(end - min(cursor, end), <uint32_t> 1)
    _keys(core, queue, channel, min(rows_max, cells), least, end, &walked, b)
    # A bucket that is small in this part may be large in all of them.
    if core.throttle_keys.count:
        rows_max = <uint32_t> 0xFFFFFFFF if is_part else rows_max
        _buckets(core, queue, channel, rows_max, cursor, walked.cursor, b)
    return walked


cdef void key_stats_page(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Channel* channel = NULL
    cdef uint32_t cursor = <uint32_t> fields.number[seam.STATS_PAGE_CURSOR]
    cdef Walked walked
    cdef Buffer b
    if fields.text[seam.STATS_PAGE_CHANNEL].length:
        channel = channel_find(queue, fields.text[seam.STATS_PAGE_CHANNEL])
        if channel == NULL:
            answer_no_channel(core, command)
            return
    if fields.number[seam.STATS_PAGE_CAPACITY] != queue.keys.capacity or cursor > queue.keys.capacity:
        cursor = 0
    buffer_init(&b)
    walked = keys_walk(
        core, queue, channel, fields.number[seam.STATS_PAGE_MOST], fields.number[seam.STATS_PAGE_LEAST],
        cursor, cursor + CELLS_PER_PAGE, True, &b)
    put_number_field(&b, seam.STATS_PART_ACTIVE, walked.active)
    put_number_field(&b, seam.STATS_PART_CURSOR, walked.cursor if walked.cursor < queue.keys.capacity else 0)
    put_number_field(&b, seam.STATS_PART_CAPACITY, queue.keys.capacity)
    answer(core, command.token, OK, &b, False)
