"""See seek.pxd."""

from libc.stdint cimport UINT64_MAX, uint32_t

from fila_server.core.holdings.delays cimport message_is_over
from fila_server.core.holdings.frames cimport (
    frame_finish, frame_recount, frame_retained, share_free, share_new,
)
from fila_server.core.holdings.slots cimport slot_ready
from fila_server.core.life.ending cimport settled_flush, share_dirty, slot_stop
from fila_server.core.life.failure cimport slot_expire, slot_outlived
from fila_server.core.life.queues cimport number_next
from fila_server.core.records.records cimport channel_record_put, channel_records_delete
from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.state.directory cimport (
    directory_after, directory_at, directory_first, queue_oldest, queue_revealed_below,
)
from fila_server.core.state.kinds cimport DONE, READY, UNPLACED
from fila_server.core.state.paths cimport frame_offset, share_find
from fila_server.core.state.pending cimport Expiry
from fila_server.core.state.state cimport Frame, Queue, Share, Slot
from fila_server.core.structures.maps cimport map64_get


cdef void channel_shares_drop(Core* core, Channel* channel, uint64_t rebuilt_from) noexcept nogil:
    cdef Queue* queue = channel.queue
    cdef Frame* frame
    cdef Share* share
    cdef uint32_t i
    cdef uint64_t awaited_from = channel.rebuild_at
    channel_rebuild_end(core, channel)
    settled_flush(core)                 # no share that is freed here may stand on the dirty list
    frame = directory_first(&queue.directory)
    while frame != NULL:
        share = share_find(frame, channel)
        if share != NULL:
            for i in range(frame.count):
                if share.slots[i].state != DONE:
                    if rebuilt_from != UINT64_MAX:
                        slot_outlived(core, &share.slots[i])
                    slot_stop(core, &share.slots[i])
            _share_unlink(frame, share)
            share_free(core, share)
        if (
            frame.revealed and (share != NULL or awaited_from)
            and frame_offset(frame, frame.count - 1) < rebuilt_from
        ):
            frame_recount(core, frame)
            if frame.live == 0 and not frame_retained(core, frame):
                frame_finish(core, frame)
        frame = directory_after(&queue.directory, frame)


cdef void _share_unlink(Frame* frame, Share* share) noexcept nogil:
    cdef Share* before = frame.shares
    if before == share:
        frame.shares = share.next_of_frame
        return
    while before.next_of_frame != share:
        before = before.next_of_frame
    before.next_of_frame = share.next_of_frame


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


cdef void channel_rebuild_end(Core* core, Channel* channel) noexcept nogil:
    if channel.rebuild_at:
        channel.rebuild_at = 0
        core.rebuilding -= 1


cdef void channel_seek(Core* core, Channel* channel, uint64_t offset) noexcept nogil:
    """The channel starts anew at `offset`: a new number on disk, so the old state goes in the same batch."""
    settled_flush(core)                 # its last records, before they are deleted
    channel_records_delete(core, channel)
    offset = min(max(offset, queue_oldest(channel.queue)), channel.queue.next_offset)
    core.revoking = b"SEEK"
    channel_shares_drop(core, channel, offset)
    core.revoking = NULL
    channel.number = number_next(core)
    channel.reveal = 0                  # a frame that is being revealed just now comes by once more
    _rebuild_begin(core, channel, offset)
    channel_record_put(core, channel)
    channel_rebuild(core, channel)


cdef void _take_in(Core* core, Frame* frame, Channel* channel) noexcept nogil:
    """One retained frame of a channel that starts anew."""
    cdef Share* share = share_find(frame, channel)
    cdef Expiry* expiry
    cdef uint32_t i
    cdef uint64_t offset
    if share != NULL:                   # it became visible meanwhile, with delays of its own
        for i in range(frame.count):
            if share.slots[i].state == UNPLACED:
                slot_ready(core, &share.slots[i], False)
        return
    share = share_new(core, frame, channel)
    for i in range(frame.count):
        offset = frame_offset(frame, i)
        if offset < channel.start_offset:
            continue
        expiry = <Expiry*> map64_get(&channel.queue.expiries, offset) if frame.has_expiries else NULL
        if expiry != NULL and expiry.due_ns <= channel.started_ns:
            share_dirty(core, share)    # else a restart would take it for pending
            continue
        share.remaining += 1
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
