"""Each move keeps in step: `joined`, the channel's weight, the turn among those within their committed rate,
and the clock of how long a flow was stopped."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from fila_server.core.scheduling.allowances cimport rate_limit_has_token
from fila_server.core.state.kinds cimport (
    NOT_PARKED, PARKED_CAPPED, PARKED_IN_ORDER, PARKED_PAUSED, PARKED_RATE_LIMITED,
)
from fila_server.core.state.paths cimport (
    flow_is_in_order, flow_retrying, flow_first_turn, key_cap, key_committed, key_rate_limit,
)
from fila_server.core.state.pending cimport FirstTurn, KeyRateLimit
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.maps cimport map64_put
from fila_server.core.structures.ring cimport (
    Ring, ring_again, ring_init, ring_join, ring_leave, ring_park, ring_rejoin,
)


# --- those within their committed rate -------------------------------------------------------

cdef FirstTurn* _first_turn_new(Core* core, Flow* flow) noexcept nogil:
    cdef Channel* channel = flow.channel
    cdef FirstTurn* first = <FirstTurn*> must_malloc(sizeof(FirstTurn))
    memset(first, 0, sizeof(FirstTurn))
    first.flow = flow
    first.turn.weight = flow.turn.weight
    if channel.committed == NULL:
        channel.committed = <Ring*> must_malloc(sizeof(Ring))
        ring_init(channel.committed, channel.ring.quantum)
    map64_put(&key_committed(flow.key).turns, <uint64_t> channel, first)
    core.index_bytes += sizeof(FirstTurn)
    return first


cdef void _goes_first(Core* core, Flow* flow) noexcept nogil:
    """It stands there while its key has a token of its committed rate."""
    cdef FirstTurn* first = flow_first_turn(flow)
    if rate_limit_has_token(core, &key_committed(flow.key).limit):
        if first == NULL:
            first = _first_turn_new(core, flow)
        ring_rejoin(flow.channel.committed, &first.turn)
    elif first != NULL:
        ring_park(flow.channel.committed, &first.turn)


cdef void flow_again(Flow* flow) noexcept nogil:
    cdef FirstTurn* first = flow_first_turn(flow)
    ring_again(&flow.channel.ring, &flow.turn)
    if first != NULL:
        ring_again(flow.channel.committed, &first.turn)


# --- on the ring, parked, or neither ---------------------------------------------------------

cdef void _set_parked(Core* core, Flow* flow, uint8_t reason) noexcept nogil:
    """And the clock of how long it was stopped, whatever its buckets said."""
    if flow.parked >= PARKED_PAUSED:
        flow.stopped_ms += core.mono_ms - flow.stopped_since_ms
    flow.stopped_since_ms = core.mono_ms
    flow.parked = reason


cdef void flow_join(Core* core, Flow* flow) noexcept nogil:
    if not flow.joined:
        flow.joined = True
        flow.channel.weight += flow.turn.weight
        if flow.parked:
            _set_parked(core, flow, NOT_PARKED)
            ring_rejoin(&flow.channel.ring, &flow.turn)
        else:
            ring_join(&flow.channel.ring, &flow.turn)
    if key_committed(flow.key) != NULL:
        _goes_first(core, flow)
    channel_activate(core, flow.channel)


cdef void flow_park(Core* core, Flow* flow, uint8_t reason) noexcept nogil:
    cdef FirstTurn* first = flow_first_turn(flow)
    if first != NULL:
        ring_park(flow.channel.committed, &first.turn)
    if flow.joined:
        flow.joined = False
        flow.channel.weight -= flow.turn.weight
        ring_park(&flow.channel.ring, &flow.turn)
    _set_parked(core, flow, reason)


cdef void flow_rest(Core* core, Flow* flow) noexcept nogil:
    cdef FirstTurn* first = flow_first_turn(flow)
    if first != NULL:
        ring_leave(flow.channel.committed, &first.turn)
    if flow.joined:
        flow.joined = False
        flow.channel.weight -= flow.turn.weight
        ring_leave(&flow.channel.ring, &flow.turn)
    flow.turn.deficit = 0
    _set_parked(core, flow, NOT_PARKED)


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


# --- what its key may have -------------------------------------------------------------------

cdef uint8_t flow_stopped(Core* core, Flow* flow) noexcept nogil:
    cdef uint32_t cap
    cdef KeyRateLimit* limit
    if flow.key.extras == NULL and not flow_is_in_order(flow):      # nobody said anything of it
        return NOT_PARKED
    cap, limit = key_cap(flow.key), key_rate_limit(flow.key)
    if flow.key.paused:
        return PARKED_PAUSED
    if flow_is_in_order(flow) and (flow.in_flight or flow_retrying(flow)):
        return PARKED_IN_ORDER
    if cap and flow.in_flight >= cap:
        return PARKED_CAPPED
    if limit != NULL and not rate_limit_has_token(core, limit):
        return PARKED_RATE_LIMITED
    return NOT_PARKED
