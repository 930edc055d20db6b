"""What tells a message's moment never changes while it is there, so it leaves the cohort it joined."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.state.paths cimport frame_offset, share_of
from fila_server.core.state.pending cimport Cohort
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.fifo cimport (
    Fifo, Placed, fifo_append, fifo_first, fifo_moved, fifo_remove, fifo_return,
)
from fila_server.core.structures.maps cimport map64_get, map64_put, map64_remove


# --- from when on a message counts -----------------------------------------------------------

cdef void share_age_begins(Frame* frame, Share* share) noexcept nogil:
    """When the frame was built, which also a rewritten one tells. A moved message's own times are of the
    queue where it was before."""
    share.cohort.place.position = frame.appended_ms + frame.entries[0].enqueued_delta_ms


cdef void frame_delayed(Core* core, Frame* frame, uint32_t index, int64_t due_ms) noexcept nogil:
    if frame.first_due_ms == NULL:
        frame.first_due_ms = <int64_t*> must_malloc(frame.count * sizeof(int64_t))
        memset(frame.first_due_ms, 0, frame.count * sizeof(int64_t))
        core.index_bytes += frame.count * sizeof(int64_t)
    frame.first_due_ms[index] = due_ms


cdef inline int64_t _since_ms(Slot* slot) noexcept nogil:
    """Delays are over for a channel that began behind the message, see Channel.log_below."""
    cdef Share* share = share_of(slot)
    cdef Frame* frame = share.frame
    if (
        frame.first_due_ms != NULL and frame.first_due_ms[slot.index] > share.cohort.place.position
        and frame_offset(frame, slot.index) >= share.channel.log_below
    ):
        return frame.first_due_ms[slot.index]
    return share.cohort.place.position


# --- cohorts ---------------------------------------------------------------------------------

cdef void _join(Channel* channel, Cohort* cohort) noexcept nogil:
    cdef Fifo* fifo = &channel.waiting
    cohort.waiting += 1
    if cohort.waiting > 1:
        return
    if fifo.tail == NULL or fifo.tail.position <= cohort.place.position:
        fifo_append(fifo, &cohort.place)
    else:
        fifo_return(fifo, &cohort.place)


cdef void waiting_begins(Slot* slot) noexcept nogil:
    cdef Share* share = share_of(slot)
    cdef Channel* channel = share.channel
    cdef Cohort* cohort = &share.cohort
    cdef int64_t since_ms = _since_ms(slot)
    if since_ms != cohort.place.position:
        cohort = <Cohort*> map64_get(&channel.delayed_cohorts, <uint64_t> since_ms)
        if cohort == NULL:
            cohort = <Cohort*> must_malloc(sizeof(Cohort))
            cohort.place.position, cohort.waiting = since_ms, 0
            map64_put(&channel.delayed_cohorts, <uint64_t> since_ms, cohort)
    _join(channel, cohort)


cdef void waiting_ends(Slot* slot) noexcept nogil:
    cdef Share* share = share_of(slot)
    cdef Channel* channel = share.channel
    cdef Cohort* cohort = &share.cohort
    cdef int64_t since_ms = _since_ms(slot)
    if since_ms != cohort.place.position:
        cohort = <Cohort*> map64_get(&channel.delayed_cohorts, <uint64_t> since_ms)
    cohort.waiting -= 1
    if cohort.waiting:
        return
    fifo_remove(&channel.waiting, &cohort.place)
    if cohort != &share.cohort:
        map64_remove(&channel.delayed_cohorts, <uint64_t> since_ms)
        free(cohort)


cdef void share_age_moved(Share* before, Share* share) noexcept nogil:
    share.cohort = before.cohort
    if share.cohort.waiting:
        fifo_moved(&share.channel.waiting, &before.cohort.place, &share.cohort.place)


# --- ages ------------------------------------------------------------------------------------

cdef uint64_t age_since(Core* core, int64_t since_ms) noexcept nogil:
    """The wall clock may have been set back since."""
    return <uint64_t> max(core.wall_ms - since_ms, <int64_t> 0)


cdef uint64_t slot_age(Core* core, Slot* slot) noexcept nogil:
    return age_since(core, _since_ms(slot))


cdef uint64_t channel_age(Core* core, Channel* channel) noexcept nogil:
    cdef Placed* first = fifo_first(&channel.waiting)
    return age_since(core, first.position) if first != NULL else 0


cdef uint64_t channel_lease_age(Core* core, Channel* channel) noexcept nogil:
    return age_since(core, channel.groups.leased_ms) if channel.groups != NULL else 0


cdef uint64_t queue_age(Core* core, Queue* queue) noexcept nogil:
    cdef Channel* channel = queue.channels
    cdef uint64_t age = 0
    while channel != NULL:
        age = max(age, channel_age(core, channel))
        channel = channel.next
    return age


cdef uint64_t queue_lease_age(Core* core, Queue* queue) noexcept nogil:
    cdef Channel* channel = queue.channels
    cdef uint64_t age = 0
    while channel != NULL:
        age = max(age, channel_lease_age(core, channel))
        channel = channel.next
    return age
