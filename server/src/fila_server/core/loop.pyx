"""See loop.pxd."""

from libc.stdint cimport INT64_MAX, uint32_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.admin cimport admin
from fila_server.core.answers cimport (
    answer, answer_no_channel, answer_no_queue, answers_durable, answers_written,
)
from fila_server.core.buffer cimport Buffer, Slice, buffer_init, must_malloc
from fila_server.core.commands cimport (
    ACK, CANCEL, CONSUMER_CLOSE, CONSUME_OPEN, DECIDE, DELETE_CHANNEL, DELETE_QUEUE, ENQUEUE, ENQUEUE_ATOMIC, EXPLAIN_KEY, EXTEND_LEASE, GET_STATS, LEASE,
    LIST_CHANNELS, LIST_QUEUES, METRICS, OK, PEEK_MESSAGES, REDRIVE_MOVE, SESSION, SESSION_OPEN, WRITTEN,
)
from fila_server.core.deliver cimport consumer_fill, deliver
from fila_server.core.disk cimport DISK_CRITICAL
from fila_server.core.enqueue cimport enqueue, enqueue_written, frames_build, queue_find
from fila_server.core.flows cimport bucket_wake, channel_activate, flow_find
from fila_server.core.frames cimport bodies_evict, entry_of, share_of
from fila_server.core.housekeeping cimport housekeeping, message_expired
from fila_server.core.mailbox cimport Command, command_free, mailbox_take
from fila_server.core.metrics cimport metrics
from fila_server.core.maps cimport map64_get, map64_put, textmap_next
from fila_server.core.pages cimport page_begin, pages_turn
from fila_server.core.queues cimport channel_need, channel_rebuild
from fila_server.core.records cimport bucket_record_put, meta_record_put, state_record_ready
from fila_server.core.reveal cimport slot_delay, timer_step_ns
from fila_server.core.ending cimport settled_flush
from fila_server.core.failure cimport decide, failures_loaded, lease_expired
from fila_server.core.sending cimport consumer_free, deliveries_loaded, delivery_free, pull_answer
from fila_server.core.settle cimport consumer_close, leases_return, session_frame, settle
from fila_server.core.slots cimport slot_ready
from fila_server.core.state cimport (
    Channel, Consumer, Delay, Delivery, Flow, Lease, PULL, Queue, SESSION_STREAM, STREAM, Slot, ThrottleKey,
    TIMER_BUCKET, TIMER_DELAY, TIMER_EXPIRY, TIMER_HOUSEKEEPING, TIMER_LEASE, TIMER_PULL,
)
from fila_server.core.waiting cimport Extra
from fila_server.core.stats cimport stats
from fila_server.core.store cimport (
    STORE_DAMAGED, STORE_FAILED, STORE_FULL, STORE_OK, STORE_STALLED, batch_bytes, batch_clear, batch_count, batch_put, store_sync, store_write, StoreError,
)
from fila_server.core.throttle cimport throttle_key_drop_if_idle
from fila_server.core.timers cimport Timer, timer_cancel, timer_set, timers_next, timers_pop_due
from fila_server.core.refusals cimport REFUSED_DISK_FULL, REFUSED_STALLED
from fila_server.core.waits cimport channel_room, flow_emptied, waits_note
from fila_server.core.wire cimport Fields, fields_parse, put_nested, put_number_field

cdef extern from *:
    """
    #define fila_load(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
    #define fila_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
    """
    uint64_t fila_load(uint64_t* p) nogil
    void fila_store(uint64_t* p, uint64_t v) nogil

cdef enum:
    COMMANDS_PER_PASS_MAX = 64
    MESSAGES_PER_PASS_MAX = 2048    # enqueued; as many as deliver.pyx hands out
    TIMERS_PER_PASS_MAX = 4096
    HELD_RETRY_NS = 2000000
    STALL_NS_MAX = 1000000000       # a flush takes tens of milliseconds; longer is trouble, and told so
    MAX_IN_FLIGHT = 256
    WAIT_MS_MAX = 300000


