"""The record's positions are checked against the frame's bytes before any entry is made of them."""

from libc.stdint cimport INT64_MAX, UINT32_MAX, int64_t, uint32_t
from libc.stdlib cimport free, qsort
from libc.string cimport memset

from fila_server.core.consumers.joining cimport consumer_recovered
from fila_server.core.formats.index_record cimport (
    IndexEntry, IndexRecord, index_begin, index_is_whole, index_next,
)
from fila_server.core.formats.records cimport WITH_OWN_IDS, WITH_TIMES
from fila_server.core.formats.state_records cimport (
    STATE_DELAYED, STATE_HELD, STATE_READY, STATE_RETRY, STATE_RETURNED,
)
from fila_server.core.index.ages cimport frame_delayed
from fila_server.core.index.dedup cimport stands
from fila_server.core.index.delays cimport (
    expiry_add, replacing_add, slot_delay, slot_delay_retry, slot_hold,
)
from fila_server.core.index.frames cimport frame_free, frame_new, share_new
from fila_server.core.index.holders cimport lease_link
from fila_server.core.index.keys cimport key_intern
from fila_server.core.index.leases cimport MARK_BEGUN, MARK_RETURNED, leased_id_add
from fila_server.core.index.slots cimport slot_count, slot_ready, slot_unplaced
from fila_server.core.recovery.notes cimport (
    Bits, LeaseNote, Notes, Returned, State, note_returned, note_unhold, notes_free,
)
from fila_server.core.scheduling.flows cimport flow_of
from fila_server.core.scheduling.throttle cimport set_intern
from fila_server.core.scheduling.tokens cimport set_held
from fila_server.core.state.directory cimport directory_add, directory_after, directory_first
from fila_server.core.state.kinds cimport (
    BEGUN_ONCE, DELAYED, LEASED, RECORDED, RECORDED_RETURN, RETURNED, RETURNED_ONCE, TIMER_LEASE, UNPLACED,
)
from fila_server.core.state.paths cimport (
    bits_cost, entry_of, frame_enqueued_ms, frame_id, frame_offset, share_of,
)
from fila_server.core.state.pending cimport Dedup, OwnIds, Replacing
from fila_server.core.state.state cimport Channel, Delay, Entry, Lease, Share, Slot
from fila_server.core.structures.buffer cimport Cursor, Slice, must_malloc, read_u32be, take_slice
from fila_server.core.structures.maps cimport map64_get, map64_put, map64_remove
from fila_server.core.structures.timers cimport timer_set


cdef bint _set_routing(Core* core, Queue* queue, const IndexEntry* found, Entry* entry) noexcept nogil:
    cdef Slice names[16]
    cdef Cursor inner
    cdef uint32_t count = 0
    inner.at, inner.end, inner.bad = found.set.at, found.set.at + found.set.length, False
    while inner.at < inner.end and count < 16:
        if inner.end - inner.at < 4:
            return False
        names[count].length = read_u32be(inner.at)
        inner.at += 4
        names[count] = take_slice(&inner, names[count].length)
        if inner.bad:
            return False
        count += 1
    cdef uint32_t cost = bits_cost(found.cost_bits)
    if found.weight < 1 or found.weight > 1000 or found.cost_bits > UINT32_MAX:
        return False
    if cost < 1 or cost > 1000000000:
        return False
    entry.key = key_intern(core, queue, found.key)
    if not entry.key.recorded:          # a record of its own is newer than any frame
        entry.key.weight = <unsigned short> found.weight
    entry.cost_bits = <uint32_t> found.cost_bits
    entry.set = set_intern(core, names, count)
    return True


cdef void _share_routing(Entry* entry, Entry* bringer) noexcept nogil:
    entry.key = bringer.key
    entry.key.refs += 1
    entry.set = bringer.set
    if entry.set != NULL:
        entry.set.refs += 1
    entry.cost_bits = bringer.cost_bits


cdef bint _read_entries(Core* core, Frame* frame, IndexRecord* record, Times* times) noexcept nogil:
    cdef IndexEntry found
    cdef Entry* entry
    cdef uint32_t i = 0
    cdef bint good = True
    # the entry that brought it
    cdef uint32_t* routing_of = <uint32_t*> must_malloc(record.count * sizeof(uint32_t))
    while good and index_next(record, &found):
        entry = &frame.entries[i]
        if found.brings_routing:
            routing_of[found.routing] = i
            good = _set_routing(core, frame.queue, &found, entry)
        else:
            _share_routing(entry, &frame.entries[routing_of[found.routing]])
        entry.at, entry.length = found.at, found.length
        if entry.key != NULL:
            entry.key.stored_bytes += entry.length
        entry.enqueued_delta_ms = found.enqueued_delta_ms
        if times != NULL:
            times[i].deliver_at_ms, times[i].expires_ms = found.deliver_at_ms, found.expires_ms
            times[i].replaces = found.replaces
        if frame.own_ids != NULL:
            frame.own_ids[i].id_high, frame.own_ids[i].id_low = found.id_high, found.id_low
            frame.own_ids[i].offset = found.offset
            frame.own_ids[i].enqueued_ms = found.enqueued_ms
            frame.own_ids[i].appended_ms = found.appended_ms
        frame.live_bytes += entry.length
        i += 1
    free(routing_of)
    return good and index_is_whole(record)


