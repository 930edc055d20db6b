"""Costs are in thousandths of a message, as the ring counts them."""

from libc.math cimport log2
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from fila_server.core.admin.step_budget cimport flow_first, may_step, steps_spend
from fila_server.core.index.holders cimport holder_room
from fila_server.core.lifecycle.deliver cimport consumer_room
from fila_server.core.protocol cimport seam
from fila_server.core.protocol.protobuf cimport put_double_field, put_nested, put_number_field
from fila_server.core.state.kinds cimport PULL
from fila_server.core.state.paths cimport entry_of, flow_leased, key_cap, key_rate_limit
from fila_server.core.state.pending cimport KeyRateLimit
from fila_server.core.state.state cimport Consumer, Slot, ThrottleKey, Waiters
from fila_server.core.structures.bucket cimport bucket_refill
from fila_server.core.structures.buffer cimport buffer_free, buffer_init
from fila_server.core.structures.ring cimport DEFERRED, IDLE, Ring, Turn

cdef enum:
    FLOWS_LOOKED_AT = 4096
    PLACES_LOOKED_AT = 4096
    CONSUMERS_LOOKED_AT = 10000
    COSTS_LOOKED_AT = 64
    GROUPS = 48                     # of rivals: two for each doubling of the rounds they will stay

cdef struct Group:
    double weight
    double work


cdef double _channel_cost(Channel* channel) noexcept nogil:
    """What a message of the channel cost so far, on average."""
    return <double> channel.served / channel.leased if channel.leased else 1000.0


cdef double _flow_work(Flow* flow, double usual) noexcept nogil:
    """What its backlog will cost, if it goes on as it was."""
    cdef uint64_t leased = flow_leased(flow)
    return flow.backlog * (<double> flow.served / leased if leased else usual)


cdef double _own_cost(Flow* flow, double usual, StepBudget* steps) noexcept nogil:
    """The average of its first messages."""
    cdef Slot* slot = <Slot*> flow.fifo.head
    cdef Subqueue* sub = flow.subqueues.first if flow.subqueues != NULL else NULL
    cdef uint32_t looked = 0
    cdef double total = 0
    while looked < COSTS_LOOKED_AT:
        while slot == NULL and sub != NULL and may_step(steps):
            slot = <Slot*> sub.fifo.head
            sub = sub.sibling
        if slot == NULL:
            break
        total += entry_of(slot).cost
        looked += 1
        slot = <Slot*> slot.place.next
    return total / looked if looked else usual


# --- the ring --------------------------------------------------------------------------------

cdef double _before_its_turn(
        Channel* channel, Flow* flow, Flow* apart, double usual, double* of_apart,
        StepBudget* steps) noexcept nogil:
    """What those between the head of the ring and this flow may send in their turns of now; of it,
    `apart`'s."""
    cdef Ring* ring = &channel.ring
    cdef Turn* turn = ring.head
    cdef Flow* other
    cdef uint32_t looked = 0
    cdef double ahead = 0
    cdef double grant
    while turn != NULL and turn != &flow.turn and looked < FLOWS_LOOKED_AT:
        if turn != &ring.marker:
            other = <Flow*> turn
            grant = 0 if turn == ring.granted else <double> turn.weight * ring.quantum
            ahead += min(turn.deficit + grant, _flow_work(other, usual))
            if other == apart:
                of_apart[0] = min(turn.deficit + grant, _flow_work(other, usual))
        looked += 1
        turn = turn.next
        if turn == ring.head:
            break
    steps_spend(steps, looked)
    if looked == FLOWS_LOOKED_AT and ring.ring_count > FLOWS_LOOKED_AT:
        ahead *= (ring.ring_count / 2.0) / FLOWS_LOOKED_AT      # it stands anywhere behind them
    return ahead


cdef uint64_t _rounds_to_save(Channel* channel, Flow* flow, uint32_t cost) noexcept nogil:
    """How many rounds after its next turn it can pay for its first message."""
    cdef Ring* ring = &channel.ring
    cdef uint64_t grant = <uint64_t> flow.turn.weight * <uint64_t> ring.quantum
    cdef uint64_t has = <uint64_t> flow.turn.deficit
    if flow.turn.place == DEFERRED:
        return <uint64_t> max(ring.deferred[flow.turn.deferred_at].due_round - ring.round, <int64_t> 0)
    if ring.granted != &flow.turn:
        has += grant
    return (cost - has + grant - 1) // grant if cost > has and grant else 0


