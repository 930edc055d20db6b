"""See queues.pxd."""

from libc.stdint cimport UINT64_MAX
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from fila_server.core.answers cimport answers_forget
from fila_server.core.budget cimport stage_goes_on
from fila_server.core.buffer cimport buffer_free, must_malloc
from fila_server.core.consumers cimport channel_consumers_end
from fila_server.core.drr cimport ring_free, ring_init
from fila_server.core.flows cimport channel_deactivate, flow_free
from fila_server.core.frames cimport (
    directory_after, directory_at, directory_first, directory_free, frame_finish, frame_free, frame_offset,
    frame_recount, frame_retained, key_drop_if_idle, share_find, share_free, share_new,
)
from fila_server.core.maps cimport (
    map64_free, map64_get, map64_init, map64_next, map64_put, map64_remove, textmap_free, textmap_init, textmap_next,
    textmap_put, textmap_remove, textmap_get,
)
from fila_server.core.failure cimport slot_expire, slot_outlived
from fila_server.core.policy cimport policy_free
from fila_server.core.records cimport (
    channel_record_put, channel_records_delete, reservation_record_put, queue_records_delete,
)
from fila_server.core.reveal cimport message_is_over
from fila_server.core.ending cimport settled_flush, share_dirty, slot_done, slot_stop
from fila_server.core.slots cimport slot_ready
from fila_server.core.state cimport DELAYED, DONE, Flow, Key, LEASED, Lease, READY, Share, Slot, UNPLACED
from fila_server.core.waiting cimport Extra
from fila_server.core.waiting cimport Dedup
from fila_server.core.waits cimport waits_forget
from fila_server.core.timers cimport timer_cancel

cdef enum:
    NUMBERS_RESERVED = 1000


cdef uint64_t number_next(Core* core) noexcept nogil:
    """A number for a queue or channel, never used twice: its record is synced with the one that uses it."""
    core.next_number += 1
    if core.next_number > core.number_reserved:
        core.number_reserved = core.next_number + NUMBERS_RESERVED
        reservation_record_put(core, b"numbers", core.number_reserved)
        core.sync_wanted = True
    return core.next_number


# --- queues ----------------------------------------------------------------------------------

cdef Queue* queue_new(Core* core, Slice name, uint64_t number) noexcept nogil:
    cdef Queue* queue = <Queue*> must_malloc(sizeof(Queue) + name.length)
    cdef char* bytes = <char*> queue + sizeof(Queue)
    memset(queue, 0, sizeof(Queue))
    memcpy(bytes, name.at, name.length)
    queue.text.bytes = bytes
    queue.text.length = name.length
    queue.number = number
    queue.created_ms = core.wall_ms
    queue.used_ms = core.heard_ms
    queue.next_offset = 1
    textmap_init(&queue.keys)
    textmap_init(&queue.channels_by_name)
    textmap_init(&queue.dedup)
    textmap_init(&queue.policy.weights)
    map64_init(&queue.extras)
    queue.building.queue = queue
    queue.moving.queue = queue
    queue.is_dlq = name.length > 4 and memcmp(name.at + name.length - 4, b".dlq", 4) == 0
    textmap_put(&core.queues, &queue.text)
    map64_put(&core.queues_by_number, number, queue)
    return queue




cdef void queue_drop(Core* core, Queue* queue) noexcept nogil:
    """End its consumers, forget all it has, and take it off the disk, in this pass's batch."""
    cdef Frame* frame
    cdef Queue* other
    cdef Key* key
    cdef Extra* extra
    cdef Dedup* row
    cdef uint32_t cursor = 0
    settled_flush(core)
    answers_forget(core, queue)
    while queue.channels != NULL:
        _channel_forget(core, queue.channels, b"queue \"%.*s\" was deleted while its channel \"%.*s\" was consumed", b"QUEUE_NOT_FOUND", b"QUEUE_DELETED")
    settled_flush(core)
    while True:
        frame = directory_first(&queue.directory)
        if frame == NULL:
            break
        directory_pop(queue, frame)
        free(frame.times)
        frame_free(core, frame)
    directory_free(&queue.directory)
    while True:
        cursor = 0
        key = <Key*> textmap_next(&queue.keys, &cursor)
        if key == NULL:
            break
        key.admin_weight = key.paused = key.cap = key.refs = 0
        key_drop_if_idle(core, key)
    cursor = 0
    while True:
        extra = <Extra*> map64_next(&queue.extras, &cursor)
        if extra == NULL:
            break
        timer_cancel(&core.timers, &extra.timer)
        free(extra)
    while queue.dedup_oldest != NULL:
        row = queue.dedup_oldest
        queue.dedup_oldest = row.next
        core.dedup_rows -= 1
        free(row)
    cursor = 0
    while True:                         # whoever moved dead letters here has nowhere to move them now
        other = <Queue*> textmap_next(&core.queues, &cursor)
        if other == NULL:
            break
        if other.dlq == queue:
            other.dlq = NULL
    queue_records_delete(core, queue)
    textmap_remove(&core.queues, &queue.text)
    map64_remove(&core.queues_by_number, queue.number)
    textmap_free(&queue.keys)
    textmap_free(&queue.channels_by_name)
    textmap_free(&queue.dedup)
    map64_free(&queue.extras)
    policy_free(&queue.policy)
    buffer_free(&queue.config)
    free(queue.building.items)
    free(queue.moving.items)
    free(queue)


