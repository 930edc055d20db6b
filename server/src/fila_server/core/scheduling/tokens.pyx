"""A bucket has tokens for those in its lines, or a timer for the next one: every change here sees to that.

Tokens that are spoken for are nobody else's, but for one case: a sub-queue whose turn came at one bucket
takes what the others of its set have. Who then finds none wants one anew, with what it was charged.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t

from fila_server.core.scheduling.clocks cimport channel_room
from fila_server.core.scheduling.allowances cimport rate_limit_refund
from fila_server.core.scheduling.eligibility cimport flow_again, flow_join
from fila_server.core.scheduling.following cimport following_takes, key_follows
from fila_server.core.scheduling.keeping cimport (
    is_kept, keep, keep_ends, keep_shrinks, keeper_at, keeps_in_vain, rest_has, rest_pay, ticket_take,
)
from fila_server.core.scheduling.parts cimport (
    Counted, parts_due_ns, parts_give_back, parts_have, parts_refill, parts_take,
)
from fila_server.core.scheduling.throttle cimport throttle_key_belongs
from fila_server.core.scheduling.waiters cimport (
    subqueue_rank, waiter_changed, waiter_spend, waiter_withdraw, waiters_join, waiters_leave, waiters_speak,
    waiters_turn,
)
from fila_server.core.state.limits cimport LimitTable
from fila_server.core.state.paths cimport entry_of, key_rate_limit, share_of, slot_cost, waiter_first
from fila_server.core.state.pending cimport KeyRateLimit
from fila_server.core.state.state cimport Flow, ThrottleSet, Waiter, Waiters
from fila_server.core.structures.bucket cimport (
    bucket_give_back, bucket_has, bucket_refill, bucket_take, bucket_tokens,
)
from fila_server.core.structures.buffer cimport put_bytes, put_varint
from fila_server.core.structures.fifo cimport fifo_first
from fila_server.core.structures.ledger cimport Ledger
from fila_server.core.structures.maps cimport map64_get
from fila_server.core.structures.ring cimport (
    Turn, ring_afford, ring_charge, ring_refund, ring_turn, ring_yield,
)
from fila_server.core.structures.timers cimport timer_cancel, timer_set

cdef double LONGEST_WAIT_NS = 86400e9
cdef double FOR_EVER_S = 1e300
cdef double NEARLY_ALL = 1 - 1e-9       # sums of costs are rounded

cdef enum:
    EVENTS_A_SECOND = 10

# What a token costs a channel of its turns at a bucket: one turn.
cdef int64_t TOKEN_COST = 1000


# --- a sub-queue before its buckets ----------------------------------------------------------

cdef inline bint _has_for(ThrottleKey* bucket, Subqueue* sub) noexcept nogil:
    """Who stands in a line is asked when its turn came there. It takes from its other buckets what there is:
    made to wait its turn at each of them, it could go round for ever."""
    cdef Counted before
    cdef bint in_turn = bucket.waiters == NULL or sub.waiter != NULL
    if bucket.parts != NULL:
        before.messages = before.cost = 0
        if not in_turn:
            before = _counted_on(bucket)
        return (in_turn or bucket.waiting == 0) and parts_have(bucket, _first_cost(sub), before)
    if in_turn:
        return bucket_has(&bucket.bucket)
    return bucket.waiting == 0 and bucket_tokens(&bucket.bucket) > _counted_on(bucket).messages


cdef inline uint64_t _first_cost(Subqueue* sub) noexcept nogil:
    return slot_cost(<Slot*> fifo_first(&sub.fifo))


cdef double _wait_s(Core* core, ThrottleKey* bucket, Subqueue* sub) noexcept nogil:
    """How long until it will have enough, by its own reckoning; what nobody can know is the longest."""
    cdef Counted before
    cdef int64_t due_ns
    if bucket.parts == NULL:
        return FOR_EVER_S if bucket.bucket.rate <= 0 else (1.0 - bucket.bucket.level) / bucket.bucket.rate
    before.messages = before.cost = 0
    due_ns = parts_due_ns(core, bucket, _first_cost(sub), before)
    return FOR_EVER_S if due_ns == INT64_MAX else (due_ns - core.mono_ns) / 1e9


cdef ThrottleKey* bucket_refusing(Core* core, Subqueue* sub) noexcept nogil:
    cdef ThrottleSet* set = sub.set
    cdef ThrottleKey* bucket
    cdef ThrottleKey* worst = NULL
    cdef double wait
    cdef double longest = -1
    cdef uint32_t i
    for i in range(set.count):
        bucket = set.members[i]
        if not bucket.limited:
            continue
        if is_kept(sub, i):
            if rest_has(core, sub, i, _first_cost(sub)):
                continue
        else:
            _refill(core, bucket)
            if _has_for(bucket, sub):
                continue
        wait = _wait_s(core, bucket, sub)
        if wait > longest or worst == NULL:
            longest = wait
            worst = bucket
    return worst


cdef inline void _refill(Core* core, ThrottleKey* bucket) noexcept nogil:
    if bucket.parts != NULL:
        parts_refill(core, bucket)
    else:
        bucket_refill(&bucket.bucket, core.mono_ns, bucket.waiters != NULL)


cdef void subqueue_wait(Core* core, Subqueue* sub, ThrottleKey* bucket) noexcept nogil:
    cdef Subqueue* kept = NULL
    ticket_take(core, sub)
    if keeper_at(core, bucket) == sub:          # it would wait there for what it keeps itself
        subqueue_keeps_nothing(core, sub)
    if sub.waiter != NULL and sub.waiter.waiters.bucket != bucket:
        kept = keep(core, sub, bucket)
    if sub.waiter != NULL and sub.waiter.waiters.bucket == bucket:
        waiter_withdraw(core, sub.waiter)
    else:
        subqueue_leave(core, sub)
        waiters_join(core, sub, bucket)
    bucket_wake(core, bucket)
    if kept != NULL:
        set_wake(core, kept.set)


cdef void subqueue_leave(Core* core, Subqueue* sub) noexcept nogil:
    cdef ThrottleKey* bucket
    if sub.waiter == NULL:
        return
    bucket = sub.waiter.waiters.bucket
    if waiters_leave(core, sub) and bucket.waiting:
        bucket_wake(core, bucket)


cdef void subqueue_changed(Core* core, Subqueue* sub) noexcept nogil:
    cdef ThrottleKey* bucket
    cdef bint is_another = subqueue_rank(sub)       # a limit of parts waits until it has what that one costs
    if is_another and keep_shrinks(core, sub):
        set_wake(core, sub.set)
    if sub.waiter != NULL:
        bucket = sub.waiter.waiters.bucket
        is_another = is_another and bucket.parts != NULL
        if (waiter_changed(core, sub.waiter) or is_another) and bucket.waiting:
            bucket_wake(core, bucket)


# --- paying ----------------------------------------------------------------------------------

cdef void slot_pay(Core* core, Slot* slot) noexcept nogil:
    cdef Subqueue* sub = <Subqueue*> slot.owner
    cdef ThrottleSet* set
    cdef ThrottleKey* bucket
    cdef double spent
    cdef uint32_t i
    if sub == NULL:
        return
    set = sub.set
    if sub.waiter != NULL:
        waiter_spend(core, sub.waiter, slot_cost(slot))
    sub.ticket = 0
    for i in range(set.count):
        bucket = set.members[i]
        if bucket.charged:
            spent = bucket.parts.ledger.spent if bucket.parts != NULL else 0
            if is_kept(sub, i):
                rest_pay(core, sub, i, slot_cost(slot))
                bucket.in_flight -= 1           # which it had kept, too
            elif bucket.parts == NULL:
                bucket_take(&bucket.bucket)
            else:
                _parts_pay(core, bucket, slot_cost(slot))
            if bucket.parts != NULL and bucket.parts.terms.amount > 0:
                _budget_looked_at(core, bucket, spent)
            bucket.passed += 1
            bucket.limit.passed += 1
            bucket_used(core, bucket)
        bucket.in_flight += 1
    if core.limit_table.keeper == sub:
        keep_ends(core, sub)


cdef void _budget_crossed(Core* core, ThrottleKey* bucket, uint64_t percent) noexcept nogil:
    """Reported at most EVENTS_A_SECOND times a second, whatever a thousand customers do; others are
    counted."""
    cdef LimitTable* table = &core.limit_table
    if core.mono_ns // 1000000 - table.counted_from_ms >= 1000 or table.counted_from_ms == 0:
        table.counted_from_ms, table.reported = core.mono_ns // 1000000, 0
    if table.reported >= EVENTS_A_SECOND:
        table.unreported += 1
        return
    table.reported += 1
    put_varint(&table.crossed, percent)
    put_varint(&table.crossed, table.unreported)
    put_varint(&table.crossed, bucket.text.length)
    put_bytes(&table.crossed, bucket.text.bytes, bucket.text.length)
    put_varint(&table.crossed, bucket.limit.text.length)
    put_bytes(&table.crossed, bucket.limit.text.bytes, bucket.limit.text.length)
    table.unreported = 0


cdef void _budget_looked_at(Core* core, ThrottleKey* bucket, double before) noexcept nogil:
    """Something more of it is spent than `before`."""
    cdef Ledger* ledger = &bucket.parts.ledger
    if before < ledger.amount * 0.8 <= ledger.spent:
        _budget_crossed(core, bucket, 80)
    if before < ledger.amount * NEARLY_ALL <= ledger.spent:
        _budget_crossed(core, bucket, 100)


cdef void _parts_pay(Core* core, ThrottleKey* bucket, uint64_t cost) noexcept nogil:
    """A shadow counts what it would have held, and takes nothing for that."""
    cdef Counted before
    before.messages = before.cost = 0
    if not bucket.limited:
        parts_refill(core, bucket)
        if not parts_have(bucket, cost, before):
            bucket.limit.would_hold += 1
            return
    parts_take(bucket, cost)
    if key_follows(bucket):
        following_takes(core, bucket)


cdef void set_held(ThrottleSet* set) noexcept nogil:
    cdef uint32_t i
    for i in range(set.count):
        set.members[i].in_flight += 1


cdef void set_freed(Core* core, ThrottleSet* set) noexcept nogil:
    cdef ThrottleKey* bucket
    cdef uint32_t i
    for i in range(set.count):
        bucket = set.members[i]
        bucket.in_flight -= 1
        if bucket.waiting and bucket.parts != NULL and bucket.parts.terms.slots:
            bucket_wake(core, bucket)


cdef void set_wake(Core* core, ThrottleSet* set) noexcept nogil:
    cdef uint32_t i
    for i in range(set.count):
        if set.members[i].waiting:
            bucket_wake(core, set.members[i])


cdef void slot_refund(Core* core, Slot* slot, Flow* flow) noexcept nogil:
    cdef ThrottleSet* set = entry_of(slot).set
    cdef ThrottleKey* bucket
    cdef Waiter* waiter
    cdef uint32_t i
    cdef KeyRateLimit* rate_limit = key_rate_limit(entry_of(slot).key)
    if rate_limit != NULL:
        rate_limit_refund(core, rate_limit)
    if set == NULL or share_of(slot).channel.queue.is_dlq:
        return
    for i in range(set.count):
        bucket = set.members[i]
        if not bucket.charged:
            continue
        if flow.subqueues != NULL:
            waiter = <Waiter*> map64_get(&flow.subqueues.waiter_by_bucket, <uint64_t> bucket)
            if waiter != NULL:                  # it pays for the message again when that goes again
                ring_refund(&waiter.waiters.ring, &waiter.turn, slot_cost(slot))
        if bucket.parts != NULL:
            parts_give_back(bucket, slot_cost(slot))
        else:
            bucket_give_back(&bucket.bucket)
        bucket_used(core, bucket)
        if bucket.waiting:
            bucket_wake(core, bucket)


cdef void bucket_used(Core* core, ThrottleKey* bucket) noexcept nogil:
    if not bucket.dirty:
        bucket.dirty = True
        bucket.next_dirty = core.dirty_keys
        core.dirty_keys = bucket


# --- waking ----------------------------------------------------------------------------------

cdef Counted _counted_on(ThrottleKey* bucket) noexcept nogil:
    """What is spoken for where it can be taken: in channels with room."""
    cdef Waiters* waiters = bucket.waiters
    cdef Counted counted
    counted.messages = counted.cost = 0
    while waiters != NULL:
        if waiters.channel.has_room:
            counted.messages += <int64_t> waiters.woken
            counted.cost += waiters.spoken
        waiters = waiters.next
    return counted


cdef void bucket_wake(Core* core, ThrottleKey* bucket) noexcept nogil:
    cdef int64_t tokens, free_
    cdef Subqueue* keeper
    if not bucket.limited:
        return
    keeper = keeps_in_vain(core, bucket)
    if keeper != NULL:
        subqueue_keeps_nothing(core, keeper)    # it wakes this one, too
        return
    if bucket.parts != NULL:
        _wake_parts(core, bucket)
        return
    bucket_refill(&bucket.bucket, core.mono_ns, bucket.waiters != NULL)
    tokens = bucket_tokens(&bucket.bucket)
    if bucket.waiting:
        free_ = tokens - _counted_on(bucket).messages
        _speak_in_turn(core, bucket, free_)
        _speak_where_nobody_has_room(core, bucket, tokens)
    _arm(core, bucket)


cdef void _speak_in_turn(Core* core, ThrottleKey* bucket, int64_t free_) noexcept nogil:
    """A token to each channel in turn, as long as there are any."""
    cdef Turn* turn
    cdef uint32_t passed_over = 0
    while free_ > 0 and bucket.waiting and passed_over < bucket.turns.ring_count:
        turn = ring_turn(bucket.turns)
        if not (<Waiters*> turn).channel.has_room:
            ring_yield(bucket.turns, turn)
            passed_over += 1
        elif ring_afford(bucket.turns, turn, TOKEN_COST):
            ring_charge(bucket.turns, turn, TOKEN_COST)
            _speak(core, <Waiters*> turn)
            passed_over = 0
            free_ -= 1


cdef void _speak_where_nobody_has_room(Core* core, ThrottleKey* bucket, int64_t tokens) noexcept nogil:
    """Such a channel's first few wait for a consumer and not for a token. They take nobody's place: who has
    room may take the same tokens."""
    cdef Waiters* waiters = bucket.waiters
    while waiters != NULL:
        if not waiters.channel.has_room:
            while <int64_t> waiters.woken < tokens and _speak(core, waiters):
                pass
        waiters = waiters.next


cdef void _wake_parts(Core* core, ThrottleKey* bucket) noexcept nogil:
    """Whose turn it is goes as soon as all parts have enough for its message; until then nobody behind it
    does, so that cheap messages do not keep a dear one away."""
    cdef Counted counted
    cdef Turn* turn
    cdef Waiter* waiter
    cdef uint64_t cost
    cdef int64_t due_ns = INT64_MAX
    cdef uint32_t passed_over = 0
    parts_refill(core, bucket)
    counted = _counted_on(bucket)
    while bucket.waiting and passed_over < bucket.turns.ring_count:
        turn = ring_turn(bucket.turns)
        if not (<Waiters*> turn).channel.has_room:
            ring_yield(bucket.turns, turn)
            passed_over += 1
        elif ring_afford(bucket.turns, turn, TOKEN_COST):
            waiter = waiters_turn(<Waiters*> turn)
            cost = _first_cost(waiter_first(waiter))
            if not parts_have(bucket, cost, counted):
                due_ns = parts_due_ns(core, bucket, cost, counted)
                break
            ring_charge(bucket.turns, turn, TOKEN_COST)
            _speak(core, <Waiters*> turn)
            counted.messages += 1
            counted.cost += <int64_t> cost
            passed_over = 0
    due_ns = min(due_ns, _speak_parts_where_nobody_has_room(core, bucket))
    if bucket.waiting == 0 or due_ns == INT64_MAX:
        timer_cancel(&core.timers, &bucket.timer)
    else:
        timer_set(&core.timers, &bucket.timer, min(due_ns + 1, core.mono_ns + <int64_t> LONGEST_WAIT_NS))


cdef int64_t _speak_parts_where_nobody_has_room(Core* core, ThrottleKey* bucket) noexcept nogil:
    """As for a bucket. When the next one could, INT64_MAX for never."""
    cdef Waiters* waiters = bucket.waiters
    cdef Waiter* waiter
    cdef Counted own
    cdef int64_t due_ns = INT64_MAX
    cdef uint64_t cost
    while waiters != NULL:
        while not waiters.channel.has_room:
            waiter = waiters_turn(waiters)
            if waiter == NULL:
                break
            own.messages, own.cost = <int64_t> waiters.woken, waiters.spoken
            cost = _first_cost(waiter_first(waiter))
            if not parts_have(bucket, cost, own):
                due_ns = min(due_ns, parts_due_ns(core, bucket, cost, own))
                break
            _speak(core, waiters)
        waiters = waiters.next
    return due_ns


cdef bint _speak(Core* core, Waiters* waiters) noexcept nogil:
    cdef Waiter* waiter = waiters_speak(core, waiters)
    if waiter == NULL:
        return False
    _goes(core, waiter.chosen)
    return True


cdef void _goes(Core* core, Subqueue* sub) noexcept nogil:
    """No bucket's line holds it now."""
    cdef Flow* flow = sub.flow
    if not flow.joined:
        # Parked for want of a token alone: a flow that is stopped by pause, cap or rate stands in no line.
        flow_join(core, flow)
    elif flow.subqueues.eligible == &sub.node:
        flow_again(flow)                # it stands before what the flow saves for


