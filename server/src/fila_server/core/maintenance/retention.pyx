"""Each look goes on where the last one stopped, so its cost is bounded whatever the queue holds. Which queues
are visited, and when: index/visits.pxd."""

from libc.stdint cimport INT64_MAX, UINT64_MAX, int64_t, uint32_t, uint64_t

from fila_server.core.admin.chores cimport remains_begin
from fila_server.core.admin.deleting cimport channel_delete, queue_delete
from fila_server.core.index.dedup cimport dedup_expire
from fila_server.core.index.delays cimport timer_step_ns
from fila_server.core.index.frames cimport frame_finish, frame_retained
from fila_server.core.index.visits cimport VISIT_EVERY_MS, housekeeping_by, visit_soon
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
from fila_server.core.structures.timers cimport Timer, timer_cancel, timer_set, timers_next, timers_pop_due

cdef enum:
    FRAMES_LOOKED_AT_MAX = 2048     # a queue, each time
    VISIT_WITHIN_MS = 86400000       # a timer reaches so far; what lies farther off goes there in steps
    CLOCK_LOOK_MS = 1000            # how often the two clocks are compared
    CLOCK_MS_MAX = 500              # by how much they may part meanwhile

cdef Queue SHAPE                    # nobody's: it says how far from a queue's beginning its timer lies


cdef inline Queue* _queue_of(Timer* timer) noexcept nogil:
    return <Queue*> (<char*> timer - (<char*> &SHAPE.visit - <char*> &SHAPE))


cdef void message_expired(Core* core, Expiry* expiry) noexcept nogil:
    """Its time to live is over: no more channels will lease it."""
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
    cdef Frame* frame
    cdef int64_t ends_ms
    cdef uint32_t looked = 0
    if queue.retained_at == UINT64_MAX:
        if not _keeps(queue):
            return
        queue.retained_at = 0
    if queue.retained_at == 0:
        queue.retained_ms = INT64_MAX
    frame = directory_at(&queue.directory, queue.retained_at)
    while frame != NULL and looked < FRAMES_LOOKED_AT_MAX:
        looked += 1
        if not frame.revealed:
            queue.retained_at = 0
            return
        ends_ms = frame.appended_ms + <int64_t> policy.soft_period_ms
        if frame.live == 0 and not frame.dying and not frame_retained(core, frame):
            frame_finish(core, frame)
        elif policy.soft_period_ms and ends_ms > core.wall_ms:
            queue.retained_ms = min(queue.retained_ms, ends_ms)
            if not policy.soft_bytes:
                queue.retained_at = 0   # what follows is younger still
                return
        queue.retained_at = frame_offset(frame, frame.count - 1) + 1
        frame = directory_at(&queue.directory, queue.retained_at)
    if frame == NULL:
        queue.retained_at = 0 if _keeps(queue) else UINT64_MAX


cdef inline bint _keeps(Queue* queue) noexcept nogil:
    return queue.policy.soft_period_ms or queue.policy.soft_bytes or queue.channels == NULL


# --- when the next visit is due ---------------------------------------------------------------

cdef int64_t _kept_until(Core* core, Queue* queue) noexcept nogil:
    """When retention has something to do, on the wall clock; INT64_MAX = only after a change."""
    cdef Policy* policy = &queue.policy
    cdef Frame* frame = directory_first(&queue.directory)
    cdef int64_t due_ms = INT64_MAX
    if frame == NULL:
        return INT64_MAX
    if policy.hard_bytes and queue.stored_bytes > policy.hard_bytes:
        return core.wall_ms             # it does so much at a time
    if queue.retained_at != 0 and queue.retained_at != UINT64_MAX:
        return core.wall_ms             # a walk goes on
    if policy.hard_period_ms:
        due_ms = frame.appended_ms + <int64_t> policy.hard_period_ms + 1
    if _keeps(queue):
        due_ms = min(due_ms, queue.retained_ms)
    return due_ms


cdef int64_t _unused_in_ms(Core* core, int64_t used_ms, uint64_t after_ms, bint in_use) noexcept nogil:
    return VISIT_EVERY_MS if in_use else used_ms + <int64_t> after_ms - core.heard_ms


cdef int64_t _unused_by(Core* core, Queue* queue) noexcept nogil:
    """In how many milliseconds it or a channel of it may go as unused, or its use has to be followed;
    INT64_MAX = never."""
    cdef Channel* channel = queue.channels
    cdef uint64_t idle_ms = queue.policy.idle_ms if dlq_source(core, queue) == NULL else 0
    cdef bint in_use = idle_ms and (queue.promised or queue.staged_bytes or queue.chore != NULL)
    cdef int64_t left_ms = INT64_MAX
    cdef int64_t used_ms = queue.used_ms
    while channel != NULL:
        used_ms = max(used_ms, channel.used_ms)
        in_use = in_use or (idle_ms and _is_in_use(channel))
        if channel.idle_after_ms:
            left_ms = min(
                left_ms, _unused_in_ms(core, channel.used_ms, channel.idle_after_ms, _is_in_use(channel)))
        channel = channel.next
    if idle_ms:
        left_ms = min(left_ms, _unused_in_ms(core, used_ms, idle_ms, in_use))
    return left_ms


