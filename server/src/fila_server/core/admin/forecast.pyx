"""Costs are in thousandths of a message, as the ring counts them."""

from libc.math cimport floor, log2
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from fila_server.core.admin.step_budget cimport flow_first, may_step, steps_spend
from fila_server.core.index.holders cimport holder_room
from fila_server.core.lifecycle.deliver cimport consumer_room
from fila_server.core.protocol cimport seam
from fila_server.core.protocol.protobuf cimport put_double_field, put_nested, put_number_field
from fila_server.core.scheduling.parts cimport (
    BUDGET_PART, SLOTS_PART, Counted, parts_holding, parts_refill,
)
from fila_server.core.state.kinds cimport PULL
from fila_server.core.state.paths cimport (
    flow_is_in_order, flow_leased, key_cap, key_committed, key_rate_limit, slot_cost, waiter_first,
)
from fila_server.core.state.pending cimport KeyRateLimit
from fila_server.core.state.state cimport Consumer, Slot, ThrottleKey, Waiters
from fila_server.core.structures.bucket cimport Bucket, bucket_level_at, bucket_refill
from fila_server.core.structures.buffer cimport buffer_free, buffer_init
from fila_server.core.structures.fifo cimport fifo_first
from fila_server.core.structures.maps cimport map64_get
from fila_server.core.structures.ring cimport DEFERRED, IDLE, Ring, Turn

cdef enum:
    FLOWS_LOOKED_AT = 4096
    CONSUMERS_LOOKED_AT = 10000
    COSTS_LOOKED_AT = 64
    GROUPS = 48                     # of rivals: two for each doubling of the rounds they will stay

cdef struct Standings:              # a ring, and what its turns belong to
    Ring*    ring
    bint     of_waiters             # Waiter, and work is counted in tokens; otherwise Flow, and it is cost
    double   usual                  # what a message of the channel costs

cdef struct Standing:               # one of them
    Flow*    flow
    double   work                   # what it has
    double   grant                  # what a round grants it
    double   saved

cdef struct Group:
    double   grant
    double   work

cdef struct Rivals:
    Group[GROUPS] groups
    double   round_work             # what a round sends of theirs
    double   committed              # cost a second that goes first, of theirs
    double   scale                  # of all to those that were looked at


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
        total += slot_cost(slot)
        looked += 1
        slot = <Slot*> slot.place.next
    return total / looked if looked else usual


# --- a ring: a channel's, or that of a line ----------------------------------------------------

cdef inline double _cost_of(Waiter* waiter) noexcept nogil:
    """Of a message that waits for a token."""
    cdef uint64_t delivered = flow_leased(waiter.flow)
    if delivered:
        return <double> waiter.flow.served / delivered
    return slot_cost(<Slot*> fifo_first(&waiter_first(waiter).fifo))


cdef Standing _standing(Standings* ring, Turn* turn) noexcept nogil:
    cdef Standing standing
    cdef Waiter* waiter
    cdef double cost
    standing.grant = <double> turn.weight * ring.ring.quantum
    standing.saved = <double> turn.deficit
    if not ring.of_waiters:
        standing.flow = <Flow*> turn
        standing.work = _flow_work(standing.flow, ring.usual)
        return standing
    waiter = <Waiter*> turn
    cost = _cost_of(waiter)
    standing.flow = waiter.flow
    standing.work = <double> (waiter.messages - waiter.tokens)
    standing.grant /= cost
    standing.saved = (standing.saved - waiter.owed) / cost
    return standing


