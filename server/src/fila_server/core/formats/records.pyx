"""Keys are big-endian numbers, so that their order is the order of offsets; values are varints behind a
version byte. A record is written into the pass's batch and nowhere else.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset, strlen

from fila_server.core.state.kinds cimport DONE
from fila_server.core.state.paths cimport frame_of, frame_offset
from fila_server.core.state.pending cimport Known
from fila_server.core.state.state cimport Entry
from fila_server.core.storage.families cimport (
    AUDIT, DEDUP, FRAMES, INDEX, KEPT, KEYS, LEASES, META, QUEUES, SETTLED, STATES,
)
from fila_server.core.storage.store cimport batch_delete, batch_delete_range, batch_put, batch_put_parts
from fila_server.core.structures.buffer cimport (
    Buffer, put_bytes, put_u32be, put_u64be, put_u8, put_varint, put_zigzag, write_u64be,
)

cdef enum:
    ROUTINGS_REMEMBERED = 64
    DEDUP_VERSION = 2
    DEDUP_VERSION_LASTING = 3
    PREFIX_BYTES_MAX = 288          # of a schedule, before its name


cdef inline void _key16(char* key, uint64_t a, uint64_t b) noexcept nogil:
    write_u64be(key, a)
    write_u64be(key + 8, b)


cdef inline void _key24(char* key, uint64_t a, uint64_t b, uint64_t c) noexcept nogil:
    write_u64be(key, a)
    write_u64be(key + 8, b)
    write_u64be(key + 16, c)


# --- frames --------------------------------------------------------------------------------

cdef void _put_routing(Buffer* b, Entry* entry) noexcept nogil:
    put_varint(b, entry.key.text.length)
    put_bytes(b, entry.key.text.bytes, entry.key.text.length)
    put_varint(b, entry.key.weight)
    put_varint(b, entry.cost_bits)
    if entry.set == NULL:
        put_varint(b, 0)
    else:                               # the set's own text: length-prefixed names
        put_varint(b, entry.set.text.length)
        put_bytes(b, entry.set.text.bytes, entry.set.text.length)


cdef uint8_t _flags(Frame* frame, const Times* times) noexcept nogil:
    cdef uint8_t flags = WITH_TIMES if times != NULL else 0
    cdef uint32_t i
    if frame.own_ids != NULL:
        flags |= WITH_OWN_IDS
    if frame.only:
        flags |= WITH_ONLY
    for i in range(frame.count if times != NULL else 0):
        if times[i].replaces:
            flags |= WITH_REPLACES
    return flags


cdef void frame_record_put(
        Core* core, rocksdb_writebatch_t* batch, Frame* frame, const char* bytes, uint32_t length,
        const Times* times) noexcept nogil:
    """Messages that share their routing share its text: a message costs 4 to 6 bytes here."""
    cdef char key[16]
    cdef Buffer* b = &core.tail
    cdef Entry* remembered[ROUTINGS_REMEMBERED]
    cdef uint32_t number[ROUTINGS_REMEMBERED]
    cdef Entry* entry
    cdef uint64_t hash
    cdef uint32_t i, place, routings = 0, at = 0
    cdef uint8_t flags = _flags(frame, times)
    memset(remembered, 0, sizeof(remembered))
    b.length = 0
    put_u8(b, VERSION)
    put_u8(b, flags)
    put_varint(b, frame.count)
    put_u64be(b, frame.id_high)
    put_u64be(b, frame.id_low)
    put_varint(b, <uint64_t> frame.appended_ms)
    put_varint(b, length)
    if flags & WITH_ONLY:
        put_varint(b, frame.only)
    for i in range(frame.count):
        entry = &frame.entries[i]
        hash = (<uint64_t> entry.key >> 4) * 31 + (<uint64_t> entry.set >> 4) + entry.cost_bits
        place = <uint32_t> (hash % ROUTINGS_REMEMBERED)
        if (
            remembered[place] != NULL and remembered[place].key == entry.key
            and remembered[place].set == entry.set and remembered[place].cost_bits == entry.cost_bits
        ):
            put_varint(b, number[place] + 1)
        else:                           # 0: a new routing follows
            put_varint(b, 0)
            _put_routing(b, entry)
            remembered[place] = entry
            number[place] = routings
            routings += 1
        put_varint(b, entry.at - at)
        put_varint(b, entry.length)
        at = entry.at + entry.length
        put_zigzag(b, entry.enqueued_delta_ms)
        if flags & WITH_TIMES:
            put_varint(b, <uint64_t> times[i].deliver_at_ms)
            put_varint(b, <uint64_t> times[i].expires_ms)
        if flags & WITH_REPLACES:
            put_varint(b, times[i].replaces)
        if flags & WITH_OWN_IDS:
            put_u64be(b, frame.own_ids[i].id_high)
            put_u64be(b, frame.own_ids[i].id_low)
            put_varint(b, frame.own_ids[i].offset - frame.first_offset)
            put_varint(b, <uint64_t> frame.own_ids[i].enqueued_ms)
            put_varint(b, <uint64_t> frame.own_ids[i].appended_ms)
    _key16(key, frame.queue.number, frame.first_offset)
    batch_put(core.store, batch, FRAMES, key, 16, bytes, length)
    batch_put(core.store, batch, INDEX, key, 16, b.data, b.length)


cdef void frame_record_delete(Core* core, Frame* frame) noexcept nogil:
    cdef char key[16]
    _key16(key, frame.queue.number, frame.first_offset)
    batch_delete(core.store, core.settles, FRAMES, key, 16)
    batch_delete(core.store, core.settles, INDEX, key, 16)


# --- what a channel is done with -----------------------------------------------------------

cdef void settled_record_put(Core* core, Share* share) noexcept nogil:
    cdef char key[24]
    cdef Buffer* b = &core.tail
    cdef uint32_t i, count = share.frame.count
    cdef uint8_t byte = 0
    b.length = 0
    put_u8(b, VERSION_COUNTED)
    for i in range(count):
        if share.slots[i].state == DONE:
            byte |= <uint8_t> (1 << (i & 7))
        if i & 7 == 7 or i == count - 1:
            put_u8(b, byte)
            byte = 0
    put_u32be(b, count)
    _key24(key, share.frame.queue.number, share.channel.number, share.frame.first_offset)
    batch_put(core.store, core.settles, SETTLED, key, 24, b.data, b.length)
    share.recorded = True


cdef void settled_record_delete(
        Core* core, uint64_t queue, uint64_t channel, uint64_t first_offset) noexcept nogil:
    cdef char key[24]
    _key24(key, queue, channel, first_offset)
    batch_delete(core.store, core.settles, SETTLED, key, 24)


# --- leases --------------------------------------------------------------------------------

cdef void lease_record_put(
        Core* core, Queue* queue, Channel* channel, Lease** leases, uint32_t count) noexcept nogil:
    """One record a frame sent: lease ids run on from the first, expiry is the same for all. The second
    version names the consumer whose session says what it has begun; of the first, all leases begin on
    delivery."""
    cdef char key[24]
    cdef Buffer* b = &core.tail
    cdef uint32_t i
    cdef uint64_t offset
    cdef uint64_t consumer = leases[0].group.consumer
    b.length = 0
    put_u8(b, VERSION_TRACKED if consumer else VERSION)
    if consumer:
        put_varint(b, consumer)
    put_varint(b, <uint64_t> leases[0].expires_ms)
    put_varint(b, <uint64_t> leases[0].leased_ms)
    put_varint(b, count)
    for i in range(count):
        offset = frame_offset(frame_of(leases[i].slot), leases[i].slot.index)
        put_varint(b, offset)
    _key24(key, queue.number, channel.number, leases[0].lease_id)
    batch_put(core.store, core.settles, LEASES, key, 24, b.data, b.length)


cdef void lease_marks_put(Core* core, LeaseGroup* group) noexcept nogil:
    cdef char key[24]
    cdef Buffer* b = &core.tail
    b.length = 0
    put_u8(b, VERSION)
    put_varint(b, <uint64_t> group.begun_until_ms)
    put_varint(b, group.count)
    put_bytes(b, group.marks, (group.count + 3) >> 2)
    _key24(key, group.queue_number | MARKS_OF, group.channel_number, group.first_lease_id)
    batch_put(core.store, core.settles, LEASES, key, 24, b.data, b.length)


cdef void lease_marks_delete(
        Core* core, uint64_t queue, uint64_t channel, uint64_t first_lease_id) noexcept nogil:
    lease_record_delete(core, queue | MARKS_OF, channel, first_lease_id)


cdef void lease_extension_delete(Core* core, LeaseGroup* group, uint64_t lease_id) noexcept nogil:
    lease_record_delete(core, group.queue_number | EXTENSION_OF, group.channel_number, lease_id)


cdef void lease_extension_put(Core* core, Lease* lease) noexcept nogil:
    cdef char key[24]
    cdef Buffer* b = &core.tail
    b.length = 0
    if lease.consumer == NULL and lease.group.consumer:     # which has let go of it
        put_u8(b, VERSION_TRACKED)
        put_varint(b, 0)
    else:
        put_u8(b, VERSION)
    put_varint(b, <uint64_t> lease.expires_ms)
    _key24(key, lease.group.queue_number | EXTENSION_OF, lease.group.channel_number, lease.lease_id)
    batch_put(core.store, core.settles, LEASES, key, 24, b.data, b.length)


cdef void lease_record_delete(
        Core* core, uint64_t queue, uint64_t channel, uint64_t first_lease_id) noexcept nogil:
    cdef char key[24]
    _key24(key, queue, channel, first_lease_id)
    batch_delete(core.store, core.settles, LEASES, key, 24)


# --- states (state_records.pyx) --------------------------------------------------------------

cdef void state_put(
        Core* core, uint64_t queue, uint64_t channel, uint64_t offset, const Buffer* b) noexcept nogil:
    cdef char key[24]
    _key24(key, queue, channel, offset)
    batch_put(core.store, core.settles, STATES, key, 24, b.data, b.length)


cdef void state_delete(Core* core, uint64_t queue, uint64_t channel, uint64_t offset) noexcept nogil:
    cdef char key[24]
    _key24(key, queue, channel, offset)
    batch_delete(core.store, core.settles, STATES, key, 24)


# --- queues, channels, keys ------------------------------------------------------------------

cdef void _put_twice(Core* core, const char* key, size_t key_bytes, Buffer* b) noexcept nogil:
    """Families are different files. SETTLED because whatever deletes
    a queue or channel deletes its range there.

    Both copies would lie in one block of the log, so they are written apart once more."""
    batch_put(core.store, core.settles, QUEUES, key, key_bytes, b.data, b.length)
    batch_put(core.store, core.settles, SETTLED, key, key_bytes, b.data, b.length)
    batch_put(core.store, core.apart, QUEUES, key, key_bytes, b.data, b.length)
    batch_put(core.store, core.apart, SETTLED, key, key_bytes, b.data, b.length)


cdef void queue_record_put(Core* core, Queue* queue) noexcept nogil:
    cdef char key[8]
    cdef Buffer* b = &core.tail
    b.length = 0
    put_u8(b, VERSION)
    put_varint(b, queue.text.length)
    put_bytes(b, queue.text.bytes, queue.text.length)
    put_varint(b, <uint64_t> queue.created_ms)
    put_varint(b, queue.offset_reserved)
    put_varint(b, queue.dlq.number if queue.dlq != NULL else 0)
    put_u8(b, (1 if queue.is_dlq else 0) | (2 if queue.owns_dlq else 0))
    put_varint(b, queue.config.length)
    put_bytes(b, queue.config.data, queue.config.length)
    put_varint(b, <uint64_t> queue.appended_ms)
    write_u64be(key, queue.number)
    _put_twice(core, key, 8, b)


cdef void channel_record_put(Core* core, Channel* channel) noexcept nogil:
    cdef char key[16]
    cdef Buffer* b = &core.tail
    b.length = 0
    put_u8(b, VERSION)
    put_varint(b, channel.text.length)
    put_bytes(b, channel.text.bytes, channel.text.length)
    put_varint(b, channel.start_offset)
    put_varint(b, <uint64_t> channel.created_ms)
    put_varint(b, channel.birth)
    put_varint(b, channel.log_below)
    put_varint(b, channel.idle_after_ms)
    _key16(key, channel.queue.number, channel.number)
    _put_twice(core, key, 16, b)


cdef void _delete_prefix(Core* core, int family, const char* prefix, size_t length) noexcept nogil:
    _delete_prefix_in(core, core.settles, family, prefix, length)


cdef void _delete_prefix_in(
        Core* core, rocksdb_writebatch_t* batch, int family, const char* prefix,
        size_t length) noexcept nogil:
    """Everything whose key starts with these big-endian numbers: up to the number after."""
    cdef char end[PREFIX_BYTES_MAX]
    cdef size_t i = length
    memcpy(end, prefix, length)
    while i > 0:
        i -= 1
        end[i] = <char> (<uint8_t> end[i] + 1)
        if end[i] != 0:
            break
    batch_delete_range(core.store, batch, family, prefix, length, end, length)


cdef void channel_records_delete(Core* core, Channel* channel) noexcept nogil:
    cdef char key[16]
    _key16(key, channel.queue.number, channel.number)
    batch_delete(core.store, core.settles, QUEUES, key, 16)
    _delete_prefix(core, SETTLED, key, 16)
    _delete_prefix(core, LEASES, key, 16)
    _delete_prefix(core, STATES, key, 16)
    # what was written apart in this pass must not bring it back
    batch_delete(core.store, core.apart, QUEUES, key, 16)
    batch_delete(core.store, core.apart, SETTLED, key, 16)
    _key16(key, channel.queue.number | EXTENSION_OF, channel.number)
    _delete_prefix(core, LEASES, key, 16)
    _key16(key, channel.queue.number | MARKS_OF, channel.number)
    _delete_prefix(core, LEASES, key, 16)


cdef void queue_records_delete(Core* core, Queue* queue) noexcept nogil:
    cdef char key[8]
    write_u64be(key, queue.number)
    _delete_prefix(core, QUEUES, key, 8)
    _delete_prefix(core, FRAMES, key, 8)
    _delete_prefix(core, INDEX, key, 8)
    _delete_prefix(core, SETTLED, key, 8)
    _delete_prefix(core, LEASES, key, 8)
    _delete_prefix(core, STATES, key, 8)
    _delete_prefix(core, KEYS, key, 8)
    _delete_prefix(core, DEDUP, key, 8)
    _delete_prefix_in(core, core.apart, QUEUES, key, 8)
    _delete_prefix_in(core, core.apart, SETTLED, key, 8)
    write_u64be(key, queue.number | EXTENSION_OF)
    _delete_prefix(core, LEASES, key, 8)
    write_u64be(key, queue.number | MARKS_OF)
    _delete_prefix(core, LEASES, key, 8)


cdef void _text_key(Buffer* b, uint64_t queue, const char* text, uint32_t length) noexcept nogil:
    b.length = 0
    put_u64be(b, queue)
    put_bytes(b, text, length)


cdef void key_value_put(
        Core* core, rocksdb_writebatch_t* batch, Key* key, const char* value, size_t length) noexcept nogil:
    _text_key(&core.tail, key.queue.number, key.text.bytes, key.text.length)
    batch_put(core.store, batch, KEYS, core.tail.data, core.tail.length, value, length)
    key.recorded = True


cdef void key_record_delete(Core* core, Key* key) noexcept nogil:
    _text_key(&core.tail, key.queue.number, key.text.bytes, key.text.length)
    batch_delete(core.store, core.settles, KEYS, core.tail.data, core.tail.length)
    key.recorded = False


cdef void dedup_record_put(Core* core, rocksdb_writebatch_t* batch, Queue* queue, Dedup* row) noexcept nogil:
    cdef char value[DEDUP_BYTES_LASTING]
    cdef Known* known = &row.known
    value[0] = DEDUP_VERSION_LASTING if known.lasts else DEDUP_VERSION
    memcpy(value + 1, &known.id_high, 8)
    memcpy(value + 9, &known.id_low, 8)
    memcpy(value + 17, &known.offset, 8)
    memcpy(value + 25, &known.expires_ms, 8)
    memcpy(value + 33, &known.began_ms, 8)
    memcpy(value + DEDUP_BYTES, &known.first_ms, 8)
    memcpy(value + DEDUP_BYTES + 8, &known.before, 8)
    _text_key(&core.tail, queue.number, row.text.bytes, row.text.length)
    batch_put(
        core.store, batch, DEDUP, core.tail.data, core.tail.length, value,
        DEDUP_BYTES_LASTING if known.lasts else DEDUP_BYTES)


cdef void dedup_record_delete(Core* core, Queue* queue, Dedup* row) noexcept nogil:
    _text_key(&core.tail, queue.number, row.text.bytes, row.text.length)
    batch_delete(core.store, core.settles, DEDUP, core.tail.data, core.tail.length)


cdef void meta_record_put(Core* core, const char* name, uint64_t value) noexcept nogil:
    """Twice, in two files; its name is shorter than any key of
    SETTLED, and no queue's number begins like it."""
    cdef char bytes[9]
    bytes[0] = VERSION
    write_u64be(bytes + 1, value)
    batch_put(core.store, core.settles, META, name, strlen(name), bytes, 9)
    batch_put(core.store, core.settles, SETTLED, name, strlen(name), bytes, 9)