# --- commands --------------------------------------------------------------------------------

cdef void _open_consumer(Core* core, Command* command) noexcept nogil:
    """CONSUME_OPEN, SESSION_OPEN and LEASE: a consumer of a channel, for long or for one reply."""
    cdef Fields fields
    cdef Fields inner
    cdef Queue* queue
    cdef Channel* channel
    cdef Consumer* consumer
    fields_parse(&fields, command.bytes, command.length)
    if command.kind == SESSION_OPEN:
        fields_parse(&inner, fields.text[1].at, fields.text[1].length)
        fields = inner
    queue = queue_find(core, fields.text[1])
    if queue == NULL:
        answer_no_queue(core, command)
        return
    channel = channel_need(core, queue, fields.text[2])
    if channel == NULL:
        answer_no_channel(core, command)
        return
    consumer = <Consumer*> must_malloc(sizeof(Consumer))
    memset(consumer, 0, sizeof(Consumer))
    consumer.token = command.token
    consumer.channel = channel
    consumer.timer.kind = TIMER_PULL
    map64_put(&core.consumers, command.token, consumer)
    if channel.turn == NULL:
        channel.turn = consumer.next = consumer.prev = consumer
    else:
        consumer.next = channel.turn
        consumer.prev = channel.turn.prev
        channel.turn.prev.next = consumer
        channel.turn.prev = consumer
    channel.touched_ms = core.wall_ms
    channel_room(core, channel, True)
    channel_activate(core, channel)
    if command.kind == LEASE:
        _open_pull(core, consumer, &fields)
    else:
        _open_stream(core, consumer, command, &fields)


cdef void _open_pull(Core* core, Consumer* consumer, Fields* fields) noexcept nogil:
    cdef uint64_t wait_ms = fields.number[4]
    cdef Channel* channel = consumer.channel
    consumer.kind = PULL
    consumer.max_batch = <uint32_t> fields.number[3] if fields.number[3] else 1
    channel.waiting_pulls += 1
    if wait_ms > WAIT_MS_MAX:
        wait_ms = WAIT_MS_MAX
    # What is ready is taken at once, so that a call that doesn't wait never misses it.
    if channel.ready and consumer_fill(core, consumer, consumer.max_batch):
        return
    if wait_ms == 0:
        pull_answer(core, consumer)
        return
    timer_set(&core.timers, &consumer.timer, core.mono_ns + <int64_t> wait_ms * 1000000)


cdef void _open_stream(Core* core, Consumer* consumer, Command* command, Fields* fields) noexcept nogil:
    cdef Buffer payload
    cdef Buffer opened
    consumer.max_in_flight = <uint32_t> fields.number[3] if fields.number[3] else MAX_IN_FLIGHT
    consumer.limit = consumer.max_in_flight
    consumer.channel.consumers += 1
    buffer_init(&payload)
    if command.kind == CONSUME_OPEN:
        consumer.kind = STREAM
        consumer.max_batch = <uint32_t> fields.number[4] if fields.number[4] else 1
        consumer.batched = consumer.max_batch > 1
    else:
        consumer.kind = SESSION_STREAM
        if fields.number[4] and fields.number[4] < consumer.max_in_flight:
            consumer.limit = <uint32_t> fields.number[4]
        buffer_init(&opened)
        put_number_field(&opened, 1, consumer.token)
        put_nested(&payload, 1, &opened)
        free(opened.data)
    answer(core, command.token, OK, &payload, False)


