"""A new number on disk takes the place of the old one's state, in one batch. In memory frames are taken
in by offset, some a pass; what becomes visible meanwhile waits for its turn as UNPLACED.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memset

from fila_server.core.formats.records cimport channel_record_put, channel_records_delete
from fila_server.core.history.changes cimport CHANGED_CHANNEL_SOUGHT, channel_changed
from fila_server.core.history.decisions cimport REWOUND, Detail, slot_decided
from fila_server.core.index.delays cimport message_is_over
from fila_server.core.index.frames cimport frame_recount, share_new
from fila_server.core.index.slots cimport slot_ready
from fila_server.core.lifecycle.ending cimport settled_flush, share_dirty
from fila_server.core.lifecycle.failure cimport slot_expire
from fila_server.core.lifecycle.queues cimport channel_anew, channel_rebuild_end
from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.state.directory cimport directory_at, queue_oldest, queue_revealed_below
from fila_server.core.state.kinds cimport READY, UNPLACED
from fila_server.core.state.paths cimport frame_offset, share_find
from fila_server.core.state.pending cimport Expiry
from fila_server.core.state.state cimport Frame, Share, Slot
from fila_server.core.structures.maps cimport map64_get


cdef void _rebuild_begin(Core* core, Channel* channel, uint64_t offset) noexcept nogil:
    cdef uint64_t oldest = queue_oldest(channel.queue)
    if offset > channel.queue.next_offset:
        offset = channel.queue.next_offset
    if offset < oldest:
        offset = oldest
    channel.start_offset = offset
    channel.log_below = queue_revealed_below(channel.queue)
    channel.placed_to = offset - 1
    channel.started_ns = core.mono_ns
    channel_rebuild_end(core, channel)
    if directory_at(&channel.queue.directory, offset) != NULL:
        channel.rebuild_at = offset
        core.rebuilding += 1


cdef void channel_start(Core* core, Channel* channel, uint64_t offset) noexcept nogil:
    _rebuild_begin(core, channel, offset)
    channel_record_put(core, channel)
    channel_rebuild(core, channel)


cdef Channel* channel_seek(Core* core, Channel* channel, uint64_t offset) noexcept nogil:
    """On disk all of it is in this pass's batch: the old number's records go, the new number's one comes. In
    memory the old channel is taken apart in pieces (admin/deleting.pyx) while the new one takes frames in."""
    cdef Channel* fresh
    settled_flush(core)                 # its last records, before they are deleted
    channel_records_delete(core, channel)
    fresh = channel_anew(core, channel)
    channel_start(core, fresh, offset)
    channel_changed(core, CHANGED_CHANNEL_SOUGHT, fresh)
    return fresh


cdef void _take_in(Core* core, Frame* frame, Channel* channel) noexcept nogil:
    """One retained frame of a channel that starts anew."""
    cdef Share* share = share_find(frame, channel)
    cdef Expiry* expiry
    cdef uint32_t i
    cdef uint64_t offset
    cdef Detail nothing
    if share != NULL:                   # it became visible meanwhile, with delays of its own
        for i in range(frame.count):
            if share.slots[i].state == UNPLACED:
                slot_ready(core, &share.slots[i], False)
        return
    share = share_new(core, frame, channel)
    memset(&nothing, 0, sizeof(Detail))
    for i in range(frame.count):
        offset = frame_offset(frame, i)
        if offset < channel.start_offset:
            continue
        expiry = <Expiry*> map64_get(&channel.queue.expiries, offset) if frame.has_expiries else NULL
        if expiry != NULL and expiry.due_ns <= channel.started_ns:
            share_dirty(core, share)    # else a restart would take it for pending
            continue
        share.remaining += 1
        slot_decided(core, REWOUND, &share.slots[i], &nothing)
        slot_ready(core, &share.slots[i], False)
    frame_recount(core, frame)
    if frame.has_expiries:
        _over_meanwhile(core, share)


cdef void _over_meanwhile(Core* core, Share* share) noexcept nogil:
    """Messages whose time to live ended after the channel had started, and before it came to them."""
    cdef Slot* slot
    cdef uint32_t i
    for i in range(share.frame.count):
        slot = &share.slots[i]
        if slot.state == READY and message_is_over(core, slot):
            share.channel.queue.counters.ttl_dropped += 1
            slot_expire(core, slot)


cdef bint channel_rebuild(Core* core, Channel* channel) noexcept nogil:
    """Take in some more retained frames; what is taken in can be delivered at once."""
    cdef Frame* frame
    cdef uint32_t done = 0
    while channel.rebuild_at and stage_goes_on(core):
        frame = directory_at(&channel.queue.directory, channel.rebuild_at)
        if frame == NULL:
            channel_rebuild_end(core, channel)
            break
        if not frame.revealed:          # on its way: it and what follows come by themselves
            channel_rebuild_end(core, channel)
            break
        done += 1
        core.counters.work += 1
        if not frame.dying and (frame.only == 0 or frame.only == channel.birth):
            _take_in(core, frame, channel)
        channel.placed_to = frame_offset(frame, frame.count - 1)
        channel.rebuild_at = frame_offset(frame, frame.count - 1) + 1
    return channel.rebuild_at != 0 and done > 0
