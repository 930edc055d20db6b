"""The stages in their fixed order. Commands come before timers, so that an ack that is already here
beats the expiry of its lease; deliveries come last, so that they see everything that became ready in
this pass.
"""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.admin.chores cimport chores_turn
from fila_server.core.admin.deleting cimport queues_clear
from fila_server.core.admin.peek cimport pages_turn
from fila_server.core.consumers.leaving cimport consumer_due, consumers_leave, lease_due
from fila_server.core.formats.state_records cimport state_record_ready
from fila_server.core.history.decisions cimport decisions_reported
from fila_server.core.history.inputs cimport commands_taken, pass_begins
from fila_server.core.history.traces cimport traces_turn
from fila_server.core.index.bodies cimport bodies_evict
from fila_server.core.index.delays cimport slot_delay_end, timer_step_ns
from fila_server.core.index.holders cimport holders_wake
from fila_server.core.index.key_defaults cimport defaults_turn
from fila_server.core.index.keys cimport key_drop_if_idle
from fila_server.core.index.slots cimport slot_ready
from fila_server.core.lifecycle.answers cimport answers_durable, answers_leave, reveals_turn
from fila_server.core.lifecycle.deliver cimport deliver_ready
from fila_server.core.lifecycle.failure cimport failures_turn
from fila_server.core.lifecycle.replacing cimport replacings_turn
from fila_server.core.lifecycle.revoked cimport revoked_flush
from fila_server.core.lifecycle.seek cimport channel_rebuild
from fila_server.core.lifecycle.sending cimport deliveries_loaded, pull_answer
from fila_server.core.maintenance.retention cimport housekeeping, idle_expire, message_expired
from fila_server.core.protocol.commands cimport (
    DELETE_CHANNEL, DELETE_QUEUE, LISTENED, METRICS, OPERATION_RECORDS_READ, SCHEDULE_CHANGE, STORED_BYTES,
    TROUBLES_PAGE, WATCH_ROWS,
)
from fila_server.core.runtime.commit cimport pass_write, writes_begin
from fila_server.core.runtime.confirming cimport Group, group_now, group_wakes
from fila_server.core.runtime.dispatch cimport command_run
from fila_server.core.scheduling.flows cimport key_reconsider
from fila_server.core.scheduling.limits cimport limits_turn
from fila_server.core.scheduling.throttle cimport throttle_key_look
from fila_server.core.scheduling.tokens cimport bucket_wake
from fila_server.core.search.lookups cimport lookups_turn
from fila_server.core.sinks.moving cimport sinks_turn
from fila_server.core.state.budget cimport stage_begins, stage_goes_on
from fila_server.core.state.kinds cimport (
    TIMER_BUCKET, TIMER_DELAY, TIMER_EXPIRY, TIMER_HOUSEKEEPING, TIMER_KEY_RATE, TIMER_LEASE, TIMER_PULL,
    TIMER_SESSION,
)
from fila_server.core.state.paths cimport bucket_of, share_of
from fila_server.core.state.pending cimport Expiry, KeyRateLimit
from fila_server.core.state.state cimport Channel, Consumer, Delay, Key, Lease, Queue, Slot, ThrottleKey
from fila_server.core.storage.disk cimport DISK_ROOMY
from fila_server.core.structures.atomics cimport atomic_load, flag_load
from fila_server.core.structures.maps cimport textmap_next
from fila_server.core.structures.timers cimport Timer, timer_set, timers_next, timers_pop_due
from fila_server.core.threads.mailbox cimport Command, command_free, mailbox_take

cdef enum:
    COMMANDS_PER_PASS_MAX = 64      # of any size; budget.pxd bounds what they touch
    BLOCKED_RETRY_NS = 2000000


