"""What points to a gone channel is counted (Channel.shares and .flows), and the channel is freed when
nothing does: a key that moved in its table between two passes, and was passed by, is found by another
walk.
"""

from libc.stdint cimport UINT64_MAX, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free

from fila_server.core.consumers.leaving cimport channel_consumers_end
from fila_server.core.formats.records cimport channel_records_delete, queue_records_delete
from fila_server.core.history.changes cimport (
    CHANGED_CHANNEL_DELETED, CHANGED_QUEUE_DELETED, channel_changed, queue_changed,
)
from fila_server.core.index.delays cimport expiry_drop
from fila_server.core.index.frames cimport frame_finish, frame_free, frame_recount, frame_retained, share_free
from fila_server.core.index.keys cimport key_drop_if_idle
from fila_server.core.index.leases cimport groups_unlink
from fila_server.core.index.policy cimport policy_free
from fila_server.core.index.schedules cimport schedules_drop
from fila_server.core.index.visits cimport visit_soon
from fila_server.core.lifecycle.answers cimport answers_forget
from fila_server.core.lifecycle.ending cimport settled_flush, slot_stop
from fila_server.core.lifecycle.failure cimport slot_outlived
from fila_server.core.lifecycle.queues cimport channel_part
from fila_server.core.scheduling.allowances cimport cap_set, committed_set, pause_set, rate_limit_set
from fila_server.core.scheduling.clocks cimport clocks_forget
from fila_server.core.scheduling.flows cimport flow_free
from fila_server.core.state.budget cimport stage_goes_on
from fila_server.core.state.directory cimport directory_at, directory_first, directory_free, directory_pop
from fila_server.core.state.kinds cimport DELETED, DONE, SOUGHT
from fila_server.core.state.paths cimport dlq_source, frame_last_offset, frame_offset, share_find
from fila_server.core.state.pending cimport Dedup
from fila_server.core.state.state cimport Flow, Frame, Key, Share
from fila_server.core.storage.store cimport batch_clear
from fila_server.core.structures.buffer cimport buffer_free
from fila_server.core.structures.maps cimport (
    map64_free, map64_remove, textmap_free, textmap_next, textmap_remove,
)
from fila_server.core.structures.ring cimport ring_free
from fila_server.core.structures.timers cimport timer_cancel


# --- at once ---------------------------------------------------------------------------------

cdef void channel_delete(Core* core, Channel* channel) noexcept nogil:
    channel_changed(core, CHANGED_CHANNEL_DELETED, channel)
    settled_flush(core)                 # its last records, before they are deleted
    channel_records_delete(core, channel)
    channel_part(core, channel, DELETED)


cdef void queue_delete(Core* core, Queue* queue) noexcept nogil:
    cdef Queue* source = dlq_source(core, queue)
    queue_changed(core, CHANGED_QUEUE_DELETED, queue)
    settled_flush(core)
    answers_forget(core, queue)
    while queue.channels != NULL:
        channel_part(core, queue.channels, DELETED)
    if source != NULL:                  # it has nowhere to move its dead letters to now
        source.dlq = NULL
    if queue.dlq != NULL:               # nothing comes to it any more: if it is to go unused, that begins now
        queue.dlq.used_ms = core.heard_ms
        visit_soon(core, queue.dlq)
    queue.is_gone = True
    timer_cancel(&core.visits, &queue.visit)
    core.live_bytes -= queue.visited_bytes
    queue.visited_bytes = 0
    queue_records_delete(core, queue)
    schedules_drop(core, queue)
    textmap_remove(&core.queues, &queue.text)
    map64_remove(&core.queues_by_number, queue.number)
    queue.gone_cursor = 0
    queue.next_gone = NULL
    if core.gone == NULL:
        core.gone = queue
    else:
        core.gone_last.next_gone = queue
    core.gone_last = queue


# --- a channel, in pieces --------------------------------------------------------------------

