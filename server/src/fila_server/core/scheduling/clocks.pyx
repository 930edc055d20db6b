"""Waiting is added up when something changes, for the stretch since the last change; nothing ticks."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.state.kinds cimport NOT_PARKED, PARKED_THROTTLED
from fila_server.core.state.paths cimport flow_delivered, flow_first_turn, flow_leased
from fila_server.core.state.pending cimport FirstTurn
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.maps cimport (
    Text, textmap_free, textmap_get, textmap_get_hashed, textmap_put, textmap_remove,
)

cdef enum:
    PARTS = 12
    TOUCHED_MS = 1000                   # how exact the order of last use is
    OPENED_ONE_IN = 16
    SPARED_MAX = 4                      # keys with a wait passed over in the search for a row to give away

cdef int64_t PART_NS = <int64_t> 300 * 1000000000


# --- an hour in twelve parts -----------------------------------------------------------------

cdef void _turn(Core* core, Hour* hour) noexcept nogil:
    """Begin the current part; those nobody wrote to meanwhile are empty."""
    cdef int64_t part = core.mono_ns // PART_NS
    cdef int64_t gap = part - hour.part
    cdef int64_t each
    cdef int column
    if gap == 0:
        return
    for each in range(max(hour.part + 1, part - PARTS), part):
        memset(hour.parts[each % PARTS], 0, sizeof(hour.parts[0]))
    if gap < PARTS:
        for column in range(HOUR_COLUMNS):
            hour.parts[hour.part % PARTS][column] = <float> hour.now[column]
    for column in range(HOUR_COLUMNS):
        hour.before[column] += hour.now[column]
    memset(hour.now, 0, sizeof(hour.now))
    hour.part = part


cdef double hour_sum(Core* core, Hour* hour, int column) noexcept nogil:
    """The part that is running and the eleven before it."""
    cdef double total
    cdef int64_t each
    _turn(core, hour)
    total = hour.now[column]
    for each in range(max(<int64_t> 0, hour.part - PARTS + 1), hour.part):
        total += hour.parts[each % PARTS][column]
    return total


cdef double hour_total(Hour* hour, int column) noexcept nogil:
    return hour.before[column] + hour.now[column]


cdef inline void _add(Channel* channel, KeyClock* row, int column, double amount) noexcept nogil:
    channel.hour.now[column] += amount
    if row != NULL:
        row.hour.now[column] += amount


cdef void channel_served(
        Core* core, Channel* channel, uint64_t cost, uint64_t committed, uint64_t weight) noexcept nogil:
    _turn(core, &channel.hour)
    channel.hour.now[HOUR_SERVED] += <double> cost
    channel.virtual += <double> (cost - committed) / <double> (weight if weight else 1)


# --- accounting ------------------------------------------------------------------------------

cdef inline uint32_t _waiting_count(Flow* flow) noexcept nogil:
    return flow.subqueues.waiting if flow.subqueues != NULL else 0


cdef void clock_account(Core* core, Flow* flow) noexcept nogil:
    cdef Channel* channel = flow.channel
    cdef uint32_t elapsed = core.mono_ms - flow.since_ms
    cdef uint32_t clock = no_room_ms(core, channel)
    cdef uint32_t blocked = clock - flow.no_room_ms
    cdef uint32_t held = flow.backlog if flow.parked else _waiting_count(flow)
    cdef double ready = flow.backlog - held
    cdef KeyClock* row = flow.clock
    if row == NULL and flow.backlog + flow.delayed:
        row = _find(channel, flow)
        if row == NULL:
            if elapsed < ROW_WAIT_MS:
                return                  # left to add up
            row = _open(core, flow)
    flow.since_ms = core.mono_ms
    flow.no_room_ms = clock
    if row != NULL:
        _turn(core, &row.hour)
        _serve(row, flow)
        if core.mono_ns // 1000000 - row.touched_ms >= TOUCHED_MS:
            _touch(core, row)
    if flow.backlog + flow.delayed == 0:
        return
    _turn(core, &channel.hour)
    if blocked > elapsed or channel.ring.ring_count + channel.ring.deferred_count <= 1:
        blocked = elapsed
    if ready:
        _add(channel, row, WAITED_NO_CONSUMER, blocked * ready)
        _add(channel, row, WAITED_SHARE, (elapsed - blocked) * ready)
    if held:
        _add(
            channel, row, WAITED_THROTTLE if flow.parked in (NOT_PARKED, PARKED_THROTTLED) else WAITED_HELD,
            <double> elapsed * held)
    if flow.delayed:
        _add(channel, row, WAITED_DELAY, <double> elapsed * flow.delayed)


cdef void _serve(KeyClock* row, Flow* flow) noexcept nogil:
    """What it was served since the last look, and what it was due: what went within its committed rate,
    and its weight's part of the rest, or less if it asked for less."""
    cdef double served = <double> <int64_t> (flow.served - row.served_seen)
    cdef double due = served
    cdef FirstTurn* first = flow_first_turn(flow)
    if flow.backlog and row.virtual_at >= 0:
        due = flow.turn.weight * (flow.channel.virtual - row.virtual_at)
        if first != NULL:
            due += <double> first.served
    if first != NULL:
        first.served = 0
    row.served_seen = flow.served
    row.virtual_at = flow.channel.virtual
    row.hour.now[HOUR_SERVED] += served
    row.hour.now[HOUR_DUE] += due


# --- the table -------------------------------------------------------------------------------

cdef void _unlink(KeyClock* row) noexcept nogil:
    cdef Channel* channel = row.channel
    if row.newer != NULL:
        row.newer.older = row.older
    else:
        channel.clocks_newest = row.older
    if row.older != NULL:
        row.older.newer = row.newer
    else:
        channel.clocks_oldest = row.newer