cdef bint _drain(Core* core) noexcept nogil:
    """True when there may be more in the mailbox."""
    cdef Command* command = core.postponed
    cdef Command* following
    cdef uint32_t count = 0
    cdef bint more = command != NULL    # these first, whatever has come to the mailbox
    core.postponed = NULL
    if command == NULL:
        command = mailbox_take(core.mailbox, COMMANDS_PER_PASS_MAX)
        if command != NULL and core.history != NULL:
            commands_taken(core, command)
    while command != NULL and stage_goes_on(core):
        if command.kind in (DELETE_QUEUE, DELETE_CHANNEL, SCHEDULE_CHANGE) and count:
            # What this pass holds of the queue is half built: written first, then deleted or changed.
            break
        following = command.next
        count += 1
        core.counters.commands += 1
        core.counters.stirs += command.kind not in (
            LISTENED, METRICS, OPERATION_RECORDS_READ, STORED_BYTES, TROUBLES_PAGE, WATCH_ROWS)
        core.counters.work += 1
        if command_run(core, command):
            command_free(command)
        command = following
    core.postponed = command
    return more or command != NULL or count == COMMANDS_PER_PASS_MAX


# --- timers ----------------------------------------------------------------------------------

cdef void _delay_over(Core* core, Delay* delay) noexcept nogil:
    cdef Slot* slot = delay.slot
    cdef Channel* channel = share_of(slot).channel
    cdef bint keeps_place = delay.keeps_place
    cdef int64_t left_ms = delay.due_ms - core.wall_ms
    if channel.gone:
        return
    if delay.far and left_ms > 1:
        timer_set(&core.timers, &delay.timer, core.mono_ns + timer_step_ns(left_ms, &delay.far))
        return
    if delay.before:                    # the message that it replaces is leased still
        return
    slot_delay_end(core, slot)
    slot_ready(core, slot, keeps_place)
    if keeps_place:
        return                          # its record of the retry says where it stands
    channel.requeue_seq += 1            # its new place has to survive
    state_record_ready(core, slot, channel.placed_to, channel.requeue_seq, core.next_lease_id - 1)


cdef void _bucket_due(Core* core, ThrottleKey* bucket) noexcept nogil:
    if bucket.idle:
        throttle_key_look(core, bucket)
    else:
        bucket_wake(core, bucket)


cdef void _key_rate_due(Core* core, Key* key) noexcept nogil:
    if key.refs:
        key_reconsider(core, key)
    else:
        key_drop_if_idle(core, key)     # it rested until its bucket is full


cdef void _fire(Core* core) noexcept nogil:
    cdef Timer* timer
    while stage_goes_on(core):
        timer = timers_pop_due(&core.timers, core.mono_ns)
        if timer == NULL:
            return
        core.counters.work += 1
        core.counters.stirs += timer.kind != TIMER_HOUSEKEEPING
        if timer.kind == TIMER_LEASE:
            lease_due(core, <Lease*> timer)
        elif timer.kind == TIMER_DELAY:
            _delay_over(core, <Delay*> timer)
        elif timer.kind == TIMER_BUCKET:
            _bucket_due(core, bucket_of(timer))
        elif timer.kind == TIMER_PULL:
            pull_answer(core, <Consumer*> timer)
        elif timer.kind == TIMER_SESSION:
            consumer_due(core, <Consumer*> timer)
        elif timer.kind == TIMER_KEY_RATE:
            _key_rate_due(core, <Key*> (<KeyRateLimit*> timer).key)
        elif timer.kind == TIMER_EXPIRY:
            message_expired(core, <Expiry*> timer)
        elif timer.kind == TIMER_HOUSEKEEPING:
            housekeeping(core)


cdef void _rebuild(Core* core) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef Queue* queue
    cdef Channel* channel
    while core.rebuilding:
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            return
        channel = queue.channels
        while channel != NULL:
            if channel.rebuild_at:
                channel_rebuild(core, channel)
            channel = channel.next


