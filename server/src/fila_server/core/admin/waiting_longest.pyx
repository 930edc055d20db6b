"""The cursor is a cell of the table of keys: a page looks at so many cells, keeps its longest waits, and
hands the next cell back. A table that has grown has another size, by which an old cursor is known."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from fila_server.core.admin.explain cimport Holding, flow_holding, put_blocking_part, weight_now
from fila_server.core.admin.step_budget cimport STEPS_MAX, StepBudget, flow_age, steps_begin, steps_end
from fila_server.core.index.policy cimport channel_paused
from fila_server.core.lifecycle.answers cimport answer, answer_no_queue
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport OK, WAITING_LONGEST_PAGE
from fila_server.core.protocol.protobuf cimport (
    Fields, fields_parse, put_double_field, put_nested, put_number_field, put_text_field, put_timestamp_field,
)
from fila_server.core.state.paths cimport (
    cap_is_default, channel_find, committed_is_default, key_cap, key_committed, key_has_policy,
    key_rate_limit, key_weight, queue_find, rate_is_default,
)
from fila_server.core.state.settings cimport Policy
from fila_server.core.state.state cimport Channel, Flow, Key, Queue
from fila_server.core.structures.buffer cimport Buffer, Slice, buffer_free, buffer_init, must_malloc
from fila_server.core.structures.maps cimport (
    Map64, Text, map64_free, map64_get, map64_init, map64_put, textmap_get, textmap_next,
)
from fila_server.core.structures.ranking cimport Ranked, keep_largest, largest_first

cdef enum:
    ROWS_MAX = 1000
    CELLS_PER_PAGE = 8192               # of the queue's table; about a millisecond of a pass


cdef inline Slice _text(Text* text) noexcept nogil:
    cdef Slice s
    s.at, s.length = text.bytes, text.length
    return s


# --- who waits longest -----------------------------------------------------------------------

cdef void _row(Core* core, Buffer* b, Flow* flow, uint64_t waiting_ms, StepBudget* steps) noexcept nogil:
    """A LateKey."""
    cdef Holding held = flow_holding(core, flow.key, flow, channel_paused(flow.channel), steps)
    cdef Buffer row
    buffer_init(&row)
    put_text_field(&row, v1.LATE_KEY_QUEUE, _text(&flow.channel.queue.text))
    put_text_field(&row, v1.LATE_KEY_CHANNEL, _text(&flow.channel.text))
    put_text_field(&row, v1.LATE_KEY_FAIRNESS_KEY, _text(&flow.key.text))
    put_number_field(&row, v1.LATE_KEY_CAUSE, held.state)
    if held.bucket != NULL:
        put_text_field(&row, v1.LATE_KEY_BLOCKING_BUCKET, _text(&held.bucket.text))
        put_blocking_part(core, &row, held.sub, v1.LATE_KEY_BLOCKING_PART, v1.LATE_KEY_BLOCKING_RATE)
    if held.until_ms:
        put_timestamp_field(&row, v1.LATE_KEY_UNTIL, held.until_ms)
    put_number_field(&row, v1.LATE_KEY_WAITING_MS, waiting_ms)
    put_timestamp_field(&row, v1.LATE_KEY_SINCE, core.wall_ms - <int64_t> waiting_ms)
    put_number_field(&row, v1.LATE_KEY_PENDING, flow.backlog)
    put_number_field(&row, v1.LATE_KEY_IN_FLIGHT, flow.in_flight)
    put_number_field(&row, v1.LATE_KEY_WEIGHT, key_weight(flow.key))
    put_number_field(&row, v1.LATE_KEY_BY_DEFAULT, held.by_default)
    put_number_field(&row, v1.LATE_KEY_NOBODY_CONSUMES, held.nobody_consumes)
    put_nested(b, seam.WAITING_LONGEST_KEYS_KEYS, &row)
    buffer_free(&row)


cdef void _put_waiting(Buffer* b, Queue* queue, Map64* waiting) noexcept nogil:
    """How many keys wait in each channel: the edge adds up those that the caller may know of."""
    cdef Channel* channel = queue.channels
    cdef uint64_t count
    cdef Buffer row
    while channel != NULL:
        count = <uint64_t> map64_get(waiting, <uint64_t> channel)
        if count:
            buffer_init(&row)
            put_text_field(&row, seam.WAITING_LONGEST_CHANNEL_CHANNEL, _text(&channel.text))
            put_number_field(&row, seam.WAITING_LONGEST_CHANNEL_COUNT, count)
            put_nested(b, seam.WAITING_LONGEST_KEYS_WAITING, &row)
            buffer_free(&row)
        channel = channel.next


cdef void _page(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    """The keys of a part of the table that wait longest, and how many wait in each channel. A cursor of 0 in
    the answer: that was all."""
    cdef uint32_t cursor = <uint32_t> fields.number[seam.WAITING_LONGEST_PAGE_CURSOR]
    cdef uint64_t above_ms = fields.number[seam.WAITING_LONGEST_PAGE_ABOVE_MS]
    cdef uint32_t most = <uint32_t> max(
        <uint64_t> 1, min(fields.number[seam.WAITING_LONGEST_PAGE_MOST], <uint64_t> ROWS_MAX))
    cdef uint32_t count = 0
    cdef uint32_t i, end
    cdef uint64_t before, age
    cdef Map64 waiting
    cdef StepBudget steps = steps_begin()
    cdef Ranked* rows = <Ranked*> must_malloc(most * sizeof(Ranked))
    cdef Key* key
    cdef Flow* flow
    cdef bint of_all = fields.text[seam.WAITING_LONGEST_PAGE_CHANNEL].length == 0
    cdef Slice asked = fields.text[seam.WAITING_LONGEST_PAGE_CHANNEL]
    cdef Channel* only = NULL if of_all else channel_find(queue, asked)
    cdef Buffer b
    if fields.number[seam.WAITING_LONGEST_PAGE_CAPACITY] != queue.keys.capacity:
        cursor = 0
    map64_init(&waiting)
    end = min(cursor + CELLS_PER_PAGE, queue.keys.capacity)
    # The other half of the steps is for the rows: a page ends, and the next one has steps of its own.
    while cursor < end and steps.left > STEPS_MAX // 2:
        key = <Key*> textmap_next(&queue.keys, &cursor)
        if key == NULL:
            break
        flow = key.flows
        while flow != NULL:
            if flow.backlog and (of_all or flow.channel == only):
                before = <uint64_t> map64_get(&waiting, <uint64_t> flow.channel)
                map64_put(&waiting, <uint64_t> flow.channel, <void*> (before + 1))
                age = flow_age(core, flow, &steps)
                if above_ms == 0 or age > above_ms:
                    keep_largest(rows, &count, most, flow, age)
            flow = flow.next_of_key
    largest_first(rows, count)
    buffer_init(&b)
    for i in range(count):
        _row(core, &b, <Flow*> rows[i].what, rows[i].rank, &steps)
    steps_end(core, &steps)
    put_number_field(&b, seam.WAITING_LONGEST_KEYS_CURSOR, cursor if cursor < queue.keys.capacity else 0)
    _put_waiting(&b, queue, &waiting)
    put_number_field(&b, seam.WAITING_LONGEST_KEYS_CAPACITY, queue.keys.capacity)
    map64_free(&waiting)
    free(rows)
    answer(core, command.token, OK, &b, False)


# --- what operators set ----------------------------------------------------------------------

cdef void _defaults(Buffer* row, const Policy* policy) noexcept nogil:
    """What a key of the queue has from its first message on."""
    put_number_field(row, v1.KEY_POLICY_MAX_IN_FLIGHT, policy.default_cap)
    put_number_field(row, v1.KEY_POLICY_CAP_BY_DEFAULT, policy.default_cap != 0)
    if policy.default_rate > 0:
        put_double_field(row, v1.KEY_POLICY_RATE_PER_SECOND, policy.default_rate)
        put_double_field(row, v1.KEY_POLICY_BURST, policy.default_burst)
        put_number_field(row, v1.KEY_POLICY_RATE_BY_DEFAULT, True)
    if policy.default_committed > 0:
        put_double_field(row, v1.KEY_POLICY_COMMITTED_PER_SECOND, policy.default_committed)
        put_number_field(row, v1.KEY_POLICY_COMMITTED_BY_DEFAULT, True)


cdef void _policy(Buffer* b, Queue* queue, Slice name, Key* key) noexcept nogil:
    """A KeyPolicy, also of a key that nobody has named yet."""
    cdef Buffer row
    cdef Flow* flow = key.flows if key != NULL else NULL
    cdef uint64_t pending = 0
    cdef uint64_t in_flight = 0
    while flow != NULL:
        pending = max(pending, <uint64_t> flow.backlog + flow.delayed)
        in_flight += flow.in_flight
        flow = flow.next_of_key
    buffer_init(&row)
    put_text_field(&row, v1.KEY_POLICY_FAIRNESS_KEY, name)
    put_number_field(&row, v1.KEY_POLICY_EFFECTIVE_WEIGHT, weight_now(queue, key, name))
    if key != NULL:
        put_number_field(&row, v1.KEY_POLICY_WEIGHT, key.admin_weight)
        put_number_field(&row, v1.KEY_POLICY_PAUSED, key.paused)
        put_number_field(&row, v1.KEY_POLICY_MAX_IN_FLIGHT, key_cap(key))
        put_number_field(&row, v1.KEY_POLICY_PENDING, pending)
        put_number_field(&row, v1.KEY_POLICY_IN_FLIGHT, in_flight)
        if key_rate_limit(key) != NULL:
            put_double_field(&row, v1.KEY_POLICY_RATE_PER_SECOND, key_rate_limit(key).bucket.rate)
            put_double_field(&row, v1.KEY_POLICY_BURST, key_rate_limit(key).bucket.burst)
        put_number_field(&row, v1.KEY_POLICY_CAP_BY_DEFAULT, cap_is_default(key))
        put_number_field(&row, v1.KEY_POLICY_RATE_BY_DEFAULT, rate_is_default(key))
        if key_committed(key) != NULL:
            put_double_field(
                &row, v1.KEY_POLICY_COMMITTED_PER_SECOND, key_committed(key).limit.bucket.rate)
        put_number_field(&row, v1.KEY_POLICY_COMMITTED_BY_DEFAULT, committed_is_default(key))
    else:
        _defaults(&row, &queue.policy)
    put_nested(b, seam.POLICY_PART_POLICIES, &row)
    buffer_free(&row)


cdef void _key_policies(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    """A KeyPolicy of the key that is named, or of each key with a policy in a part of the table. A cursor of
    0 in the answer: that was all."""
    cdef Slice name = fields.text[seam.POLICY_PAGE_FAIRNESS_KEY]
    cdef uint32_t cursor = <uint32_t> fields.number[seam.POLICY_PAGE_CURSOR]
    cdef uint32_t end
    cdef Key* key
    cdef Buffer b
    buffer_init(&b)
    if name.length:
        _policy(&b, queue, name, <Key*> textmap_get(&queue.keys, name.at, name.length))
        cursor = queue.keys.capacity
    elif fields.number[seam.POLICY_PAGE_CAPACITY] != queue.keys.capacity:
        cursor = 0
    end = min(cursor + CELLS_PER_PAGE, queue.keys.capacity)
    while cursor < end:
        key = <Key*> textmap_next(&queue.keys, &cursor)
        if key == NULL:
            break
        if key_has_policy(key):
            _policy(&b, queue, _text(&key.text), key)
    put_number_field(&b, seam.POLICY_PART_CURSOR, cursor if cursor < queue.keys.capacity else 0)
    put_number_field(&b, seam.POLICY_PART_CAPACITY, queue.keys.capacity)
    answer(core, command.token, OK, &b, False)


cdef void waiting_longest_command(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Queue* queue
    fields_parse(&fields, command.bytes, command.length)
    queue = queue_find(core, fields.text[seam.WAITING_LONGEST_PAGE_QUEUE])
    if queue == NULL:
        answer_no_queue(core, command)
    elif command.kind == WAITING_LONGEST_PAGE:
        _page(core, command, &fields, queue)
    else:
        _key_policies(core, command, &fields, queue)
