"""Reads the index, never a payload: a million messages take about a second.

    META, QUEUES, KEYS, CONFIG, BUCKETS, DEDUP    whole, small; SINKS, too
    SETTLED, LEASES, STATES                       into notes, one a channel; SETTLED repeats QUEUES
    INDEX                                         frame by frame, in offset order, looking at the notes
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memset

from fila_server.core.admin.limits cimport limit_recover
from fila_server.core.admin.runtime_config cimport config_apply
from fila_server.core.formats.key_records cimport key_record_is_known
from fila_server.core.formats.limit_records cimport bucket_record_read, clock_record_read
from fila_server.core.formats.records cimport (
    DEDUP_BYTES, DEDUP_BYTES_LASTING, DEDUP_BYTES_OF_BEFORE, LIMIT_NAMES, Times, channel_record_put,
    queue_record_put,
)
from fila_server.core.formats.reservations cimport damage_stops, number_met, numbers_met, reservations_read
from fila_server.core.index.dedup cimport dedup_read, dedup_sort
from fila_server.core.index.frames cimport frame_finish, frame_recount, frame_retained
from fila_server.core.index.keys cimport key_intern, key_recover
from fila_server.core.index.policy cimport queue_configure
from fila_server.core.index.schedules cimport schedule_recover
from fila_server.core.lifecycle.queues cimport channel_new, queue_new
from fila_server.core.recovery.frames cimport dedup_take, frame_record_read, frame_take, queue_place
from fila_server.core.recovery.notes cimport Notes, note_lease, note_settled, note_state
from fila_server.core.recovery.sinks cimport sink_read, sinks_recovered
from fila_server.core.scheduling.flows cimport flow_reconsider
from fila_server.core.scheduling.following cimport following_recovered, key_follows
from fila_server.core.scheduling.throttle cimport (
    limit_nearest, throttle_key_drop_if_idle, throttle_key_intern,
)
from fila_server.core.state.directory cimport directory_after, directory_first
from fila_server.core.state.paths cimport channel_find
from fila_server.core.state.state cimport Channel, Flow, Frame, Key, Queue, ThrottleKey
from fila_server.core.storage.families cimport (
    BUCKETS, CONFIG, DEDUP, FRAMES, INDEX, KEPT, KEYS, LEASES, QUEUES, SETTLED, SINKS, STATES, Store,
    only_returns,
)
from fila_server.core.storage.past_damage cimport (
    DamageScan, damage_scan_begin, damage_scan_end, damage_scan_from, damage_scan_next, damage_scan_valid,
)
from fila_server.core.storage.status cimport STORE_OK
from fila_server.core.storage.store cimport batch_delete, scan_key, scan_value
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc, put_bytes, read_u64be, take_slice,
    take_u8, take_varint,
)
from fila_server.core.structures.maps cimport (
    Map64, map64_free, map64_get, map64_init, map64_put, textmap_get, textmap_next,
)


# --- small families --------------------------------------------------------------------------

cdef struct QueueRecord:
    Slice name
    Slice config
    uint64_t created
    uint64_t reserved
    uint64_t dlq
    uint64_t appended
    uint8_t flags


cdef bint _queue_record_read(Core* core, Cursor* c, QueueRecord* record) noexcept nogil:
    take_u8(c)
    record.name = take_slice(c, take_varint(c))
    record.created = take_varint(c)
    record.reserved = take_varint(c)
    record.dlq = take_varint(c)
    record.flags = take_u8(c)
    record.config = take_slice(c, take_varint(c))
    if c.bad:
        core.counters.lost_ranges += 1
        return False
    record.appended = take_varint(c)
    return True


cdef void _queue_takes(Core* core, Queue* queue, QueueRecord* record, Map64* dlq_of) noexcept nogil:
    queue_configure(core, queue, record.config)
    queue.created_ms = <int64_t> record.created
    queue.is_dlq = record.flags & 1
    queue.owns_dlq = record.flags & 2
    queue.appended_ms = <int64_t> record.appended
    if record.dlq:
        map64_put(dlq_of, queue.number, <void*> record.dlq)


cdef void _queue_read(Core* core, uint64_t number, Cursor* c, Map64* dlq_of) noexcept nogil:
    cdef QueueRecord record
    cdef Queue* queue
    if not _queue_record_read(core, c, &record):
        return
    if textmap_get(&core.queues, record.name.at, record.name.length) != NULL:
        return                          # a copy that damage kept alive; its name is another's now
    queue = queue_new(core, record.name, number)
    _queue_takes(core, queue, &record, dlq_of)
    queue.is_recovered = True
    queue.offset_reserved = record.reserved
    queue.next_offset = record.reserved if record.reserved else 1


cdef void _queue_copy_read(Core* core, Queue* queue, Cursor* c, Map64* dlq_of) noexcept nogil:
    """The second record of a queue whose first was read. They differ only where damage took the newer one of
    either and an older one of it came to light. The later append tells the newer record. Offsets go on from
    the higher number, so that none is given twice: a clean stop writes a lower one than a kill leaves."""
    cdef QueueRecord record
    if not _queue_record_read(core, c, &record):
        return
    queue.copied = record.reserved == queue.offset_reserved and <int64_t> record.appended == queue.appended_ms
    if <int64_t> record.appended > queue.appended_ms:
        _queue_takes(core, queue, &record, dlq_of)
    if record.reserved > queue.offset_reserved:
        queue.offset_reserved = queue.next_offset = record.reserved


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
    notes.channel = channel
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
        _queue_copy_read(core, queue, c, dlq_of)
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
    elif family == BUCKETS and key_length and <uint8_t> key[0] != LIMIT_NAMES:
        _bucket_read(core, name, value, length)
    elif family == KEYS and key_length > 8 and key_record_is_known(length):
        _key_read(core, key, key_length, value, length)
    elif family == DEDUP and key_length > 8 and length in (
        DEDUP_BYTES_OF_BEFORE, DEDUP_BYTES, DEDUP_BYTES_LASTING
    ):
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


cdef int _scan_limits(Core* core) noexcept nogil:
    """Limits, which stand behind what is used of them, first. Damage there is counted by the scan of it
    all."""
    cdef DamageScan scan
    cdef const char* key
    cdef const char* value
    cdef size_t key_length, length
    cdef char begin = <char> LIMIT_NAMES
    cdef Slice name
    cdef Slice record
    damage_scan_from(&scan, core.store, BUCKETS, &begin, 1)
    while damage_scan_valid(&scan):
        key = scan_key(scan.iterator, &key_length)
        value = scan_value(scan.iterator, &length)
        name.at, name.length = key + 1, <uint32_t> (key_length - 1)
        record.at, record.length = value, <uint32_t> length
        if name.length:
            limit_recover(core, name, record)
        else:
            clock_record_read(core, record)
        damage_scan_next(&scan)
    damage_scan_end(&scan)
    return STORE_OK


cdef void _bucket_read(Core* core, Slice name, const char* value, size_t length) noexcept nogil:
    cdef ThrottleKey* bucket
    if limit_nearest(core, name) == &core.limit_table.none:
        return
    bucket = throttle_key_intern(core, name)
    bucket_record_read(core, bucket, value, length)
    if key_follows(bucket):
        following_recovered(core, bucket)
    throttle_key_drop_if_idle(core, bucket)


cdef void _key_read(Core* core, const char* at, size_t length, const char* value, size_t size) noexcept nogil:
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, read_u64be(at))
    cdef Slice text
    if queue == NULL:
        return
    text.at, text.length = at + 8, <uint32_t> (length - 8)
    key_recover(core, key_intern(core, queue, text), value, size)
    # The reference taken here keeps it until its messages are in; _keys_release gives it back.


# --- all of it -----------------------------------------------------------------------------------

cdef int _gaps(Core* core, int family, DamageScan* scan) noexcept nogil:
    """Damaged blocks were stepped over: counted, or the end of it where the owner wants that."""
    if only_returns(family):
        core.counters.lost_acks += <uint64_t> scan.gaps
    else:
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
    damage_scan_begin(&scan, core.store, family)
    while damage_scan_valid(&scan):
        key = scan_key(scan.iterator, &key_length)
        value = scan_value(scan.iterator, &length)
        _one(core, family, key, key_length, value, length, dlq_of)
        damage_scan_next(&scan)
    return _gaps(core, family, &scan)


cdef int _scan_index(Core* core) noexcept nogil:
    cdef DamageScan scan
    cdef const char* key
    cdef const char* value
    cdef size_t key_length, length
    cdef Queue* queue = NULL
    cdef uint64_t orphan = 0
    cdef Frame* frame
    cdef Times* times
    damage_scan_begin(&scan, core.store, INDEX)
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
                    batch_delete(core.store, core.settles, INDEX, key, 16)
                    batch_delete(core.store, core.settles, FRAMES, key, 16)
                else:
                    frame_take(core, queue, frame, times)
                    free(times)
        damage_scan_next(&scan)
    return _gaps(core, INDEX, &scan)


cdef int _scan_schedules(Core* core) noexcept nogil:
    """When each is due. Of a queue that damage took both records go: a new one of its name begins without."""
    cdef DamageScan scan
    cdef const char* key
    cdef const char* value
    cdef size_t length, value_length
    cdef Buffer definition
    buffer_init(&definition)
    damage_scan_from(&scan, core.store, KEPT, b"due/", 4)
    while damage_scan_valid(&scan):
        key = scan_key(scan.iterator, &length)
        if length < 4 or memcmp(key, b"due/", 4) != 0:
            break
        value = scan_value(scan.iterator, &value_length)
        if not schedule_recover(core, key + 4, length - 4, value, value_length):
            definition.length = 0
            put_bytes(&definition, b"schedule/", 9)
            put_bytes(&definition, key + 4, length - 4)
            batch_delete(core.store, core.settles, KEPT, key, length)
            batch_delete(core.store, core.settles, KEPT, definition.data, definition.length)
        damage_scan_next(&scan)
    buffer_free(&definition)
    return _gaps(core, KEPT, &scan)


cdef void _settle_queue(Core* core, Queue* queue, Map64* dlq_of) noexcept nogil:
    cdef Channel* channel = queue.channels
    cdef Frame* frame
    cdef uint64_t dlq = <uint64_t> map64_get(dlq_of, queue.number)
    cdef uint32_t cursor = 0
    cdef Key* key
    cdef Flow* flow
    if dlq:
        queue.dlq = <Queue*> map64_get(&core.queues_by_number, dlq)
    queue.appended_ms = max(queue.appended_ms, <int64_t> core.id_ms)
    if not queue.copied:
        queue_record_put(core, queue)
    while channel != NULL:
        if not channel.copied:
            channel_record_put(core, channel)
        channel = channel.next
    queue_place(core, queue)
    frame = directory_first(&queue.directory)
    while frame != NULL:
        frame_recount(core, frame)
        if frame.live == 0 and not frame_retained(core, frame):
            frame_finish(core, frame)
        frame = directory_after(&queue.directory, frame)
    dedup_sort(queue)
    dedup_take(core, queue)
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


cdef void _opening_lost(Core* core) noexcept nogil:
    """What the log and a salvage are known to lack already."""
    cdef Store* store = core.store
    core.counters.lost_acks = store.salvage.acks_lost
    core.counters.lost_ranges = store.wal.damaged_regions + store.wal.logs_missing
    core.counters.lost_ranges += store.salvage.gaps + store.salvage.tables_lost - store.salvage.acks_lost


cdef int recover_core(Core* core) noexcept nogil:
    # All queues and channels, before what belongs to them.
    cdef int[9] families = [QUEUES, SETTLED, CONFIG, BUCKETS, KEYS, DEDUP, STATES, LEASES, SINKS]
    cdef int i, status = STORE_OK
    cdef Map64 dlq_of
    cdef uint32_t cursor = 0
    cdef Queue* queue
    map64_init(&dlq_of)
    _opening_lost(core)
    status = reservations_read(core)
    for i in range(9):
        if status == STORE_OK and families[i] == BUCKETS:
            status = _scan_limits(core)         # behind CONFIG, which has their short forms
        if status == STORE_OK:
            status = _scan(core, families[i], &dlq_of)
    if status == STORE_OK:
        status = _scan_index(core)
    if status == STORE_OK:
        status = _scan_schedules(core)
    while status == STORE_OK:
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            sinks_recovered(core)
            break
        _settle_queue(core, queue, &dlq_of)
    core.number_reserved = core.next_number
    map64_free(&dlq_of)
    return status