cdef void audit_record_put(Core* core, Slice what) noexcept nogil:
    cdef char name[8]
    cdef char head[9]
    cdef const char* parts[2]
    cdef size_t sizes[2]
    head[0] = VERSION
    write_u64be(head + 1, <uint64_t> core.wall_ms)
    parts[0], parts[1] = head, what.at
    sizes[0], sizes[1] = 9, what.length
    write_u64be(name, core.audit_next)
    batch_put_parts(core.store, core.settles, AUDIT, name, 8, 2, parts, sizes)
    if core.audit_next > AUDIT_MAX:
        write_u64be(name, core.audit_next - AUDIT_MAX)
        batch_delete(core.store, core.settles, AUDIT, name, 8)
    core.audit_next += 1


cdef void reservation_record_put(Core* core, const char* name, uint64_t value) noexcept nogil:
    cdef char bytes[9]
    meta_record_put(core, name, value)
    bytes[0] = VERSION
    write_u64be(bytes + 1, value)
    batch_put(core.store, core.apart, META, name, strlen(name), bytes, 9)
    batch_put(core.store, core.apart, SETTLED, name, strlen(name), bytes, 9)


cdef void _schedule_key(Buffer* b, const char* kind, Queue* queue) noexcept nogil:
    b.length = 0
    put_bytes(b, kind, strlen(kind))
    put_bytes(b, queue.text.bytes, queue.text.length)
    put_u8(b, 0x2F)


cdef void schedule_due_put(Core* core, Queue* queue, Slice name, Slice record) noexcept nogil:
    _schedule_key(&core.tail, b"due/", queue)
    put_bytes(&core.tail, name.at, name.length)
    batch_put(core.store, core.enqueues, KEPT, core.tail.data, core.tail.length, record.at, record.length)


cdef void schedule_records_delete(Core* core, Queue* queue) noexcept nogil:
    _schedule_key(&core.tail, b"due/", queue)
    _delete_prefix(core, KEPT, core.tail.data, core.tail.length)
    _schedule_key(&core.tail, b"schedule/", queue)
    _delete_prefix(core, KEPT, core.tail.data, core.tail.length)
