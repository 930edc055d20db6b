"""See loop.pxd."""

from libc.stdint cimport INT64_MAX, uint32_t, uint8_t
from libc.stdlib cimport free

from fila_server.core.admin cimport admin
from fila_server.core.answers cimport answers_durable, answers_leave, answers_written, reveals_turn
from fila_server.core.budget cimport stage_begins, stage_goes_on
from fila_server.core.chores cimport chores_turn
from fila_server.core.commands cimport (
    ACK, CANCEL, CONSUMER_CLOSE, CONSUME_OPEN, DECIDE, DELETE_CHANNEL, DELETE_QUEUE, ENQUEUE, ENQUEUE_ATOMIC, EXPLAIN_KEY, EXTEND_LEASE, GET_STATS, LEASE,
    LIST_CHANNELS, LIST_CONSUMERS, LIST_QUEUES, LISTENED, METRICS, OK, PEEK_MESSAGES, REDRIVE_MOVE, SESSION, SESSION_OPEN, WRITTEN,
)
from fila_server.core.consumers cimport (
    consumer_command, consumer_due, consumer_open, consumers_leave, lease_due, listened,
)
from fila_server.core.deliver cimport deliver
from fila_server.core.disk cimport DISK_CRITICAL, DISK_ROOMY
from fila_server.core.enqueue cimport enqueue, enqueue_written, frames_build
from fila_server.core.flows cimport bucket_wake, flow_find
from fila_server.core.frames cimport bodies_evict, entry_of, share_of
from fila_server.core.idle cimport idle_expire
from fila_server.core.housekeeping cimport housekeeping, message_expired
from fila_server.core.mailbox cimport Command, command_free, mailbox_take
from fila_server.core.metrics cimport metrics
from fila_server.core.maps cimport textmap_next
from fila_server.core.pages cimport page_begin, pages_turn
from fila_server.core.groups cimport groups_flush
from fila_server.core.queues cimport channel_rebuild
from fila_server.core.records cimport bucket_record_put, meta_record_put, state_record_ready
from fila_server.core.reveal cimport slot_delay, timer_step_ns
from fila_server.core.ending cimport settled_flush
from fila_server.core.failure cimport decide, failures_turn
from fila_server.core.revoked cimport revoked_flush
from fila_server.core.sending cimport deliveries_loaded, pull_answer
from fila_server.core.settle cimport settle
from fila_server.core.slots cimport slot_ready
from fila_server.core.state cimport (
    Channel, Consumer, Delay, Flow, Frame, Lease, Queue, Slot, ThrottleKey, TIMER_BUCKET, TIMER_DELAY, TIMER_EXPIRY,
    TIMER_HOUSEKEEPING, TIMER_LEASE, TIMER_PULL, TIMER_SESSION,
)
from fila_server.core.waiting cimport Extra
from fila_server.core.stats cimport stats
from fila_server.core.shared cimport shared_load, shared_store
from fila_server.core.store cimport (
    STORE_DAMAGED, STORE_FAILED, STORE_FULL, STORE_OK, STORE_STALLED, batch_clear, batch_count, failure_tell,
    store_part_log, store_sync, store_write, StoreError,
)
from fila_server.core.throttle cimport throttle_key_drop_if_idle
from fila_server.core.timers cimport Timer, timer_set, timers_next, timers_pop_due
from fila_server.core.refusals cimport REFUSED_DISK_FULL, REFUSED_STALLED
from fila_server.core.watch cimport watch_level
from fila_server.core.waits cimport flow_emptied, waits_note

cdef enum:
    COMMANDS_PER_PASS_MAX = 64      # of any size; budget.pxd bounds what they touch
    HELD_RETRY_NS = 2000000
    STALL_NS_MAX = 1000000000       # a flush takes tens of milliseconds; longer is trouble, and told so


# --- commands --------------------------------------------------------------------------------

cdef bint _run(Core* core, Command* command) noexcept nogil:
    """Carry one command out; False when it was kept for later."""
    cdef int kind = command.kind
    if ENQUEUE <= kind <= ENQUEUE_ATOMIC:
        enqueue(core, command)          # owned by the pass until it is answered
        return False
    if ACK <= kind <= EXTEND_LEASE:
        settle(core, command)
    elif kind == LEASE or kind == CONSUME_OPEN or kind == SESSION_OPEN:
        consumer_open(core, command)
    elif kind == SESSION or kind == WRITTEN or kind == CONSUMER_CLOSE or kind == CANCEL:
        consumer_command(core, command)
    elif kind == LISTENED:
        listened(core)
    elif kind == PEEK_MESSAGES or kind == REDRIVE_MOVE:
        return not page_begin(core, command)    # it has its turn later in this pass
    elif kind == DECIDE:
        decide(core, command)
    elif kind == GET_STATS or kind == LIST_QUEUES or kind == LIST_CHANNELS or kind == EXPLAIN_KEY or kind == LIST_CONSUMERS:
        stats(core, command)
    elif kind == METRICS:
        metrics(core, command)
    else:
        return admin(core, command)
    return True


