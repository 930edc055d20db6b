"""One walk over the channel's clocks ranks by every order that is asked for; rows bound what is written."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy

from fila_server.core.admin.explain cimport Holding, flow_holding, put_blocking_part
from fila_server.core.admin.step_budget cimport StepBudget, flow_age, steps_begin, steps_end
from fila_server.core.index.ages cimport channel_age, channel_lease_age
from fila_server.core.index.policy cimport channel_paused
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel, answer_no_queue
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport FIND_KEYS, OK
from fila_server.core.protocol.protobuf cimport (
    Fields, fields_parse, next_field, put_double_field, put_nested, put_number_field, put_text_field,
    put_timestamp_field,
)
from fila_server.core.scheduling.clocks cimport (
    HOUR_DUE, HOUR_SERVED, WAITED_HELD, clock_account, clock_find, clock_settle, hour_sum,
    hour_total,
)
from fila_server.core.scheduling.flows cimport flow_find
from fila_server.core.state.kinds cimport NOT_PARKED
from fila_server.core.state.paths cimport (
    cap_is_default, channel_find, committed_is_default, flow_delivered, flow_leased, key_cap, key_committed,
    key_rate_limit, key_weight, queue_find, rate_is_default,
)
from fila_server.core.state.state cimport Channel, Flow, Key, KeyClock, Queue
from fila_server.core.structures.buffer cimport Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc
from fila_server.core.structures.counters cimport Hour, Rates
from fila_server.core.structures.maps cimport (
    Map64, Text, map64_free, map64_get, map64_init, map64_put, textmap_get, textmap_next,
)
from fila_server.core.structures.ranking cimport Ranked, keep_largest

cdef enum:
    ROWS_MAX = 256                      # of one order
    ORDERS = 5
    NAMED_MAX = 2048
    CELLS_MAX = 8192                    # of the queue's table in one command; about a millisecond of a pass

# Rates of a shorter time would tell chance.
cdef int64_t LOOK_NS_MIN = <int64_t> 500 * 1000000


cdef struct Ranking:
    Ranked*  rows[5]                    # NULL where the order was not asked for
    uint32_t count[5]
    uint32_t most


cdef inline Slice _text(Text* text) noexcept nogil:
    cdef Slice s
    s.at, s.length = text.bytes, text.length
    return s


# --- one row ---------------------------------------------------------------------------------

cdef void _look(Core* core, KeyClock* row) noexcept nogil:
    """Its rates since the look before."""
    cdef Rates* rates = &row.rates
    cdef uint64_t arrived = row.arrived + (row.flow.arrived if row.flow != NULL else 0)
    cdef uint64_t delivered = row.delivered + (flow_delivered(row.flow) if row.flow != NULL else 0)
    cdef double served, due
    cdef float seconds
    if core.mono_ns - rates.looked_ns < LOOK_NS_MIN and rates.looked_ns:
        return
    if row.flow != NULL:
        clock_account(core, row.flow)
    served = hour_total(&row.hour, HOUR_SERVED)
    due = hour_total(&row.hour, HOUR_DUE)
    seconds = <float> ((core.mono_ns - rates.looked_ns) / 1e9)
    if rates.looked_ns:
        # A flow's count wraps, and one that ended is in the row: what seems to be negative is nothing new.
        rates.arriving = <float> (max(arrived, rates.arrived) - rates.arrived) / seconds
        rates.delivering = <float> (max(delivered, rates.delivered) - rates.delivered) / seconds
        rates.serving = <float> (max(0.0, served - rates.served) / 1000) / seconds
        rates.owing = <float> (max(0.0, due - rates.due) / 1000) / seconds
    rates.looked_ns = core.mono_ns
    rates.arrived, rates.delivered, rates.served, rates.due = arrived, delivered, served, due


cdef void _put_waits(Core* core, Buffer* b, uint32_t field, Hour* hour) noexcept nogil:
    """WaitCauses of the last hour, in the order of the hour's columns."""
    cdef Buffer inner
    cdef int cause
    buffer_init(&inner)
    for cause in range(WAITED_HELD + 1):
        put_number_field(
            &inner, v1.WAIT_CAUSES_NO_CONSUMER_MS + cause, <uint64_t> hour_sum(core, hour, cause))
    put_nested(b, field, &inner)
    buffer_free(&inner)


