"""Tables by offset, read in the order of keys. Later records count over earlier ones, and what a note
is not asked for at the end belongs to messages that are gone.
"""

from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.formats.records cimport (
    MARKS_OF, VERSION_COUNTED, VERSION_TRACKED, lease_extension_delete, lease_marks_delete,
    lease_record_delete,
)
from fila_server.core.formats.state_records cimport STATE_READY, VERSION_PLACED
from fila_server.core.index.ids cimport note_offset
from fila_server.core.index.leases cimport MARK_BEGUN, group_leave, group_new, mark_at
from fila_server.core.state.state cimport Queue
from fila_server.core.structures.buffer cimport (
    must_malloc, must_realloc, read_u32be, read_u64be, take_u8, take_varint,
)
from fila_server.core.structures.maps cimport map64_free, map64_get, map64_next, map64_put


cdef Notes* notes_of(Core* core, uint64_t queue_number, uint64_t channel_number) noexcept nogil:
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, queue_number)
    cdef Channel* channel
    if queue == NULL:
        return NULL
    channel = queue.channels
    while channel != NULL:
        if channel.number == channel_number:
            return <Notes*> channel.recovery
        channel = channel.next
    return NULL


cdef void _lease_ids_met(Core* core, uint64_t first, uint64_t count) noexcept nogil:
    if first + count > core.next_lease_id:
        core.next_lease_id = first + count


cdef void note_settled(Core* core, const char* key, const char* value, size_t length) noexcept nogil:
    cdef Notes* notes = notes_of(core, read_u64be(key), read_u64be(key + 8))
    cdef Bits* bits
    if notes == NULL or length < 2:
        return
    bits = <Bits*> must_malloc(sizeof(Bits) + length)
    bits.count = 0
    if <uint8_t> value[0] == VERSION_COUNTED and length > 5:
        length -= 4
        bits.count = read_u32be(value + length)
    bits.length = <uint32_t> (length - 1)
    memcpy(bits.bytes, value + 1, length - 1)
    note_offset(core, read_u64be(key), read_u64be(key + 16))
    map64_put(&notes.settled, read_u64be(key + 16), bits)


cdef void note_state(Core* core, const char* key, Cursor* c) noexcept nogil:
    cdef Notes* notes = notes_of(core, read_u64be(key), read_u64be(key + 8))
    cdef bint is_placed
    cdef State* state
    state = <State*> must_malloc(sizeof(State))
    is_placed = take_u8(c) == VERSION_PLACED
    state.kind = take_u8(c)
    state.attempts = <uint16_t> take_varint(c)
    state.last_lease = take_varint(c)
    state.a = take_varint(c)
    state.b = take_varint(c)
    state.place = take_varint(c) if is_placed else 0
    if not c.bad:
        _lease_ids_met(core, state.last_lease, 1)
        note_offset(core, read_u64be(key), read_u64be(key + 16))
    if c.bad or notes == NULL:
        core.counters.lost_acks += c.bad
        free(state)
        return
    map64_put(&notes.states, read_u64be(key + 16), state)


cdef void note_returned(Notes* notes, Slot* slot, State* state) noexcept nogil:
    cdef Returned* r
    cdef State* where
    if notes.returned_count == notes.returned_capacity:
        notes.returned_capacity = notes.returned_capacity * 2 + 64
        notes.returned = <Returned*> must_realloc(notes.returned, notes.returned_capacity * sizeof(Returned))
    r = &notes.returned[notes.returned_count]
    notes.returned_count += 1
    r.base, r.seq, r.slot = state.a, state.b, slot
    if state.kind == STATE_READY:
        return
    # It stands where another one stood, by that one's offset, or behind where its record says.
    where = <State*> map64_get(&notes.states, state.place)
    r.base, r.seq = state.place, 0
    if where != NULL and where.kind == STATE_READY:
        r.base, r.seq = where.a, where.b
        notes.channel.requeue_seq = max(notes.channel.requeue_seq, where.b)


cdef void _sort_by_lease(Notes* notes) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef LeaseNote* held
    while True:
        held = <LeaseNote*> map64_next(&notes.leases, &cursor)
        if held == NULL:
            return
        map64_put(&notes.by_lease, held.lease_id, held)


cdef void _note_extension(
        Core* core, Notes* notes, const char* key, int64_t expires_ms, bint left) noexcept nogil:
    cdef uint64_t lease_id = read_u64be(key + 16)
    cdef LeaseNote* held
    if notes.by_lease.count == 0:
        _sort_by_lease(notes)
    held = <LeaseNote*> map64_get(&notes.by_lease, lease_id)
    if held == NULL:
        lease_record_delete(core, read_u64be(key), read_u64be(key + 8), lease_id)
    else:
        held.expires_ms = expires_ms
        held.extended = True
        held.left = left