cdef void _consumer_command(Core* core, Command* command) noexcept nogil:
    cdef Consumer* consumer = <Consumer*> map64_get(&core.consumers, command.token)
    cdef Delivery* delivery
    if consumer == NULL:                # it ended meanwhile; the edge has been told
        if command.kind == CANCEL and command.length:
            leases_return(core, command)
        return
    if command.kind == SESSION:
        session_frame(core, consumer, command)
    elif command.kind == WRITTEN:
        delivery = consumer.first
        if delivery != NULL and delivery.sent:
            consumer.first = delivery.next
            if consumer.first == NULL:
                consumer.last = NULL
            consumer.unwritten -= 1
            delivery_free(core, delivery)
            channel_room(core, consumer.channel, True)
            if consumer.channel.ready:
                channel_activate(core, consumer.channel)
    else:                               # CONSUMER_CLOSE, CANCEL
        consumer_close(core, consumer, command.length > 0)


cdef bint _run(Core* core, Command* command) noexcept nogil:
    """Carry one command out; False when it was kept for later."""
    cdef int kind = command.kind
    if ENQUEUE <= kind <= ENQUEUE_ATOMIC:
        enqueue(core, command)          # owned by the pass until it is answered
        return False
    if ACK <= kind <= EXTEND_LEASE:
        settle(core, command)
    elif kind == LEASE or kind == CONSUME_OPEN or kind == SESSION_OPEN:
        _open_consumer(core, command)
    elif kind == SESSION or kind == WRITTEN or kind == CONSUMER_CLOSE or kind == CANCEL:
        _consumer_command(core, command)
    elif kind == PEEK_MESSAGES or kind == REDRIVE_MOVE:
        page_begin(core, command)       # it has its turn later in this pass
        return False
    elif kind == DECIDE:
        decide(core, command)
    elif kind == GET_STATS or kind == LIST_QUEUES or kind == LIST_CHANNELS or kind == EXPLAIN_KEY:
        stats(core, command)
    elif kind == METRICS:
        metrics(core, command)
    else:
        admin(core, command)
    return True


cdef bint _drain(Core* core) noexcept nogil:
    """True when there may be more in the mailbox."""
    cdef Command* command = core.postponed
    cdef Command* following
    cdef uint32_t count = 0
    cdef uint32_t messages = 0
    core.postponed = NULL
    if command == NULL:
        command = mailbox_take(core.mailbox, COMMANDS_PER_PASS_MAX)
    while command != NULL:
        if (command.kind == DELETE_QUEUE or command.kind == DELETE_CHANNEL) and count:
            # What this pass holds of the queue is half built: written first, then deleted.
            core.postponed = command
            core.counters.commands += count
            return True
        following = command.next
        count += 1
        messages += command.count
        if _run(core, command):
            command_free(command)
        command = following
    core.counters.commands += count
    return count == COMMANDS_PER_PASS_MAX


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
    cdef uint32_t fired = 0
    while fired < TIMERS_PER_PASS_MAX:
        timer = timers_pop_due(&core.timers, core.mono_ns)
        if timer == NULL:
            return
        fired += 1
        if timer.kind == TIMER_LEASE:
            lease_expired(core, <Lease*> timer)
        elif timer.kind == TIMER_DELAY:
            _delay_over(core, <Delay*> timer)
        elif timer.kind == TIMER_BUCKET:
            bucket_wake(core, <ThrottleKey*> (<char*> timer - <size_t> &(<ThrottleKey*> NULL).timer))
        elif timer.kind == TIMER_PULL:
            pull_answer(core, <Consumer*> timer)
        elif timer.kind == TIMER_EXPIRY:
            message_expired(core, <Extra*> timer)
        elif timer.kind == TIMER_HOUSEKEEPING:
            housekeeping(core)