cdef Frame* frame_record_read(
        Core* core, Queue* queue, uint64_t first_offset, const char* value, size_t length,
        Times** times) noexcept nogil:
    cdef IndexRecord record
    cdef Frame* frame
    times[0] = NULL
    if not index_begin(&record, first_offset, value, length) or record.body_bytes > UINT32_MAX:
        return NULL
    frame = frame_new(core, queue, record.count)
    frame.first_offset = first_offset
    frame.id_high, frame.id_low = record.id_high, record.id_low
    frame.appended_ms = record.appended_ms
    frame.body_bytes = <uint32_t> record.body_bytes
    frame.only = record.only
    if record.flags & WITH_OWN_IDS:
        frame.own_ids = <OwnIds*> must_malloc(record.count * sizeof(OwnIds))
        memset(frame.own_ids, 0, record.count * sizeof(OwnIds))
    if record.flags & WITH_TIMES:
        times[0] = <Times*> must_malloc(record.count * sizeof(Times))
    if _read_entries(core, frame, &record, times[0]):
        return frame
    free(times[0])
    times[0] = NULL
    frame_free(core, frame)
    return NULL


# --- frames taken into their queue's channels ------------------------------------------------
# Order within a key is by position. A message that never failed stands where its offset says; one that came
# back stands behind the offsets that were given when it did, so a merge of the two by offset gives every
# message its old place.

cdef enum:
    IN_RETURNED = -1                # position of a leased slot that _place_returned comes to


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
    lease.is_limited = entry_of(slot).set != NULL and not channel.queue.is_dlq
    if lease.is_limited:
        set_held(entry_of(slot).set)
    free(held)


cdef inline int64_t _left_ms(Core* core, int64_t end_ms, int64_t longest_ms) noexcept nogil:
    """What is left over a start, which knows the wall clock alone: where that was set back while the broker
    was down, no more than there ever was."""
    return min(end_ms - core.wall_ms, longest_ms)


cdef void _slot_read(
        Core* core, Notes* notes, Slot* slot, uint64_t offset, int64_t deliver_at_ms) noexcept nogil:
    """One message of one channel: leased, delayed, come back, or as it was enqueued (left for _place)."""
    cdef State* state = <State*> map64_get(&notes.states, offset)
    cdef LeaseNote* held = <LeaseNote*> map64_get(&notes.leases, offset)
    cdef Channel* channel = share_of(slot).channel
    if state != NULL:
        slot.attempts = state.attempts
        slot.marks |= RECORDED
        if state.kind == STATE_RETURNED:
            slot.marks |= RECORDED_RETURN | RETURNED_ONCE | (BEGUN_ONCE if state.a else 0)
        if state.kind == STATE_READY and state.b > channel.requeue_seq:
            channel.requeue_seq = state.b
        if state.place:
            map64_put(&channel.places, offset, <void*> state.place)
    if held != NULL:
        map64_remove(&notes.leases, offset)
        if held.marks & MARK_RETURNED:
            slot.marks |= RETURNED_ONCE
            if held.group.consumer == 0 or held.marks & MARK_BEGUN:
                slot.marks |= BEGUN_ONCE
        elif state == NULL or held.lease_id > state.last_lease:
            _hold(core, slot, held)
            if state != NULL and (state.kind == STATE_READY or state.place):
                slot.place.position = IN_RETURNED
                note_returned(notes, slot, state)
            return
        note_unhold(core, held)
    if state != NULL and state.kind == STATE_DELAYED:
        slot_delay(
            core, slot, <int64_t> state.a,
            _left_ms(core, <int64_t> state.a, <int64_t> state.b if state.b else INT64_MAX))
    elif state != NULL and state.kind == STATE_RETRY:
        slot_delay_retry(core, slot, <int64_t> state.a, _left_ms(core, <int64_t> state.a, <int64_t> state.b))
        if state.place:
            slot.place.position = IN_RETURNED
            note_returned(notes, slot, state)
    elif state != NULL and (state.kind == STATE_READY or state.place):
        note_returned(notes, slot, state)
        slot.state = RETURNED
    elif deliver_at_ms and offset >= channel.log_below:    # else there were a STATES record
        slot_delay(
            core, slot, deliver_at_ms,
            _left_ms(
                core, deliver_at_ms, deliver_at_ms - frame_enqueued_ms(share_of(slot).frame, slot.index)))
    if state != NULL and state.kind == STATE_HELD:
        slot_hold(core, slot, state.a)
        _note_replacing(core, share_of(slot).channel, offset, state.a)


