"""A bucket has tokens for those in its lines, or a timer for the next one: every change here sees to that.

A claim that ends unused, because its sub-queue went, was stopped, or found another bucket empty, wakes the
next in line.
"""

from libc.stdint cimport int64_t, uint32_t

from fila_server.core.history.changes cimport limit_changed
from fila_server.core.scheduling.clocks cimport channel_room
from fila_server.core.scheduling.eligibility cimport flow_join, rate_limit_refund
from fila_server.core.scheduling.waiters cimport (
    claim_begins, claim_ends, subqueue_rank, waiters_drop_if_empty, waiters_join, waiters_leave,
)
from fila_server.core.state.paths cimport entry_of, key_rate_limit, share_of
from fila_server.core.state.pending cimport KeyRateLimit
from fila_server.core.state.state cimport Flow, ThrottleSet, Waiters
from fila_server.core.structures.bucket cimport (
    bucket_configure, bucket_give_back, bucket_has, bucket_init, bucket_refill, bucket_take, bucket_tokens,
)
from fila_server.core.structures.ring cimport DEFERRED, ring_again
from fila_server.core.structures.timers cimport timer_cancel, timer_set

cdef double LONGEST_WAIT_NS = 86400e9


# --- a sub-queue before its buckets ----------------------------------------------------------

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
        bucket_refill(&bucket.bucket, core.mono_ns, bucket.waiters != NULL)
        # Whoever was woken has waited its turn once; asked to queue up again behind a second
        # bucket's line it could go round for ever.
        if bucket_has(&bucket.bucket) and (bucket.waiting == 0 or sub.woken_by != NULL):
            continue
        wait = 1e300 if bucket.bucket.rate <= 0 else (1.0 - bucket.bucket.level) / bucket.bucket.rate
        if wait > longest or worst == NULL:
            longest = wait
            worst = bucket
    return worst


cdef void subqueue_wait(Core* core, Subqueue* sub, ThrottleKey* bucket) noexcept nogil:
    # It had waited its turn here already: back to the front, not to the end.
    cdef bint was_woken = sub.woken_by != NULL and sub.woken_by.bucket == bucket
    waiters_join(core, sub, bucket, was_woken)
    subqueue_claim_ends(core, sub)
    if bucket_has(&bucket.bucket):
        bucket_wake(core, bucket)
    else:
        _arm(core, bucket)


cdef void subqueue_claim_ends(Core* core, Subqueue* sub) noexcept nogil:
    cdef Waiters* waiters = sub.woken_by
    cdef ThrottleKey* bucket
    if waiters == NULL:
        return
    bucket = waiters.bucket
    sub.woken_by = NULL
    waiters.messages -= sub.count
    claim_ends(waiters)
    if bucket.waiting:
        bucket_wake(core, bucket)
    # Others' waiting keeps the bucket, never this line: its channel may be deleted before they are served.
    waiters_drop_if_empty(core, waiters)


# --- paying ----------------------------------------------------------------------------------

cdef void slot_pay(Core* core, Slot* slot) noexcept nogil:
    cdef Subqueue* sub = <Subqueue*> slot.owner
    cdef ThrottleSet* set
    cdef ThrottleKey* bucket
    cdef uint32_t i
    if sub == NULL:
        return
    set = sub.set
    for i in range(set.count):
        bucket = set.members[i]
        if bucket.limited:
            bucket_take(&bucket.bucket)
            bucket.passed += 1
            _mark_dirty(core, bucket)
    if sub.woken_by != NULL:
        subqueue_claim_ends(core, sub)


cdef void slot_refund(Core* core, Slot* slot) noexcept nogil:
    cdef ThrottleSet* set = entry_of(slot).set
    cdef uint32_t i
    cdef KeyRateLimit* rate_limit = key_rate_limit(entry_of(slot).key)
    if rate_limit != NULL:
        rate_limit_refund(core, rate_limit)
    if set == NULL or share_of(slot).channel.queue.is_dlq:
        return
    for i in range(set.count):
        if set.members[i].limited:
            bucket_give_back(&set.members[i].bucket)
            _mark_dirty(core, set.members[i])
            if set.members[i].waiting:
                bucket_wake(core, set.members[i])


