"""A walk over a slice of a table; each queue and bucket says in a few reads whether it has anything to
tell."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.admin.explain cimport nobody_consumes
from fila_server.core.admin.step_budget cimport StepBudget, may_step, steps_begin, steps_end
from fila_server.core.index.policy cimport CHANNELS_PAUSED, QUEUE_PAUSED, channel_paused
from fila_server.core.lifecycle.answers cimport answer
from fila_server.core.protocol cimport seam
from fila_server.core.protocol.commands cimport OK
from fila_server.core.protocol.protobuf cimport (
    Fields, fields_parse, put_double_field, put_nested, put_number_field, put_text_field,
)
from fila_server.core.scheduling.parts cimport BUDGET_PART, Counted, parts_budget_has, parts_holding
from fila_server.core.state.limits cimport LimitTerms
from fila_server.core.state.paths cimport FAILURES_QUIET_S, slot_cost, waiter_first
from fila_server.core.state.pending cimport KeyExtras
from fila_server.core.state.state cimport Channel, Flow, Key, Queue, Slot, ThrottleKey, Waiters
from fila_server.core.structures.buffer cimport Buffer, Slice, buffer_free, buffer_init
from fila_server.core.structures.fifo cimport fifo_first
from fila_server.core.structures.heap cimport HeapNode
from fila_server.core.structures.ledger cimport ledger_ends_ms
from fila_server.core.structures.maps cimport Text, TextMap, textmap_next

cdef enum:
    OF_QUEUES = 0
    CELLS_PER_PAGE = 4096
    ROWS_MAX = 512                      # after which a page ends
    PAUSED_MAX = 1000                   # keys of a queue
    PLACES_MAX = 16                     # of a bucket; all are counted


cdef inline Slice _text(Text* text) noexcept nogil:
    cdef Slice s
    s.at, s.length = text.bytes, text.length
    return s


cdef uint64_t _ready(Queue* queue, StepBudget* steps) noexcept nogil:
    """Of the channel with most: a message is stored once, and waits in each."""
    cdef Channel* channel = queue.channels
    cdef uint64_t most = 0
    while channel != NULL and may_step(steps):
        most = max(most, channel.ready)
        channel = channel.next
    return most


cdef uint64_t _ready_of(Key* key, StepBudget* steps) noexcept nogil:
    cdef Flow* flow = key.flows
    cdef uint64_t most = 0
    while flow != NULL and may_step(steps):
        most = max(most, <uint64_t> flow.backlog)
        flow = flow.next_of_key
    return most


cdef void _put_paused(Buffer* b, Queue* queue, Channel* channel, Key* key, uint64_t ready) noexcept nogil:
    """A key's pause, a channel's, or without these the queue's."""
    cdef Buffer row
    buffer_init(&row)
    put_text_field(&row, seam.PAUSED_ROW_QUEUE, _text(&queue.text))
    if key != NULL:
        put_text_field(&row, seam.PAUSED_ROW_FAIRNESS_KEY, _text(&key.text))
    if channel != NULL:
        put_text_field(&row, seam.PAUSED_ROW_CHANNEL, _text(&channel.text))
    put_number_field(&row, seam.PAUSED_ROW_READY, ready)
    put_number_field(&row, seam.PAUSED_ROW_IS_QUEUE, key == NULL and channel == NULL)
    put_nested(b, seam.TROUBLES_FOUND_PAUSED, &row)
    buffer_free(&row)


cdef HeapNode* _next_paused(HeapNode* node) noexcept nogil:
    """The heap's next node, in no order; NULL after the last."""
    if node.child != NULL:
        return node.child
    while node != NULL and node.next == NULL:
        while node.prev != NULL and node.prev.child != node:
            node = node.prev
        node = node.prev                # the parent
    return node.next if node != NULL else NULL


cdef uint32_t _paused_keys(Buffer* b, Queue* queue, StepBudget* steps) noexcept nogil:
    """How many rows it has: its paused keys with something ready, the one paused first among them."""
    cdef HeapNode* node = queue.paused_keys
    cdef Key* key
    cdef uint32_t count = 0
    cdef uint64_t ready
    while node != NULL and count < PAUSED_MAX and may_step(steps):
        key = <Key*> (<KeyExtras*> node).key
        ready = _ready_of(key, steps)
        if ready:
            count += 1
            _put_paused(b, queue, NULL, key, ready)
        node = _next_paused(node)
    return count