cdef void directory_pop(Queue* queue, Frame* frame) noexcept nogil:
    queue.directory.cells[queue.directory.start].frame = NULL
    queue.directory.live -= 1
    while queue.directory.start < queue.directory.count and queue.directory.cells[queue.directory.start].frame == NULL:
        queue.directory.start += 1


# --- channels --------------------------------------------------------------------------------

cdef Channel* channel_new(Core* core, Queue* queue, Slice name, uint64_t number, uint64_t start_offset) noexcept nogil:
    cdef Channel* channel = <Channel*> must_malloc(sizeof(Channel) + name.length)
    cdef char* bytes = <char*> channel + sizeof(Channel)
    memset(channel, 0, sizeof(Channel))
    memcpy(bytes, name.at, name.length)
    channel.text.bytes = bytes
    channel.text.length = name.length
    channel.queue = queue
    channel.number = channel.birth = number
    channel.start_offset = start_offset
    channel.created_ms = channel.touched_ms = core.wall_ms
    channel.used_ms = core.heard_ms
    channel.next_position = 1
    channel.placed_to = queue.next_offset - 1
    ring_init(&channel.ring, core.quantum)
    channel.next = queue.channels
    queue.channels = channel
    queue.channel_count += 1
    textmap_put(&queue.channels_by_name, &channel.text)
    return channel


cdef Channel* channel_find(Queue* queue, Slice name) noexcept nogil:
    cdef Channel* channel = queue.channels
    if name.length == 0:
        name.at, name.length = b"default", 7
    if channel != NULL and channel.text.length == name.length and memcmp(channel.text.bytes, name.at, name.length) == 0:
        return channel
    return <Channel*> textmap_get(&queue.channels_by_name, name.at, name.length)


cdef void _channel_forget(Core* core, Channel* channel, const char* message, const char* reason, const char* revoked) noexcept nogil:
    """A channel's consumers, leases and shares, and the channel itself; its records are the caller's."""
    cdef Queue* queue = channel.queue
    cdef Channel* before = queue.channels
    cdef char text[640]
    snprintf(
        text, sizeof(text), message, <int> queue.text.length, queue.text.bytes,
        <int> channel.text.length, channel.text.bytes)
    channel_consumers_end(core, channel, text, reason, revoked)
    _shares_drop(core, channel, UINT64_MAX)
    channel_deactivate(core, channel)
    if before == channel:
        queue.channels = channel.next
    else:
        while before.next != channel:
            before = before.next
        before.next = channel.next
    queue.channel_count -= 1
    textmap_remove(&queue.channels_by_name, &channel.text)
    _flows_drop(core, queue, channel)
    waits_forget(core, channel)
    ring_free(&channel.ring)
    free(channel)


cdef void _flows_drop(Core* core, Queue* queue, Channel* channel) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef Key* key
    cdef Flow* flow
    cdef Flow* before
    while True:
        key = <Key*> textmap_next(&queue.keys, &cursor)
        if key == NULL:
            return
        before = NULL
        flow = key.flows
        while flow != NULL and flow.channel != channel:
            before = flow
            flow = flow.next_of_key
        if flow != NULL:
            if before == NULL:
                key.flows = flow.next_of_key
            else:
                before.next_of_key = flow.next_of_key
            flow_free(core, flow)


cdef void _shares_drop(Core* core, Channel* channel, uint64_t rebuilt_from) noexcept nogil:
    """Take the channel out of every frame. What nobody wants then goes with this pass, but for
    frames that reach `rebuilt_from`: the channel is about to take those in again."""
    cdef Queue* queue = channel.queue
    cdef Frame* frame
    cdef Share* share
    cdef uint32_t i
    cdef uint64_t awaited_from = channel.rebuild_at
    _rebuild_end(core, channel)
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
        if frame.revealed and (share != NULL or awaited_from) and frame_offset(frame, frame.count - 1) < rebuilt_from:
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