cdef bint _consumers_end(Core* core, Channel* channel, bint with_queue) noexcept nogil:
    cdef Queue* queue = channel.queue
    cdef const char* message = b"queue \"%.*s\": channel \"%.*s\" was deleted while it was consumed"
    cdef char text[640]
    if with_queue:
        message = b"queue \"%.*s\" was deleted while its channel \"%.*s\" was consumed"
    snprintf(
        text, sizeof(text), message, <int> queue.text.length, queue.text.bytes,
        <int> channel.text.length, channel.text.bytes)
    return channel_consumers_end(
        core, channel, text, b"QUEUE_NOT_FOUND" if with_queue else b"CHANNEL_NOT_FOUND",
        b"QUEUE_DELETED" if with_queue else b"CHANNEL_DELETED")


cdef void _share_unlink(Frame* frame, Share* share) noexcept nogil:
    cdef Share** link = &frame.shares
    while link[0] != share:
        link = &link[0].next_of_frame
    link[0] = share.next_of_frame


cdef void _share_stop(Core* core, Share* share, bint letters_outlive) noexcept nogil:
    cdef uint32_t i
    for i in range(share.frame.count):
        if share.slots[i].state != DONE:
            if letters_outlive:
                slot_outlived(core, &share.slots[i])
            slot_stop(core, &share.slots[i])


cdef bint _shares_drop(Core* core, Channel* channel) noexcept nogil:
    """Out of every frame; one that nobody wants now goes with this pass."""
    cdef Queue* queue = channel.queue
    cdef Frame* frame
    cdef Share* share
    while stage_goes_on(core):
        frame = directory_at(&queue.directory, queue.gone_offset)
        if frame == NULL:
            return True
        core.counters.work += 1
        queue.gone_offset = frame_last_offset(frame) + 1
        share = share_find(frame, channel)
        if share != NULL:
            if channel.gone == SOUGHT:
                core.revoking = b"SEEK"
            _share_stop(core, share, channel.gone == SOUGHT)
            core.revoking = NULL
            _share_unlink(frame, share)
            share_free(core, share)
        if frame.revealed and not frame.dying:
            frame_recount(core, frame)
            if frame.live == 0 and not frame_retained(core, frame):
                frame_finish(core, frame)
    return False


cdef void _flow_drop(Core* core, Key* key, Channel* channel) noexcept nogil:
    cdef Flow** link = &key.flows
    cdef Flow* flow
    while link[0] != NULL and link[0].channel != channel:
        link = &link[0].next_of_key
    flow = link[0]
    if flow != NULL:
        link[0] = flow.next_of_key
        flow_free(core, flow)


cdef bint _flows_drop(Core* core, Channel* channel) noexcept nogil:
    cdef Queue* queue = channel.queue
    cdef Key* key
    while channel.flows and stage_goes_on(core):
        core.counters.work += 1
        key = <Key*> textmap_next(&queue.keys, &queue.gone_cursor)
        if key == NULL:                 # round: one that was moved in the table may have been passed by
            queue.gone_cursor = 0
        else:
            _flow_drop(core, key, channel)
    return channel.flows == 0


cdef bint _channel_clear(Core* core, Channel* channel) noexcept nogil:
    cdef Queue* queue = channel.queue
    if not _consumers_end(core, channel, False):
        return False
    if channel.shares or queue.gone_offset != UINT64_MAX:
        if not _shares_drop(core, channel):
            return False
        queue.gone_offset = 0 if channel.shares else UINT64_MAX     # the latter: the walk is over
    if channel.shares or not clocks_forget(core, channel) or not _flows_drop(core, channel):
        return False
    channel_records_delete(core, channel)       # what its leases wrote until they ended
    return True


cdef void _channel_free(Channel* channel) noexcept nogil:
    ring_free(&channel.ring)
    if channel.committed != NULL:
        ring_free(channel.committed)
        free(channel.committed)
    groups_unlink(channel)
    map64_free(&channel.delayed_cohorts)
    map64_free(&channel.places)
    free(channel)