cdef uint32_t _paused_channels(Buffer* b, Queue* queue, StepBudget* steps) noexcept nogil:
    """How many rows it has: its channels that are paused themselves, with something ready."""
    cdef Channel* channel = queue.channels
    cdef uint32_t count = 0
    while channel != NULL and count < PAUSED_MAX and may_step(steps):
        if channel.ready and channel_paused(channel):
            count += 1
            _put_paused(b, queue, channel, NULL, channel.ready)
        channel = channel.next
    return count


cdef uint32_t _unserved(Buffer* b, Queue* queue, StepBudget* steps) noexcept nogil:
    """Its channels in which something is ready and nobody consumes."""
    cdef Channel* channel = queue.channels
    cdef uint32_t count = 0
    cdef Buffer row
    while channel != NULL and may_step(steps):
        if channel.ready and nobody_consumes(channel) and not channel_paused(channel):
            count += 1
            buffer_init(&row)
            put_text_field(&row, seam.UNSERVED_ROW_QUEUE, _text(&queue.text))
            put_text_field(&row, seam.UNSERVED_ROW_CHANNEL, _text(&channel.text))
            put_number_field(&row, seam.UNSERVED_ROW_READY, channel.ready)
            put_number_field(&row, seam.UNSERVED_ROW_DELIVERED, channel.delivered)
            put_nested(b, seam.TROUBLES_FOUND_UNSERVED, &row)
            buffer_free(&row)
        channel = channel.next
    return count


cdef inline bint _failed_of_late(Core* core, Queue* queue) noexcept nogil:
    cdef int64_t last_ns = queue.failures.last_ns
    return last_ns != 0 and core.mono_ns - last_ns <= <int64_t> FAILURES_QUIET_S * 1000000000


