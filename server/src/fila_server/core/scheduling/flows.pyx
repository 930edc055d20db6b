"""A flow is on the ring, parked, or idle, and flow_reconsider puts it where it belongs after any change."""

from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.scheduling.allowances cimport first_turn_end, key_extras
from fila_server.core.scheduling.clocks cimport clock_begin, clock_end, clock_note
from fila_server.core.scheduling.eligibility cimport flow_join, flow_park, flow_rest, flow_stopped
from fila_server.core.scheduling.keeping cimport keep_ends
from fila_server.core.scheduling.throttle cimport set_release
from fila_server.core.scheduling.tokens cimport (
    bucket_refusing, set_wake, subqueue_keeps_nothing, subqueue_leave, subqueue_wait,
)
from fila_server.core.scheduling.waiters cimport subqueue_rank, waiters_leave
from fila_server.core.state.kinds cimport NOT_PARKED, PARKED_THROTTLED
from fila_server.core.state.paths cimport flow_first_turn, flow_retrying, key_weight
from fila_server.core.state.pending cimport FirstTurn
from fila_server.core.state.state cimport Subqueues, ThrottleKey, Waiter
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.fifo cimport Placed, fifo_first
from fila_server.core.structures.heap cimport heap_remove
from fila_server.core.structures.maps cimport (
    Map64, map64_free, map64_get, map64_init, map64_next, map64_put, map64_remove,
)
from fila_server.core.structures.ring cimport ring_leave, ring_reweigh

cdef enum:
    FLOWS_WALKED_MAX = 8


# --- a key's flows -------------------------------------------------------------------------

cdef inline Map64* _index_of(Key* key) noexcept nogil:
    return key.extras.flows_by_channel if key.extras != NULL else NULL


cdef Flow* flow_find(Key* key, Channel* channel) noexcept nogil:
    cdef Flow* flow = key.flows
    cdef Map64* index = _index_of(key)
    if index != NULL and (flow == NULL or flow.channel != channel):
        return <Flow*> map64_get(index, <uint64_t> channel)
    while flow != NULL and flow.channel != channel:
        flow = flow.next_of_key
    return flow


cdef void _index(Core* core, Key* key, Flow* flow) noexcept nogil:
    """A key that is used in many channels finds its flows by a map instead of a walk."""
    cdef Map64* index = _index_of(key)
    cdef Flow* other = key.flows
    cdef uint32_t count = 0
    if index != NULL:
        map64_put(index, <uint64_t> flow.channel, flow)
        return
    while other != NULL and count <= FLOWS_WALKED_MAX:
        count += 1
        other = other.next_of_key
    if count <= FLOWS_WALKED_MAX:
        return
    index = <Map64*> must_malloc(sizeof(Map64))
    map64_init(index)
    key_extras(core, key).flows_by_channel = index
    other = key.flows
    while other != NULL:
        map64_put(index, <uint64_t> other.channel, other)
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
        _index(core, key, flow)
        clock_begin(core, flow)
    return flow


cdef void flow_free(Core* core, Flow* flow) noexcept nogil:
    """Unlinked from its key by the caller."""
    cdef Map64* index = _index_of(flow.key)
    cdef FirstTurn* first = flow_first_turn(flow)
    if first != NULL:
        first_turn_end(core, first)
    if index != NULL:
        map64_remove(index, <uint64_t> flow.channel)
        if index.count == 0:
            map64_free(index)
            free(index)
            flow.key.extras.flows_by_channel = NULL
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


# --- sub-queues ----------------------------------------------------------------------------

cdef inline uint64_t _kind(ThrottleSet* set, uint32_t priority) noexcept nogil:
    """A set's address ends in zeros."""
    return <uint64_t> set | priority


cdef Subqueue* subqueue_of(Core* core, Flow* flow, ThrottleSet* set, uint32_t priority) noexcept nogil:
    cdef Subqueue* sub = NULL
    if set == NULL:
        set = &core.no_throttle_keys
    if flow.subqueues == NULL:
        flow.subqueues = <Subqueues*> must_malloc(sizeof(Subqueues))
        flow.subqueues.first = NULL
        flow.subqueues.eligible = NULL
        flow.subqueues.waiting = 0
        map64_init(&flow.subqueues.by_kind)
        map64_init(&flow.subqueues.waiter_by_bucket)
    else:
        sub = <Subqueue*> map64_get(&flow.subqueues.by_kind, _kind(set, priority))
    if sub == NULL:
        sub = <Subqueue*> must_malloc(sizeof(Subqueue))
        memset(sub, 0, sizeof(Subqueue))
        sub.flow = flow
        sub.set = set
        sub.priority = <uint8_t> priority
        set.refs += 1
        sub.sibling = flow.subqueues.first
        if sub.sibling != NULL:
            sub.sibling.sibling_prev = sub
        flow.subqueues.first = sub
        map64_put(&flow.subqueues.by_kind, _kind(set, priority), sub)
        core.index_bytes += sizeof(Subqueue)
    return sub