cdef void _arm(Core* core, ThrottleKey* bucket) noexcept nogil:
    """Set the timer for the next token that somebody in a line could take."""
    cdef double target
    cdef double wait
    if bucket.waiting == 0 or not bucket.limited or bucket.bucket.rate <= 0 or bucket.bucket.burst < 1:
        timer_cancel(&core.timers, &bucket.timer)
        return
    target = <double> bucket_tokens(&bucket.bucket) + 1
    if target > bucket.bucket.burst and target > 1:
        # Full: the woken waiter has yet to take a token, and taking one comes back here.
        timer_cancel(&core.timers, &bucket.timer)
        return
    # Compared before it becomes an integer: at a rate of 1e-12 it is more nanoseconds than an integer holds.
    wait = min((target - bucket.bucket.level) / bucket.bucket.rate * 1e9, LONGEST_WAIT_NS)
    timer_set(&core.timers, &bucket.timer, bucket.bucket.refilled_ns + <int64_t> wait + 1)


cdef void channel_full(Core* core, Channel* channel) noexcept nogil:
    cdef Waiters* waiters
    cdef Waiters* following
    if not channel.has_room:
        return
    channel_room(core, channel, False)
    waiters = channel.woken_waiters
    while waiters != NULL:                      # waking may add to this list, and takes nothing from it
        following = waiters.next_woken
        core.counters.walked += 1
        if waiters.bucket.waiting:
            bucket_wake(core, waiters.bucket)
        waiters = following


cdef void subqueue_keeps_nothing(Core* core, Subqueue* sub) noexcept nogil:
    if keep_ends(core, sub):
        set_wake(core, sub.set)


cdef void bucket_set(Core* core, ThrottleKey* bucket, Limit* limit) noexcept nogil:
    cdef Subqueue* keeper = keeper_at(core, bucket)
    if keeper != NULL:
        subqueue_keeps_nothing(core, keeper)
    throttle_key_belongs(core, bucket, limit)
    bucket_used(core, bucket)
    if bucket.limited:
        bucket_wake(core, bucket)
        return
    timer_cancel(&core.timers, &bucket.timer)
    while bucket.waiters != NULL:
        _let_go(core, bucket.waiters.first)


cdef void _let_go(Core* core, Waiter* waiter) noexcept nogil:
    """Its bucket holds nobody any more."""
    cdef Subqueue* sub = waiter_first(waiter)
    waiters_leave(core, sub)
    subqueue_rank(sub)
    _goes(core, sub)