cdef void _rival(Group* groups, Channel* channel, Turn* turn, double usual) noexcept nogil:
    cdef double work = _flow_work(<Flow*> turn, usual)
    cdef double grant = <double> turn.weight * channel.ring.quantum
    cdef int at = <int> (2 * log2(1 + work / grant)) if grant > 0 else 0
    at = min(max(at, 0), GROUPS - 1)
    groups[at].weight += turn.weight
    groups[at].work += work


cdef void _put_rivals(
        Buffer* b, Channel* channel, Flow* flow, Flow* apart, double usual, StepBudget* steps) noexcept nogil:
    """Who shares the channel with it: by how many rounds they will stay, their weights and work together.
    `apart` is told by itself, whether it is on the ring or not."""
    cdef Group[GROUPS] groups
    cdef Ring* ring = &channel.ring
    cdef Turn* own = &flow.turn if flow != NULL else NULL
    cdef Turn* aside = &apart.turn if apart != NULL else NULL
    cdef Turn* turn = ring.head
    cdef uint32_t looked = 0
    cdef uint32_t i
    cdef double scale = 1
    cdef Buffer row
    memset(groups, 0, sizeof(groups))
    while turn != NULL and looked < FLOWS_LOOKED_AT:
        if turn != own and turn != aside and turn != &ring.marker:
            _rival(groups, channel, turn, usual)
        looked += 1
        turn = turn.next
        if turn == ring.head:
            break
    for i in range(min(ring.deferred_count, <uint32_t> FLOWS_LOOKED_AT)):
        looked += 1
        turn = ring.deferred[i].turn
        if turn != own and turn != aside:
            _rival(groups, channel, turn, usual)
    steps_spend(steps, looked)
    if looked and ring.ring_count + ring.deferred_count > looked:
        scale = <double> (ring.ring_count + ring.deferred_count) / looked
    for i in range(GROUPS):
        if groups[i].weight > 0:
            buffer_init(&row)
            put_double_field(&row, seam.RIVALS_WEIGHT, groups[i].weight * scale)
            put_double_field(&row, seam.RIVALS_WORK, groups[i].work * scale)
            put_nested(b, seam.FORECAST_RIVALS, &row)
            buffer_free(&row)
    if apart != NULL and apart.backlog:
        buffer_init(&row)
        put_double_field(&row, seam.RIVALS_WEIGHT, apart.turn.weight)
        put_double_field(&row, seam.RIVALS_WORK, _flow_work(apart, usual))
        put_nested(b, seam.FORECAST_APART, &row)
        buffer_free(&row)


# --- who consumes, and the bucket --------------------------------------------------------------

cdef void _put_consumers(Buffer* b, Channel* channel, StepBudget* steps) noexcept nogil:
    cdef Consumer* consumer = channel.turn
    cdef uint32_t looked = 0
    cdef uint64_t count = 0
    cdef uint64_t with_room = 0
    cdef uint64_t at_quota = 0
    cdef uint64_t window = 0
    cdef uint64_t held = 0
    cdef uint64_t begun = 0
    cdef Buffer row
    while consumer != NULL and looked < CONSUMERS_LOOKED_AT:
        if consumer.kind != PULL:
            count += 1
            with_room += consumer_room(consumer) > 0
            at_quota += holder_room(consumer.holder) == 0
            window += consumer.limit
            held += consumer.in_flight
            begun += consumer.begun
        looked += 1
        consumer = consumer.next
        if consumer == channel.turn:
            break
    steps_spend(steps, looked)
    buffer_init(&row)
    put_number_field(&row, seam.CONSUMERS_COUNT, count)
    put_number_field(&row, seam.CONSUMERS_WITH_ROOM, with_room)
    put_number_field(&row, seam.CONSUMERS_WAITING_PULLS, channel.waiting_pulls)
    put_number_field(&row, seam.CONSUMERS_WINDOW, window)
    put_number_field(&row, seam.CONSUMERS_HELD, held)
    put_number_field(&row, seam.CONSUMERS_BEGUN, begun)
    put_number_field(&row, seam.CONSUMERS_AT_QUOTA, at_quota)
    put_nested(b, seam.FORECAST_CONSUMERS, &row)
    buffer_free(&row)