cdef void _visit_again(Core* core, Queue* queue, bint rewrites) noexcept nogil:
    """Set its timer to the first of all that will be due, or not at all."""
    cdef int64_t retained_ms = _kept_until(core, queue)
    cdef int64_t wait_ms = retained_ms - core.wall_ms if retained_ms != INT64_MAX else INT64_MAX
    if rewrites:
        wait_ms = 0
    if queue.dedup_oldest != NULL:
        wait_ms = min(wait_ms, (queue.dedup_oldest.look_ns - core.mono_ns) // 1000000 + 1)
    wait_ms = min(wait_ms, _unused_by(core, queue))
    if wait_ms == INT64_MAX:
        timer_cancel(&core.visits, &queue.visit)
        return
    wait_ms = max(<int64_t> VISIT_EVERY_MS, min(wait_ms, <int64_t> VISIT_WITHIN_MS))
    timer_set(&core.visits, &queue.visit, core.mono_ns + wait_ms * 1000000)


cdef void _visit(Core* core, Queue* queue) noexcept nogil:
    cdef int64_t bytes
    cdef bint rewrites
    _hard_retention(core, queue)
    _soft_retention(core, queue)
    rewrites = queue_rewrite(core, queue)
    dedup_expire(core, queue)           # here too: the table is for all queues, and this one may see no keys
    bytes = queue.stored_bytes + 16 * queue.directory.live
    core.live_bytes += bytes - queue.visited_bytes
    queue.visited_bytes = bytes
    if not queue.is_unused:
        queue.is_unused = True
        queue.next_unused = core.unused
        core.unused = queue
    _visit_again(core, queue, rewrites)


cdef void _clock_follow(Core* core) noexcept nogil:
    """Frames are retained by the wall clock, and visits are set by the other one: where the two part, all
    queues are visited anew."""
    cdef uint32_t cursor = 0
    cdef int64_t ahead_ms = core.wall_ms - core.mono_ns // 1000000
    cdef Queue* queue
    if -CLOCK_MS_MAX <= ahead_ms - core.wall_ahead_ms <= CLOCK_MS_MAX:
        return
    core.wall_ahead_ms = ahead_ms
    while True:
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            return
        visit_soon(core, queue)


cdef void housekeeping(Core* core) noexcept nogil:
    cdef Upkeep* upkeep = core.shared.upkeep
    cdef Timer* timer
    _clock_follow(core)
    core.housekeeping_ns = core.mono_ns
    while True:
        timer = timers_pop_due(&core.visits, core.mono_ns)
        if timer == NULL:
            break
        core.counters.visits += 1
        core.counters.stirs += 1
        _visit(core, _queue_of(timer))
    if core.consumers.count or core.leases.count:
        core.counters.stirs += 1
    atomic_store(<uint64_t*> &upkeep.live_frame_bytes, <uint64_t> core.live_bytes)
    atomic_store(<uint64_t*> &upkeep.held_bytes, core.hot_bytes + <uint64_t> core.index_bytes)
    if core.sinks.by_name.count:
        sinks_sweep(core)
        housekeeping_by(core, core.mono_ns)
    housekeeping_by(core, min(timers_next(&core.visits), core.mono_ns + <int64_t> CLOCK_LOOK_MS * 1000000))


# --- queues and channels that nobody uses ----------------------------------------------------
# On the clock that stands still while the edge does not listen.

cdef inline bint _is_in_use(Channel* channel) noexcept nogil:
    return channel.consumers or channel.waiting_pulls or channel.in_flight


cdef bint _channel_in_use(Core* core, Channel* channel) noexcept nogil:
    if _is_in_use(channel):
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
    cdef Queue* queue
    while core.unused != NULL:
        queue = core.unused
        core.unused = queue.next_unused
        queue.is_unused = False
        if queue.counters.dead_dropped > queue.dead_reported:
            notice(core, DEAD_LETTERS_DROPPED, queue, NULL, queue.counters.dead_dropped - queue.dead_reported)
            queue.dead_reported = queue.counters.dead_dropped
        if _queue_expires(core, queue):
            notice(core, QUEUE_EXPIRED, queue, NULL, queue.depth)
            queue_delete(core, queue)
            core.sync_wanted = True
        else:
            _channels_expire(core, queue)
