"""A flow is on the ring, parked, or idle, and flow_reconsider puts it where it belongs after any change."""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.recording.changes cimport limit_changed
from fila_server.core.state.kinds cimport NOT_PARKED, PARKED_PAUSED, PARKED_THROTTLED
from fila_server.core.state.paths cimport entry_of, key_weight, share_of
from fila_server.core.state.state cimport Line, Subqueues
from fila_server.core.structures.bucket cimport (
    bucket_configure, bucket_give_back, bucket_has, bucket_init, bucket_refill, bucket_take, bucket_tokens,
)
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.heap cimport heap_insert, heap_remove
from fila_server.core.structures.maps cimport (
    Map64, map64_free, map64_get, map64_init, map64_put, map64_remove,
)
from fila_server.core.structures.ring cimport (
    DEFERRED, ring_again, ring_join, ring_leave, ring_park, ring_rejoin, ring_reweigh,
)
from fila_server.core.structures.timers cimport timer_cancel, timer_set
from fila_server.core.turns.clocks cimport channel_room, clock_begin, clock_end, clock_note
from fila_server.core.turns.fifo cimport fifo_first
from fila_server.core.turns.lines cimport claim_begins, claim_ends, line_drop_if_empty, line_join, line_leave
from fila_server.core.turns.pace cimport flow_stopped, pace_refund
from fila_server.core.turns.throttle cimport set_release

cdef double LONGEST_WAIT_NS = 86400e9

cdef enum:
    FLOWS_WALKED_MAX = 8


# --- flows ---------------------------------------------------------------------------------

cdef Flow* flow_find(Key* key, Channel* channel) noexcept nogil:
    cdef Flow* flow = key.flows
    if key.flows_by_channel != NULL and (flow == NULL or flow.channel != channel):
        return <Flow*> map64_get(key.flows_by_channel, <uint64_t> channel)
    while flow != NULL and flow.channel != channel:
        flow = flow.next_of_key
    return flow


cdef void _index(Key* key, Flow* flow) noexcept nogil:
    """A key that is used in many channels finds its flows by a map instead of a walk."""
    cdef Flow* other = key.flows
    cdef uint32_t count = 0
    if key.flows_by_channel != NULL:
        map64_put(key.flows_by_channel, <uint64_t> flow.channel, flow)
        return
    while other != NULL and count <= FLOWS_WALKED_MAX:
        count += 1
        other = other.next_of_key
    if count <= FLOWS_WALKED_MAX:
        return
    key.flows_by_channel = <Map64*> must_malloc(sizeof(Map64))
    map64_init(key.flows_by_channel)
    other = key.flows
    while other != NULL:
        map64_put(key.flows_by_channel, <uint64_t> other.channel, other)
        other = other.next_of_key


cdef Flow* flow_of(Core* core, Key* key, Channel* channel) noexcept nogil:
    cdef Flow* flow = flow_find(key, channel)
    if flow == NULL:
        if key.first.key == NULL:
            flow = &key.first
        else:
            flow = <Flow*> must_malloc(sizeof(Flow))
            core.index_bytes += sizeof(Flow)
        memset(flow, 0, sizeof(Flow))
        flow.key = key
        flow.channel = channel
        channel.flows += 1
        flow.turn.weight = key_weight(key)
        flow.next_of_key = key.flows
        key.flows = flow
        _index(key, flow)
        clock_begin(core, flow)
    return flow


cdef void flow_free(Core* core, Flow* flow) noexcept nogil:
    """Unlinked from its key by the caller."""
    if flow.key.flows_by_channel != NULL:
        map64_remove(flow.key.flows_by_channel, <uint64_t> flow.channel)
        if flow.key.flows_by_channel.count == 0:
            map64_free(flow.key.flows_by_channel)
            free(flow.key.flows_by_channel)
            flow.key.flows_by_channel = NULL
    clock_end(core, flow)
    if flow.joined:
        flow.channel.weight -= flow.turn.weight
        ring_leave(&flow.channel.ring, &flow.turn)
    while flow.subqueues != NULL:
        subqueue_free(core, flow.subqueues.first)
    flow.channel.flows -= 1
    if flow == &flow.key.first:
        flow.key = NULL
    else:
        free(flow)
        core.index_bytes -= sizeof(Flow)


