"""Entries stand behind the frame and slots behind the share, one allocation each. `live` is counted
down as channels finish, and counted anew where a channel comes or goes.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.index.ages cimport share_age_begins
from fila_server.core.index.bodies cimport body_release, failures_go_on
from fila_server.core.index.keys cimport key_release
from fila_server.core.index.visits cimport visit_soon
from fila_server.core.scheduling.throttle cimport set_release
from fila_server.core.state.kinds cimport DECIDING, DELAYED, DONE, LEASED, READY
from fila_server.core.state.paths cimport frame_last_offset, share_find
from fila_server.core.state.pending cimport Wait
from fila_server.core.state.settings cimport Policy
from fila_server.core.state.state cimport Entry, Key, Slot
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.counters cimport Tally
from fila_server.core.structures.prefetch cimport prefetch_cell


cdef Frame* frame_new(Core* core, Queue* queue, uint32_t count) noexcept nogil:
    cdef size_t size = sizeof(Frame) + (count - 1) * sizeof(Entry)
    cdef Frame* frame = <Frame*> must_malloc(size)
    memset(frame, 0, size)
    frame.queue = queue
    frame.count = count
    frame.live = count
    core.index_bytes += size
    return frame


cdef void frame_free(Core* core, Frame* frame) noexcept nogil:
    """Forget a frame: its keys' references, its shares, its bytes. The
    directory and the disk are the caller's."""
    cdef uint32_t i
    cdef Share* share = frame.shares
    cdef Share* following
    cdef Key* key
    core.counters.work += frame.count
    failures_go_on(core, frame)        # they find nothing, and their callers are answered
    while share != NULL:
        following = share.next_of_frame
        share_free(core, share)
        share = following
    for i in range(frame.count):
        frame_prefetch_key(frame, i)
        key = frame_key_near(frame, i)
        if key != NULL and key.refs == 1:
            prefetch_cell(&key.queue.keys, &key.text)       # where it leaves the table
        if frame.entries[i].key != NULL:
            frame.entries[i].key.stored_bytes -= frame.entries[i].length
            key_release(core, frame.entries[i].key)
        if frame.entries[i].set != NULL:
            set_release(core, frame.entries[i].set)
    if frame.body != NULL:
        frame.body.frame = NULL
        body_release(core, frame.body)
    core.index_bytes -= sizeof(Frame) + (frame.count - 1) * sizeof(Entry)
    if frame.tallies != NULL:
        core.index_bytes -= frame.count * sizeof(Tally)
        free(frame.tallies)
    if frame.first_due_ms != NULL:
        core.index_bytes -= frame.count * sizeof(int64_t)
        free(frame.first_due_ms)
    free(frame.own_ids)
    free(frame)


cdef inline size_t _share_bytes(Core* core, uint32_t count) noexcept nogil:
    return sizeof(Share) + (count - 1) * sizeof(Slot) + (count * sizeof(Wait) if core.history != NULL else 0)


cdef Share* share_new(Core* core, Frame* frame, Channel* channel) noexcept nogil:
    cdef size_t size = _share_bytes(core, frame.count)
    cdef Share* share = <Share*> must_malloc(size)
    cdef uint32_t i
    if frame.shares != NULL and frame.tallies == NULL:
        frame.tallies = <Tally*> must_malloc(frame.count * sizeof(Tally))
        core.index_bytes += frame.count * sizeof(Tally)
        frame_tally(frame)
    memset(share, 0, size)
    channel.shares += 1
    share.channel = channel
    share.frame = frame
    share_age_begins(frame, share)
    if core.history != NULL:
        share.waits = <Wait*> (&share.slots[0] + frame.count)
    share.next_of_frame = frame.shares
    frame.shares = share
    for i in range(frame.count):
        share.slots[i].index = i
    core.index_bytes += size
    return share


cdef void frame_tally(Frame* frame) noexcept nogil:
    cdef Share* share = frame.shares
    cdef uint32_t i
    if frame.tallies == NULL:
        return
    memset(frame.tallies, 0, frame.count * sizeof(Tally))
    while share != NULL:
        for i in range(frame.count):
            frame.tallies[i].pending += share.slots[i].state == READY or share.slots[i].state == DELAYED
            frame.tallies[i].in_flight += share.slots[i].state == LEASED or share.slots[i].state == DECIDING
            frame.tallies[i].undone += share.slots[i].state != DONE
        share = share.next_of_frame


cdef void share_free(Core* core, Share* share) noexcept nogil:
    """The caller unlinks it from its frame, or frees the frame; it must not be on the dirty list."""
    share.channel.shares -= 1
    core.index_bytes -= _share_bytes(core, share.frame.count)
    free(share)


cdef uint64_t frame_unwanted(Frame* frame) noexcept nogil:
    """Bytes of its messages that no channel wants."""
    cdef uint64_t total = 0
    cdef uint32_t i
    for i in range(frame.count):
        total += frame.entries[i].length
    return total - frame.live_bytes


cdef bint frame_awaited(Core* core, Frame* frame) noexcept nogil:
    """A channel that is still being rebuilt will want this frame, though it has no share of it yet."""
    cdef Channel* channel = frame.queue.channels if core.rebuilding else NULL
    if not frame.revealed:
        return True
    while channel != NULL:
        if (
            channel.rebuild_at and frame.first_offset < channel.log_below
            and frame_last_offset(frame) >= channel.rebuild_at
            and (frame.only == 0 or frame.only == channel.birth) and share_find(frame, channel) == NULL
        ):
            return True
        channel = channel.next
    return False


cdef void frame_recount(Core* core, Frame* frame) noexcept nogil:
    cdef Share* share
    cdef uint32_t i
    cdef bint wanted
    cdef bint awaited = frame_awaited(core, frame)
    if frame.dying:
        return
    frame.queue.unwanted_bytes -= frame_unwanted(frame)
    frame.live = 0
    frame.live_bytes = 0
    for i in range(frame.count):
        wanted = awaited
        share = frame.shares
        while share != NULL and not wanted:
            wanted = share.slots[i].state != DONE
            share = share.next_of_frame
        if wanted:
            frame.live += 1
            frame.live_bytes += frame.entries[i].length
    frame.queue.unwanted_bytes += frame_unwanted(frame)
    visit_soon(core, frame.queue)


cdef bint frame_retained(Core* core, Frame* frame) noexcept nogil:
    cdef Policy* policy = &frame.queue.policy
    if frame.burials:
        return True
    if policy.soft_period_ms and core.wall_ms - frame.appended_ms < <int64_t> policy.soft_period_ms:
        return True
    return policy.soft_bytes > 0 and frame.queue.stored_bytes <= policy.soft_bytes


cdef void frame_finish(Core* core, Frame* frame) noexcept nogil:
    if not frame.dying:
        frame.dying = True
        frame.next_dying = core.dying
        core.dying = frame
        # Now, not when it is deleted: the check of the next frame must see that there is room again.
        frame.queue.stored_bytes -= frame.body_bytes
        frame.queue.unwanted_bytes -= frame_unwanted(frame)
        visit_soon(core, frame.queue)