cdef bint _drain(Core* core) noexcept nogil:
    """True when there may be more in the mailbox."""
    cdef Command* command = core.postponed
    cdef Command* following
    cdef uint32_t count = 0
    cdef bint more = command != NULL    # these first, whatever has come to the mailbox
    core.postponed = NULL
    if command == NULL:
        command = mailbox_take(core.mailbox, COMMANDS_PER_PASS_MAX)
    while command != NULL and stage_goes_on(core):
        if (command.kind == DELETE_QUEUE or command.kind == DELETE_CHANNEL) and count:
            # What this pass holds of the queue is half built: written first, then deleted.
            break
        following = command.next
        count += 1
        core.counters.commands += 1
        core.counters.work += 1
        if _run(core, command):
            command_free(command)
        command = following
    core.postponed = command
    return more or command != NULL or count == COMMANDS_PER_PASS_MAX


# --- timers ----------------------------------------------------------------------------------

cdef void _delay_over(Core* core, Delay* delay) noexcept nogil:
    cdef Slot* slot = delay.slot
    cdef Channel* channel = share_of(slot).channel
    cdef Flow* flow
    cdef int64_t left_ms = delay.due_ms - core.wall_ms
    if delay.far and left_ms > 1:
        timer_set(&core.timers, &delay.timer, core.mono_ns + timer_step_ns(left_ms, &delay.far))
        return
    flow = flow_find(entry_of(slot).key, channel)
    waits_note(core, flow)
    flow.delayed -= 1
    flow_emptied(flow)
    slot.owner = NULL
    free(delay)
    slot_ready(core, slot, False)
    channel.requeue_seq += 1            # its new place has to survive
    state_record_ready(core, slot, channel.placed_to, channel.requeue_seq, core.next_lease_id - 1)


cdef void _fire(Core* core) noexcept nogil:
    cdef Timer* timer
    while stage_goes_on(core):
        timer = timers_pop_due(&core.timers, core.mono_ns)
        if timer == NULL:
            return
        core.counters.work += 1
        if timer.kind == TIMER_LEASE:
            lease_due(core, <Lease*> timer)
        elif timer.kind == TIMER_DELAY:
            _delay_over(core, <Delay*> timer)
        elif timer.kind == TIMER_BUCKET:
            bucket_wake(core, <ThrottleKey*> (<char*> timer - <size_t> &(<ThrottleKey*> NULL).timer))
        elif timer.kind == TIMER_PULL:
            pull_answer(core, <Consumer*> timer)
        elif timer.kind == TIMER_SESSION:
            consumer_due(core, <Consumer*> timer)
        elif timer.kind == TIMER_EXPIRY:
            message_expired(core, <Extra*> timer)
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


# --- the write -------------------------------------------------------------------------------

cdef void _buckets_flush(Core* core) noexcept nogil:
    cdef ThrottleKey* bucket = core.dirty_keys
    cdef ThrottleKey* following
    core.dirty_keys = NULL
    while bucket != NULL:
        following = bucket.next_dirty
        bucket.next_dirty = NULL
        bucket.dirty = False
        bucket_record_put(core, bucket)
        throttle_key_drop_if_idle(core, bucket)
        bucket = following


cdef void _kept_free(Core* core) noexcept nogil:
    cdef uint32_t i
    for i in range(core.kept_count):
        free(core.kept[i])
    core.kept_count = 0


cdef uint8_t _write(Core* core) noexcept nogil:
    """Write the pass: the settles, what is kept apart, then the frames. 0, or why not."""
    cdef int status = STORE_OK
    if core.disk_level == DISK_CRITICAL:
        # One more append could meet a full disk, and RocksDB aborts on that.
        return REFUSED_DISK_FULL
    if batch_count(core.settles):
        status = store_write(&core.store, core.settles, &core.error)
        if status == STORE_OK:
            batch_clear(core.settles)
    if status == STORE_OK and batch_count(core.apart):
        status = store_part_log(&core.store, &core.error)
        if status == STORE_OK:
            status = store_write(&core.store, core.apart, &core.error)
        if status == STORE_OK:
            batch_clear(core.apart)
    if status == STORE_OK and batch_count(core.enqueues):
        status = store_write(&core.store, core.enqueues, &core.error)
        if status == STORE_OK:
            batch_clear(core.enqueues)
    if status == STORE_OK:
        return 0
    if status == STORE_DAMAGED or status == STORE_FAILED:
        failure_tell(&core.shared.failure, &core.error)     # the engine writes no more until it is opened anew
    core.counters.stalls += 1
    return REFUSED_STALLED if status == STORE_STALLED else REFUSED_DISK_FULL


