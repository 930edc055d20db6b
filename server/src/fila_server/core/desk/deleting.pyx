"""See deleting.pxd."""

from libc.stdint cimport UINT64_MAX, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free

from fila_server.core.holdings.frames cimport frame_free
from fila_server.core.holdings.keys cimport key_drop_if_idle
from fila_server.core.holdings.policy cimport policy_free
from fila_server.core.life.answers cimport answers_forget
from fila_server.core.life.consumers cimport channel_consumers_end
from fila_server.core.life.ending cimport settled_flush
from fila_server.core.life.seek cimport channel_shares_drop
from fila_server.core.records.records cimport channel_records_delete, queue_records_delete
from fila_server.core.state.directory cimport directory_first, directory_free, directory_pop
from fila_server.core.state.pending cimport Dedup, Expiry
from fila_server.core.state.state cimport Flow, Frame, Key
from fila_server.core.structures.buffer cimport buffer_free
from fila_server.core.structures.maps cimport (
    map64_free, map64_next, map64_remove, textmap_free, textmap_next, textmap_remove,
)
from fila_server.core.structures.ring cimport ring_free
from fila_server.core.structures.timers cimport timer_cancel
from fila_server.core.turns.clocks cimport clock_forget
from fila_server.core.turns.flows cimport channel_deactivate, flow_free


cdef void _dedup_forget(Core* core, Queue* queue) noexcept nogil:
    cdef Dedup* row
    while queue.dedup_oldest != NULL:
        row = queue.dedup_oldest
        queue.dedup_oldest = row.next
        core.dedup_rows -= 1
        free(row)


cdef void queue_drop(Core* core, Queue* queue) noexcept nogil:
    """End its consumers, forget all it has, and take it off the disk, in this pass's batch."""
    cdef Frame* frame
    cdef Queue* other
    cdef Key* key
    cdef Expiry* expiry
    cdef uint32_t cursor = 0
    settled_flush(core)
    answers_forget(core, queue)
    while queue.channels != NULL:
        _channel_forget(
            core, queue.channels, b"queue \"%.*s\" was deleted while its channel \"%.*s\" was consumed",
            b"QUEUE_NOT_FOUND", b"QUEUE_DELETED")
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
        expiry = <Expiry*> map64_next(&queue.expiries, &cursor)
        if expiry == NULL:
            break
        timer_cancel(&core.timers, &expiry.timer)
        free(expiry)
    _dedup_forget(core, queue)
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
    map64_free(&queue.expiries)
    policy_free(&queue.policy)
    buffer_free(&queue.config)
    free(queue.building.items)
    free(queue.moving.items)
    free(queue)


cdef void _channel_forget(
        Core* core, Channel* channel, const char* message, const char* reason,
        const char* revoked) noexcept nogil:
    """A channel's consumers, leases and shares, and the channel itself; its records are the caller's."""
    cdef Queue* queue = channel.queue
    cdef Channel* before = queue.channels
    cdef char text[640]
    snprintf(
        text, sizeof(text), message, <int> queue.text.length, queue.text.bytes,
        <int> channel.text.length, channel.text.bytes)
    channel_consumers_end(core, channel, text, reason, revoked)
    channel_shares_drop(core, channel, UINT64_MAX)
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
    clock_forget(core, channel)
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


cdef void channel_drop(Core* core, Channel* channel) noexcept nogil:
    settled_flush(core)                 # its last records, before they are deleted
    channel_records_delete(core, channel)
    _channel_forget(
        core, channel, b"queue \"%.*s\": channel \"%.*s\" was deleted while it was consumed",
        b"CHANNEL_NOT_FOUND", b"CHANNEL_DELETED")


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