cdef void _mark_dirty(Core* core, ThrottleKey* bucket) noexcept nogil:
    if not bucket.dirty:
        bucket.dirty = True
        bucket.next_dirty = core.dirty_keys
        core.dirty_keys = bucket


# --- waking ----------------------------------------------------------------------------------

cdef int64_t _counted_on(ThrottleKey* bucket) noexcept nogil:
    """Tokens that woken sub-queues are about to take, where they can be served at all."""
    cdef Waiters* waiters = bucket.waiters
    cdef int64_t woken = 0
    while waiters != NULL:
        if waiters.channel.has_room:
            woken += <int64_t> waiters.woken
        waiters = waiters.next
    return woken


cdef void bucket_wake(Core* core, ThrottleKey* bucket) noexcept nogil:
    cdef int64_t tokens, free_
    cdef Waiters* waiters
    cdef Waiters* last
    cdef uint32_t channels = 0
    cdef uint32_t passed_over = 0
    if not bucket.limited:
        return
    bucket_refill(&bucket.bucket, core.mono_ns, bucket.waiters != NULL)
    tokens = bucket_tokens(&bucket.bucket)
    free_ = tokens - _counted_on(bucket)
    waiters = bucket.waiters
    while waiters != NULL:
        channels += 1
        waiters = waiters.next
    while passed_over < channels and bucket.waiting:
        waiters = bucket.waiters
        # A channel nobody can be served in may have its first few ready, but they take nobody's place.
        if waiters.head == NULL or (
                free_ <= 0 if waiters.channel.has_room else <int64_t> waiters.woken >= tokens):
            passed_over += 1
        else:
            if waiters.channel.has_room:
                free_ -= 1
            passed_over = 0
            _wake_first(core, waiters)
        if bucket.waiters != NULL and bucket.waiters.next != NULL:       # the next channel's turn
            waiters = bucket.waiters
            last = waiters
            while last.next != NULL:
                last = last.next
            bucket.waiters = waiters.next
            waiters.next = NULL
            last.next = waiters
    _arm(core, bucket)


cdef void _wake_first(Core* core, Waiters* waiters) noexcept nogil:
    cdef Subqueue* sub = waiters.head
    cdef Flow* flow = sub.flow
    claim_begins(waiters)                      # first, so that leaving can't drop the line
    waiters_leave(core, sub)
    sub.woken_by = waiters
    waiters.messages += sub.count
    subqueue_rank(sub)
    if not flow.joined:
        # Parked for want of a token alone: a flow that is stopped by pause, cap or rate stands in no line.
        flow_join(core, flow)
    elif flow.turn.place == DEFERRED and flow.subqueues.eligible == &sub.node:
        ring_again(&flow.channel.ring, &flow.turn)      # it stands before what the flow saves for


cdef void _arm(Core* core, ThrottleKey* bucket) noexcept nogil:
    """Set the timer for the next token that somebody in a line could take."""
    cdef double target
    cdef double wait
    if bucket.waiting == 0 or not bucket.limited or bucket.bucket.rate <= 0 or bucket.bucket.burst < 1:
        timer_cancel(&core.timers, &bucket.timer)
        return
    target = <double> bucket_tokens(&bucket.bucket) + 1
    if target > bucket.bucket.burst and target > 1:
        # Full: whoever was woken has yet to take a token, and taking one comes back here.
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
        if waiters.bucket.waiting:
            bucket_wake(core, waiters.bucket)
        waiters = following


cdef void bucket_set(Core* core, ThrottleKey* bucket) noexcept nogil:
    cdef bint limits = bucket.has_rate and bucket.has_burst
    cdef Waiters* waiters
    if limits and not bucket.limited:
        bucket_init(&bucket.bucket, bucket.rate, bucket.burst, core.mono_ns)
    elif limits:
        bucket_configure(&bucket.bucket, bucket.rate, bucket.burst, core.mono_ns)
    bucket.limited = limits
    _mark_dirty(core, bucket)
    limit_changed(core, bucket)
    if limits:
        bucket_wake(core, bucket)
        return
    timer_cancel(&core.timers, &bucket.timer)
    while bucket.waiting:
        waiters = bucket.waiters
        while waiters.head == NULL:
            waiters = waiters.next
        _wake_first(core, waiters)