cdef void _put_waiters(Core* core, Buffer* b, Subqueue* held, StepBudget* steps) noexcept nogil:
    """The line it stands in: who is before it, and the tokens taken until its last message has one."""
    cdef ThrottleKey* bucket = held.waiters.bucket
    cdef Waiters* waiters = bucket.waiters
    cdef Subqueue* each = held.waiters.head
    cdef uint32_t looked = 0
    cdef uint64_t channels = 0
    cdef uint64_t ahead = 0
    cdef uint64_t tokens = 0
    cdef bint passed = False
    cdef Buffer row
    while waiters != NULL:
        channels += waiters.head != NULL
        waiters = waiters.next
    while each != NULL and looked < PLACES_LOOKED_AT:
        passed = passed or each == held
        ahead += not passed
        tokens += min(each.count, held.count)
        looked += 1
        each = each.next
    steps_spend(steps, looked)
    bucket_refill(&bucket.bucket, core.mono_ns, True)
    buffer_init(&row)
    put_double_field(&row, seam.WAITERS_RATE, bucket.bucket.rate)
    put_double_field(&row, seam.WAITERS_LEVEL, bucket.bucket.level)
    put_number_field(&row, seam.WAITERS_CHANNELS, channels)
    put_number_field(&row, seam.WAITERS_AHEAD, ahead)
    put_number_field(&row, seam.WAITERS_TOKENS, tokens)
    put_number_field(&row, seam.WAITERS_OWN, held.count)
    put_number_field(&row, seam.WAITERS_COUNT, held.waiters.count)
    put_nested(b, seam.FORECAST_WAITERS, &row)
    buffer_free(&row)


cdef void put_forecast(
        Core* core, Buffer* b, uint32_t field, Channel* channel, Key* key, Flow* flow, Flow* apart,
        Subqueue* held, StepBudget* steps) noexcept nogil:
    cdef double usual = _channel_cost(channel)
    cdef double of_apart = 0
    cdef Slot* first = NULL
    cdef KeyRateLimit* rate_limit
    cdef Buffer inner
    buffer_init(&inner)
    if flow != NULL and flow.backlog:
        first = flow_first(flow, steps)
    if first != NULL:
        put_number_field(&inner, seam.FORECAST_BACKLOG, flow.backlog)
        put_number_field(&inner, seam.FORECAST_WEIGHT, flow.turn.weight)
        put_number_field(&inner, seam.FORECAST_CAP, key_cap(key))
        put_number_field(&inner, seam.FORECAST_HEAD_COST, entry_of(first).cost)
        put_double_field(&inner, seam.FORECAST_MEAN_COST, _own_cost(flow, usual, steps))
        rate_limit = key_rate_limit(key)
        if rate_limit != NULL:
            bucket_refill(&rate_limit.bucket, core.mono_ns, True)
            put_double_field(&inner, seam.FORECAST_KEY_RATE, rate_limit.bucket.rate)
            put_double_field(&inner, seam.FORECAST_KEY_LEVEL, rate_limit.bucket.level)
            put_double_field(&inner, seam.FORECAST_KEY_BURST, rate_limit.bucket.burst)
        put_number_field(&inner, seam.FORECAST_WEIGHT_BY_POLICY, key.table_weight or key.weight)
        if flow.turn.place != IDLE:
            put_double_field(
                &inner, seam.FORECAST_BEFORE_ITS_TURN,
                _before_its_turn(channel, flow, apart, usual, &of_apart, steps))
            put_double_field(&inner, seam.FORECAST_APART_BEFORE, of_apart)
            put_number_field(
                &inner, seam.FORECAST_ROUNDS_TO_SAVE, _rounds_to_save(channel, flow, entry_of(first).cost))
    _put_rivals(&inner, channel, flow, apart, usual, steps)
    _put_consumers(&inner, channel, steps)
    if held != NULL and held.waiters != NULL:
        _put_waiters(core, &inner, held, steps)
    put_number_field(&inner, seam.FORECAST_QUANTUM, <uint64_t> channel.ring.quantum)
    put_number_field(&inner, seam.FORECAST_SERVED, channel.served)
    put_double_field(&inner, seam.FORECAST_USUAL_COST, usual)
    put_number_field(&inner, seam.FORECAST_READY, channel.ready)
    put_nested(b, field, &inner)
    buffer_free(&inner)
