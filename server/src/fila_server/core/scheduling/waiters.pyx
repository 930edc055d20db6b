"""A line lives while somebody stands in it; the flow's table finds where it does."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.scheduling.clocks cimport clock_note
from fila_server.core.scheduling.waits cimport sub_is_held
from fila_server.core.state.paths cimport rank_of, slot_cost, subqueue_waits, waiter_first
from fila_server.core.state.state cimport Channel, Flow, Slot
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.fifo cimport fifo_first
from fila_server.core.structures.heap cimport HeapNode, heap_insert, heap_remove
from fila_server.core.structures.maps cimport map64_free, map64_get, map64_put, map64_remove
from fila_server.core.structures.ring cimport (
    IDLE, Ring, Turn, ring_afford, ring_again, ring_charge, ring_free, ring_init, ring_join,
    ring_leave, ring_turn,
)

# A channel's turn at a bucket is worth one token.
cdef int64_t TURN_QUANTUM = 1000


# --- lines that others wait for --------------------------------------------------------------

cdef void _is_counted_on(Waiters* waiters) noexcept nogil:
    """A channel knows its lines whose tokens another channel may take, and looks at all these when it has
    no room any more. Not at those that are alone at a bucket: there may be one for each of a million."""
    cdef Channel* channel = waiters.channel
    if waiters.in_woken or waiters.woken == 0:
        return
    waiters.in_woken = True
    waiters.next_woken = channel.woken_waiters
    waiters.prev_woken = NULL
    if channel.woken_waiters != NULL:
        channel.woken_waiters.prev_woken = waiters
    channel.woken_waiters = waiters


cdef void _is_counted_on_no_more(Waiters* waiters) noexcept nogil:
    if not waiters.in_woken:
        return
    waiters.in_woken = False
    if waiters.next_woken != NULL:
        waiters.next_woken.prev_woken = waiters.prev_woken
    if waiters.prev_woken != NULL:
        waiters.prev_woken.next_woken = waiters.next_woken
    else:
        waiters.channel.woken_waiters = waiters.next_woken


# --- lines -----------------------------------------------------------------------------------

cdef Waiters* _waiters_of(Core* core, ThrottleKey* bucket, Channel* channel) noexcept nogil:
    cdef Waiters* waiters = bucket.waiters
    cdef Waiters* last = NULL
    while waiters != NULL and waiters.channel != channel:
        last = waiters
        waiters = waiters.next
    if waiters != NULL:
        return waiters
    waiters = <Waiters*> must_malloc(sizeof(Waiters))
    memset(waiters, 0, sizeof(Waiters))
    waiters.bucket = bucket
    waiters.channel = channel
    ring_init(&waiters.ring, core.quantum)
    if last != NULL:
        last.next = waiters
        _is_counted_on(bucket.waiters)          # it may have been alone
        return waiters
    bucket.waiters = waiters
    bucket.turns = <Ring*> must_malloc(sizeof(Ring))
    ring_init(bucket.turns, TURN_QUANTUM)
    return waiters


cdef void _waiters_free(Waiters* waiters) noexcept nogil:
    cdef ThrottleKey* bucket = waiters.bucket
    cdef Waiters* before = bucket.waiters
    if before == waiters:
        bucket.waiters = waiters.next
    else:
        while before.next != waiters:
            before = before.next
        before.next = waiters.next
    ring_leave(bucket.turns, &waiters.turn)
    ring_free(&waiters.ring)
    free(waiters)
    if bucket.waiters == NULL:
        ring_free(bucket.turns)
        free(bucket.turns)
        bucket.turns = NULL


cdef Waiter* _waiter_of(Core* core, Flow* flow, ThrottleKey* bucket) noexcept nogil:
    cdef Waiter* waiter = <Waiter*> map64_get(&flow.subqueues.waiter_by_bucket, <uint64_t> bucket)
    if waiter != NULL:
        return waiter
    waiter = <Waiter*> must_malloc(sizeof(Waiter))
    memset(waiter, 0, sizeof(Waiter))
    waiter.flow = flow
    waiter.turn.weight = flow.turn.weight
    waiter.waiters = _waiters_of(core, bucket, flow.channel)
    waiter.next = waiter.waiters.first
    if waiter.next != NULL:
        waiter.next.prev = waiter
    waiter.waiters.first = waiter
    waiter.waiters.count += 1
    map64_put(&flow.subqueues.waiter_by_bucket, <uint64_t> bucket, waiter)
    core.index_bytes += sizeof(Waiter)
    return waiter


cdef void _waiter_free(Core* core, Waiter* waiter) noexcept nogil:
    cdef Waiters* waiters = waiter.waiters
    cdef Flow* flow = waiter.flow
    if waiter.next != NULL:
        waiter.next.prev = waiter.prev
    if waiter.prev != NULL:
        waiter.prev.next = waiter.next
    else:
        waiters.first = waiter.next
    map64_remove(&flow.subqueues.waiter_by_bucket, <uint64_t> waiters.bucket)
    if flow.subqueues.waiter_by_bucket.count == 0:
        map64_free(&flow.subqueues.waiter_by_bucket)
    free(waiter)
    core.index_bytes -= sizeof(Waiter)
    waiters.count -= 1
    if waiters.count == 0:
        _waiters_free(waiters)


# --- who may go, and who waits ---------------------------------------------------------------

cdef inline HeapNode** _heap_of(Subqueue* sub) noexcept nogil:
    return &sub.waiter.held if subqueue_waits(sub) else &sub.flow.subqueues.eligible


cdef void _lift(Subqueue* sub) noexcept nogil:
    cdef HeapNode** heap = _heap_of(sub)
    if sub.node.in_heap:
        heap[0] = heap_remove(heap[0], &sub.node)


cdef void _stand(Subqueue* sub) noexcept nogil:
    cdef HeapNode** heap = _heap_of(sub)
    heap[0] = heap_insert(heap[0], &sub.node)


cdef inline void _saves_anew(Waiter* waiter) noexcept nogil:
    """Another message is its first now."""
    ring_again(&waiter.waiters.ring, &waiter.turn)


cdef bint subqueue_rank(Subqueue* sub) noexcept nogil:
    cdef int64_t rank = rank_of(fifo_first(&sub.fifo).position, sub.priority)
    if sub.node.in_heap and sub.node.rank == rank:
        return False
    _lift(sub)
    sub.node.rank = rank
    _stand(sub)
    if sub.waiter != NULL:
        _saves_anew(sub.waiter)
    return True


cdef void _begins_to_wait(Core* core, Subqueue* sub) noexcept nogil:
    clock_note(core, sub.flow)
    sub.waiting_since_ms = core.mono_ms
    sub_is_held(core, sub)
    sub.flow.subqueues.waiting += sub.count
    sub.waiter.waiters.bucket.limit.stopped += 1


cdef void _waits_no_longer(Core* core, Subqueue* sub) noexcept nogil:
    sub.waiting_ms += core.mono_ms - sub.waiting_since_ms
    clock_note(core, sub.flow)
    sub.flow.subqueues.waiting -= sub.count


cdef void _choose(Core* core, Waiter* waiter) noexcept nogil:
    """The lowest of its sub-queues may go while a token is spoken for it, and no other."""
    cdef Subqueue* sub = waiter.chosen
    cdef bint is_lowest = sub != NULL and (waiter.held == NULL or sub.node.rank <= waiter.held.rank)
    if sub != NULL and not (waiter.tokens and is_lowest):
        _lift(sub)
        waiter.chosen = NULL
        _stand(sub)
        _begins_to_wait(core, sub)
    if waiter.chosen == NULL and waiter.tokens:
        sub = <Subqueue*> waiter.held
        _lift(sub)
        waiter.chosen = sub
        _stand(sub)
        _waits_no_longer(core, sub)


cdef void waiters_join(Core* core, Subqueue* sub, ThrottleKey* bucket) noexcept nogil:
    _lift(sub)
    sub.waiter = _waiter_of(core, sub.flow, bucket)
    sub.waiter.messages += sub.count
    sub.waiter.waiters.messages += sub.count
    _stand(sub)
    if waiter_first(sub.waiter) == sub:
        _saves_anew(sub.waiter)
    _begins_to_wait(core, sub)
    waiter_changed(core, sub.waiter)


cdef bint waiters_leave(Core* core, Subqueue* sub) noexcept nogil:
    cdef Waiter* waiter = sub.waiter
    cdef bint is_first_awaited = waiter.waiters.bucket.parts != NULL and waiter_first(waiter) == sub
    if waiter_first(waiter) == sub:
        _saves_anew(waiter)
    _lift(sub)
    if waiter.chosen == sub:
        waiter.chosen = NULL
    else:
        _waits_no_longer(core, sub)
    sub.waiter = NULL
    waiter.messages -= sub.count
    waiter.waiters.messages -= sub.count
    return waiter_changed(core, waiter) or is_first_awaited


# --- tokens ----------------------------------------------------------------------------------

cdef void _claims(Waiters* waiters, int64_t change) noexcept nogil:
    """Tokens spoken for in this line."""
    waiters.woken += change
    if waiters.woken == 0:
        _is_counted_on_no_more(waiters)
    elif waiters.bucket.waiters.next != NULL:
        _is_counted_on(waiters)


cdef int64_t _tokens_end(Waiter* waiter, uint64_t count) noexcept nogil:
    """So many of its tokens are not spoken for any more; what their messages were thought to cost."""
    cdef int64_t thought = waiter.spoken
    if count < waiter.tokens:
        thought = waiter.spoken // <int64_t> waiter.tokens * <int64_t> count
    waiter.spoken -= thought
    waiter.waiters.spoken -= thought
    waiter.tokens -= count
    _claims(waiter.waiters, -<int64_t> count)
    return thought


cdef bint waiter_changed(Core* core, Waiter* waiter) noexcept nogil:
    cdef Waiters* waiters = waiter.waiters
    cdef ThrottleKey* bucket = waiters.bucket
    cdef bint gave_up = waiter.tokens > waiter.messages
    cdef bint wanted = waiter.turn.place != IDLE
    cdef bint wants
    if gave_up:
        waiter.owed -= _tokens_end(waiter, waiter.tokens - waiter.messages)
    wants = waiter.messages > waiter.tokens
    if wants and not wanted:
        waiter.owed = max(waiter.owed, <int64_t> 0)     # as the deficit: credit is not for the idle
        ring_join(&waiters.ring, &waiter.turn)
        ring_join(bucket.turns, &waiters.turn)
        bucket.waiting += 1
        bucket.limit.waiting += 1
    elif wanted and not wants:
        ring_leave(&waiters.ring, &waiter.turn)
        bucket.waiting -= 1
        bucket.limit.waiting -= 1
        if waiters.ring.ring_count + waiters.ring.deferred_count == 0:
            ring_leave(bucket.turns, &waiters.turn)
    _choose(core, waiter)
    if waiter.messages == 0 and waiter.chosen == NULL and waiter.held == NULL:
        _waiter_free(core, waiter)
    return gave_up or (wants and not wanted)


cdef inline int64_t _charge_for(Waiter* waiter) noexcept nogil:
    """What its next token takes from its deficit: what its message costs, and what it owes."""
    cdef int64_t thought = slot_cost(<Slot*> fifo_first(&waiter_first(waiter).fifo))
    return max(thought + waiter.owed, <int64_t> 0)


cdef Waiter* waiters_turn(Waiters* waiters) noexcept nogil:
    cdef Ring* ring = &waiters.ring
    cdef Turn* turn
    while True:
        turn = ring_turn(ring)
        if turn == NULL:
            return NULL
        if ring_afford(ring, turn, _charge_for(<Waiter*> turn)):
            return <Waiter*> turn


cdef Waiter* waiters_speak(Core* core, Waiters* waiters) noexcept nogil:
    cdef Waiter* waiter = waiters_turn(waiters)
    cdef int64_t thought, charged
    if waiter == NULL:
        return NULL
    thought = slot_cost(<Slot*> fifo_first(&waiter_first(waiter).fifo))
    charged = _charge_for(waiter)
    ring_charge(&waiters.ring, &waiter.turn, charged)
    waiter.owed += thought - charged
    waiter.spoken += thought
    waiters.spoken += thought
    waiter.tokens += 1
    _claims(waiters, 1)
    waiter_changed(core, waiter)
    return waiter


cdef void waiter_spend(Core* core, Waiter* waiter, uint64_t cost) noexcept nogil:
    waiter.owed += <int64_t> cost - _tokens_end(waiter, 1)


cdef void waiter_withdraw(Core* core, Waiter* waiter) noexcept nogil:
    waiter.owed -= _tokens_end(waiter, waiter.tokens)
    waiter_changed(core, waiter)