cdef void _fire_housekeeping(Core* core) noexcept nogil:
    """While writes are held nothing else runs, but the disk is looked at, or it would never end."""
    if core.housekeeping.due_ns <= core.mono_ns:
        timer_cancel(&core.timers, &core.housekeeping)
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
    """Write the pass: the settles, then the frames. 0, or why not."""
    cdef int status = STORE_OK
    if core.disk_level == DISK_CRITICAL:
        # One more append could meet a full disk, and RocksDB aborts on that.
        return REFUSED_DISK_FULL
    if batch_count(core.settles):
        status = store_write(&core.store, core.settles, &core.error)
        if status == STORE_OK:
            batch_clear(core.settles)
    if status == STORE_OK and batch_count(core.enqueues):
        status = store_write(&core.store, core.enqueues, &core.error)
        if status == STORE_OK:
            batch_clear(core.enqueues)
    if status == STORE_OK:
        return 0
    if status == STORE_DAMAGED or status == STORE_FAILED:
        core.sync_failed = True         # the engine writes no more until it is opened anew; see commit
    core.counters.stalls += 1
    return REFUSED_STALLED if status == STORE_STALLED else REFUSED_DISK_FULL


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
    _buckets_flush(core)
    if core.stored != NULL and not core.held:
        if core.wall_ms > <int64_t> core.id_ms:     # moved messages bring their ids along, and move time on too
            core.id_ms, core.id_sequence = <uint64_t> core.wall_ms, 0
        meta_record_put(core, b"id", core.id_ms)
    refused = _write(core)
    if refused == REFUSED_STALLED:
        if not core.held:
            core.held_since_ns = core.mono_ns
        if core.mono_ns - core.held_since_ns < STALL_NS_MAX:
            core.held = True
            return
    enqueue_written(core, refused)
    if refused:
        batch_clear(core.enqueues)
    core.held = refused != 0 and batch_count(core.settles) > 0
    if core.held:
        return                          # answers wait until the batch is written
    answers_written(core)
    if core.sync_wanted:
        core.sync_wanted = False
        fila_store(&core.wanted, core.epoch)
        core.epoch += 1
        core.counters.epochs += 1


cdef bint commit(Core* core) noexcept nogil:
    """Runs on the commit thread. What was written before `wanted` was read is on disk when it returns."""
    cdef StoreError error
    cdef uint64_t wanted = fila_load(&core.wanted)
    cdef int status
    if wanted <= fila_load(&core.durable):
        return False
    status = store_sync(&core.store, &error)
    if status == STORE_FULL:
        return False                    # the engine has stopped writing and resumes by itself when there is room
    if status != STORE_OK:
        core.sync_failed = True         # nothing can be promised any more; the thread's owner stops the server
        return False
    fila_store(&core.durable, wanted)
    core.counters.syncs += 1
    return True


cdef void sync_took(Core* core, int64_t ns) noexcept nogil:
    cdef uint64_t us = <uint64_t> ns // 1000
    cdef int bits = 0
    core.counters.sync_us_sum += us
    while us and bits < 31:
        us >>= 1
        bits += 1
    core.counters.sync_us[bits] += 1


cdef int64_t pass_(Core* core, int64_t mono_ns, int64_t wall_ms) noexcept nogil:
    cdef bint more = False
    cdef int64_t next_ns
    core.mono_ns = mono_ns if mono_ns > core.mono_ns else core.mono_ns
    core.mono_ms = <uint32_t> (core.mono_ns // 1000000)
    core.wall_ms = wall_ms
    core.counters.passes += 1
    answers_durable(core, fila_load(&core.durable))
    if core.held:
        _fire_housekeeping(core)
        _finish(core)
        if core.held:
            return core.mono_ns + HELD_RETRY_NS
    more = _drain(core)
    _fire(core)
    deliveries_loaded(core)
    if core.unasked != NULL:
        failures_loaded(core)
    if core.pages != NULL and pages_turn(core):
        more = True
    if core.rebuilding:
        _rebuild(core)
        more = True
    deliver(core)
    _finish(core)
    if core.held:                       # what is not on disk yet can't be read back from there
        return core.mono_ns + HELD_RETRY_NS
    bodies_evict(core)
    if more or core.active != NULL:
        return core.mono_ns
    next_ns = timers_next(&core.timers)
    return next_ns