cdef void _put_failing(Core* core, Buffer* b, Queue* queue, StepBudget* steps) noexcept nogil:
    cdef Buffer row
    buffer_init(&row)
    put_text_field(&row, seam.FAILING_ROW_QUEUE, _text(&queue.text))
    put_number_field(&row, seam.FAILING_ROW_ACKED, queue.counters.acked)
    put_number_field(&row, seam.FAILING_ROW_FAILED, queue.counters.nacked + queue.counters.expired)
    put_number_field(&row, seam.FAILING_ROW_DEAD, queue.counters.dead_lettered)
    put_number_field(&row, seam.FAILING_ROW_ACKED_BEFORE, queue.failures.acked)
    put_number_field(&row, seam.FAILING_ROW_FAILED_BEFORE, queue.failures.failed)
    put_number_field(&row, seam.FAILING_ROW_DEAD_BEFORE, queue.failures.dead)
    put_number_field(
        &row, seam.FAILING_ROW_BEGAN_AGO_MS, <uint64_t> ((core.mono_ns - queue.failures.began_ns) // 1000000))
    put_number_field(&row, seam.FAILING_ROW_READY, _ready(queue, steps))
    put_nested(b, seam.TROUBLES_FOUND_FAILING, &row)
    buffer_free(&row)


cdef uint32_t _queue(Core* core, Buffer* b, Queue* queue, StepBudget* steps) noexcept nogil:
    """How many rows it has. What stands in a dead-letter queue waits for people, and what is paused for
    nobody who consumes."""
    cdef uint32_t count = 0
    cdef uint64_t ready
    count += _paused_keys(b, queue, steps)
    if queue.is_dlq:
        return count
    if queue.policy.paused & QUEUE_PAUSED:
        ready = _ready(queue, steps)
        if ready:
            count += 1
            _put_paused(b, queue, NULL, NULL, ready)
    elif queue.depth:
        if queue.policy.paused & CHANNELS_PAUSED:
            count += _paused_channels(b, queue, steps)
        count += _unserved(b, queue, steps)
    if _failed_of_late(core, queue):
        count += 1
        _put_failing(core, b, queue, steps)
    return count


cdef void _put_parts(Core* core, Buffer* row, ThrottleKey* bucket) noexcept nogil:
    """What holds the first message of its first line. A spent budget lasts longer than taken slots."""
    cdef LimitTerms* terms = &bucket.parts.terms
    cdef uint64_t cost = slot_cost(<Slot*> fifo_first(&waiter_first(bucket.waiters.first).fifo))
    cdef Counted nobody
    cdef int part = BUDGET_PART
    nobody.messages = nobody.cost = 0
    if parts_budget_has(core, bucket, cost):
        part = parts_holding(core, bucket, cost, nobody)
    put_number_field(row, seam.LIMIT_ROW_IS_COMPOUND, 1)
    put_number_field(row, seam.LIMIT_ROW_PART, <uint64_t> part)
    put_number_field(row, seam.LIMIT_ROW_SLOTS, terms.slots)
    if terms.amount > 0:
        put_double_field(row, seam.LIMIT_ROW_AMOUNT, terms.amount)
        put_number_field(row, seam.LIMIT_ROW_IN_COST, terms.budget_in_cost)
        put_number_field(row, seam.LIMIT_ROW_PERIOD_MS, <uint64_t> terms.period_ms)
        put_number_field(row, seam.LIMIT_ROW_ENDS_MS, <uint64_t> ledger_ends_ms(&bucket.parts.ledger))


cdef uint32_t _limit(Core* core, Buffer* b, ThrottleKey* bucket, StepBudget* steps) noexcept nogil:
    cdef Waiters* waiters = bucket.waiters
    cdef uint64_t messages = 0
    cdef uint32_t places = 0
    cdef Buffer row
    cdef Buffer place
    if not bucket.limited or waiters == NULL:
        return 0
    buffer_init(&row)
    put_text_field(&row, seam.LIMIT_ROW_THROTTLE_KEY, _text(&bucket.text))
    put_double_field(&row, seam.LIMIT_ROW_RATE, bucket.bucket.rate)
    put_double_field(&row, seam.LIMIT_ROW_BURST, bucket.bucket.burst)
    put_number_field(&row, seam.LIMIT_ROW_PASSED, bucket.passed)
    if bucket.parts != NULL:
        _put_parts(core, &row, bucket)
    while waiters != NULL and may_step(steps):
        messages += waiters.messages
        if waiters.messages and places < PLACES_MAX:
            places += 1
            buffer_init(&place)
            put_text_field(&place, seam.LIMIT_PLACE_QUEUE, _text(&waiters.channel.queue.text))
            put_text_field(&place, seam.LIMIT_PLACE_CHANNEL, _text(&waiters.channel.text))
            put_number_field(&place, seam.LIMIT_PLACE_MESSAGES, waiters.messages)
            put_nested(&row, seam.LIMIT_ROW_PLACES, &place)
            buffer_free(&place)
        waiters = waiters.next
    put_number_field(&row, seam.LIMIT_ROW_MESSAGES, messages)
    if messages:
        put_nested(b, seam.TROUBLES_FOUND_LIMITS, &row)
    buffer_free(&row)
    return messages > 0


cdef void troubles_page(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef StepBudget steps = steps_begin()
    cdef uint32_t cursor, end
    cdef uint32_t count = 0
    cdef bint of_queues
    cdef TextMap* table
    cdef Text* found
    cdef Buffer b
    fields_parse(&fields, command.bytes, command.length)
    of_queues = fields.number[seam.TROUBLES_PAGE_PART] == OF_QUEUES
    table = &core.queues if of_queues else &core.throttle_keys
    cursor = <uint32_t> fields.number[seam.TROUBLES_PAGE_CURSOR]
    if fields.number[seam.TROUBLES_PAGE_CAPACITY] != table.capacity:
        cursor = 0
    buffer_init(&b)
    end = min(cursor + CELLS_PER_PAGE, table.capacity)
    while cursor < end and count < ROWS_MAX and may_step(&steps):
        found = textmap_next(table, &cursor)
        if found == NULL:
            break
        if of_queues:
            count += _queue(core, &b, <Queue*> found, &steps)
        else:
            count += _limit(core, &b, <ThrottleKey*> found, &steps)
    steps_end(core, &steps)
    put_number_field(&b, seam.TROUBLES_FOUND_CURSOR, cursor if cursor < table.capacity else 0)
    put_number_field(&b, seam.TROUBLES_FOUND_CAPACITY, table.capacity)
    answer(core, command.token, OK, &b, False)