cdef void _link(Core* core, KeyClock* row) noexcept nogil:
    cdef Channel* channel = row.channel
    row.touched_ms = core.mono_ns // 1000000
    row.newer = NULL
    row.older = channel.clocks_newest
    if row.older != NULL:
        row.older.newer = row
    else:
        channel.clocks_oldest = row
    channel.clocks_newest = row


cdef void _touch(Core* core, KeyClock* row) noexcept nogil:
    _unlink(row)
    _link(core, row)


cdef bint _make_room(Core* core, Channel* channel) noexcept nogil:
    """Whether one more row may be opened, if need be in place of one that was of no use for a while."""
    cdef KeyClock* row
    cdef int i
    if channel.clocks.count < ROWS_PER_CHANNEL_MAX and core.clocks_count < ROWS_MAX:
        return True
    for i in range(SPARED_MAX):
        row = channel.clocks_oldest
        if row == NULL or core.mono_ns // 1000000 - row.touched_ms < ROW_IDLE_MS:
            return False
        if row.flow == NULL or row.flow.backlog + row.flow.delayed == 0:
            _drop(core, row)
            return True
        _touch(core, row)               # it waits, and nothing happened to it: just
                                        # what people will ask about
    return False


cdef void _drop(Core* core, KeyClock* row) noexcept nogil:
    if row.flow != NULL:
        row.flow.clock = NULL
    _unlink(row)
    textmap_remove(&row.channel.clocks, &row.text)
    core.clocks_count -= 1
    free(row)


cdef void _take_up(KeyClock* row, Flow* flow) noexcept nogil:
    """What the flow was served so far counts as its due: nobody noted what others got meanwhile."""
    row.flow = flow
    row.served_seen = 0
    row.virtual_at = -1
    flow.clock = row


cdef KeyClock* _find(Channel* channel, Flow* flow) noexcept nogil:
    cdef Text* text = &flow.key.text
    cdef KeyClock* row = NULL
    if flow.no_clock:
        return NULL
    if channel.clocks.count:
        row = <KeyClock*> textmap_get_hashed(&channel.clocks, text.bytes, text.length, text.hash)
    if row == NULL:
        flow.no_clock = True            # rows are opened by their own flows, so this stays true
    else:
        _take_up(row, flow)
    return row


cdef KeyClock* _open(Core* core, Flow* flow) noexcept nogil:
    cdef Channel* channel = flow.channel
    cdef Text* text = &flow.key.text
    cdef KeyClock* row
    cdef char* bytes
    if channel.gone or not _make_room(core, channel):
        return NULL
    row = <KeyClock*> must_malloc(sizeof(KeyClock) + text.length)
    memset(row, 0, sizeof(KeyClock))
    bytes = <char*> row + sizeof(KeyClock)
    memcpy(bytes, text.bytes, text.length)
    row.text.bytes = bytes
    row.text.length = text.length
    row.channel = channel
    row.hour.part = core.mono_ns // PART_NS
    _take_up(row, flow)
    textmap_put(&channel.clocks, &row.text)
    _link(core, row)
    core.clocks_count += 1
    return row


cdef void clock_settle(Core* core, Flow* flow) noexcept nogil:
    if flow.clock != NULL or _find(flow.channel, flow) != NULL:
        clock_account(core, flow)


cdef void clock_remember(Core* core, Flow* flow) noexcept nogil:
    cdef Channel* channel = flow.channel
    if flow.clock != NULL or _find(channel, flow) != NULL:
        return
    if not _make_room(core, channel) and channel.clocks_oldest != NULL:
        _drop(core, channel.clocks_oldest)
    _open(core, flow)


cdef KeyClock* clock_find(Channel* channel, const char* text, uint32_t length) noexcept nogil:
    return <KeyClock*> textmap_get(&channel.clocks, text, length)


cdef void cost_returned(Core* core, Flow* flow, uint32_t cost) noexcept nogil:
    cdef KeyClock* row = flow.clock
    _turn(core, &flow.channel.hour)
    if row == NULL:
        row = _find(flow.channel, flow)
    if row == NULL:                     # so that it is known when somebody asks for the key's share
        row = _open(core, flow)
    if row != NULL:
        _turn(core, &row.hour)
    _add(flow.channel, row, HOUR_RETURNED, cost)


cdef void clock_begin(Core* core, Flow* flow) noexcept nogil:
    flow.since_ms = core.mono_ms
    flow.no_room_ms = no_room_ms(core, flow.channel)
    flow.no_clock = flow.channel.clocks.count == 0     # none is there, and none but its own comes: see _find


cdef void clock_end(Core* core, Flow* flow) noexcept nogil:
    cdef KeyClock* row = flow.clock
    if flow_leased(flow) == 0 and row == NULL:
        return
    if row == NULL:
        row = _find(flow.channel, flow)
    if row == NULL and (flow.key.text.hash ^ core.counters.passes) % OPENED_ONE_IN == 0:
        row = _open(core, flow)
    if row == NULL:
        return
    if row.served_seen != flow.served:
        _turn(core, &row.hour)
        _serve(row, flow)
    if core.mono_ns // 1000000 - row.touched_ms >= TOUCHED_MS:
        _touch(core, row)
    row.delivered += flow_delivered(flow)
    row.arrived += flow.arrived
    row.flow = NULL
    flow.clock = NULL


cdef bint clocks_forget(Core* core, Channel* channel) noexcept nogil:
    while channel.clocks_oldest != NULL:
        if not stage_goes_on(core):
            return False
        core.counters.work += 1
        _drop(core, channel.clocks_oldest)
    textmap_free(&channel.clocks)
    return True