cdef void _set_parked(Core* core, Flow* flow, uint8_t reason) noexcept nogil:
    """And the clock of how long it was stopped, whatever its buckets said."""
    if flow.parked >= PARKED_PAUSED:
        flow.stopped_ms += core.mono_ms - flow.stopped_since_ms
    flow.stopped_since_ms = core.mono_ms
    flow.parked = reason


cdef void _join(Core* core, Flow* flow) noexcept nogil:
    """Put a flow that may go with the ring."""
    if not flow.joined:
        flow.joined = True
        flow.channel.weight += flow.turn.weight
        if flow.parked:
            _set_parked(core, flow, NOT_PARKED)
            ring_rejoin(&flow.channel.ring, &flow.turn)
        else:
            ring_join(&flow.channel.ring, &flow.turn)
    channel_activate(core, flow.channel)


cdef void _park(Core* core, Flow* flow, uint8_t reason) noexcept nogil:
    if flow.joined:
        flow.joined = False
        flow.channel.weight -= flow.turn.weight
        ring_park(&flow.channel.ring, &flow.turn)
    _set_parked(core, flow, reason)


cdef void _stand_down(Core* core, Flow* flow) noexcept nogil:
    """A flow that may not go whatever its buckets say waits in no line and counts on no token."""
    cdef Subqueue* sub = flow.subqueues.first if flow.subqueues != NULL else NULL
    while sub != NULL:
        if sub.line != NULL:
            line_leave(core, sub)
            subqueue_rank(sub)
        sub = sub.sibling
    sub = flow.subqueues.first if flow.subqueues != NULL else NULL
    while sub != NULL:
        _clear_woken(core, sub)
        sub = sub.sibling


cdef void flow_reconsider(Core* core, Flow* flow) noexcept nogil:
    """Pause, cap, rate, weight or backlog changed: put the flow where it belongs now."""
    cdef uint32_t weight = key_weight(flow.key)
    cdef uint8_t stopped = flow_stopped(core, flow) if flow.backlog else NOT_PARKED
    clock_note(core, flow)
    if flow.turn.weight != weight:
        if flow.joined:
            flow.channel.weight += weight
            flow.channel.weight -= flow.turn.weight
        ring_reweigh(&flow.channel.ring, &flow.turn, weight)
    if flow.backlog == 0:
        if flow.joined:
            flow.joined = False
            flow.channel.weight -= flow.turn.weight
            ring_leave(&flow.channel.ring, &flow.turn)
        flow.turn.deficit = 0
        _set_parked(core, flow, NOT_PARKED)
    elif stopped:
        _park(core, flow, stopped)
        _stand_down(core, flow)
    elif fifo_first(&flow.fifo) == NULL and (flow.subqueues == NULL or flow.subqueues.eligible == NULL):
        _park(core, flow, PARKED_THROTTLED)
    else:
        _join(core, flow)


cdef void key_reconsider(Core* core, Key* key) noexcept nogil:
    cdef Flow* flow = key.flows
    while flow != NULL:
        flow_reconsider(core, flow)
        flow = flow.next_of_key


# --- sub-queues ----------------------------------------------------------------------------

cdef Subqueue* subqueue_of(Core* core, Flow* flow, ThrottleSet* set) noexcept nogil:
    cdef Subqueue* sub = NULL
    if flow.subqueues == NULL:
        flow.subqueues = <Subqueues*> must_malloc(sizeof(Subqueues))
        flow.subqueues.first = NULL
        flow.subqueues.eligible = NULL
        map64_init(&flow.subqueues.by_set)
    else:
        sub = <Subqueue*> map64_get(&flow.subqueues.by_set, <uint64_t> set)
    if sub == NULL:
        sub = <Subqueue*> must_malloc(sizeof(Subqueue))
        memset(sub, 0, sizeof(Subqueue))
        sub.flow = flow
        sub.set = set
        set.refs += 1
        sub.sibling = flow.subqueues.first
        if sub.sibling != NULL:
            sub.sibling.sibling_prev = sub
        flow.subqueues.first = sub
        map64_put(&flow.subqueues.by_set, <uint64_t> set, sub)
        core.index_bytes += sizeof(Subqueue)
    return sub


