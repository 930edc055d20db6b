"""A command whose messages fill a builder alone
gives its bytes to the frame as they are."""

from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.formats.records cimport ArrivalTimes, Times, frame_record_put, times_of
from fila_server.core.index.bodies cimport body_new
from fila_server.core.index.dedup cimport dedup_fill
from fila_server.core.index.frames cimport frame_new
from fila_server.core.index.ids cimport id_next, offsets_next
from fila_server.core.protocol.protobuf cimport BY_ITSELF, Item
from fila_server.core.state.directory cimport directory_add
from fila_server.core.state.pending cimport OwnIds
from fila_server.core.state.state cimport Entry, Frame
from fila_server.core.storage.rocksdb cimport rocksdb_writebatch_t
from fila_server.core.structures.buffer cimport must_malloc, must_realloc
from fila_server.core.threads.mailbox cimport Command

cdef enum:
    SPARE_CAPACITY_MAX = 16384      # messages
    MOVED_BYTES_MAX = 16777216      # of dead letters and redrives, in one frame; one message may be larger


cdef Building* builder_add(Core* core, Builder* builder) noexcept nogil:
    cdef Building* b
    if builder.items == NULL:           # most passes have messages for few queues: one array goes round
        builder.items, builder.capacity = core.spare_items, core.spare_capacity
        core.spare_items, core.spare_capacity = NULL, 0
    if builder.count == builder.capacity:
        builder.capacity = builder.capacity * 2 + 64
        builder.items = <Building*> must_realloc(builder.items, builder.capacity * sizeof(Building))
    b = &builder.items[builder.count]
    memset(b, 0, sizeof(Building))
    return b


cdef void _give_back(Core* core, Builder* builder) noexcept nogil:
    """A queue keeps no array from pass to pass: ten thousand queues with a thousand messages once would have
    gigabytes of them."""
    if core.spare_items == NULL and builder.capacity <= SPARE_CAPACITY_MAX:
        core.spare_items, core.spare_capacity = builder.items, builder.capacity
    else:
        free(builder.items)
    builder.items, builder.capacity = NULL, 0


# --- frames ----------------------------------------------------------------------------------

cdef bint _owns_command(Builder* builder) noexcept nogil:
    """Whether all of one command, and nothing else, is here: then its bytes are the frame's.

    In order, too: the index counts on it, and a message of scattered fields was rewritten behind the rest.
    """
    cdef Command* command = builder.items[0].command
    cdef const char* end
    cdef uint32_t i
    if command == NULL or builder.count != command.count or command.bytes == NULL:
        return False
    end = command.bytes
    for i in range(builder.count):
        if builder.items[i].command != command or builder.items[i].at < end:
            return False
        end = builder.items[i].at + builder.items[i].length
    return True


cdef char* _gather(Builder* builder, uint32_t* length) noexcept nogil:
    cdef uint64_t total = 0
    cdef uint32_t i
    cdef char *bytes, *to
    for i in range(builder.count):
        total += builder.items[i].length
    bytes = to = <char*> must_malloc(total)
    for i in range(builder.count):
        memcpy(to, builder.items[i].at, builder.items[i].length)
        builder.items[i].at = to
        to += builder.items[i].length
    length[0] = <uint32_t> total
    return bytes


cdef ArrivalTimes* _fill_entries(
        Core* core, Builder* builder, Frame* frame, const char* bytes) noexcept nogil:
    """What the index says of each message; the delays and times to live among them, and what they replace, or
    NULL when there is none of it."""
    cdef ArrivalTimes* arrival = NULL
    cdef Times* times = NULL
    cdef Building* b
    cdef Entry* entry
    cdef int64_t behind_ms = core.wall_ms - frame.appended_ms
    cdef uint32_t i
    for i in range(builder.count):
        b = &builder.items[i]
        entry = &frame.entries[i]
        entry.key, entry.set, entry.cost_bits = b.key, b.set, b.cost_bits
        entry.at = <uint32_t> (b.at - bytes)
        entry.length = b.length
        entry.key.stored_bytes += b.length
        entry.enqueued_delta_ms = <int> behind_ms if behind_ms > -2000000000 else 0
        frame.live_bytes += b.length
        if frame.own_ids != NULL:
            frame.own_ids[i].id_high, frame.own_ids[i].id_low = b.id_high, b.id_low
            frame.own_ids[i].offset = frame.first_offset + i
            frame.own_ids[i].enqueued_ms = b.enqueued_ms
            frame.own_ids[i].appended_ms = frame.appended_ms
        if b.deliver_at_ms or b.expires_ms or b.replaces:
            if times == NULL:
                arrival = <ArrivalTimes*> must_malloc(sizeof(ArrivalTimes) + builder.count * sizeof(Times))
                arrival.wall_ms, arrival.mono_ns = core.wall_ms, core.mono_ns
                times = times_of(arrival)
                memset(times, 0, builder.count * sizeof(Times))
            times[i].deliver_at_ms, times[i].expires_ms = b.deliver_at_ms, b.expires_ms
            times[i].replaces, times[i].behind = b.replaces, b.behind
    return arrival


