"""A message's place is counted from the front of its key's messages, or from their back. One that is far from
both is told by its position: positions only grow, and not for its key alone, so that is an estimate.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.admin.explain cimport highest_that_may_go, put_blocking_part
from fila_server.core.admin.peek cimport reported_state
from fila_server.core.admin.step_budget cimport STEPS_PER_WORK
from fila_server.core.index.last_errors cimport last_error
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.protobuf cimport (
    PRIORITY_USUAL, put_number_field, put_priority_field, put_text_field, put_timestamp_field, put_uuid,
)
from fila_server.core.scheduling.flows cimport flow_find
from fila_server.core.state.kinds cimport DELAYED, LEASED
from fila_server.core.state.paths cimport (
    entry_of, entry_priority, frame_enqueued_ms, frame_id, frame_of, frame_offset, share_of, subqueue_waits,
)
from fila_server.core.state.state cimport Consumer, Delay, Flow, Lease, Subqueue
from fila_server.core.structures.buffer cimport Slice, buffer_free, buffer_init
from fila_server.core.structures.fifo cimport Fifo, Placed, fifo_first
from fila_server.core.structures.heap cimport HeapNode

cdef enum:
    COUNTED_MAX = 10000             # messages, from either end

cdef struct Count:                  # of a key's messages before one position, of its priority
    int64_t  position
    uint32_t left                   # steps
    uint64_t before, behind
    int64_t  lowest, highest        # positions of the first and last message of any fifo
    uint32_t priority
    uint64_t higher, alike          # messages of the key with a higher priority, and with this one


# --- place -----------------------------------------------------------------------------------

cdef void _count_returned(Fifo* fifo, Count* count) noexcept nogil:
    """Those in its heap: below a node that stands behind, all do."""
    cdef HeapNode* node = fifo.returned
    while node != NULL and count.left:
        count.left -= 1
        if node.rank < count.position:
            count.before += 1
            if node.child != NULL:
                node = node.child
                continue
        while node != NULL and node.next == NULL:
            while node.prev != NULL and node.prev.child != node:        # to the first of its siblings
                node = node.prev
            node = node.prev            # their parent
        node = node.next if node != NULL else NULL


cdef void _count_fifo(Fifo* fifo, Count* count) noexcept nogil:
    cdef Placed* placed = fifo.head
    cdef Placed* first = fifo_first(fifo)
    if first != NULL and (count.lowest < 0 or first.position < count.lowest):
        count.lowest = first.position
    if fifo.tail != NULL and fifo.tail.position > count.highest:
        count.highest = fifo.tail.position
    while placed != NULL and placed.position < count.position and count.left:
        count.left -= 1
        count.before += 1
        placed = placed.next
    _count_returned(fifo, count)


cdef void _count_from_behind(Fifo* fifo, Count* count) noexcept nogil:
    cdef Placed* placed = fifo.tail
    if fifo.returned != NULL:           # some of these stand behind it, too
        count.left = 0
    while placed != NULL and placed.position > count.position and count.left:
        count.left -= 1
        count.behind += 1
        placed = placed.prev


cdef inline uint32_t _stands_with(Slot* slot) noexcept nogil:
    """The priority by which it stands in its flow: in a dead-letter queue none counts."""
    return (<Subqueue*> slot.owner).priority if slot.owner != NULL else PRIORITY_USUAL


cdef inline void _add(Count* count, uint32_t priority, uint64_t messages) noexcept nogil:
    if priority > count.priority:
        count.higher += messages
    elif priority == count.priority:
        count.alike += messages


cdef void _count_by_priority(Flow* flow, Count* count) noexcept nogil:
    cdef Subqueue* sub = flow.subqueues.first if flow.subqueues != NULL else NULL
    cdef uint64_t plain = flow.backlog
    count.higher = count.alike = 0
    while sub != NULL and count.left:
        count.left -= 1
        _add(count, sub.priority, sub.count)
        plain -= sub.count
        sub = sub.sibling
    _add(count, PRIORITY_USUAL, plain)


cdef uint64_t _place(Core* core, Slot* slot, Flow* flow, bint* is_estimated) noexcept nogil:
    cdef Count count
    cdef Subqueue* sub
    count.priority = _stands_with(slot)
    count.position, count.left = slot.place.position, COUNTED_MAX
    count.before = count.behind = 0
    count.lowest, count.highest = -1, 0
    _count_by_priority(flow, &count)
    if count.priority == PRIORITY_USUAL:
        _count_fifo(&flow.fifo, &count)
    sub = flow.subqueues.first if flow.subqueues != NULL else NULL
    while sub != NULL and count.left:
        count.left -= 1
        if sub.priority == count.priority:
            _count_fifo(&sub.fifo, &count)
        sub = sub.sibling
    core.counters.walked += COUNTED_MAX - count.left
    core.counters.work += (COUNTED_MAX - count.left) // STEPS_PER_WORK
    if count.left:
        return count.higher + count.before + 1
    count.left = COUNTED_MAX
    if count.priority == PRIORITY_USUAL:
        _count_from_behind(&flow.fifo, &count)
    sub = flow.subqueues.first if flow.subqueues != NULL else NULL
    while sub != NULL and count.left:
        count.left -= 1
        if sub.priority == count.priority:
            _count_from_behind(&sub.fifo, &count)
        sub = sub.sibling
    if count.left and count.alike > count.behind:
        return count.higher + count.alike - count.behind
    is_estimated[0] = True
    return count.higher + 1 + <uint64_t> (
        <double> max(count.position - count.lowest, <int64_t> 0) * max(<int64_t> count.alike - 1, <int64_t> 0)
        / max(count.highest - count.lowest, <int64_t> 1))


# --- what it is doing ------------------------------------------------------------------------

cdef void _put_waiting(Core* core, Buffer* b, Slot* slot) noexcept nogil:
    cdef Flow* flow = flow_find(entry_of(slot).key, share_of(slot).channel)
    cdef Subqueue* sub = <Subqueue*> slot.owner
    cdef bint is_estimated = False
    cdef Slice name
    put_number_field(b, v1.GET_MESSAGE_RESPONSE_PLACE, _place(core, slot, flow, &is_estimated))
    put_number_field(b, v1.GET_MESSAGE_RESPONSE_PLACE_IS_ESTIMATED, is_estimated)
    if sub != NULL and subqueue_waits(sub):
        put_number_field(b, v1.GET_MESSAGE_RESPONSE_CAUSE, v1.EXPLAIN_KEY_RESPONSE_STATE_THROTTLED)
        name.at, name.length = sub.waiter.waiters.bucket.text.bytes, sub.waiter.waiters.bucket.text.length
        put_text_field(b, v1.GET_MESSAGE_RESPONSE_BLOCKING_BUCKET, name)
        put_blocking_part(
            core, b, sub, v1.GET_MESSAGE_RESPONSE_BLOCKING_PART, v1.GET_MESSAGE_RESPONSE_BLOCKING_RATE)
    elif highest_that_may_go(flow) > _stands_with(slot):
        put_number_field(b, v1.GET_MESSAGE_RESPONSE_CAUSE, v1.EXPLAIN_KEY_RESPONSE_STATE_HIGHER_FIRST)


cdef void _put_leased(Buffer* b, Lease* lease) noexcept nogil:
    cdef Consumer* consumer = lease.consumer
    cdef Slice name
    put_timestamp_field(b, v1.GET_MESSAGE_RESPONSE_LEASED_AT, lease.leased_ms)
    put_timestamp_field(b, v1.GET_MESSAGE_RESPONSE_LEASE_EXPIRES_AT, lease.expires_ms)
    put_number_field(b, v1.GET_MESSAGE_RESPONSE_BEGUN, lease.begun)
    if consumer == NULL:
        return
    put_number_field(b, v1.GET_MESSAGE_RESPONSE_CONSUMER_ID, consumer.number)
    name.at, name.length = consumer.name.data, <uint32_t> consumer.name.length
    put_text_field(b, v1.GET_MESSAGE_RESPONSE_CONSUMER_NAME, name)


cdef void _put_delayed(Core* core, Buffer* b, Delay* delay) noexcept nogil:
    cdef Buffer id
    cdef Slice text
    cdef uint64_t high, low
    put_timestamp_field(b, v1.GET_MESSAGE_RESPONSE_UNTIL, delay.due_ms)
    if delay.behind == NULL:
        return
    put_number_field(b, v1.GET_MESSAGE_RESPONSE_CAUSE, v1.EXPLAIN_KEY_RESPONSE_STATE_SUCCEEDS)
    frame_id(frame_of(delay.behind.slot), delay.behind.slot.index, &high, &low)
    buffer_init(&id)
    put_uuid(&id, high, low)
    text.at, text.length = id.data, <uint32_t> id.length
    put_text_field(b, v1.GET_MESSAGE_RESPONSE_WAITS_FOR, text)
    buffer_free(&id)


cdef void whereabouts_put(Core* core, Buffer* b, Slot* slot) noexcept nogil:
    cdef int state = reported_state(slot)
    cdef Slice text
    cdef Slice error = last_error(core, slot)
    cdef Buffer id
    cdef uint64_t high, low
    put_number_field(b, v1.GET_MESSAGE_RESPONSE_STATE, state)
    frame_id(frame_of(slot), slot.index, &high, &low)
    buffer_init(&id)
    put_uuid(&id, high, low)
    text.at, text.length = id.data, <uint32_t> id.length
    put_text_field(b, v1.GET_MESSAGE_RESPONSE_MESSAGE_ID, text)
    buffer_free(&id)
    put_number_field(b, v1.GET_MESSAGE_RESPONSE_OFFSET, frame_offset(frame_of(slot), slot.index))
    text.at, text.length = entry_of(slot).key.text.bytes, entry_of(slot).key.text.length
    put_text_field(b, v1.GET_MESSAGE_RESPONSE_FAIRNESS_KEY, text)
    put_timestamp_field(
        b, v1.GET_MESSAGE_RESPONSE_ENQUEUED_AT, frame_enqueued_ms(frame_of(slot), slot.index))
    put_number_field(b, v1.GET_MESSAGE_RESPONSE_ATTEMPTS, slot.attempts)
    put_priority_field(b, v1.GET_MESSAGE_RESPONSE_PRIORITY, entry_priority(entry_of(slot)))
    if error.length:
        put_text_field(b, v1.GET_MESSAGE_RESPONSE_LAST_ERROR, error)
    if slot.state == DELAYED:
        _put_delayed(core, b, <Delay*> slot.owner)
    elif slot.state == LEASED and slot.owner != NULL:
        _put_leased(b, <Lease*> slot.owner)
    elif state == v1.GET_MESSAGE_RESPONSE_STATE_WAITING:
        _put_waiting(core, b, slot)
