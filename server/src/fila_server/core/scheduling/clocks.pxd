"""Where waiting went: cumulative clocks that are read when something changes, never walked.

    message-milliseconds = how long × how many messages, split into

      WAITED_NO_CONSUMER   on the ring while nobody in the channel had room for NO_ROOM_MS, or with no other
                           key on the ring to blame: its consumers are too few, too slow, or gone
      WAITED_SHARE         on the ring while others had their turns
      WAITED_THROTTLE      in a bucket's line
      WAITED_DELAY         delayed, by wish or by backoff
      WAITED_HELD          ready, while its key was paused, had used up the rate an operator set for it, or as
                           much of it was leased as its cap allows

A flow remembers up to when it is accounted for. Code that is about to change what it waits for calls
`clock_note` first: one comparison, and in most calls nothing more, because stretches below NOTED_MS are left
to add up (of a flow without a row, those below ROW_WAIT_MS). The sums go to the flow's channel, and to the
key's row in the channel's table: an hour in parts of five minutes, kept while the key is idle too.

The table is bounded, and a key that lives for one message costs it next to nothing. A flow's row is looked
for when it is first needed, not when the flow begins. One is opened for a key that waited ROW_WAIT_MS, and
for one in sixteen of those that were served and became idle: who does so often has one soon. Where there is
no room, a new row takes the place of the one that was not used for longest, if that was ROW_IDLE_MS.
"""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.state.state cimport Channel, Core, Flow, KeyClock
from fila_server.core.structures.counters cimport Hour

cdef enum:                              # columns of an Hour
    WAITED_NO_CONSUMER = 0
    WAITED_SHARE = 1
    WAITED_THROTTLE = 2
    WAITED_DELAY = 3
    WAITED_HELD = 4
    HOUR_SERVED = 5                     # cost, in thousandths
    HOUR_DUE = 6                        # the same, as committed rates and weights give it, or what was asked
    HOUR_RETURNED = 7                   # of what was served: cost of deliveries that came back uncounted
    HOUR_COLUMNS = 8

cdef enum:
    NOTED_MS = 1
    ROW_WAIT_MS = 100
    ROW_IDLE_MS = 60000
    ROWS_PER_CHANNEL_MAX = 10000
    ROWS_MAX = 20000                    # of all channels: telemetry looks at each
    NO_ROOM_MS = 100                    # shorter gaps between two deliveries are how a busy channel works

cdef void clock_account(Core* core, Flow* flow) noexcept nogil
# The same of a flow whose key has a row. One that is looked at before it had to wait takes its row up; none
# is opened.
cdef void clock_settle(Core* core, Flow* flow) noexcept nogil

cdef inline void clock_note(Core* core, Flow* flow) noexcept nogil:
    """Call before a flow's backlog, delays, place or throttling change."""
    cdef uint32_t elapsed = core.mono_ms - flow.since_ms
    if elapsed < NOTED_MS:
        return
    if flow.clock != NULL or elapsed >= ROW_WAIT_MS or flow.backlog + flow.delayed == 0 or not flow.no_clock:
        clock_account(core, flow)

cdef inline void flow_fills(Core* core, Flow* flow) noexcept nogil:
    """Call before a flow gets a ready or delayed message."""
    clock_note(core, flow)
    if flow.backlog + flow.delayed == 0:
        flow.channel.active_keys += 1

cdef inline void flow_emptied(Flow* flow) noexcept nogil:
    """Call after a flow lost a ready or delayed message."""
    if flow.backlog + flow.delayed == 0:
        flow.channel.active_keys -= 1

cdef inline void channel_room(Core* core, Channel* channel, bint has_room) noexcept nogil:
    """The only way to set Channel.has_room. Said again where one more consumer may have some."""
    if has_room:
        channel.looked_from = NULL
    if channel.has_room == has_room:
        return
    if has_room:
        channel.no_room_ms = no_room_ms(core, channel)
    else:
        channel.no_room_since_ms = core.mono_ms
    channel.has_room = has_room

cdef inline uint32_t no_room_ms(Core* core, Channel* channel) noexcept nogil:
    """The channel's clock that runs while nobody has room."""
    cdef uint32_t stretch = 0 if channel.has_room else core.mono_ms - channel.no_room_since_ms
    return channel.no_room_ms + (stretch if stretch >= NO_ROOM_MS else 0)

# A delivery took this much cost while flows of this weight were on the ring; of it, what went within
# committed rates is nobody's share.
cdef void channel_served(
    Core* core, Channel* channel, uint64_t cost, uint64_t committed, uint64_t weight) noexcept nogil

# A delivery that was charged so much came back uncounted.
cdef void cost_returned(Core* core, Flow* flow, uint32_t cost) noexcept nogil

cdef void clock_begin(Core* core, Flow* flow) noexcept nogil
# its counts stay in its row, if it has one
cdef void clock_end(Core* core, Flow* flow) noexcept nogil
# Somebody asks about this flow: it gets a row, at the cost of the one that was not used for longest.
cdef void clock_remember(Core* core, Flow* flow) noexcept nogil
# The channel ends: its rows go, some a pass. True: all of them.
cdef bint clocks_forget(Core* core, Channel* channel) noexcept nogil
cdef KeyClock* clock_find(Channel* channel, const char* text, uint32_t length) noexcept nogil
cdef double hour_sum(Core* core, Hour* hour, int column) noexcept nogil
cdef double hour_total(Hour* hour, int column) noexcept nogil                # since the beginning
