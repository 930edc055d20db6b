"""Each look goes on where the last one stopped, so its cost is bounded whatever the queue holds."""

from libc.stdint cimport UINT64_MAX, int64_t, uint32_t, uint64_t

from fila_server.core.admin.chores cimport remains_begin
from fila_server.core.admin.deleting cimport channel_delete, queue_delete
from fila_server.core.index.dedup cimport dedup_expire
from fila_server.core.index.delays cimport timer_step_ns
from fila_server.core.index.frames cimport frame_finish, frame_retained
from fila_server.core.lifecycle.ending cimport slot_done
from fila_server.core.lifecycle.failure cimport slot_expire
from fila_server.core.lifecycle.revoked cimport CHANNEL_EXPIRED, DEAD_LETTERS_DROPPED, QUEUE_EXPIRED, notice
from fila_server.core.maintenance.rewrite cimport queue_rewrite
from fila_server.core.sinks.registry cimport sinks_sweep
from fila_server.core.state.directory cimport directory_after, directory_at, directory_first, frame_index
from fila_server.core.state.kinds cimport DELAYED, DONE, READY, UNPLACED
from fila_server.core.state.paths cimport dlq_source, frame_offset
from fila_server.core.state.settings cimport Policy
from fila_server.core.state.state cimport Channel, Frame, Queue, Share, Slot
from fila_server.core.storage.reclaim cimport Upkeep
from fila_server.core.structures.atomics cimport atomic_store
from fila_server.core.structures.maps cimport map64_get, textmap_next
from fila_server.core.structures.timers cimport timer_set

cdef enum:
    EVERY_MS = 100
    FRAMES_LOOKED_AT_MAX = 2048     # a queue, each time


cdef void message_expired(Core* core, Expiry* expiry) noexcept nogil:
    """Its time to live is over: whoever has not leased it never will."""
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, expiry.queue_number)
    cdef Frame* frame = directory_at(&queue.directory, expiry.offset) if queue != NULL else NULL
    cdef Share* share
    cdef Slot* slot
    cdef uint32_t i
    cdef bint dropped = False
    cdef int64_t left_ms = (expiry.due_ns - core.mono_ns) // 1000000
    if expiry.far and left_ms > 1:
        timer_set(&core.timers, &expiry.timer, core.mono_ns + timer_step_ns(left_ms, &expiry.far))
        return
    if frame == NULL:
        return
    if frame.revealing:                 # some of its channels do not have it yet: a moment later
        timer_set(&core.timers, &expiry.timer, core.mono_ns + 1000000)
        return
    i = frame_index(frame, expiry.offset)
    share = frame.shares if i < frame.count else NULL
    while share != NULL:
        slot = &share.slots[i]
        if not share.channel.gone and slot.state in (READY, DELAYED, UNPLACED):
            dropped = True
            slot_expire(core, slot)
        share = share.next_of_frame
    if dropped:
        queue.counters.ttl_dropped += 1


cdef void _drop_hard(Core* core, Queue* queue, Frame* frame) noexcept nogil:
    """Beyond hard retention: what is unfinished goes too, and is counted."""
    cdef Share* share = frame.shares
    cdef uint32_t i
    queue.counters.hard_dropped += frame.live
    core.revoking = b"RETENTION"
    while share != NULL:
        for i in range(frame.count):
            if share.slots[i].state != DONE:
                slot_done(core, &share.slots[i])
        share = share.next_of_frame
    core.revoking = NULL
    frame_finish(core, frame)


cdef void _hard_retention(Core* core, Queue* queue) noexcept nogil:
    """The oldest go first, until what is left is within its bounds."""
    cdef Policy* policy = &queue.policy
    cdef Frame* frame = directory_first(&queue.directory)
    cdef uint32_t looked = 0
    if not (policy.hard_period_ms or policy.hard_bytes):
        return
    while frame != NULL and frame.revealed and looked < FRAMES_LOOKED_AT_MAX:
        looked += 1
        if not frame.dying:
            if not (
                (policy.hard_period_ms and core.wall_ms - frame.appended_ms > <int64_t> policy.hard_period_ms)
                or (policy.hard_bytes and queue.stored_bytes > policy.hard_bytes)
            ):
                return
            _drop_hard(core, queue, frame)
        frame = directory_after(&queue.directory, frame)


cdef void _soft_retention(Core* core, Queue* queue) noexcept nogil:
    """What is done and was kept for a while. Frames at the front that are not done must not hide those behind
    them, so each look goes on where the last one stopped; where nothing is kept, the queue is looked through
    once."""
    cdef Policy* policy = &queue.policy
    cdef bint keeps = policy.soft_period_ms or policy.soft_bytes or queue.channels == NULL
    cdef Frame* frame
    cdef uint32_t looked = 0
    if queue.retained_at == UINT64_MAX:
        if not keeps:
            return
        queue.retained_at = 0
    frame = directory_at(&queue.directory, queue.retained_at)
    while frame != NULL and looked < FRAMES_LOOKED_AT_MAX:
        looked += 1
        if not frame.revealed:
            queue.retained_at = 0
            return
        if frame.live == 0 and not frame.dying and not frame_retained(core, frame):
            frame_finish(core, frame)
        elif not policy.soft_bytes and core.wall_ms - frame.appended_ms < <int64_t> policy.soft_period_ms:
            queue.retained_at = 0       # what follows is younger still
            return
        queue.retained_at = frame_offset(frame, frame.count - 1) + 1
        frame = directory_at(&queue.directory, queue.retained_at)
    if frame == NULL:
        queue.retained_at = 0 if keeps else UINT64_MAX


cdef void housekeeping(Core* core) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef Queue* queue
    cdef uint64_t live_bytes = 0
    cdef Upkeep* upkeep = core.shared.upkeep
    while True:
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            break
        _hard_retention(core, queue)
        _soft_retention(core, queue)
        queue_rewrite(core, queue)
        dedup_expire(core, queue)       # here too: the table is one for all queues, and
                                        # this one may see no more keys
        live_bytes += queue.stored_bytes + 16 * queue.directory.live
    atomic_store(<uint64_t*> &upkeep.live_frame_bytes, <uint64_t> live_bytes)
    if core.sinks.by_name.count:
        sinks_sweep(core)
    core.idle_wanted = True
    timer_set(&core.timers, &core.housekeeping, core.mono_ns + <int64_t> EVERY_MS * 1000000)


# --- queues and channels that nobody uses ----------------------------------------------------
# A look at each queue ten times a second, on the clock that stands still while the edge does not
# listen.

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
        if queue.counters.dead_dropped > queue.dead_reported:
            notice(core, DEAD_LETTERS_DROPPED, queue, NULL, queue.counters.dead_dropped - queue.dead_reported)
            queue.dead_reported = queue.counters.dead_dropped
        if _queue_expires(core, queue):
            notice(core, QUEUE_EXPIRED, queue, NULL, queue.depth)
            queue_delete(core, queue)
            core.sync_wanted = True
            return                      # the table moved under the cursor; the rest with the next look
        _channels_expire(core, queue)
