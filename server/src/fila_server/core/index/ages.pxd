"""How old the oldest message is that waits, and since when the oldest lease runs.

A message waits while it is ready, whatever holds it (a pause, a cap, a bucket, no consumer), and between a
failure and its retry. One that is leased, or whose policy is being asked, does not; nor does one whose first
delay is not over. Its age counts from when it came into this queue (a dead letter's from its death, a
redriven message's from the redrive), or from the end of its first delay. No failure and no return changes
that moment.

    Channel.waiting: a Fifo of Cohorts by that moment; the first is the oldest that waits
       ├─ Share.cohort                 all messages of one frame came at one moment: no memory a message
       └─ Channel.delayed_cohorts      of messages that had a delay: one for each moment at which delays ended

Its cost: a message that begins or ends to wait counts its cohort up or down, in the Share that is at hand.
Only with the first and the last of a cohort the Fifo changes. Frames become visible, and delays end, in the
order of time, so a cohort begins at the Fifo's end; it leaves from any place; both take two pointers. One
that comes back among others (its last message was leased, and returned or failed) stands in the Fifo's heap:
the logarithm of those. To ask is to look at the first. Nothing is done while nothing happens, and nothing
grows with what is leased, finished and retained, or delayed.

Deliveries begin in the order of time, too. So a channel's LeaseGroups are a list, which a delivery joins at
its end and leaves with its last lease.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.state.kinds cimport DELAYED, READY
from fila_server.core.state.state cimport Channel, Core, Frame, Queue, Share, Slot

cdef void share_age_begins(Frame* frame, Share* share) noexcept nogil     # of one that was made just now
# The share is a copy of `before`, which is about to be freed.
cdef void share_age_moved(Share* before, Share* share) noexcept nogil
# When the first delay of an entry ends. The frame remembers it.
cdef void frame_delayed(Core* core, Frame* frame, uint32_t index, int64_t due_ms) noexcept nogil

cdef inline bint slot_waits(Slot* slot, int state) noexcept nogil:
    """Whether it would in this state. A delay before the first attempt is the sender's; every later one is a
    backoff."""
    return state == READY or (state == DELAYED and slot.attempts != 0)

cdef void waiting_begins(Slot* slot) noexcept nogil
cdef void waiting_ends(Slot* slot) noexcept nogil

# Ages in ms; 0 = nothing waits, or is leased.
cdef uint64_t slot_age(Core* core, Slot* slot) noexcept nogil
# of a moment of the wall clock, which may have been set back since
cdef uint64_t age_since(Core* core, int64_t since_ms) noexcept nogil
cdef uint64_t channel_age(Core* core, Channel* channel) noexcept nogil
cdef uint64_t channel_lease_age(Core* core, Channel* channel) noexcept nogil
cdef uint64_t queue_age(Core* core, Queue* queue) noexcept nogil         # of the channel where it is largest
cdef uint64_t queue_lease_age(Core* core, Queue* queue) noexcept nogil