cdef double _before_its_turn(
        Standings* ring, Turn* own, Flow* apart, double* of_apart, StepBudget* steps) noexcept nogil:
    """What those between the head of the ring and `own` may send in their turns of now; of it, `apart`'s. One
    that is deferred comes back at the end of a round: before it are those with a turn of this one to come."""
    cdef Turn* turn = ring.ring.head
    cdef Standing other
    cdef uint32_t looked = 0
    cdef double ahead = 0
    cdef double sends
    while turn != NULL and turn != own and looked < FLOWS_LOOKED_AT:
        if turn == &ring.ring.marker and own.place == DEFERRED:
            break
        if turn != &ring.ring.marker:
            other = _standing(ring, turn)
            sends = other.saved + (0 if turn == ring.ring.granted else other.grant)
            if ring.of_waiters:
                sends = floor(max(sends, 0.0) + 1e-6)       # tokens are whole
            sends = min(sends, other.work)
            ahead += sends
            if other.flow == apart:
                of_apart[0] = sends
        looked += 1
        turn = turn.next
        if turn == ring.ring.head:
            break
    steps_spend(steps, looked)
    if looked == FLOWS_LOOKED_AT and ring.ring.ring_count > FLOWS_LOOKED_AT:
        ahead *= (ring.ring.ring_count / 2.0) / FLOWS_LOOKED_AT     # it stands anywhere behind them
    return ahead