cdef void _put_policy(Buffer* b, Key* key) noexcept nogil:
    put_number_field(b, v1.KEY_STATE_WEIGHT, key_weight(key))
    put_number_field(b, v1.KEY_STATE_PAUSED, key.paused)
    put_number_field(b, v1.KEY_STATE_MAX_IN_FLIGHT, key_cap(key))
    if key_rate_limit(key) != NULL:
        put_double_field(b, v1.KEY_STATE_RATE_PER_SECOND, key_rate_limit(key).bucket.rate)
        put_double_field(b, v1.KEY_STATE_BURST, key_rate_limit(key).bucket.burst)
    put_number_field(b, v1.KEY_STATE_CAP_BY_DEFAULT, cap_is_default(key))
    put_number_field(b, v1.KEY_STATE_RATE_BY_DEFAULT, rate_is_default(key))
    if key_committed(key) != NULL:
        put_double_field(
            b, v1.KEY_STATE_COMMITTED_PER_SECOND, key_committed(key).limit.bucket.rate)
    put_number_field(b, v1.KEY_STATE_COMMITTED_BY_DEFAULT, committed_is_default(key))


cdef void _put_row(Core* core, Buffer* b, Channel* channel, Slice text, StepBudget* steps) noexcept nogil:
    """A KeyState; of a key that has nothing and never had, its name."""
    cdef Key* key = <Key*> textmap_get(&channel.queue.keys, text.at, text.length)
    cdef Flow* flow = flow_find(key, channel) if key != NULL else NULL
    cdef KeyClock* clock
    cdef Holding held
    cdef Buffer row
    if flow != NULL:
        clock_settle(core, flow)        # to open a row here might be in place of a ranked one
    clock = flow.clock if flow != NULL and flow.clock != NULL else clock_find(channel, text.at, text.length)
    held = flow_holding(core, key, flow, channel_paused(channel), steps)
    buffer_init(&row)
    put_text_field(&row, v1.KEY_STATE_FAIRNESS_KEY, text)
    put_number_field(&row, v1.KEY_STATE_STATE, held.state)
    put_number_field(&row, v1.KEY_STATE_NOBODY_CONSUMES, held.nobody_consumes)
    if held.bucket != NULL:
        put_text_field(&row, v1.KEY_STATE_BLOCKING_BUCKET, _text(&held.bucket.text))
        put_blocking_part(core, &row, held.sub, v1.KEY_STATE_BLOCKING_PART, v1.KEY_STATE_BLOCKING_RATE)
    if held.until_ms:
        put_timestamp_field(&row, v1.KEY_STATE_UNTIL, held.until_ms)
    if flow != NULL:
        put_number_field(&row, v1.KEY_STATE_READY, flow.backlog)
        put_number_field(&row, v1.KEY_STATE_DELAYED, flow.delayed)
        put_number_field(&row, v1.KEY_STATE_IN_FLIGHT, flow.in_flight)
        put_number_field(&row, v1.KEY_STATE_WAITING_MS, flow_age(core, flow, steps) if flow.backlog else 0)
    if key != NULL:
        _put_policy(&row, key)
    if clock != NULL:
        _look(core, clock)
        put_number_field(
            &row, v1.KEY_STATE_ARRIVED_TOTAL, clock.arrived + (flow.arrived if flow != NULL else 0))
        put_number_field(
            &row, v1.KEY_STATE_DELIVERED_TOTAL,
            clock.delivered + (flow_delivered(flow) if flow != NULL else 0))
        put_double_field(&row, v1.KEY_STATE_ARRIVING_PER_SECOND, clock.rates.arriving)
        put_double_field(&row, v1.KEY_STATE_DELIVERED_PER_SECOND, clock.rates.delivering)
        put_double_field(&row, v1.KEY_STATE_SERVED_PER_SECOND, clock.rates.serving)
        put_double_field(&row, v1.KEY_STATE_DUE_PER_SECOND, clock.rates.owing)
        put_double_field(&row, v1.KEY_STATE_SERVED_TOTAL, hour_total(&clock.hour, HOUR_SERVED) / 1000)
        put_double_field(&row, v1.KEY_STATE_DUE_TOTAL, hour_total(&clock.hour, HOUR_DUE) / 1000)
        _put_waits(core, &row, v1.KEY_STATE_WAITS, &clock.hour)
    elif flow != NULL:
        put_number_field(&row, v1.KEY_STATE_ARRIVED_TOTAL, flow.arrived)
        put_number_field(&row, v1.KEY_STATE_DELIVERED_TOTAL, flow_delivered(flow))
        put_double_field(&row, v1.KEY_STATE_SERVED_TOTAL, <double> flow.served / 1000)
    put_nested(b, seam.KEY_ROWS_KEYS, &row)
    buffer_free(&row)


