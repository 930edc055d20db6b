"""What holds a key's next message back is read off the tables at the time of asking; what it waited
for, from its clock.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t

from fila_server.core.admin.forecast cimport put_forecast, tokens_before
from fila_server.core.admin.key_head cimport delay_due_ms, first_delay, put_head, put_head_of, slot_to_follow
from fila_server.core.admin.step_budget cimport SUBQUEUES_MAX, flow_age, may_step, steps_begin, steps_end
from fila_server.core.index.policy cimport channel_paused
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel
from fila_server.core.lifecycle.deliver cimport consumer_room
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport OK
from fila_server.core.protocol.protobuf cimport (
    PRIORITY_USUAL, put_double_field, put_nested, put_number_field, put_text_field, put_timestamp_field,
)
from fila_server.core.scheduling.clocks cimport (
    HOUR_RETURNED, HOUR_SERVED, WAITED_HELD, clock_account, clock_find, clock_remember, hour_sum,
)
from fila_server.core.scheduling.allowances cimport rate_limit_due_ms
from fila_server.core.scheduling.flows cimport flow_find
from fila_server.core.scheduling.following cimport key_follows
from fila_server.core.scheduling.parts cimport (
    RATE_PART, Counted, parts_due_ns, parts_holding, parts_last_rate, parts_refill,
)
from fila_server.core.state.kinds cimport (
    PARKED_CAPPED, PARKED_IN_ORDER, PARKED_RATE_LIMITED, PARKED_THROTTLED,
)
from fila_server.core.state.paths cimport (
    cap_is_default, channel_find, committed_is_default, flow_first_turn, flow_retrying, frame_of,
    frame_offset, key_committed, key_rate_limit, key_weight, rate_is_default, slot_cost, slot_returns,
    subqueue_waits,
)
from fila_server.core.state.pending cimport FirstTurn
from fila_server.core.state.settings cimport WeightRow
from fila_server.core.state.state cimport (
    Channel, Consumer, Delay, Flow, Key, KeyClock, Slot, Subqueue, ThrottleKey, Waiters,
)
from fila_server.core.structures.bucket cimport bucket_level_at, bucket_refill
from fila_server.core.structures.buffer cimport Buffer, Slice, buffer_free, buffer_init
from fila_server.core.structures.counters cimport Hour
from fila_server.core.structures.fifo cimport fifo_first
from fila_server.core.structures.maps cimport textmap_get
from fila_server.core.structures.ring cimport IDLE, Ring

cdef enum State:                        # admin.proto's
    NO_CONSUMER = 1
    NOT_ITS_TURN = 2
    THROTTLED = 3
    DELAYED = 4
    LEASED = 5
    PAUSED = 6
    CAPPED = 7
    EMPTY = 8
    RATE_LIMITED = 9
    IN_ORDER = 10
    BEYOND_COMMITTED = 11
    SUCCEEDS = 12

cdef enum:
    CONSUMERS_MAX = 10000
    RETURNING_LOOKED_AT = 256
    RETURNS_NAMED = 10

cdef double LONGEST_S = 1e9


cdef bint _somebody_has_room(Channel* channel, StepBudget* steps) noexcept nogil:
    """Looks anew, once a command: Channel.has_room may be a hope that deliver has yet to check."""
    cdef Consumer* consumer = channel.turn
    cdef int looked = 0
    if steps.channel == channel:
        return steps.has_room
    steps.channel, steps.has_room = channel, False
    while consumer != NULL and looked < CONSUMERS_MAX:
        if not may_step(steps):
            steps.has_room = channel.has_room
            break
        if consumer_room(consumer):
            steps.has_room = True
            break
        looked += 1
        consumer = consumer.next
        if consumer == channel.turn:
            break
    return steps.has_room


cdef Subqueue* _first_waiting(Flow* flow, StepBudget* steps) noexcept nogil:
    """The sub-queue that waits in some line and has the lowest rank."""
    cdef Subqueue* sub = flow.subqueues.first if flow.subqueues != NULL else NULL
    cdef Subqueue* found = NULL
    cdef int looked = 0
    while sub != NULL and looked < SUBQUEUES_MAX and may_step(steps):
        looked += 1
        if (
            subqueue_waits(sub)
            and (found == NULL or sub.node.rank < found.node.rank)
        ):
            found = sub
        sub = sub.sibling
    return found


cdef int64_t _token_due_ms(Core* core, Subqueue* sub, StepBudget* steps) noexcept nogil:
    """When a token can be its, if those whose turns come before take theirs, channels in turn; 0 = never, or
    nobody knows. Of a limit of several parts: when these have enough for its message, if nobody takes any."""
    cdef ThrottleKey* bucket = sub.waiter.waiters.bucket
    cdef Waiters* waiters = bucket.waiters
    cdef Counted nobody
    cdef uint32_t channels = 0
    cdef double before, wait_s
    cdef int64_t due_ns
    if bucket.parts != NULL:
        nobody.messages = nobody.cost = 0
        parts_refill(core, bucket)
        due_ns = parts_due_ns(core, bucket, slot_cost(<Slot*> fifo_first(&sub.fifo)), nobody)
        return 0 if due_ns == INT64_MAX else core.wall_ms + (due_ns - core.mono_ns) // 1000000
    if bucket.bucket.rate <= 0 or bucket.bucket.burst < 1:
        return 0
    before = tokens_before(core, sub.waiter, steps)
    if not may_step(steps):
        return 0
    while waiters != NULL:
        channels += waiters.turn.place != IDLE
        waiters = waiters.next
    bucket_refill(&bucket.bucket, core.mono_ns, True)
    wait_s = (
        before * max(channels, <uint32_t> 1) + 1 - bucket_level_at(&bucket.bucket, core.mono_ns)
    ) / bucket.bucket.rate
    return core.wall_ms + <int64_t> (min(max(wait_s, 0.0), LONGEST_S) * 1000)


cdef void put_blocking_part(
        Core* core, Buffer* b, Subqueue* sub, uint32_t part_field, uint32_t rate_field) noexcept nogil:
    cdef ThrottleKey* bucket = sub.waiter.waiters.bucket
    cdef uint64_t cost = slot_cost(<Slot*> fifo_first(&sub.fifo))
    cdef uint32_t rate = 0
    cdef int part = RATE_PART
    cdef Counted nobody
    if bucket.parts != NULL:
        nobody.messages = nobody.cost = 0
        parts_refill(core, bucket)
        part = parts_holding(core, bucket, cost, nobody)
        if part == RATE_PART and bucket.parts.terms.rate_count > 1:
            rate = parts_last_rate(bucket, cost, nobody)
    put_number_field(b, part_field, <uint64_t> part)
    put_number_field(b, rate_field, rate)


cdef bint _others_go_first(Flow* flow) noexcept nogil:
    """Somebody consumes, and keys that are within their committed rates wait for it as well."""
    cdef Ring* ring = flow.channel.committed
    cdef FirstTurn* first = flow_first_turn(flow)
    if ring == NULL or flow.channel.turn == NULL or ring.ring_count + ring.deferred_count == 0:
        return False
    return first == NULL or first.turn.place == IDLE


cdef Holding flow_holding(
        Core* core, Key* key, Flow* flow, bint channel_is_paused, StepBudget* steps) noexcept nogil:
    cdef Holding held
    cdef Subqueue* sub
    cdef Delay* delay
    held.state = EMPTY
    held.bucket = NULL
    held.sub = NULL
    held.until_ms = 0
    held.by_default = held.nobody_consumes = False
    if flow == NULL:
        if channel_is_paused or (key != NULL and key.paused):
            held.state = PAUSED         # what comes will wait, and the caller should hear why
        return held
    if flow.backlog:
        if key.paused or channel_is_paused:
            held.state = PAUSED
        elif flow.parked == PARKED_CAPPED:
            held.state = CAPPED
            held.by_default = cap_is_default(key)
        elif flow.parked == PARKED_IN_ORDER:
            held.state = IN_ORDER
            delay = first_delay(core, flow, True, steps) if flow_retrying(flow) else NULL
            held.until_ms = delay_due_ms(core, delay) if delay != NULL else 0
        elif flow.parked == PARKED_RATE_LIMITED:
            held.state = RATE_LIMITED
            held.by_default = rate_is_default(key)
            held.until_ms = rate_limit_due_ms(core, key_rate_limit(key))
        elif flow.parked == PARKED_THROTTLED:
            held.state = THROTTLED
            sub = _first_waiting(flow, steps)
            if sub != NULL:
                held.bucket = sub.waiter.waiters.bucket
                held.sub = sub
                held.until_ms = _token_due_ms(core, sub, steps)
        elif _others_go_first(flow):
            held.state = BEYOND_COMMITTED
            if key_committed(key) != NULL:
                held.by_default = committed_is_default(key)
                held.until_ms = rate_limit_due_ms(core, &key_committed(key).limit)
        elif _somebody_has_room(flow.channel, steps):
            held.state = NOT_ITS_TURN
        else:
            held.state = NO_CONSUMER
            held.nobody_consumes = nobody_consumes(flow.channel)
    elif flow.delayed:
        held.state = PAUSED if key.paused else DELAYED
        delay = NULL if key.paused else first_delay(core, flow, False, steps)
        held.until_ms = delay_due_ms(core, delay) if delay != NULL else 0
    elif flow.in_flight:
        held.state = LEASED
    elif key.paused or channel_is_paused:
        held.state = PAUSED
    return held


cdef void _put_waits(Core* core, Buffer* b, KeyClock* row) noexcept nogil:
    cdef Buffer inner
    cdef int cause
    buffer_init(&inner)
    if row != NULL:
        for cause in range(WAITED_HELD + 1):
            put_number_field(
                &inner, v1.WAIT_CAUSES_NO_CONSUMER_MS + cause, <uint64_t> hour_sum(core, &row.hour, cause))
    put_nested(b, v1.EXPLAIN_KEY_RESPONSE_WAITS, &inner)
    buffer_free(&inner)


cdef void _put_returning(Buffer* b, Flow* flow, StepBudget* steps) noexcept nogil:
    """What comes back keeps its place, so a message that always does stands among the first."""
    cdef Slot* slot = <Slot*> flow.fifo.head
    cdef Subqueue* sub = flow.subqueues.first if flow.subqueues != NULL else NULL
    cdef Slot* found = NULL
    cdef int looked = 0
    cdef uint32_t most = RETURNS_NAMED - 1
    while looked < RETURNING_LOOKED_AT:
        while slot == NULL and sub != NULL and may_step(steps):
            slot = <Slot*> sub.fifo.head
            sub = sub.sibling
        if slot == NULL:
            break
        looked += 1
        if slot_returns(slot) > most:
            most = slot_returns(slot)
            found = slot
        slot = <Slot*> slot.place.next
    if found != NULL:
        put_number_field(
            b, v1.EXPLAIN_KEY_RESPONSE_RETURNING_OFFSET, frame_offset(frame_of(found), found.index))
        put_number_field(b, v1.EXPLAIN_KEY_RESPONSE_RETURNING_COUNT, most)


cdef uint32_t highest_that_may_go(Flow* flow) noexcept nogil:
    cdef Subqueue* first = <Subqueue*> flow.subqueues.eligible if flow.subqueues != NULL else NULL
    cdef uint32_t highest = first.priority if first != NULL else 0
    return highest if fifo_first(&flow.fifo) == NULL else max(highest, <uint32_t> PRIORITY_USUAL)


cdef uint64_t _behind_higher(Flow* flow, StepBudget* steps) noexcept nogil:
    """Its ready messages below the highest that may go, but for those that stand in lines."""
    cdef uint32_t highest = highest_that_may_go(flow)
    cdef Subqueue* sub = flow.subqueues.first if flow.subqueues != NULL else NULL
    cdef uint64_t plain = flow.backlog
    cdef uint64_t behind = 0
    cdef int looked = 0
    while sub != NULL:
        if looked == SUBQUEUES_MAX or not may_step(steps):
            return behind
        looked += 1
        plain -= sub.count
        if sub.priority < highest and not subqueue_waits(sub):
            behind += sub.count
        sub = sub.sibling
    return behind + plain if highest > PRIORITY_USUAL else behind


cdef double _stayed(Core* core, Hour* hour) noexcept nogil:
    """A delivery may come back in another part of the hour than it went in."""
    return max(hour_sum(core, hour, HOUR_SERVED) - hour_sum(core, hour, HOUR_RETURNED), 0.0)


cdef double _share(Core* core, Channel* channel, Flow* flow, KeyClock* row) noexcept nogil:
    """Its part of the cost of what the channel delivered within the hour, less what came back; a flow without
    a row counts since it began."""
    cdef double all_of_it = _stayed(core, &channel.hour)
    cdef double served = 0
    if row != NULL:
        served = _stayed(core, &row.hour)
    elif flow != NULL:
        served = <double> flow.served
    return min(served / all_of_it, 1.0) if all_of_it > 0 else 0.0


cdef double _due_share(Channel* channel, Flow* flow, uint32_t weight) noexcept nogil:
    """Its weight among those that are on the ring now, itself counted in."""
    cdef double others = <double> channel.weight
    if flow != NULL and flow.joined:
        others -= flow.turn.weight
    return weight / (others + weight) if weight else 0.0


cdef uint32_t weight_now(Queue* queue, Key* key, Slice text) noexcept nogil:
    cdef WeightRow* row
    if key != NULL:
        return key_weight(key)
    row = <WeightRow*> textmap_get(&queue.policy.weights, text.at, text.length)
    return row.weight if row != NULL else 1


cdef void _put_limit(Core* core, Buffer* b, Holding* held) noexcept nogil:
    """The limit that it waits at: by name, which part of it, and what it learned."""
    cdef ThrottleKey* bucket = held.bucket
    cdef Slice name
    name.at, name.length = bucket.text.bytes, bucket.text.length
    put_text_field(b, v1.EXPLAIN_KEY_RESPONSE_BLOCKING_BUCKET, name)
    put_blocking_part(
        core, b, held.sub, v1.EXPLAIN_KEY_RESPONSE_BLOCKING_PART, v1.EXPLAIN_KEY_RESPONSE_BLOCKING_RATE)
    if key_follows(bucket):
        put_double_field(b, v1.EXPLAIN_KEY_RESPONSE_LEARNED_PER_SECOND, bucket.parts.learned.rate)
        if bucket.parts.refused_ms:
            put_timestamp_field(b, v1.EXPLAIN_KEY_RESPONSE_REFUSED_AT, bucket.parts.refused_ms)


cdef void explain_key(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Slice text = fields.text[v1.EXPLAIN_KEY_REQUEST_FAIRNESS_KEY]
    cdef Channel* channel = channel_find(queue, fields.text[v1.EXPLAIN_KEY_REQUEST_CHANNEL])
    cdef Key* key = <Key*> textmap_get(&queue.keys, text.at, text.length)
    cdef Slice apart_text = fields.text[seam.EXPLAIN_KEY_APART]
    cdef Key* other = <Key*> textmap_get(&queue.keys, apart_text.at, apart_text.length)
    cdef Flow* flow = NULL
    cdef Flow* apart = NULL
    cdef KeyClock* row
    cdef Holding held
    cdef Slot* followed = NULL
    cdef StepBudget steps = steps_begin()
    cdef uint32_t weight = weight_now(queue, key, text)
    cdef Buffer b
    if channel == NULL:
        answer_no_channel(core, command)
        return
    if key != NULL:
        flow = flow_find(key, channel)
    if other != NULL and apart_text.length and other != key:
        apart = flow_find(other, channel)
    if flow != NULL:
        clock_remember(core, flow)
        clock_account(core, flow)
    row = flow.clock if flow != NULL else clock_find(channel, text.at, text.length)
    held = flow_holding(core, key, flow, channel_paused(channel), &steps)
    if held.state == DELAYED:           # unless one of them goes with the end of a lease, at any time
        followed = slot_to_follow(core, flow, &steps)
        if followed != NULL:
            held.state = SUCCEEDS
    buffer_init(&b)
    put_number_field(&b, v1.EXPLAIN_KEY_RESPONSE_STATE, held.state)
    if held.bucket != NULL:
        _put_limit(core, &b, &held)
    if held.until_ms:
        put_timestamp_field(&b, v1.EXPLAIN_KEY_RESPONSE_UNTIL, held.until_ms)
    put_number_field(&b, v1.EXPLAIN_KEY_RESPONSE_BY_DEFAULT, held.by_default)
    put_number_field(&b, v1.EXPLAIN_KEY_RESPONSE_NOBODY_CONSUMES, held.nobody_consumes)
    put_double_field(&b, v1.EXPLAIN_KEY_RESPONSE_SHARE, _share(core, channel, flow, row))
    put_double_field(
        &b, v1.EXPLAIN_KEY_RESPONSE_DUE_SHARE, _due_share(channel, flow, weight if flow != NULL else 0))
    _put_waits(core, &b, row)
    if flow != NULL:
        put_number_field(&b, v1.EXPLAIN_KEY_RESPONSE_PENDING, flow.backlog + flow.delayed)
        put_number_field(&b, v1.EXPLAIN_KEY_RESPONSE_IN_FLIGHT, flow.in_flight)
        put_number_field(
            &b, v1.EXPLAIN_KEY_RESPONSE_OLDEST_AGE_MS, flow_age(core, flow, &steps) if flow.backlog else 0)
    put_number_field(&b, v1.EXPLAIN_KEY_RESPONSE_WEIGHT, weight)
    if flow != NULL:
        _put_returning(&b, flow, &steps)
        put_number_field(&b, v1.EXPLAIN_KEY_RESPONSE_BEHIND_HIGHER, _behind_higher(flow, &steps))
        if followed != NULL:
            put_head_of(core, &b, v1.EXPLAIN_KEY_RESPONSE_WAITS_FOR, followed)
        elif queue.policy.in_order:
            put_head(core, &b, v1.EXPLAIN_KEY_RESPONSE_WAITS_FOR, flow, &steps)
    if fields.number[seam.EXPLAIN_KEY_WITH_FORECAST]:
        put_forecast(core, &b, seam.EXPLAINED_FORECAST, channel, key, flow, apart, held.sub, &steps)
    steps_end(core, &steps)
    answer(core, command.token, OK, &b, False)