cdef bint _stages(Core* core) noexcept nogil:
    """All that a pass does before it writes. True: something was left for
    the next one, which should follow at once."""
    cdef bint more
    stage_begins(core)
    more = _drain(core)
    stage_begins(core)
    _fire(core)
    deliveries_loaded(core)
    stage_begins(core)
    if core.unasked != NULL and failures_turn(core):
        more = True
    if core.pages != NULL and pages_turn(core):
        more = True
    if core.lookups.first != NULL and lookups_turn(core):
        more = True
    stage_begins(core)
    if core.rebuilding:
        _rebuild(core)
        more = True
    stage_begins(core)
    if core.key_defaulting.walks != NULL and defaults_turn(core):
        more = True
    stage_begins(core)
    if core.chores != NULL and chores_turn(core):
        more = True
    stage_begins(core)
    if core.limit_table.changing != NULL and limits_turn(core):
        more = True
    stage_begins(core)
    if core.gone != NULL:
        queues_clear(core)
        more = True
    stage_begins(core)
    if sinks_turn(core):
        more = True
    stage_begins(core)
    if core.leaving != NULL:
        consumers_leave(core)
        more = True
    if core.replacings.count:
        replacings_turn(core)
    # who is left is gone at once, and the last record of lease ids must hold
    if not core.stopping:
        stage_begins(core)
        if core.waking != NULL and holders_wake(core):
            more = True
        deliver_ready(core)
    revoked_flush(core)
    return more


cdef int64_t run_pass(Core* core, int64_t mono_ns, int64_t wall_ms) noexcept nogil:
    cdef Group* group = core.shared.group
    cdef int64_t next_ns
    if group != NULL:
        mono_ns, wall_ms = group_now(group, mono_ns), max(wall_ms, group.reading.begun_ms)
    next_ns = _pass(core, mono_ns, wall_ms)
    if core.history != NULL:
        decisions_reported(core)
    return next_ns if group == NULL else group_wakes(core, next_ns)


cdef int64_t _pass(Core* core, int64_t mono_ns, int64_t wall_ms) noexcept nogil:
    cdef bint more = False
    cdef uint64_t work = core.counters.work
    core.mono_ns = mono_ns if mono_ns > core.mono_ns else core.mono_ns
    core.mono_ms = <uint32_t> (core.mono_ns // 1000000)
    core.wall_ms = wall_ms
    core.limit_table.newest_ms = max(core.limit_table.newest_ms, wall_ms)
    core.counters.passes += 1
    core.counters.stirs += core.disk_level != <int> atomic_load(&core.shared.disk_level)
    core.disk_level = <int> atomic_load(&core.shared.disk_level)
    core.durable = atomic_load(&core.shared.durable)
    core.stopping = flag_load(&core.shared.stopping)
    writes_begin(core)
    if core.history != NULL:
        pass_begins(core)
    if core.traces != NULL:
        traces_turn(core)
    core.disk_low = core.disk_level != DISK_ROOMY
    answers_durable(core, core.durable)
    stage_begins(core)
    answers_leave(core)
    stage_begins(core)
    if core.revealing != NULL:
        reveals_turn(core)
    # nothing else runs: what is in the batches must stay the newest that there is
    if core.shared.blocked:
        pass_write(core)
        if core.shared.blocked:
            return core.mono_ns + BLOCKED_RETRY_NS
    if core.replacings.count:
        replacings_turn(core)
    if core.unused != NULL:
        idle_expire(core)
    more = _stages(core)
    pass_write(core)
    if core.shared.blocked:                # what is not on disk yet can't be read back from there
        return core.mono_ns + BLOCKED_RETRY_NS
    stage_begins(core)
    answers_leave(core)
    bodies_evict(core)
    core.counters.pass_work_max = max(core.counters.pass_work_max, core.counters.work - work)
    if core.outgoing != NULL or core.revealing != NULL or core.unasked != NULL or core.replacings.count:
        more = True
    if more or core.active != NULL:
        return core.mono_ns
    return timers_next(&core.timers)