cdef void _put_channel(Core* core, Buffer* b, Channel* channel) noexcept nogil:
    """A QueueState."""
    cdef Queue* queue = channel.queue
    cdef Buffer inner
    buffer_init(&inner)
    put_text_field(&inner, v1.QUEUE_STATE_QUEUE, _text(&queue.text))
    put_text_field(&inner, v1.QUEUE_STATE_CHANNEL, _text(&channel.text))
    put_number_field(&inner, v1.QUEUE_STATE_READY, channel.ready)
    put_number_field(&inner, v1.QUEUE_STATE_DELAYED, channel.delayed)
    put_number_field(&inner, v1.QUEUE_STATE_IN_FLIGHT, channel.in_flight)
    put_number_field(&inner, v1.QUEUE_STATE_CONSUMERS, channel.consumers)
    put_number_field(&inner, v1.QUEUE_STATE_ACTIVE_KEYS, channel.active_keys)
    put_number_field(&inner, v1.QUEUE_STATE_OLDEST_AGE_MS, channel_age(core, channel))
    put_number_field(&inner, v1.QUEUE_STATE_OLDEST_LEASE_AGE_MS, channel_lease_age(core, channel))
    put_number_field(&inner, v1.QUEUE_STATE_ENQUEUED_TOTAL, queue.counters.enqueued)
    put_number_field(&inner, v1.QUEUE_STATE_LEASED_TOTAL, channel.leased)
    put_number_field(&inner, v1.QUEUE_STATE_DELIVERED_TOTAL, channel.delivered)
    put_number_field(&inner, v1.QUEUE_STATE_ACKED_TOTAL, channel.acked)
    put_number_field(&inner, v1.QUEUE_STATE_FAILED_TOTAL, channel.failed)
    put_number_field(&inner, v1.QUEUE_STATE_RETURNED_TOTAL, channel.returned)
    put_number_field(&inner, v1.QUEUE_STATE_DEAD_LETTERED_TOTAL, queue.counters.dead_lettered)
    put_number_field(&inner, v1.QUEUE_STATE_STORED_BYTES, queue.stored_bytes)
    put_double_field(&inner, v1.QUEUE_STATE_SERVED_TOTAL, <double> channel.served / 1000)
    put_number_field(&inner, v1.QUEUE_STATE_PAUSED, channel_paused(channel))
    _put_waits(core, &inner, v1.QUEUE_STATE_WAITS, &channel.hour)
    put_nested(b, seam.WATCHED_ROWS_CHANNEL, &inner)
    buffer_free(&inner)


# --- which rows ------------------------------------------------------------------------------

cdef void _rank(Ranking* ranking, int order, Text* text, uint64_t rank) noexcept nogil:
    if ranking.rows[order] != NULL and rank:
        keep_largest(ranking.rows[order], &ranking.count[order], ranking.most, text, rank)


cdef void _rank_flow(Core* core, Ranking* ranking, Flow* flow, Text* text, StepBudget* steps) noexcept nogil:
    _rank(ranking, 0, text, <uint64_t> flow.backlog + flow.delayed)
    if ranking.rows[1] != NULL and flow.backlog:
        _rank(ranking, 1, text, flow_age(core, flow, steps) + 1)


cdef void _rank_clocks(Core* core, Ranking* ranking, Channel* channel, StepBudget* steps) noexcept nogil:
    """At most ROWS_PER_CHANNEL_MAX of them; some milliseconds."""
    cdef KeyClock* row = channel.clocks_newest
    cdef KeyClock* older
    cdef double off
    while row != NULL:
        older = row.older               # accounting may move it to the front
        _look(core, row)
        if row.flow != NULL:
            _rank_flow(core, ranking, row.flow, &row.text, steps)
        _rank(ranking, 2, &row.text, <uint64_t> (row.rates.arriving * 1000))
        _rank(ranking, 3, &row.text, <uint64_t> (row.rates.serving * 1000))
        off = row.rates.owing - row.rates.serving
        _rank(ranking, 4, &row.text, <uint64_t> ((off if off > 0 else -off) * 1000))
        row = older