cdef bint channels_clear(Core* core, Queue* queue) noexcept nogil:
    cdef Channel* channel
    while queue.gone != NULL:
        channel = queue.gone
        if not _channel_clear(core, channel):
            return False
        queue.gone = channel.next
        queue.gone_offset = queue.gone_cursor = 0
        _channel_free(channel)
    return True


# --- a queue, in pieces ----------------------------------------------------------------------

cdef bint _frames_free(Core* core, Queue* queue) noexcept nogil:
    cdef Frame* frame = directory_first(&queue.directory)
    cdef Share* share
    cdef uint32_t i
    while frame != NULL and stage_goes_on(core):
        core.counters.work += 1
        share = frame.shares
        if share != NULL:               # one at a time: a thousand channels have one each
            _share_stop(core, share, False)
            frame.shares = share.next_of_frame
            share_free(core, share)
            continue
        for i in range(frame.count if frame.has_expiries else 0):
            expiry_drop(core, queue, frame_offset(frame, i))
        directory_pop(queue, frame)
        free(frame.times)
        frame_free(core, frame)
        frame = directory_first(&queue.directory)
    return frame == NULL


cdef bint _keys_free(Core* core, Queue* queue) noexcept nogil:
    cdef Key* key
    while queue.keys.count and stage_goes_on(core):
        core.counters.work += 1
        key = <Key*> textmap_next(&queue.keys, &queue.gone_cursor)
        if key == NULL:
            queue.gone_cursor = 0
        else:
            key.admin_weight = key.refs = 0
            pause_set(core, key, False, 0)
            cap_set(core, key, 0, False)
            rate_limit_set(core, key, 0, 0, False)
            committed_set(core, key, 0, False)
            key_drop_if_idle(core, key)
    return queue.keys.count == 0


cdef bint _dedup_free(Core* core, Queue* queue) noexcept nogil:
    cdef Dedup* row
    while queue.dedup_oldest != NULL and stage_goes_on(core):
        core.counters.work += 1
        row = queue.dedup_oldest
        queue.dedup_oldest = row.next
        core.dedup_rows -= 1
        free(row)
    return queue.dedup_oldest == NULL


cdef bint _queue_clear(Core* core, Queue* queue) noexcept nogil:
    """Its channels hold nothing once its frames and keys are gone."""
    cdef Channel* channel = queue.gone
    while channel != NULL:
        if not _consumers_end(core, channel, True):
            return False
        channel = channel.next
    if not (_frames_free(core, queue) and _keys_free(core, queue) and _dedup_free(core, queue)):
        return False
    while queue.gone != NULL:
        channel = queue.gone
        if not clocks_forget(core, channel):
            return False
        queue.gone = channel.next
        _channel_free(channel)
    queue_records_delete(core, queue)           # what its leases and keys wrote until they ended
    return True


cdef void _queue_free(Queue* queue) noexcept nogil:
    directory_free(&queue.directory)
    textmap_free(&queue.keys)
    textmap_free(&queue.channels_by_name)
    textmap_free(&queue.dedup)
    map64_free(&queue.expiries)
    policy_free(&queue.policy)
    buffer_free(&queue.config)
    free(queue.building.items)
    free(queue.moving.items)
    free(queue)


cdef void queues_clear(Core* core) noexcept nogil:
    cdef Queue* queue
    while core.gone != NULL and stage_goes_on(core):
        queue = core.gone
        if not _queue_clear(core, queue):
            return
        core.gone = queue.next_gone
        core.counters.taken_apart += 1
        _queue_free(queue)


cdef void forget_all(Core* core) noexcept nogil:
    cdef uint32_t cursor, before
    cdef Queue* queue
    core.stage_end = UINT64_MAX
    while core.queues.count:            # a walk passes by those that a deletion moved: the next finds them
        cursor = 0
        while True:
            before = cursor
            queue = <Queue*> textmap_next(&core.queues, &cursor)
            core.counters.walked += cursor - before
            if queue == NULL:
                break
            queue_delete(core, queue)
            queues_clear(core)
            batch_clear(core.settles)
            batch_clear(core.apart)
    queues_clear(core)