cdef void _note_group(
        Core* core, Notes* notes, LeaseGroup* group, Cursor* c, int64_t expires_ms,
        int64_t leased_ms) noexcept nogil:
    """The messages of a frame sent; what is left of it, its last lease takes along."""
    cdef LeaseNote* held
    cdef LeaseNote* older
    cdef uint64_t offset, i
    for i in range(group.count):
        offset = take_varint(c)
        if c.bad:
            core.counters.lost_acks += 1
            break
        _lease_ids_met(core, group.first_lease_id + i, 1)
        note_offset(core, group.queue_number, offset)
        held = <LeaseNote*> must_malloc(sizeof(LeaseNote))
        memset(held, 0, sizeof(LeaseNote))
        held.lease_id = group.first_lease_id + i
        held.expires_ms = expires_ms
        held.leased_ms = leased_ms
        held.group = group
        group.live += 1                 # counted down again for those that turn out not to be held
        older = <LeaseNote*> map64_get(&notes.leases, offset)
        if older != NULL:               # ascending lease ids: the later one counts
            note_unhold(core, older)
        map64_put(&notes.leases, offset, held)


cdef void note_lease(Core* core, const char* key, Cursor* c) noexcept nogil:
    """A frame sent; or, with the top bits of the queue's number set,
    one lease's extension or the frame's marks."""
    cdef uint64_t queue_number = read_u64be(key)
    cdef uint64_t first = read_u64be(key + 16)
    cdef bint extension = (queue_number >> 63) != 0
    cdef Notes* notes
    cdef LeaseGroup* group
    cdef uint64_t count
    cdef int64_t expires_ms, leased_ms
    cdef uint64_t consumer = 0
    cdef bint tracked
    notes = notes_of(core, queue_number & ~MARKS_OF, read_u64be(key + 8))
    _lease_ids_met(core, first, 1)
    if queue_number & MARKS_OF == MARKS_OF:
        if notes != NULL:
            _note_marks(core, notes, key, c)
        return
    tracked = take_u8(c) == VERSION_TRACKED
    if tracked:
        consumer = take_varint(c)
        if consumer and not c.bad:
            _lease_ids_met(core, consumer, 1)       # of the same series
    expires_ms = <int64_t> take_varint(c)
    if notes == NULL:
        if not extension:
            take_varint(c)
            count = take_varint(c)
            if not c.bad:
                _lease_ids_met(core, first, count)
        return
    if extension:                       # they sort behind all frames, so the lease is known by now
        _note_extension(core, notes, key, expires_ms, tracked)
        return
    leased_ms = <int64_t> take_varint(c)
    count = take_varint(c)
    if c.bad or count > <uint64_t> (c.end - c.at):      # an offset takes a byte at least
        core.counters.lost_acks += 1
        return
    group = group_new(notes.channel, first, consumer, leased_ms)
    group.count = <uint32_t> count
    _note_group(core, notes, group, c, expires_ms, leased_ms)


cdef void _note_marks(Core* core, Notes* notes, const char* key, Cursor* c) noexcept nogil:
    """They sort behind all frames and extensions, too."""
    cdef uint64_t first = read_u64be(key + 16)
    cdef LeaseGroup* group = NULL
    cdef LeaseNote* held
    cdef uint64_t count, i
    cdef int64_t begun_until_ms
    take_u8(c)
    begun_until_ms = <int64_t> take_varint(c)
    count = take_varint(c)
    if c.bad or c.end - c.at < <ptrdiff_t> ((count + 3) >> 2):
        core.counters.lost_acks += 1
        return
    if notes.by_lease.count == 0:
        _sort_by_lease(notes)
    for i in range(count):
        held = <LeaseNote*> map64_get(&notes.by_lease, first + i)
        if held == NULL:
            continue
        group = held.group
        held.marks = mark_at(<const uint8_t*> c.at, i)
        if held.marks & MARK_BEGUN and not held.extended:
            held.expires_ms = max(held.expires_ms, begun_until_ms)
    if group == NULL or group.count != count:
        lease_marks_delete(core, read_u64be(key) & ~MARKS_OF, read_u64be(key + 8), first)
        return
    group.begun_until_ms = begun_until_ms
    group.marks = <uint8_t*> must_malloc((count + 3) >> 2)
    memcpy(group.marks, c.at, (count + 3) >> 2)
    group.recorded = True


cdef void note_unhold(Core* core, LeaseNote* held) noexcept nogil:
    if held.extended:
        lease_extension_delete(core, held.group, held.lease_id)
    group_leave(core, held.group)
    free(held)


cdef void notes_free(Core* core, Channel* channel) noexcept nogil:
    cdef Notes* notes = <Notes*> channel.recovery
    cdef uint32_t cursor = 0
    cdef void* value
    if notes == NULL:
        return
    while True:
        value = map64_next(&notes.settled, &cursor)
        if value == NULL:
            break
        free(value)
    cursor = 0
    while True:
        value = map64_next(&notes.states, &cursor)
        if value == NULL:
            break
        free(value)
    cursor = 0
    while True:                         # leases of messages that are gone
        value = map64_next(&notes.leases, &cursor)
        if value == NULL:
            break
        note_unhold(core, <LeaseNote*> value)
    map64_free(&notes.settled)
    map64_free(&notes.states)
    map64_free(&notes.leases)
    map64_free(&notes.by_lease)
    free(notes.returned)
    free(notes)
    channel.recovery = NULL