cdef uint32_t _rank_slice(
        Core* core, Ranking* ranking, Channel* channel, uint32_t cursor, uint32_t cells,
        StepBudget* steps) noexcept nogil:
    """Keys without a row, of a slice of the table; returns where the next one begins."""
    cdef Queue* queue = channel.queue
    cdef uint32_t end = min(cursor + min(cells, <uint32_t> CELLS_MAX), queue.keys.capacity)
    cdef Key* key
    cdef Flow* flow
    while cursor < end:
        key = <Key*> textmap_next(&queue.keys, &cursor)
        if key == NULL:
            break
        flow = flow_find(key, channel)
        if flow == NULL or flow.clock != NULL:
            continue
        clock_account(core, flow)
        if flow.clock == NULL:          # else the walk over the clocks comes by
            _rank_flow(core, ranking, flow, &key.text, steps)
    return cursor if cursor < queue.keys.capacity else 0


cdef void _put_once(
        Core* core, Buffer* b, Channel* channel, Map64* reported, Slice text,
        StepBudget* steps) noexcept nogil:
    """A row of an order may be one of another, too, or named."""
    cdef Text* known
    cdef Key* key = <Key*> textmap_get(&channel.queue.keys, text.at, text.length)
    known = &key.text if key != NULL else <Text*> clock_find(channel, text.at, text.length)
    if known != NULL:
        if map64_get(reported, <uint64_t> known) != NULL:
            return
        map64_put(reported, <uint64_t> known, known)
    _put_row(core, b, channel, text, steps)


cdef void _watch(Core* core, Command* command, Fields* fields, Channel* channel) noexcept nogil:
    cdef uint32_t cursor = <uint32_t> fields.number[seam.WATCH_PAGE_CURSOR]
    cdef Ranking ranking
    cdef Map64 reported
    cdef Buffer b
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef int order
    cdef uint32_t i
    cdef uint32_t named = 0
    cdef StepBudget steps = steps_begin()
    if fields.number[seam.WATCH_PAGE_CAPACITY] != channel.queue.keys.capacity:
        cursor = 0
    ranking.most = <uint32_t> max(<uint64_t> 1, min(fields.number[seam.WATCH_PAGE_MOST], <uint64_t> ROWS_MAX))
    for order in range(ORDERS):
        ranking.count[order] = 0
        ranking.rows[order] = NULL
        if fields.number[seam.WATCH_PAGE_ORDERS] & (<uint64_t> 1 << order):
            ranking.rows[order] = <Ranked*> must_malloc(ranking.most * sizeof(Ranked))
    # The slice first: it may open rows, in place of others that the walk must not have ranked yet.
    cursor = _rank_slice(
        core, &ranking, channel, cursor,
        <uint32_t> min(fields.number[seam.WATCH_PAGE_CELLS], <uint64_t> CELLS_MAX), &steps)
    if fields.number[seam.WATCH_PAGE_ORDERS] and not fields.number[seam.WATCH_PAGE_SLICE_ONLY]:
        _rank_clocks(core, &ranking, channel, &steps)
    buffer_init(&b)
    map64_init(&reported)
    for order in range(ORDERS):
        for i in range(ranking.count[order]):
            _put_once(core, &b, channel, &reported, _text(<Text*> ranking.rows[order][i].what), &steps)
        free(ranking.rows[order])
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while named < NAMED_MAX and next_field(&c, &field, &kind, &text, &number):
        if field == seam.WATCH_PAGE_KEYS and text.length:
            named += 1
            _put_once(core, &b, channel, &reported, text, &steps)
    steps_end(core, &steps)
    map64_free(&reported)
    put_number_field(&b, seam.WATCHED_ROWS_CURSOR, cursor)
    _put_channel(core, &b, channel)
    put_number_field(&b, seam.WATCHED_ROWS_CAPACITY, channel.queue.keys.capacity)
    answer(core, command.token, OK, &b, False)


cdef struct Gain:                       # of a key that is to have more, or less, of each round than it has
    double work                         # what it has to send
    double before                       # what a round grants it
    double after


