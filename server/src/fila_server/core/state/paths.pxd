"""The ways through the tables: from a slot to its share, frame and
entry, from a name to its queue or channel.

    Slot ──► Share ──► Frame ──► Entry        share_of, frame_of, entry_of: arithmetic, no lookup
    Frame, index ──► offset, id, times        one frame from elsewhere says them of each message
    Core, name ──► Queue, name ──► Channel    NULL where there is none; asking never makes one
"""

from libc.stddef cimport size_t
from libc.stdint cimport UINT32_MAX, int64_t, uint32_t, uint64_t, uint8_t

from fila_server.core.protocol.protobuf cimport PRIORITY_USUAL
from fila_server.core.state.kinds cimport OWN_CAP, OWN_COMMITTED, OWN_RATE, RETURNS_FROM_BIT
from fila_server.core.state.pending cimport Committed, FirstTurn, KeyRateLimit
from fila_server.core.state.state cimport (
    Channel, Core, Entry, Flow, Frame, Key, Lease, Queue, Share, Slot, Subqueue, ThrottleKey, Waiter,
)
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.structures.counters cimport Failures
from fila_server.core.structures.maps cimport map64_get
from fila_server.core.structures.timers cimport Timer

cdef extern from *:
    """
    /* Cython names the structs: a pointer says which is meant, and is not looked at. */
    #define FILA_SLOTS_AT(share) offsetof(__typeof__(*(share)), slots)
    #define FILA_TIMER_AT(bucket) offsetof(__typeof__(*(bucket)), timer)
    """
    size_t _slots_at "FILA_SLOTS_AT" (Share* share) nogil
    size_t _timer_at "FILA_TIMER_AT" (ThrottleKey* bucket) nogil

cdef enum:
    COST_BITS = 30                      # of Entry.cost_bits; above them is the priority, the usual one as 0
    FAILURES_QUIET_S = 900              # failures that are further apart are told apart

cdef Queue* queue_find(Core* core, Slice name) noexcept nogil

# The queue whose dead letters this one takes, made with it or there before; NULL where there is none.
cdef Queue* dlq_source(Core* core, Queue* queue) noexcept nogil

cdef Share* share_find(Frame* frame, Channel* channel) noexcept nogil

cdef inline Share* share_of(Slot* slot) noexcept nogil:
    """The slot's array stands behind its share, so the way back is arithmetic."""
    return <Share*> (<char*> (slot - slot.index) - _slots_at(<Share*> NULL))

cdef inline ThrottleKey* bucket_of(Timer* timer) noexcept nogil:
    return <ThrottleKey*> (<char*> timer - _timer_at(<ThrottleKey*> NULL))

cdef inline Frame* frame_of(Slot* slot) noexcept nogil:
    return share_of(slot).frame

cdef inline Entry* entry_of(Slot* slot) noexcept nogil:
    return &share_of(slot).frame.entries[slot.index]

cdef inline uint32_t cost_bits_of(uint32_t cost, uint32_t priority) noexcept nogil:
    return cost | (priority ^ PRIORITY_USUAL) << COST_BITS

cdef inline uint32_t bits_cost(uint64_t cost_bits) noexcept nogil:
    return <uint32_t> cost_bits & ((<uint32_t> 1 << COST_BITS) - 1)

cdef inline uint32_t bits_priority(uint64_t cost_bits) noexcept nogil:
    return <uint32_t> cost_bits >> COST_BITS ^ PRIORITY_USUAL

cdef inline uint32_t entry_cost(const Entry* entry) noexcept nogil:
    return bits_cost(entry.cost_bits)

cdef inline uint32_t entry_priority(const Entry* entry) noexcept nogil:
    return bits_priority(entry.cost_bits)

cdef inline uint32_t slot_cost(Slot* slot) noexcept nogil:
    return entry_cost(entry_of(slot))

cdef inline int64_t rank_of(int64_t position, uint32_t priority) noexcept nogil:
    """Lower goes first: the priority stands above the position, and the usual one adds nothing."""
    return position + ((PRIORITY_USUAL - <int64_t> priority) << 60)

cdef inline int64_t slot_rank(Slot* slot) noexcept nogil:
    return rank_of(slot.place.position, entry_priority(entry_of(slot)))

cdef inline uint64_t frame_offset(Frame* frame, uint32_t index) noexcept nogil:
    if frame.own_ids != NULL:
        return frame.own_ids[index].offset
    return frame.first_offset + index

cdef inline void frame_id(Frame* frame, uint32_t index, uint64_t* high, uint64_t* low) noexcept nogil:
    if frame.own_ids != NULL:
        high[0] = frame.own_ids[index].id_high
        low[0] = frame.own_ids[index].id_low
    else:
        high[0] = frame.id_high
        low[0] = frame.id_low + index

cdef inline int64_t frame_enqueued_ms(Frame* frame, uint32_t index) noexcept nogil:
    if frame.own_ids != NULL:
        return frame.own_ids[index].enqueued_ms
    return frame.appended_ms + frame.entries[index].enqueued_delta_ms

cdef inline int64_t frame_appended_ms(Frame* frame, uint32_t index) noexcept nogil:
    if frame.own_ids != NULL:
        return frame.own_ids[index].appended_ms
    return frame.appended_ms

