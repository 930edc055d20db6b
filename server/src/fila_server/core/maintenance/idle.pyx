"""A look at each queue ten times a second, on the clock that stands still while the edge does not
listen.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.admin.chores cimport remains_begin
from fila_server.core.admin.deleting cimport channel_delete, queue_delete
from fila_server.core.lifecycle.notices cimport CHANNEL_EXPIRED, DEAD_LETTERS_DROPPED, QUEUE_EXPIRED, notice
from fila_server.core.state.paths cimport dlq_source
from fila_server.core.state.state cimport Channel, Queue
from fila_server.core.structures.maps cimport textmap_next


cdef bint _channel_in_use(Core* core, Channel* channel) noexcept nogil:
    if channel.consumers or channel.waiting_pulls or channel.in_flight:
        channel.used_ms = core.heard_ms
        return True
    return False


cdef bint _over(Core* core, int64_t used_ms, uint64_t after_ms) noexcept nogil:
    return after_ms and core.heard_ms - used_ms >= <int64_t> after_ms


cdef void _channels_expire(Core* core, Queue* queue) noexcept nogil:
    cdef Channel* channel = queue.channels
    cdef Channel* following
    while channel != NULL:
        following = channel.next
        if (
            channel.idle_after_ms and queue.chore == NULL and not _channel_in_use(core, channel)
            and _over(core, channel.used_ms, channel.idle_after_ms)
        ):
            notice(core, CHANNEL_EXPIRED, queue, channel, channel.ready + channel.delayed)
            channel_delete(core, channel)
            remains_begin(core, queue)
            core.sync_wanted = True
        channel = following


cdef bint _queue_expires(Core* core, Queue* queue) noexcept nogil:
    cdef Channel* channel = queue.channels
    if not queue.policy.idle_ms or queue.chore != NULL:
        return False
    if dlq_source(core, queue) != NULL:                 # dead letters need it, however seldom they come
        queue.used_ms = core.heard_ms
        return False
    if queue.idle_offset != queue.next_offset:          # something was enqueued since the last look
        queue.idle_offset = queue.next_offset
        queue.used_ms = core.heard_ms
    if queue.promised or queue.staged_bytes:            # somebody means to put something in
        queue.used_ms = core.heard_ms
    while channel != NULL:
        if _channel_in_use(core, channel):
            queue.used_ms = core.heard_ms
        queue.used_ms = max(queue.used_ms, channel.used_ms)
        channel = channel.next
    return _over(core, queue.used_ms, queue.policy.idle_ms)


cdef void idle_expire(Core* core) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef Queue* queue
    core.idle_wanted = False
    while True:
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            return
        if queue.counters.dead_dropped > queue.dead_told:
            notice(core, DEAD_LETTERS_DROPPED, queue, NULL, queue.counters.dead_dropped - queue.dead_told)
            queue.dead_told = queue.counters.dead_dropped
        if _queue_expires(core, queue):
            notice(core, QUEUE_EXPIRED, queue, NULL, queue.depth)
            queue_delete(core, queue)
            core.sync_wanted = True
            return                      # the table moved under the cursor; the rest with the next look
        _channels_expire(core, queue)
