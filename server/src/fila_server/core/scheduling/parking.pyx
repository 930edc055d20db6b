"""Each move keeps in step: `joined`, the channel's weight, and the clock of how long a flow was stopped."""

from fila_server.core.state.kinds cimport NOT_PARKED, PARKED_PAUSED
from fila_server.core.structures.ring cimport ring_join, ring_leave, ring_park, ring_rejoin


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
    channel_activate(core, flow.channel)


cdef void flow_park(Core* core, Flow* flow, uint8_t reason) noexcept nogil:
    if flow.joined:
        flow.joined = False
        flow.channel.weight -= flow.turn.weight
        ring_park(&flow.channel.ring, &flow.turn)
    _set_parked(core, flow, reason)


cdef void flow_rest(Core* core, Flow* flow) noexcept nogil:
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
