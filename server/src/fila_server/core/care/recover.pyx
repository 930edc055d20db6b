"""Reads the index, never a payload: a million messages take about a second.

    META, QUEUES, KEYS, CONFIG, BUCKETS, DEDUP    whole, small; SINKS, too
    SETTLED, LEASES, STATES                       into notes, one a channel; SETTLED repeats QUEUES
    INDEX                                         frame by frame, in offset order, looking at the notes

Order within a key is by position. A message that never failed stands where its offset says;
one that came back stands behind the offsets that were given when it did, so a merge of the
two by offset gives every message its old place.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcpy, memset

from fila_server.core.care.frame_record cimport frame_record_read
from fila_server.core.care.notes cimport (
    Bits, LeaseNote, Notes, Returned, State, note_lease, note_returned, note_settled, note_state, note_unhold,
    notes_free,
)
from fila_server.core.desk.runtime_config cimport config_apply
from fila_server.core.holdings.dedup cimport dedup_read, dedup_sort
from fila_server.core.holdings.delays cimport expiry_add, slot_delay
from fila_server.core.holdings.frames cimport frame_finish, frame_recount, frame_retained, share_new
from fila_server.core.holdings.groups cimport MARK_BEGUN, MARK_RETURNED
from fila_server.core.holdings.keys cimport key_intern, key_recover
from fila_server.core.holdings.leased_ids cimport leased_id_add
from fila_server.core.holdings.policy cimport queue_configure
from fila_server.core.holdings.slots cimport slot_count, slot_ready, slot_unplaced
from fila_server.core.life.consumers cimport consumer_recovered, lease_link
from fila_server.core.life.queues cimport channel_new, queue_new
from fila_server.core.records.records cimport (
    DEDUP_BYTES, DEDUP_BYTES_OF_BEFORE, KEY_BYTES, KEY_PACED_BYTES, STATE_DELAYED, STATE_READY,
    STATE_RETURNED, Times,
    channel_record_put, queue_record_put,
)
from fila_server.core.records.reservations cimport damage_stops, number_met, numbers_met, reservations_read
from fila_server.core.sinks.recovering cimport sink_read, sinks_recovered
from fila_server.core.state.directory cimport directory_add, directory_after, directory_first
from fila_server.core.state.kinds cimport LEASED, RECORDED, RETURNED, RETURNED_ONCE, TIMER_LEASE, UNPLACED
from fila_server.core.state.paths cimport channel_find, frame_enqueued_ms, frame_id, frame_offset, share_of
from fila_server.core.state.state cimport Channel, Flow, Frame, Key, Lease, Queue, Share, Slot, ThrottleKey
from fila_server.core.store.families cimport (
    BUCKETS, CONFIG, DEDUP, FRAMES, INDEX, KEYS, LEASES, QUEUES, SETTLED, SINKS, STATES,
)
from fila_server.core.store.past_damage cimport (
    DamageScan, damage_scan_begin, damage_scan_end, damage_scan_next, damage_scan_valid,
)
from fila_server.core.store.status cimport STORE_OK
from fila_server.core.store.store cimport batch_delete, scan_key, scan_value
from fila_server.core.structures.bucket cimport bucket_refill
from fila_server.core.structures.buffer cimport (
    Cursor, Slice, must_malloc, read_u64be, take_slice, take_u8, take_varint,
)
from fila_server.core.structures.maps cimport (
    Map64, map64_free, map64_get, map64_init, map64_put, map64_remove, textmap_get, textmap_next,
)
from fila_server.core.structures.timers cimport timer_set
from fila_server.core.turns.flows cimport flow_of, flow_reconsider

cdef enum:
    IN_RETURNED = -1                # position of a leased slot that _place_returned comes to


# --- small families --------------------------------------------------------------------------

cdef void _queue_read(Core* core, uint64_t number, Cursor* c, Map64* dlq_of) noexcept nogil:
    cdef Slice name
    cdef Slice config
    cdef Queue* queue
    cdef uint64_t created, reserved, dlq
    cdef uint8_t flags
    take_u8(c)
    name = take_slice(c, take_varint(c))
    created = take_varint(c)
    reserved = take_varint(c)
    dlq = take_varint(c)
    flags = take_u8(c)
    config = take_slice(c, take_varint(c))
    if c.bad:
        core.counters.lost_ranges += 1
        return
    if textmap_get(&core.queues, name.at, name.length) != NULL:
        return                          # a copy that damage kept alive; its name is another's now
    queue = queue_new(core, name, number)
    queue_configure(core, queue, config)
    queue.created_ms = <int64_t> created
    queue.offset_reserved = reserved
    queue.next_offset = reserved if reserved else 1
    queue.is_dlq = flags & 1
    queue.owns_dlq = flags & 2
    queue.appended_ms = max(<int64_t> take_varint(c), <int64_t> core.id_ms)
    if dlq:
        map64_put(dlq_of, number, <void*> dlq)


cdef void _channel_read(Core* core, uint64_t queue_number, uint64_t number, Cursor* c) noexcept nogil:
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, queue_number)
    cdef Slice name
    cdef uint64_t start, created
    cdef Channel* channel
    cdef Notes* notes
    take_u8(c)
    name = take_slice(c, take_varint(c))
    start = take_varint(c)
    created = take_varint(c)
    if c.bad:
        core.counters.lost_ranges += 1
    if c.bad or queue == NULL or channel_find(queue, name) != NULL:
        return                          # its queue may be found in the copy yet, and it, too
    channel = channel_new(core, queue, name, number, start)
    channel.created_ms = <int64_t> created
    if c.at < c.end:
        channel.birth = take_varint(c)
        channel.log_below = take_varint(c)
    if c.at < c.end:
        channel.idle_after_ms = take_varint(c)
    notes = <Notes*> must_malloc(sizeof(Notes))
    memset(notes, 0, sizeof(Notes))
    map64_init(&notes.settled)
    map64_init(&notes.leases)
    map64_init(&notes.by_lease)
    map64_init(&notes.states)
    channel.recovery = notes


cdef void _copy_read(Core* core, const char* key, size_t key_length, Cursor* c, Map64* dlq_of) noexcept nogil:
    """The second record of a queue or channel: it counts where the first is lost; both are written anew."""
    cdef uint64_t number = read_u64be(key)
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, number)
    cdef Channel* channel
    if key_length == 8 and queue == NULL:
        _queue_read(core, number, c, dlq_of)
    elif key_length == 8:
        queue.copied = True
    elif queue != NULL:
        number = read_u64be(key + 8)
        channel = queue.channels
        while channel != NULL and channel.number != number:
            channel = channel.next
        if channel != NULL:
            channel.copied = True
        else:
            _channel_read(core, queue.number, number, c)


cdef void _one(
        Core* core, int family, const char* key, size_t key_length, const char* value, size_t length,
        Map64* dlq_of) noexcept nogil:
    """Take in one record of a small family."""
    cdef Cursor c
    cdef Slice name
    cdef Slice text
    c.at, c.end, c.bad = value, value + length, False
    numbers_met(core, family, key, key_length)
    name.at, name.length = key, <uint32_t> key_length
    text.at, text.length = value, <uint32_t> length
    if family == QUEUES and key_length == 8:
        _queue_read(core, read_u64be(key), &c, dlq_of)
    elif family == QUEUES and key_length == 16:
        _channel_read(core, read_u64be(key), read_u64be(key + 8), &c)
    elif family == CONFIG:
        config_apply(core, name, text)
    elif family == BUCKETS and length == 17:
        _bucket_read(core, name, value)
    elif family == KEYS and key_length > 8 and (length == KEY_BYTES or length == KEY_PACED_BYTES):
        _key_read(core, key, key_length, value, length)
    elif family == DEDUP and key_length > 8 and (length == DEDUP_BYTES or length == DEDUP_BYTES_OF_BEFORE):
        dedup_read(core, key, key_length, value, length)
    elif family == SETTLED and (key_length == 8 or key_length == 16):
        _copy_read(core, key, key_length, &c, dlq_of)
    elif family == SETTLED and key_length == 24:
        note_settled(core, key, value, length)
    elif family == STATES and key_length == 24:
        note_state(core, key, &c)
    elif family == LEASES and key_length == 24:
        note_lease(core, key, &c)
    elif family == SINKS:
        sink_read(core, key, key_length, value, length)


cdef void _bucket_read(Core* core, Slice name, const char* value) noexcept nogil:
    """The level as it was, plus what has flowed in since; a clock set back adds nothing."""
    cdef ThrottleKey* bucket = <ThrottleKey*> textmap_get(&core.throttle_keys, name.at, name.length)
    cdef double level
    cdef int64_t wall_ms, away_ms
    if bucket == NULL or not bucket.limited:
        return
    memcpy(&level, value + 1, 8)
    memcpy(&wall_ms, value + 9, 8)
    away_ms = core.wall_ms - wall_ms
    if away_ms < 0:
        away_ms = 0
    if away_ms > 86400000:
        away_ms = 86400000
    bucket.bucket.level = level if level < bucket.bucket.burst else bucket.bucket.burst
    bucket.bucket.refilled_ns = core.mono_ns - away_ms * 1000000
    bucket_refill(&bucket.bucket, core.mono_ns, False)


cdef void _key_read(Core* core, const char* at, size_t length, const char* value, size_t size) noexcept nogil:
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, read_u64be(at))
    cdef Slice text
    if queue == NULL:
        return
    text.at, text.length = at + 8, <uint32_t> (length - 8)
    key_recover(core, key_intern(core, queue, text), value, size)
    # The reference taken here keeps it until its messages are in; _keys_release gives it back.


# --- messages ----------------------------------------------------------------------------------

cdef void _hold(Core* core, Slot* slot, LeaseNote* held) noexcept nogil:
    cdef Lease* lease = <Lease*> must_malloc(sizeof(Lease))
    cdef Channel* channel = share_of(slot).channel
    cdef int64_t left_ms = held.expires_ms - core.wall_ms
    memset(lease, 0, sizeof(Lease))
    # A wall clock that was set back must not make a lease longer than it ever was.
    if left_ms > held.expires_ms - held.leased_ms:
        left_ms = held.expires_ms - held.leased_ms
    left_ms = max(<int64_t> 0, left_ms)
    lease.timer.kind = TIMER_LEASE
    lease.lease_id = held.lease_id
    lease.slot = slot
    lease.group = held.group
    lease.leased_ms, lease.expires_ms, lease.extended = held.leased_ms, held.expires_ms, held.extended
    lease.due_ns = core.mono_ns + left_ms * 1000000
    lease.begun = held.group.consumer == 0 or held.left or held.marks & MARK_BEGUN
    channel.unbegun += not lease.begun
    if held.group.consumer and not held.left:
        lease_link(consumer_recovered(core, channel, held.group.consumer), lease)
    slot_count(core, slot, LEASED)
    slot.owner = lease
    map64_put(&core.leases, lease.lease_id, lease)
    if share_of(slot).frame.own_ids != NULL:
        leased_id_add(core, lease)
    timer_set(&core.timers, &lease.timer, lease.due_ns)
    flow_of(core, share_of(slot).frame.entries[slot.index].key, channel).in_flight += 1
    free(held)


cdef void _slot_read(
        Core* core, Notes* notes, Slot* slot, uint64_t offset, int64_t deliver_at_ms) noexcept nogil:
    """One message of one channel: leased, delayed, come back, or as it was enqueued (left for _place)."""
    cdef State* state = <State*> map64_get(&notes.states, offset)
    cdef LeaseNote* held = <LeaseNote*> map64_get(&notes.leases, offset)
    cdef Channel* channel = share_of(slot).channel
    if state != NULL:
        slot.attempts = state.attempts
        slot.marks |= RECORDED | (RETURNED_ONCE if state.kind == STATE_RETURNED else 0)
        if state.kind == STATE_READY and state.b > channel.requeue_seq:
            channel.requeue_seq = state.b
    if held != NULL:
        map64_remove(&notes.leases, offset)
        if held.marks & MARK_RETURNED:
            slot.marks |= RETURNED_ONCE
        elif state == NULL or held.lease_id > state.last_lease:
            _hold(core, slot, held)
            if state != NULL and state.kind == STATE_READY:
                slot.position = IN_RETURNED
                note_returned(notes, slot, state)
            return
        note_unhold(core, held)
    if state != NULL and state.kind == STATE_DELAYED:
        slot_delay(core, slot, <int64_t> state.a, <int64_t> state.b if state.b else INT64_MAX)
    elif state != NULL and state.kind == STATE_READY:
        note_returned(notes, slot, state)
        slot.state = RETURNED
    elif deliver_at_ms and offset >= channel.log_below:    # else there were a STATES record
        slot_delay(
            core, slot, deliver_at_ms, deliver_at_ms - frame_enqueued_ms(share_of(slot).frame, slot.index))


cdef void _frame_take(Core* core, Queue* queue, Frame* frame, Times* times) noexcept nogil:
    cdef Channel* channel = queue.channels
    cdef Share* share
    cdef Slot* slot
    cdef Notes* notes
    cdef Bits* bits
    cdef uint32_t i
    cdef uint64_t offset, id_high, id_low
    frame.revealed = True
    directory_add(&queue.directory, frame)
    queue.stored_bytes += frame.body_bytes
    if frame.appended_ms > queue.appended_ms:
        queue.appended_ms = frame.appended_ms
    offset = frame_offset(frame, frame.count - 1)
    if offset >= queue.next_offset:
        queue.next_offset = offset + 1
    for i in range(frame.count if frame.own_ids != NULL else 1):
        frame_id(frame, i, &id_high, &id_low)
        core.id_ms = max(core.id_ms, id_high >> 16)
    if times != NULL:
        for i in range(frame.count):
            if times[i].expires_ms:
                frame.has_expiries = True
                expiry_add(
                    core, queue, frame_offset(frame, i), times[i].expires_ms,
                    times[i].expires_ms - frame_enqueued_ms(frame, i))
    while channel != NULL:
        if frame.only and frame.only != channel.birth:
            channel = channel.next
            continue
        notes = <Notes*> channel.recovery
        bits = <Bits*> map64_get(&notes.settled, frame.first_offset)
        share = share_new(core, frame, channel)
        share.recorded = bits != NULL
        for i in range(frame.count):
            slot = &share.slots[i]
            offset = frame_offset(frame, i)
            if offset < channel.start_offset:
                continue
            if bits != NULL and (i >> 3) < bits.length and bits.bytes[i >> 3] >> (i & 7) & 1:
                continue
            share.remaining += 1
            slot.attempts = 0
            slot_unplaced(slot)
            _slot_read(core, notes, slot, offset, times[i].deliver_at_ms if times != NULL else 0)
        channel = channel.next


cdef int _by_place(const void* a, const void* b) noexcept nogil:
    cdef Returned* x = <Returned*> a
    cdef Returned* y = <Returned*> b
    if x.base != y.base:
        return -1 if x.base < y.base else 1
    return -1 if x.seq < y.seq else (1 if x.seq > y.seq else 0)


cdef void _place_one(Core* core, Slot* slot) noexcept nogil:
    """Ready, or leased: then it has its place for the case that it comes back."""
    cdef Channel* channel = share_of(slot).channel
    if slot.state == LEASED:
        slot.position = channel.next_position
        channel.next_position += 1
    else:
        slot_ready(core, slot, False)


cdef void _place_returned(Core* core, Notes* notes, uint64_t below) noexcept nogil:
    cdef Slot* slot
    while notes.returned_at < notes.returned_count and notes.returned[notes.returned_at].base < below:
        slot = notes.returned[notes.returned_at].slot
        notes.returned_at += 1
        _place_one(core, slot)


cdef void _place(Core* core, Queue* queue) noexcept nogil:
    """Give what is not delayed its place, in the order of each channel's positions; what is not leased is
    ready then. Frame by frame: a frame finds its channels at once, a channel its share of it by a walk."""
    cdef Channel* channel = queue.channels
    cdef Frame* frame = directory_first(&queue.directory)
    cdef Notes* notes
    cdef Share* share
    cdef Slot* slot
    cdef uint32_t i
    while channel != NULL:
        notes = <Notes*> channel.recovery
        qsort(notes.returned, notes.returned_count, sizeof(Returned), _by_place)
        channel = channel.next
    while frame != NULL:
        share = frame.shares
        while share != NULL:
            for i in range(frame.count if share.remaining else 0):
                slot = &share.slots[i]
                if slot.state == UNPLACED or slot.state == LEASED and slot.position == 0:
                    _place_returned(core, <Notes*> share.channel.recovery, frame_offset(frame, i))
                    _place_one(core, slot)
            share = share.next_of_frame
        frame = directory_after(&queue.directory, frame)
    channel = queue.channels
    while channel != NULL:
        _place_returned(core, <Notes*> channel.recovery, <uint64_t> -1)
        channel.placed_to = queue.next_offset - 1
        notes_free(core, channel)
        channel = channel.next


# --- all of it -----------------------------------------------------------------------------------

cdef int _gaps(Core* core, DamageScan* scan) noexcept nogil:
    """Damaged blocks were stepped over: counted, or the end of it where the owner wants that."""
    core.counters.lost_ranges += <uint64_t> scan.gaps
    core.counters.damaged_blocks += <uint64_t> scan.gaps
    damage_scan_end(scan)
    if scan.gaps > 0 and core.stop_on_damage:
        return damage_stops(core)
    return STORE_OK


cdef int _scan(Core* core, int family, Map64* dlq_of) noexcept nogil:
    cdef DamageScan scan
    cdef const char* key
    cdef const char* value
    cdef size_t key_length, length
    damage_scan_begin(&scan, &core.store, family)
    while damage_scan_valid(&scan):
        key = scan_key(scan.iterator, &key_length)
        value = scan_value(scan.iterator, &length)
        _one(core, family, key, key_length, value, length, dlq_of)
        damage_scan_next(&scan)
    return _gaps(core, &scan)


cdef int _scan_index(Core* core) noexcept nogil:
    cdef DamageScan scan
    cdef const char* key
    cdef const char* value
    cdef size_t key_length, length
    cdef Queue* queue = NULL
    cdef uint64_t orphan = 0
    cdef Frame* frame
    cdef Times* times
    damage_scan_begin(&scan, &core.store, INDEX)
    while damage_scan_valid(&scan):
        key = scan_key(scan.iterator, &key_length)
        value = scan_value(scan.iterator, &length)
        if key_length == 16:
            if queue == NULL or queue.number != read_u64be(key):
                queue = <Queue*> map64_get(&core.queues_by_number, read_u64be(key))
                number_met(core, read_u64be(key))
            if queue == NULL and orphan != read_u64be(key):
                orphan = read_u64be(key)    # its queue's record is lost, and so are its messages
                core.counters.lost_ranges += 1
            if queue != NULL:
                frame = frame_record_read(core, queue, read_u64be(key + 8), value, length, &times)
                if frame == NULL:
                    core.counters.lost_ranges += 1
                    batch_delete(&core.store, core.settles, INDEX, key, 16)
                    batch_delete(&core.store, core.settles, FRAMES, key, 16)
                else:
                    _frame_take(core, queue, frame, times)
                    free(times)
        damage_scan_next(&scan)
    return _gaps(core, &scan)


cdef void _settle_queue(Core* core, Queue* queue, Map64* dlq_of) noexcept nogil:
    cdef Channel* channel = queue.channels
    cdef Frame* frame
    cdef uint64_t dlq = <uint64_t> map64_get(dlq_of, queue.number)
    cdef uint32_t cursor = 0
    cdef Key* key
    cdef Flow* flow
    if dlq:
        queue.dlq = <Queue*> map64_get(&core.queues_by_number, dlq)
    if not queue.copied:
        queue_record_put(core, queue)
    while channel != NULL:
        if not channel.copied:
            channel_record_put(core, channel)
        channel = channel.next
    _place(core, queue)
    frame = directory_first(&queue.directory)
    while frame != NULL:
        frame_recount(core, frame)
        if frame.live == 0 and not frame_retained(core, frame):
            frame_finish(core, frame)
        frame = directory_after(&queue.directory, frame)
    dedup_sort(queue)
    while True:                         # the references that _key_read took
        key = <Key*> textmap_next(&queue.keys, &cursor)
        if key == NULL:
            break
        if key.recorded:
            key.refs -= 1
        flow = key.flows
        while flow != NULL:
            flow_reconsider(core, flow)
            flow = flow.next_of_key


cdef int recover_core(Core* core) noexcept nogil:
    # All queues and channels, before what belongs to them.
    cdef int[9] families = [QUEUES, SETTLED, CONFIG, BUCKETS, KEYS, DEDUP, STATES, LEASES, SINKS]
    cdef int i, status = STORE_OK
    cdef Map64 dlq_of
    cdef uint32_t cursor = 0
    cdef Queue* queue
    map64_init(&dlq_of)
    status = reservations_read(core)
    for i in range(9):
        if status == STORE_OK:
            status = _scan(core, families[i], &dlq_of)
    if status == STORE_OK:
        status = _scan_index(core)
    while status == STORE_OK:
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            sinks_recovered(core)
            break
        _settle_queue(core, queue, &dlq_of)
    core.number_reserved = core.next_number
    map64_free(&dlq_of)
    return status