cdef inline uint64_t frame_last_offset(Frame* frame) noexcept nogil:
    return frame_offset(frame, frame.count - 1)

cdef inline uint32_t key_weight(Key* key) noexcept nogil:
    """What it is served by: an operator's word, else the weight table's, else the newest enqueue's."""
    if key.admin_weight:
        return key.admin_weight
    return key.table_weight if key.table_weight else key.weight

cdef inline uint32_t key_cap(Key* key) noexcept nogil:
    """Most leases that it may hold in a channel at a time, by an operator's word or by default; 0 = none."""
    return key.extras.cap if key.extras != NULL else 0

cdef inline KeyRateLimit* key_rate_limit(Key* key) noexcept nogil:
    """Its rate, by an operator's word or by default; or NULL."""
    return key.extras.rate_limit if key.extras != NULL else NULL

cdef inline Committed* key_committed(Key* key) noexcept nogil:
    """Its committed rate, by an operator's word or by default; or NULL."""
    return key.extras.committed if key.extras != NULL else NULL

cdef inline FirstTurn* flow_first_turn(Flow* flow) noexcept nogil:
    """Its turn among those within their committed rate; NULL where it has had none."""
    if flow.channel.committed == NULL or key_committed(flow.key) == NULL:
        return NULL
    return <FirstTurn*> map64_get(&flow.key.extras.committed.turns, <uint64_t> flow.channel)

cdef inline uint64_t flow_retrying(Flow* flow) noexcept nogil:
    """Failed messages of it that keep their place and wait for their retry."""
    if flow.key.extras == NULL or flow.key.extras.retrying.count == 0:
        return 0
    return <uint64_t> map64_get(&flow.key.extras.retrying, <uint64_t> flow.channel)

cdef inline bint flow_is_in_order(Flow* flow) noexcept nogil:
    """Its messages go one at a time."""
    return flow.channel.queue.policy.in_order

cdef inline uint8_t key_own(Key* key) noexcept nogil:
    """What an operator said of it, of what a queue may have defaults for: OwnWords."""
    return key.extras.own if key.extras != NULL else 0

cdef inline bint cap_is_default(Key* key) noexcept nogil:
    """It has a cap, and no operator said so."""
    return key_cap(key) != 0 and not key_own(key) & OWN_CAP

cdef inline bint rate_is_default(Key* key) noexcept nogil:
    return key_rate_limit(key) != NULL and not key_own(key) & OWN_RATE

cdef inline bint committed_is_default(Key* key) noexcept nogil:
    return key_committed(key) != NULL and not key_own(key) & OWN_COMMITTED

cdef inline bint key_has_policy(Key* key) noexcept nogil:
    """An operator set something: the key outlives its messages."""
    return key.admin_weight != 0 or key.paused or key_own(key) != 0

cdef inline uint64_t flow_delivered(Flow* flow) noexcept nogil:
    """Messages begun since the flow began: 40 bits, which last a month at 400,000 a second."""
    return <uint64_t> flow.delivered_wraps << 32 | flow.delivered

cdef inline uint64_t flow_leased(Flow* flow) noexcept nogil:
    return flow_delivered(flow) + flow.unbegun

cdef inline void flow_leases(Flow* flow) noexcept nogil:
    flow.unbegun += flow.unbegun < UINT32_MAX

cdef inline void flow_delivers(Flow* flow) noexcept nogil:
    """One of its leases is begun."""
    flow.unbegun -= flow.unbegun > 0
    flow.delivered += 1
    flow.delivered_wraps += flow.delivered == 0

cdef inline uint32_t slot_returns(Slot* slot) noexcept nogil:
    """How often it came back uncounted, up to 31."""
    return slot.marks >> RETURNS_FROM_BIT

cdef inline void failure_counted(Core* core, Queue* queue) noexcept nogil:
    """Behind the count of a nacked or expired message: what of late failed is told apart from what ever
    did."""
    cdef Failures* late = &queue.failures
    if late.last_ns == 0 or core.mono_ns - late.last_ns > <int64_t> FAILURES_QUIET_S * 1000000000:
        late.began_ns = core.mono_ns
        late.acked = queue.counters.acked
        late.failed = queue.counters.nacked + queue.counters.expired - 1
        late.dead = queue.counters.dead_lettered
    late.last_ns = core.mono_ns

cdef inline bint subqueue_waits(Subqueue* sub) noexcept nogil:
    """It stands in a bucket's line, and no token is spoken for its first message."""
    return sub.waiter != NULL and sub.waiter.chosen != sub

cdef inline Subqueue* waiter_first(Waiter* waiter) noexcept nogil:
    """Of its sub-queues the one with the lowest rank, whose first message has its next token."""
    return waiter.chosen if waiter.chosen != NULL else <Subqueue*> waiter.held

cdef inline bint lease_is_gone(Lease* lease) noexcept nogil:
    """Its channel was deleted or started anew: it ends soon, and until then it is nobody's."""
    return share_of(lease.slot).channel.gone != 0

# The channel a call means, an empty name `default`; NULL: there is none. Asking never makes one.
cdef Channel* channel_find(Queue* queue, Slice name) noexcept nogil

# The clock of budgets, which is never set back: what was forgotten of a period that is over stays over.
cdef inline int64_t budget_clock_ms(Core* core) noexcept nogil:
    return max(core.limit_table.newest_ms, core.wall_ms)