cdef void _report_commands(Core* core, Builder* builder, Frame* frame, bint durable) noexcept nogil:
    """Ids and offsets for the answers, and for the keys that find a message sent twice."""
    cdef Building* b
    cdef Item* item
    cdef uint32_t i
    for i in range(builder.count):
        b = &builder.items[i]
        item = &b.command.items[b.item]
        item.id_high, item.id_low = frame.id_high, frame.id_low + i
        item.offset = frame.first_offset + i
        item.answered = BY_ITSELF
        if durable:
            b.command.durable = True
        if item.options != NULL:
            dedup_fill(core, frame.queue, b.command, item)


cdef void _append_stored(Core* core, Frame* frame) noexcept nogil:
    # until it is written: should the disk refuse the batch, it is forgotten
    if core.stored == NULL:
        core.stored = frame
    else:
        core.stored_last.next_dying = frame
    core.stored_last = frame


cdef void builder_finish(Core* core, Builder* builder) noexcept nogil:
    """Make one frame of what is in the builder, and put its records into the pass's batch."""
    cdef Queue* queue = builder.queue
    cdef Frame* frame
    cdef Command* command
    cdef char* bytes
    cdef uint32_t length, i
    cdef ArrivalTimes* arrival = NULL
    cdef rocksdb_writebatch_t* batch
    cdef bint durable
    if builder.count == 0:
        return
    if _owns_command(builder):
        command = builder.items[0].command
        bytes = command.bytes
        length = command.length
        command.bytes = NULL
    else:
        bytes = _gather(builder, &length)
    frame = frame_new(core, queue, builder.count)
    core.counters.frames_built += 1
    frame.first_offset = offsets_next(core, queue, builder.count)
    durable = queue.policy.durable or builder.moves or queue.next_offset > queue.offset_reserved_durable
    durable = durable or queue.arriving_durable > 0     # seen in the order of offsets, as after a
                                                        # restart; then answered
    for i in range(builder.count):      # accepted under fsync, and the setting changed since
        durable = durable or (builder.items[i].command != NULL and builder.items[i].command.durable)
    queue.appended_ms = max(queue.appended_ms, core.wall_ms)
    frame.appended_ms = queue.appended_ms
    frame.body_bytes = length
    if not builder.moves:
        id_next(core, &frame.id_high, &frame.id_low)
    else:
        frame.own_ids = <OwnIds*> must_malloc(builder.count * sizeof(OwnIds))
        frame.only = builder.items[0].only.birth if builder.items[0].only != NULL else 0
    arrival = _fill_entries(core, builder, frame, bytes)
    if not builder.moves:
        _report_commands(core, builder, frame, durable)
    batch = core.settles if builder.moves else core.enqueues
    frame_record_put(
        core, batch, frame, bytes, length, times_of(arrival) if arrival != NULL else NULL)
    frame.times = arrival
    body_new(core, frame, bytes, length)
    directory_add(&queue.directory, frame)
    queue.stored_bytes += length
    queue.arriving += frame.count
    if not builder.moves:
        queue.counters.enqueued += frame.count
    frame.durable = durable
    queue.arriving_durable += frame.durable
    _append_stored(core, frame)
    builder.count, builder.bytes = 0, 0


cdef void frames_build(Core* core) noexcept nogil:
    cdef Builder* builder = core.movers
    cdef Builder* following
    core.movers = NULL
    while builder != NULL:
        following = builder.next
        builder.queue.move_listed = False
        builder_finish(core, builder)
        _give_back(core, builder)
        builder = following
    builder = core.builders
    core.builders = NULL
    while builder != NULL:
        following = builder.next
        builder.queue.build_listed = False
        builder_finish(core, builder)
        _give_back(core, builder)
        builder = following


cdef void move_in(
        Core* core, Queue* queue, Key* key, ThrottleSet* set, uint32_t cost_bits, char* bytes,
        uint32_t length, uint64_t id_high, uint64_t id_low, int64_t enqueued_ms,
        Channel* only) noexcept nogil:
    """Add a moved message. `bytes` must live until the frame is built; key and set carry a reference each."""
    cdef Builder* builder = &queue.moving
    cdef Building* b
    builder.moves = True
    builder.queue = queue
    if builder.count and (
        builder.items[0].only != only or builder.count >= MERGED_MESSAGES_MAX
        or builder.bytes + length > MOVED_BYTES_MAX
    ):
        builder_finish(core, builder)
    if not queue.move_listed:
        queue.move_listed = True
        builder.next = core.movers
        core.movers = builder
    b = builder_add(core, builder)
    b.key, b.set, b.cost_bits = key, set, cost_bits
    b.at, b.length = bytes, length
    b.id_high, b.id_low, b.enqueued_ms = id_high, id_low, enqueued_ms
    b.only = only
    builder.count += 1
    builder.bytes += length


cdef void keep_until_written(Core* core, char* bytes) noexcept nogil:
    if core.moved_bytes_count == core.moved_bytes_capacity:
        core.moved_bytes_capacity = core.moved_bytes_capacity * 2 + 16
        core.moved_bytes = <char**> must_realloc(core.moved_bytes, core.moved_bytes_capacity * sizeof(void*))
    core.moved_bytes[core.moved_bytes_count] = bytes
    core.moved_bytes_count += 1


cdef void moved_bytes_free(Core* core) noexcept nogil:
    cdef uint32_t i
    for i in range(core.moved_bytes_count):
        free(core.moved_bytes[i])
    core.moved_bytes_count = 0