cdef uint64_t _rounds_to_save(Ring* ring, Turn* turn, int64_t cost) noexcept nogil:
    """How many rounds after its next turn it can pay for its first message."""
    cdef int64_t grant = turn.weight * ring.quantum
    cdef int64_t has = turn.deficit
    if turn.place == DEFERRED:
        return <uint64_t> max(ring.deferred[turn.deferred_at].due_round - ring.round, <int64_t> 0)
    if ring.granted != turn:
        has += grant
    return <uint64_t> ((cost - has + grant - 1) // grant) if cost > has and grant else 0


cdef Rivals _rivals(
        Standings* ring, Flow* own, Flow* apart, StepBudget* steps) noexcept nogil:
    """Who shares the ring with `own`, without `apart`: by how many rounds they will stay."""
    cdef Rivals rivals
    cdef Turn* turn = ring.ring.head
    cdef uint32_t looked = 0
    cdef uint32_t i
    memset(&rivals, 0, sizeof(Rivals))
    rivals.scale = 1
    while turn != NULL and looked < FLOWS_LOOKED_AT:
        if turn != &ring.ring.marker:
            _rival(&rivals, ring, turn, own, apart)
        looked += 1
        turn = turn.next
        if turn == ring.ring.head:
            break
    for i in range(min(ring.ring.deferred_count, <uint32_t> FLOWS_LOOKED_AT)):
        looked += 1
        _rival(&rivals, ring, ring.ring.deferred[i].turn, own, apart)
    steps_spend(steps, looked)
    if looked and ring.ring.ring_count + ring.ring.deferred_count > looked:
        rivals.scale = <double> (ring.ring.ring_count + ring.ring.deferred_count) / looked
    return rivals


cdef void _rival(Rivals* rivals, Standings* ring, Turn* turn, Flow* own, Flow* apart) noexcept nogil:
    cdef Standing other = _standing(ring, turn)
    cdef int at
    if other.flow == own or other.flow == apart:
        return
    at = <int> (2 * log2(1 + other.work / other.grant)) if other.grant > 0 else 0
    at = min(max(at, 0), GROUPS - 1)
    rivals.groups[at].grant += other.grant
    rivals.groups[at].work += other.work
    rivals.round_work += min(other.work, other.grant)
    if not ring.of_waiters and key_committed(other.flow.key) != NULL:
        rivals.committed += (
            key_committed(other.flow.key).limit.bucket.rate * other.work / other.flow.backlog)


cdef void _put_row(Buffer* b, uint32_t field, double weight, double work) noexcept nogil:
    cdef Buffer row
    buffer_init(&row)
    put_double_field(&row, seam.RIVALS_WEIGHT, weight)
    put_double_field(&row, seam.RIVALS_WORK, work)
    put_nested(b, field, &row)
    buffer_free(&row)


cdef void _put_rivals(Buffer* b, uint32_t field, const Rivals* rivals, double quantum) noexcept nogil:
    """Their weights and work together; a weight is what a round grants, in quanta."""
    cdef int i
    for i in range(GROUPS):
        if rivals.groups[i].grant > 0:
            _put_row(
                b, field, rivals.groups[i].grant * rivals.scale / quantum,
                rivals.groups[i].work * rivals.scale)


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


cdef double tokens_before(Core* core, Waiter* waiter, StepBudget* steps) noexcept nogil:
    """Tokens of its line that others take before one is spoken for its first message."""
    cdef Standings ring
    cdef Rivals rivals
    cdef double of_apart = 0
    cdef double before
    cdef uint64_t rounds
    ring.ring, ring.of_waiters = &waiter.waiters.ring, True
    before = _before_its_turn(&ring, &waiter.turn, NULL, &of_apart, steps)
    rounds = _rounds_of(waiter)
    if rounds == 0:
        return before
    rivals = _rivals(&ring, waiter.flow, NULL, steps)
    return before + rounds * rivals.round_work * rivals.scale


cdef uint64_t _rounds_of(Waiter* waiter) noexcept nogil:
    cdef int64_t cost = slot_cost(<Slot*> fifo_first(&waiter_first(waiter).fifo)) + waiter.owed
    return _rounds_to_save(&waiter.waiters.ring, &waiter.turn, cost)


cdef void _put_tokens(
        Core* core, Buffer* row, ThrottleKey* bucket, Waiter* waiter, double own_cost) noexcept nogil:
    """How fast the limit lets messages go, and how many at once; nothing where a slot or a period decides,
    since nobody knows when leases end. A rate in costs is told as one in messages like those of the key."""
    cdef Bucket* rate
    cdef Counted nobody
    cdef double per_second = bucket.bucket.rate
    cdef double level = 0
    cdef double own_level, each
    cdef uint32_t i
    cdef int part
    if bucket.parts == NULL:
        bucket_refill(&bucket.bucket, core.mono_ns, True)
        level = bucket_level_at(&bucket.bucket, core.mono_ns)
    else:
        parts_refill(core, bucket)
        nobody.messages = nobody.cost = 0
        part = parts_holding(
            core, bucket, slot_cost(<Slot*> fifo_first(&waiter_first(waiter).fifo)), nobody)
        if part == SLOTS_PART or part == BUDGET_PART or bucket.parts.terms.rate_count == 0:
            return
        for i in range(bucket.parts.terms.rate_count):
            rate = &bucket.bucket if i == 0 else &bucket.parts.more[i - 1]
            each = own_cost / 1000 if bucket.parts.terms.rates[i].in_cost else 1.0
            per_second = rate.rate / each if i == 0 else min(per_second, rate.rate / each)
            own_level = bucket_level_at(rate, core.mono_ns) / each
            level = own_level if i == 0 else min(level, own_level)
    put_double_field(row, seam.WAITERS_RATE, per_second)
    put_double_field(row, seam.WAITERS_LEVEL, level)


cdef void _put_waiters(
        Core* core, Buffer* b, Waiter* waiter, Flow* apart, double own_cost,
        StepBudget* steps) noexcept nogil:
    """The line it stands in, as a ring whose messages cost a token each."""
    cdef ThrottleKey* bucket = waiter.waiters.bucket
    cdef Waiters* waiters = bucket.waiters
    cdef Waiter* aside = NULL
    cdef uint64_t channels = 0
    cdef double of_apart = 0
    cdef Standings ring
    cdef Standing standing
    cdef Rivals rivals
    cdef Buffer row
    ring.ring, ring.of_waiters = &waiter.waiters.ring, True
    while waiters != NULL:
        channels += waiters.turn.place != IDLE
        waiters = waiters.next
    if apart != NULL and apart.subqueues != NULL:
        aside = <Waiter*> map64_get(&apart.subqueues.waiter_by_bucket, <uint64_t> bucket)
    rivals = _rivals(&ring, waiter.flow, apart, steps)
    buffer_init(&row)
    _put_tokens(core, &row, bucket, waiter, own_cost)
    put_number_field(&row, seam.WAITERS_CHANNELS, channels)
    put_double_field(&row, seam.WAITERS_WEIGHT, waiter.turn.weight * ring.ring.quantum / own_cost)
    put_double_field(
        &row, seam.WAITERS_BEFORE_ITS_TURN, _before_its_turn(&ring, &waiter.turn, apart, &of_apart, steps))
    put_number_field(&row, seam.WAITERS_ROUNDS_TO_SAVE, _rounds_of(waiter))
    put_number_field(&row, seam.WAITERS_OWN, waiter.messages)
    _put_rivals(&row, seam.WAITERS_RIVALS, &rivals, 1)
    if aside != NULL and aside.turn.place != IDLE:
        standing = _standing(&ring, &aside.turn)
        _put_row(&row, seam.WAITERS_APART, standing.grant, standing.work)
        put_double_field(&row, seam.WAITERS_APART_BEFORE, of_apart)
    put_nested(b, seam.FORECAST_WAITERS, &row)
    buffer_free(&row)


cdef void put_forecast(
        Core* core, Buffer* b, uint32_t field, Channel* channel, Key* key, Flow* flow, Flow* apart,
        Subqueue* held, StepBudget* steps) noexcept nogil:
    cdef double usual = _channel_cost(channel)
    cdef double of_apart = 0
    cdef Slot* first = NULL
    cdef double own_cost = usual
    cdef KeyRateLimit* rate_limit
    cdef Bucket* committed
    cdef Standings ring
    cdef Rivals rivals
    cdef Buffer inner
    ring.ring, ring.of_waiters, ring.usual = &channel.ring, False, usual
    buffer_init(&inner)
    if flow != NULL and flow.backlog:
        first = flow_first(flow, steps)
    if first != NULL:
        put_number_field(&inner, seam.FORECAST_BACKLOG, flow.backlog)
        put_number_field(&inner, seam.FORECAST_WEIGHT, flow.turn.weight)
        put_number_field(&inner, seam.FORECAST_CAP, 1 if flow_is_in_order(flow) else key_cap(key))
        put_number_field(&inner, seam.FORECAST_HEAD_COST, slot_cost(first))
        own_cost = _own_cost(flow, usual, steps)
        put_double_field(&inner, seam.FORECAST_MEAN_COST, own_cost)
        rate_limit = key_rate_limit(key)
        if rate_limit != NULL:
            bucket_refill(&rate_limit.bucket, core.mono_ns, True)
            put_double_field(&inner, seam.FORECAST_KEY_RATE, rate_limit.bucket.rate)
            put_double_field(&inner, seam.FORECAST_KEY_LEVEL, rate_limit.bucket.level)
            put_double_field(&inner, seam.FORECAST_KEY_BURST, rate_limit.bucket.burst)
        if key_committed(key) != NULL:
            committed = &key_committed(key).limit.bucket
            bucket_refill(committed, core.mono_ns, True)
            put_double_field(&inner, seam.FORECAST_COMMITTED_RATE, committed.rate)
            put_double_field(&inner, seam.FORECAST_COMMITTED_LEVEL, committed.level)
        put_number_field(&inner, seam.FORECAST_WEIGHT_BY_POLICY, key.table_weight or key.weight)
        if flow.turn.place != IDLE:
            put_double_field(
                &inner, seam.FORECAST_BEFORE_ITS_TURN,
                _before_its_turn(&ring, &flow.turn, apart, &of_apart, steps))
            put_double_field(&inner, seam.FORECAST_APART_BEFORE, of_apart)
            put_number_field(
                &inner, seam.FORECAST_ROUNDS_TO_SAVE,
                _rounds_to_save(&channel.ring, &flow.turn, slot_cost(first)))
    rivals = _rivals(&ring, flow, apart, steps)
    _put_rivals(&inner, seam.FORECAST_RIVALS, &rivals, <double> channel.ring.quantum)
    put_double_field(&inner, seam.FORECAST_OTHERS_COMMITTED, rivals.committed * rivals.scale)
    if apart != NULL and apart.backlog:
        _put_row(&inner, seam.FORECAST_APART, apart.turn.weight, _flow_work(apart, usual))
    _put_consumers(&inner, channel, steps)
    if held != NULL and held.waiter != NULL:
        _put_waiters(core, &inner, held.waiter, apart, own_cost, steps)
    put_number_field(&inner, seam.FORECAST_QUANTUM, <uint64_t> channel.ring.quantum)
    put_number_field(&inner, seam.FORECAST_SERVED, channel.served)
    put_double_field(&inner, seam.FORECAST_USUAL_COST, usual)
    put_number_field(&inner, seam.FORECAST_READY, channel.ready)
    put_nested(b, field, &inner)
    buffer_free(&inner)