cdef void channel_drop(Core* core, Channel* channel) noexcept nogil:
    settled_flush(core)                 # its last records, before they are deleted
    channel_records_delete(core, channel)
    _channel_forget(core, channel, b"queue \"%.*s\": channel \"%.*s\" was deleted while it was consumed", b"CHANNEL_NOT_FOUND", b"CHANNEL_DELETED")


# --- seek --------------------------------------------------------------------------

cdef uint64_t queue_oldest(Queue* queue) noexcept nogil:
    """The oldest retained offset; the next one to be given when nothing is."""
    cdef Frame* frame = directory_first(&queue.directory)
    return frame_offset(frame, 0) if frame != NULL else queue.next_offset


cdef uint64_t queue_revealed_below(Queue* queue) noexcept nogil:
    """The first offset that is on its way, not to be seen yet; the next one to be given when none is."""
    cdef uint64_t below = queue.next_offset
    cdef uint32_t i = queue.directory.count
    cdef Frame* frame
    while i > queue.directory.start:
        i -= 1
        frame = queue.directory.cells[i].frame
        if frame != NULL:
            if frame.revealed:
                break
            below = frame.first_offset
    return below


cdef uint64_t queue_offset_at(Queue* queue, int64_t time_ms) noexcept nogil:
    """The smallest retained offset appended at or after a moment; the next one to be given when none is."""
    cdef Frame* frame = directory_first(&queue.directory)
    while frame != NULL:
        if frame.appended_ms >= time_ms:
            return frame_offset(frame, 0)
        frame = directory_after(&queue.directory, frame)
    return queue.next_offset


cdef void _rebuild_begin(Core* core, Channel* channel, uint64_t offset) noexcept nogil:
    cdef uint64_t oldest = queue_oldest(channel.queue)
    if offset > channel.queue.next_offset:
        offset = channel.queue.next_offset
    if offset < oldest:
        offset = oldest
    channel.start_offset = offset
    channel.log_below = queue_revealed_below(channel.queue)
    channel.placed_to = offset - 1
    channel.started_ms = core.wall_ms
    _rebuild_end(core, channel)
    if directory_at(&channel.queue.directory, offset) != NULL:
        channel.rebuild_at = offset
        core.rebuilding += 1


cdef void _rebuild_end(Core* core, Channel* channel) noexcept nogil:
    if channel.rebuild_at:
        channel.rebuild_at = 0
        core.rebuilding -= 1


cdef void channel_seek(Core* core, Channel* channel, uint64_t offset) noexcept nogil:
    """The channel starts anew at `offset`: a new number on disk, so the old state goes in the same batch."""
    settled_flush(core)                 # its last records, before they are deleted
    channel_records_delete(core, channel)
    offset = min(max(offset, queue_oldest(channel.queue)), channel.queue.next_offset)
    core.revoking = b"SEEK"
    _shares_drop(core, channel, offset)
    core.revoking = NULL
    channel.number = number_next(core)
    channel.reveal = 0                  # a frame that is being revealed just now comes by once more
    _rebuild_begin(core, channel, offset)
    channel_record_put(core, channel)
    channel_rebuild(core, channel)


cdef void _take_in(Core* core, Frame* frame, Channel* channel) noexcept nogil:
    """One retained frame of a channel that starts anew."""
    cdef Share* share = share_find(frame, channel)
    cdef Extra* extra
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
        extra = <Extra*> map64_get(&channel.queue.extras, offset) if frame.has_extras else NULL
        if extra != NULL and extra.expires_ms <= channel.started_ms:
            share_dirty(core, share)    # else a restart would take it for pending
            continue
        share.remaining += 1
        slot_ready(core, &share.slots[i], False)
    frame_recount(core, frame)
    if frame.has_extras:
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
            _rebuild_end(core, channel)
            break
        if not frame.revealed:          # on its way: it and what follows come by themselves
            _rebuild_end(core, channel)
            break
        done += 1
        core.counters.work += 1
        if not frame.dying and (frame.only == 0 or frame.only == channel.birth):
            _take_in(core, frame, channel)
        channel.placed_to = frame_offset(frame, frame.count - 1)
        channel.rebuild_at = frame_offset(frame, frame.count - 1) + 1
    return channel.rebuild_at != 0 and done > 0


cdef void forget_all(Core* core) noexcept nogil:
    """Free every table of a core whose store is closed."""
    cdef uint32_t cursor = 0
    cdef Queue* queue
    while True:
        cursor = 0
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            return
        queue_drop(core, queue)