cdef void subqueue_free(Core* core, Subqueue* sub) noexcept nogil:
    cdef Flow* flow = sub.flow
    if sub.node.in_heap:
        flow.subqueues.eligible = heap_remove(flow.subqueues.eligible, &sub.node)
    if sub.line != NULL:
        line_leave(core, sub)
    _clear_woken(core, sub)
    if sub.sibling != NULL:
        sub.sibling.sibling_prev = sub.sibling_prev
    if sub.sibling_prev != NULL:
        sub.sibling_prev.sibling = sub.sibling
    else:
        flow.subqueues.first = sub.sibling
    map64_remove(&flow.subqueues.by_set, <uint64_t> sub.set)
    if flow.subqueues.first == NULL:
        map64_free(&flow.subqueues.by_set)
        free(flow.subqueues)
        flow.subqueues = NULL
    set_release(core, sub.set)
    free(sub)
    core.index_bytes -= sizeof(Subqueue)


cdef void subqueue_rank(Subqueue* sub) noexcept nogil:
    """Keep the sub-queue's place among the eligible ones right after its first message changed."""
    cdef Flow* flow = sub.flow
    cdef int64_t position
    if sub.line != NULL:
        return
    position = fifo_first(&sub.fifo).position
    if sub.node.in_heap:
        if sub.node.rank == position:
            return
        flow.subqueues.eligible = heap_remove(flow.subqueues.eligible, &sub.node)
    sub.node.rank = position
    flow.subqueues.eligible = heap_insert(flow.subqueues.eligible, &sub.node)


# --- buckets and their lines ---------------------------------------------------------------

cdef void _clear_woken(Core* core, Subqueue* sub) noexcept nogil:
    """The token that woke this sub-queue is used, or is somebody else's again."""
    cdef Line* line = sub.woken_by
    cdef ThrottleKey* bucket
    if line == NULL:
        return
    bucket = line.bucket
    sub.woken_by = NULL
    claim_ends(line)
    if bucket.in_lines:
        bucket_wake(core, bucket)
    # Others' waiting keeps the bucket, never this line: its channel may be deleted before they are served.
    line_drop_if_empty(core, line)


cdef ThrottleKey* _refusing(Core* core, Subqueue* sub) noexcept nogil:
    """The bucket that holds this sub-queue longest, or NULL when all would let it pass."""
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
        bucket_refill(&bucket.bucket, core.mono_ns, bucket.lines != NULL)
        # Whoever was woken has waited its turn once; asked to queue up again behind a second
        # bucket's line it could go round for ever.
        if bucket_has(&bucket.bucket) and (bucket.in_lines == 0 or sub.woken_by != NULL):
            continue
        wait = 1e300 if bucket.bucket.rate <= 0 else (1.0 - bucket.bucket.level) / bucket.bucket.rate
        if wait > longest or worst == NULL:
            longest = wait
            worst = bucket
    return worst


cdef Slot* flow_next(Core* core, Flow* flow) noexcept nogil:
    """The message that goes next, or NULL: all that is left waits in some bucket's line."""
    cdef Subqueue* sub
    cdef Slot* plain
    cdef ThrottleKey* bucket
    cdef bint was_woken
    while True:
        plain = fifo_first(&flow.fifo)
        sub = <Subqueue*> flow.subqueues.eligible if flow.subqueues != NULL else NULL
        if sub == NULL or (plain != NULL and plain.position < sub.node.rank):
            return plain
        bucket = _refusing(core, sub)
        if bucket == NULL:
            return fifo_first(&sub.fifo)
        # It had waited its turn here already: back to the front, not to the end.
        was_woken = sub.woken_by != NULL and sub.woken_by.bucket == bucket
        line_join(core, sub, bucket, was_woken)
        _clear_woken(core, sub)
        if bucket_has(&bucket.bucket):
            bucket_wake(core, bucket)
        else:
            _arm(core, bucket)


cdef void slot_pay(Core* core, Slot* slot) noexcept nogil:
    """Called while the slot still stands in its sub-queue."""
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
        _clear_woken(core, sub)


cdef void slot_refund(Core* core, Slot* slot) noexcept nogil:
    """A delivery that was never written gives its tokens back, up to each burst."""
    cdef ThrottleSet* set = entry_of(slot).set
    cdef uint32_t i
    if entry_of(slot).key.pace != NULL:
        pace_refund(core, entry_of(slot).key.pace)
    if set == NULL or share_of(slot).channel.queue.is_dlq:
        return
    for i in range(set.count):
        if set.members[i].limited:
            bucket_give_back(&set.members[i].bucket)
            _mark_dirty(core, set.members[i])
            if set.members[i].in_lines:
                bucket_wake(core, set.members[i])