cdef bint _needs_sync(Core* core) noexcept nogil:
    """Whether what is about to be written may have to wait for its epoch before anybody sees it."""
    cdef Frame* frame = core.stored
    while frame != NULL and not frame.durable:
        frame = frame.next_dying
    return core.sync_wanted or frame != NULL


cdef void _finish(Core* core) noexcept nogil:
    """Build, write, answer.

    What the engine will not take just now is held and tried again with nothing in between. A
    stall that lasts, or a full disk, refuses the new messages; acks and leases stay held until
    they are written, and their answers with them.
    """
    cdef uint8_t refused
    frames_build(core)
    _kept_free(core)
    settled_flush(core)
    groups_flush(core)
    _buckets_flush(core)
    if core.stored != NULL and not core.shared.held:
        if core.wall_ms > <int64_t> core.id_ms:     # moved messages bring their ids along, and move time on too
            core.id_ms, core.id_sequence = <uint64_t> core.wall_ms, 0
        meta_record_put(core, b"id", core.id_ms)
    if _needs_sync(core):
        shared_store(&core.shared.coming, core.epoch)
    refused = _write(core)
    if refused == REFUSED_STALLED:
        if not core.shared.held:
            core.held_since_ns = core.mono_ns
        if core.mono_ns - core.held_since_ns < STALL_NS_MAX:
            core.shared.held = True
            return
    enqueue_written(core, refused)
    if refused:
        batch_clear(core.enqueues)
    core.shared.held = refused != 0 and batch_count(core.settles) + batch_count(core.apart) > 0
    if core.shared.held:
        return                          # answers wait until the batch is written
    answers_written(core)
    if core.sync_wanted:
        core.sync_wanted = False
        shared_store(&core.shared.wanted, core.epoch)
        core.epoch += 1
        core.counters.epochs += 1
    else:
        shared_store(&core.shared.coming, core.shared.wanted)   # the disk refused what was coming


cdef bint commit(Core* core) noexcept nogil:
    """Runs on the commit thread. What was written before `wanted` was read is on disk when it returns."""
    cdef StoreError error
    cdef uint64_t wanted = shared_load(&core.shared.wanted)
    cdef int status
    if wanted <= shared_load(&core.shared.durable):
        return False
    status = store_sync(&core.store, &error)
    if status == STORE_FULL:
        return False                    # the engine has stopped writing and resumes by itself when there is room
    if status != STORE_OK:
        failure_tell(&core.shared.failure, &error)      # nothing can be promised any more; see StoreFailure
        return False
    shared_store(&core.shared.durable, wanted)
    core.shared.syncs += 1
    return True


cdef void sync_took(Core* core, int64_t ns) noexcept nogil:
    cdef uint64_t us = <uint64_t> ns // 1000
    cdef int bits = 0
    core.shared.sync_us_sum += us
    while us and bits < 31:
        us >>= 1
        bits += 1
    core.shared.sync_us[bits] += 1


cdef bint _stages(Core* core) noexcept nogil:
    """All that a pass does before it writes. True: something was left for the next one, which should follow at once."""
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
    stage_begins(core)
    if core.rebuilding:
        _rebuild(core)
        more = True
    stage_begins(core)
    if core.chores != NULL and chores_turn(core):
        more = True
    stage_begins(core)
    if core.leaving != NULL:
        consumers_leave(core)
        more = True
    if not core.shared.stopping:        # who is left is gone at once, and the last record of lease ids must hold
        deliver(core)
    revoked_flush(core)
    return more


cdef int64_t pass_(Core* core, int64_t mono_ns, int64_t wall_ms) noexcept nogil:
    cdef bint more = False
    cdef uint64_t work = core.counters.work
    core.mono_ns = mono_ns if mono_ns > core.mono_ns else core.mono_ns
    core.mono_ms = <uint32_t> (core.mono_ns // 1000000)
    core.wall_ms = wall_ms
    core.counters.passes += 1
    core.disk_level = watch_level(&core.shared.watch)
    core.disk_low = core.disk_level != DISK_ROOMY
    answers_durable(core, shared_load(&core.shared.durable))
    stage_begins(core)
    answers_leave(core)
    stage_begins(core)
    if core.revealing != NULL:
        reveals_turn(core)
    if core.shared.held:                # nothing else runs: what is in the batches must stay the newest that there is
        _finish(core)
        if core.shared.held:
            return core.mono_ns + HELD_RETRY_NS
    if core.idle_wanted:
        idle_expire(core)
    more = _stages(core)
    _finish(core)
    if core.shared.held:                # what is not on disk yet can't be read back from there
        return core.mono_ns + HELD_RETRY_NS
    stage_begins(core)
    answers_leave(core)
    bodies_evict(core)
    core.counters.pass_work_max = max(core.counters.pass_work_max, core.counters.work - work)
    if core.outgoing != NULL or core.revealing != NULL or core.unasked != NULL:
        more = True
    if more or core.active != NULL:
        return core.mono_ns
    return timers_next(&core.timers)