cdef void _note_replacing(Core* core, Channel* channel, uint64_t offset, uint64_t before) noexcept nogil:
    """The first pass finds out what is left to do of it. What was in the log already when its channel started
    stands there for itself."""
    cdef Replacing replacing
    if before == 0 or offset < channel.log_below:
        return
    memset(&replacing, 0, sizeof(Replacing))
    replacing.queue_number, replacing.channel_number = channel.queue.number, channel.number
    replacing.offset, replacing.before = offset, before
    replacing_add(core, &replacing)


cdef void frame_take(Core* core, Queue* queue, Frame* frame, Times* times) noexcept nogil:
    cdef Channel* channel = queue.channels
    cdef Share* share
    cdef Slot* slot
    cdef Notes* notes
    cdef Bits* bits
    cdef uint32_t i
    cdef bint noted
    cdef int64_t longest_ms
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
            if times[i].deliver_at_ms:
                frame_delayed(core, frame, i, times[i].deliver_at_ms)
            if times[i].expires_ms:
                frame.has_expiries = True
                longest_ms = times[i].expires_ms - frame_enqueued_ms(frame, i)
                # not where the clock was far off when the message came: its time is not known
                expiry_add(
                    core, queue, frame_offset(frame, i), times[i].expires_ms,
                    _left_ms(core, times[i].expires_ms, longest_ms if longest_ms > 0 else INT64_MAX))
    while channel != NULL:
        if frame.only and frame.only != channel.birth:
            channel = channel.next
            continue
        notes = <Notes*> channel.recovery
        bits = <Bits*> map64_get(&notes.settled, frame.first_offset)
        share = share_new(core, frame, channel)
        share.recorded = bits != NULL
        # Of another count it is about another version of the frame, which a lost table brought to light: its
        # bits would call messages done that nobody has acked.
        if bits != NULL and bits.count and bits.count != frame.count:
            core.counters.lost_acks += 1
            bits = NULL
        noted = notes.states.count or notes.leases.count    # most messages have never been delivered
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
            if noted or times != NULL:
                _slot_read(core, notes, slot, offset, times[i].deliver_at_ms if times != NULL else 0)
            _note_replacing(core, channel, offset, times[i].replaces if times != NULL else 0)
        channel = channel.next


cdef void dedup_take(Core* core, Queue* queue) noexcept nogil:
    cdef Dedup* row = queue.dedup_oldest
    cdef Channel* channel
    while row != NULL:
        channel = queue.channels if row.known.before and stands(queue, row.known.before) else NULL
        while channel != NULL:
            _note_replacing(core, channel, row.known.offset, row.known.before)
            channel = channel.next
        row = row.next


cdef int _by_place(const void* a, const void* b) noexcept nogil:
    cdef Returned* x = <Returned*> a
    cdef Returned* y = <Returned*> b
    if x.base != y.base:
        return -1 if x.base < y.base else 1
    return -1 if x.seq < y.seq else (1 if x.seq > y.seq else 0)


cdef void _place_one(Core* core, Slot* slot) noexcept nogil:
    """Ready, or leased or to be retried: then it has its place for when it comes back."""
    cdef Channel* channel = share_of(slot).channel
    if slot.state == LEASED or slot.state == DELAYED:
        slot.place.position = channel.next_position
        channel.next_position += 1
    else:
        slot_ready(core, slot, False)


cdef void _place_returned(Core* core, Notes* notes, uint64_t below) noexcept nogil:
    cdef Slot* slot
    while notes.returned_at < notes.returned_count and notes.returned[notes.returned_at].base < below:
        slot = notes.returned[notes.returned_at].slot
        notes.returned_at += 1
        _place_one(core, slot)


cdef inline bint _comes_back(Slot* slot) noexcept nogil:
    return slot.state == LEASED or slot.state == DELAYED and (<Delay*> slot.owner).keeps_place


cdef void queue_place(Core* core, Queue* queue) noexcept nogil:
    """Frame by frame: a frame finds its channels at once, a channel its share of it by a walk."""
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
                if slot.state == UNPLACED or slot.place.position == 0 and _comes_back(slot):
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