cdef void _mark_dirty(Core* core, ThrottleKey* bucket) noexcept nogil:
    if not bucket.dirty:
        bucket.dirty = True
        bucket.next_dirty = core.dirty_keys
        core.dirty_keys = bucket


cdef int64_t _counted_on(ThrottleKey* bucket) noexcept nogil:
    """Tokens that woken sub-queues are about to take, where they can be served at all."""
    cdef Line* line = bucket.lines
    cdef int64_t woken = 0
    while line != NULL:
        if line.channel.has_room:
            woken += <int64_t> line.woken
        line = line.next
    return woken


cdef void bucket_wake(Core* core, ThrottleKey* bucket) noexcept nogil:
    """Let as many sub-queues out of the lines as there are tokens, channels in turn."""
    cdef int64_t tokens, free_
    cdef Line* line
    cdef Line* last
    cdef uint32_t channels = 0
    cdef uint32_t passed_over = 0
    if not bucket.limited:
        return
    bucket_refill(&bucket.bucket, core.mono_ns, bucket.lines != NULL)
    tokens = bucket_tokens(&bucket.bucket)
    free_ = tokens - _counted_on(bucket)
    line = bucket.lines
    while line != NULL:
        channels += 1
        line = line.next
    while passed_over < channels and bucket.in_lines:
        line = bucket.lines
        # A channel nobody can be served in may have its first few ready, but they take nobody's place.
        if line.head == NULL or (free_ <= 0 if line.channel.has_room else <int64_t> line.woken >= tokens):
            passed_over += 1
        else:
            if line.channel.has_room:
                free_ -= 1
            passed_over = 0
            _wake_first(core, line)
        if bucket.lines != NULL and bucket.lines.next != NULL:           # the next channel's turn
            line = bucket.lines
            last = line
            while last.next != NULL:
                last = last.next
            bucket.lines = line.next
            line.next = NULL
            last.next = line
    _arm(core, bucket)


cdef void _wake_first(Core* core, Line* line) noexcept nogil:
    cdef Subqueue* sub = line.head
    cdef Flow* flow = sub.flow
    claim_begins(line)                         # first, so that leaving can't drop the line
    line_leave(core, sub)
    sub.woken_by = line
    subqueue_rank(sub)
    if not flow.joined:
        flow_reconsider(core, flow)
    elif flow.turn.place == DEFERRED and flow.subqueues.eligible == &sub.node:
        ring_again(&flow.channel.ring, &flow.turn)      # it stands before what the flow saves for


cdef void _arm(Core* core, ThrottleKey* bucket) noexcept nogil:
    """Set the timer for the next token that somebody in a line could take."""
    cdef double target
    cdef double wait
    if bucket.in_lines == 0 or not bucket.limited or bucket.bucket.rate <= 0 or bucket.bucket.burst < 1:
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
    """Those who were woken for a token here can't be served now: others may have the tokens."""
    cdef Line* line
    cdef Line* following
    if not channel.has_room:
        return
    channel_room(core, channel, False)
    line = channel.woken_lines
    while line != NULL:                         # waking may add to this list, and takes nothing from it
        following = line.next_woken
        if line.bucket.in_lines:
            bucket_wake(core, line.bucket)
        line = following


cdef void bucket_set(Core* core, ThrottleKey* bucket) noexcept nogil:
    """Its rate or burst changed, or went away: what waits feels it now."""
    cdef bint limits = bucket.has_rate and bucket.has_burst
    cdef Line* line
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
    while bucket.in_lines:
        line = bucket.lines
        while line.head == NULL:
            line = line.next
        _wake_first(core, line)


# --- channels that may have work -----------------------------------------------------------

cdef void channel_activate(Core* core, Channel* channel) noexcept nogil:
    if channel.active or channel.gone:
        return
    channel.active = True
    if core.active == NULL:
        core.active = channel
        channel.next_active = channel.prev_active = channel
    else:                                       # behind everybody else
        channel.next_active = core.active
        channel.prev_active = core.active.prev_active
        core.active.prev_active.next_active = channel
        core.active.prev_active = channel


cdef void channel_deactivate(Core* core, Channel* channel) noexcept nogil:
    if not channel.active:
        return
    channel.active = False
    if channel.next_active == channel:
        core.active = NULL
    else:
        channel.prev_active.next_active = channel.next_active
        channel.next_active.prev_active = channel.prev_active
        if core.active == channel:
            core.active = channel.next_active
    channel.next_active = channel.prev_active = NULL