cdef void subqueue_free(Core* core, Subqueue* sub) noexcept nogil:
    cdef Flow* flow = sub.flow
    subqueue_leave(core, sub)
    subqueue_keeps_nothing(core, sub)
    if sub.node.in_heap:
        flow.subqueues.eligible = heap_remove(flow.subqueues.eligible, &sub.node)
    if sub.sibling != NULL:
        sub.sibling.sibling_prev = sub.sibling_prev
    if sub.sibling_prev != NULL:
        sub.sibling_prev.sibling = sub.sibling
    else:
        flow.subqueues.first = sub.sibling
    map64_remove(&flow.subqueues.by_kind, _kind(sub.set, sub.priority))
    if flow.subqueues.first == NULL:
        map64_free(&flow.subqueues.by_kind)
        free(flow.subqueues)
        flow.subqueues = NULL
    set_release(core, sub.set)
    free(sub)
    core.index_bytes -= sizeof(Subqueue)


# --- whether it may go, and with what ------------------------------------------------------

cdef void _stand_down(Core* core, Flow* flow) noexcept nogil:
    """A flow that may not go whatever its buckets say waits in no line, and no token is spoken for it. Others
    get those once it stands in none, so that none of them is spoken for this flow again."""
    cdef Subqueue* sub = flow.subqueues.first if flow.subqueues != NULL else NULL
    cdef bint gave_up = False
    while sub != NULL:
        if sub.waiter != NULL:
            gave_up |= waiters_leave(core, sub)
            subqueue_rank(sub)
        gave_up |= keep_ends(core, sub)
        sub = sub.sibling
    sub = flow.subqueues.first if gave_up else NULL
    while sub != NULL:
        set_wake(core, sub.set)
        sub = sub.sibling


cdef void _reweigh(Flow* flow, uint32_t weight) noexcept nogil:
    """Wherever it takes turns."""
    cdef Waiter* waiter
    cdef FirstTurn* first = flow_first_turn(flow)
    cdef uint32_t cursor = 0
    ring_reweigh(&flow.channel.ring, &flow.turn, weight)
    if first != NULL:
        ring_reweigh(flow.channel.committed, &first.turn, weight)
    if flow.subqueues == NULL:
        return
    while True:
        waiter = <Waiter*> map64_next(&flow.subqueues.waiter_by_bucket, &cursor)
        if waiter == NULL:
            return
        ring_reweigh(&waiter.waiters.ring, &waiter.turn, weight)


cdef bint _first_is_held(Flow* flow) noexcept nogil:
    """Whether its first message stands in a bucket's line, and no token is spoken for it."""
    cdef Subqueues* subs = flow.subqueues
    cdef Placed* plain = fifo_first(&flow.fifo)
    cdef Waiter* waiter
    cdef uint32_t cursor = 0
    if subs == NULL or subs.waiting == 0:
        return False
    while True:
        waiter = <Waiter*> map64_next(&subs.waiter_by_bucket, &cursor)
        if waiter == NULL:
            return False
        if (
            waiter.held != NULL
            and (plain == NULL or waiter.held.rank < plain.position)
            and (subs.eligible == NULL or waiter.held.rank < subs.eligible.rank)
        ):
            return True


cdef bint _is_held(Flow* flow) noexcept nogil:
    """All that it could send waits for tokens."""
    if flow_is_in_order(flow):
        return _first_is_held(flow)
    return fifo_first(&flow.fifo) == NULL and (flow.subqueues == NULL or flow.subqueues.eligible == NULL)


cdef void flow_reconsider(Core* core, Flow* flow) noexcept nogil:
    cdef uint32_t weight = key_weight(flow.key)
    cdef uint8_t stopped = flow_stopped(core, flow) if flow.backlog else NOT_PARKED
    clock_note(core, flow)
    if flow.turn.weight != weight:
        if flow.joined:
            flow.channel.weight += weight
            flow.channel.weight -= flow.turn.weight
        _reweigh(flow, weight)
    if flow.backlog == 0:
        flow_rest(core, flow)
    elif stopped:
        flow_park(core, flow, stopped)
        _stand_down(core, flow)
    elif _is_held(flow):
        flow_park(core, flow, PARKED_THROTTLED)
    else:
        flow_join(core, flow)


cdef void key_reconsider(Core* core, Key* key) noexcept nogil:
    cdef Flow* flow = key.flows
    while flow != NULL:
        flow_reconsider(core, flow)
        flow = flow.next_of_key


cdef bint _may_not_go(Core* core, Flow* flow) noexcept nogil:
    """Whether order keeps it back. Its queue's order may have been switched on after it came to the ring, or
    to lines in which more than its first message stood: these step out, since no token is of use to them."""
    if flow.in_flight or flow_retrying(flow):
        return True
    if not _first_is_held(flow):
        return False
    if flow.subqueues.waiter_by_bucket.count == 1:
        return True
    _stand_down(core, flow)
    return False


cdef Slot* flow_next(Core* core, Flow* flow) noexcept nogil:
    cdef Subqueue* sub
    cdef Slot* plain
    cdef ThrottleKey* bucket
    cdef bint in_order = flow_is_in_order(flow)
    while True:
        if in_order and _may_not_go(core, flow):
            return NULL
        plain = <Slot*> fifo_first(&flow.fifo)
        sub = <Subqueue*> flow.subqueues.eligible if flow.subqueues != NULL else NULL
        if sub == NULL or (plain != NULL and plain.place.position < sub.node.rank):
            return plain
        bucket = bucket_refusing(core, sub)
        if bucket == NULL:
            return <Slot*> fifo_first(&sub.fifo)
        subqueue_wait(core, sub, bucket)