cdef uint64_t _lost_to(Channel* channel, Flow* flow, const Gain* gain) noexcept nogil:
    """What would be sent of that key before this one's last message, beyond what is sent now. Picks whom to
    ask the forecast about, which knows the rest."""
    cdef double usual = <double> channel.served / channel.leased if channel.leased else 1000.0
    cdef double grant = <double> flow.turn.weight * channel.ring.quantum
    cdef uint64_t leased = flow_leased(flow)
    cdef double rounds
    if flow.backlog == 0 or flow.parked != NOT_PARKED or grant <= 0:
        return 0
    rounds = flow.backlog * (<double> flow.served / leased if leased else usual) / grant
    return <uint64_t> max(min(gain.work, gain.after * rounds) - min(gain.work, gain.before * rounds), 0.0)


cdef void _find(Core* core, Command* command, Fields* fields, Channel* channel) noexcept nogil:
    cdef Queue* queue = channel.queue
    cdef uint32_t cursor = <uint32_t> fields.number[seam.FIND_PAGE_CURSOR]
    cdef uint32_t end, i
    cdef Slice prefix = fields.text[seam.FIND_PAGE_PREFIX]
    cdef uint64_t matched = 0
    cdef uint64_t rank
    cdef bint by_loss = fields.seen & (1 << seam.FIND_PAGE_RIVAL_WORK) != 0
    cdef Gain gain
    cdef StepBudget steps = steps_begin()
    cdef Ranking ranking
    cdef Key* key
    cdef Flow* flow
    cdef Buffer b
    memcpy(&gain.work, &fields.number[seam.FIND_PAGE_RIVAL_WORK], 8)
    memcpy(&gain.before, &fields.number[seam.FIND_PAGE_RIVAL_GRANT_BEFORE], 8)
    memcpy(&gain.after, &fields.number[seam.FIND_PAGE_RIVAL_GRANT_AFTER], 8)
    if fields.number[seam.FIND_PAGE_CAPACITY] != queue.keys.capacity:
        cursor = 0
    ranking.most = <uint32_t> max(<uint64_t> 1, min(fields.number[seam.FIND_PAGE_MOST], <uint64_t> ROWS_MAX))
    ranking.count[0] = 0
    ranking.rows[0] = <Ranked*> must_malloc(ranking.most * sizeof(Ranked))
    end = min(cursor + CELLS_MAX, queue.keys.capacity)
    while cursor < end:
        key = <Key*> textmap_next(&queue.keys, &cursor)
        if key == NULL:
            break
        if key.text.length < prefix.length or memcmp(key.text.bytes, prefix.at, prefix.length) != 0:
            continue
        matched += 1
        flow = flow_find(key, channel)
        if by_loss:
            rank = _lost_to(channel, flow, &gain) if flow != NULL else 0
        else:                           # one that has nothing is found, too: behind all that have
            rank = 1 + (<uint64_t> flow.backlog + flow.delayed if flow != NULL else 0)
        _rank(&ranking, 0, &key.text, rank)
    buffer_init(&b)
    for i in range(ranking.count[0]):
        _put_row(core, &b, channel, _text(<Text*> ranking.rows[0][i].what), &steps)
        put_number_field(&b, seam.KEY_ROWS_RANKS, ranking.rows[0][i].rank)
    free(ranking.rows[0])
    steps_end(core, &steps)
    put_number_field(&b, seam.KEY_ROWS_CURSOR, cursor if cursor < queue.keys.capacity else 0)
    put_number_field(&b, seam.KEY_ROWS_MATCHED, matched)
    put_number_field(&b, seam.KEY_ROWS_CAPACITY, queue.keys.capacity)
    answer(core, command.token, OK, &b, False)


cdef void watch_command(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Queue* queue
    cdef Channel* channel
    fields_parse(&fields, command.bytes, command.length)
    queue = queue_find(core, fields.text[seam.WATCH_PAGE_QUEUE])
    if queue == NULL:
        answer_no_queue(core, command)
        return
    channel = channel_find(queue, fields.text[seam.WATCH_PAGE_CHANNEL])
    if channel == NULL:
        answer_no_channel(core, command)
    elif command.kind == FIND_KEYS:
        _find(core, command, &fields, channel)
    else:
        _watch(core, command, &fields, channel)
