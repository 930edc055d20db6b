"""Stage 1 of 4: see enqueue.pxd.

    command ──► for each message: queue, routing, capacity, dedup ──► the queue's Builder
    end of the pass: each Builder becomes one Frame (one record of bytes, one of the index)
    the batch is written ──► answers, and the frame's visibility, wait for the epoch

Nothing is visible before it is written, so a batch the disk refuses is undone by forgetting it.
"""

from libc.stdlib cimport free, strtod
from libc.string cimport memcmp, memcpy, memset

from fila_server.core.answers cimport answer, reveal_later
from fila_server.core.buffer cimport Buffer, buffer_init, must_malloc, must_realloc, put_bytes, put_varint, varint_size
from fila_server.core.commands cimport ENQUEUE, ENQUEUE_ATOMIC, ENQUEUE_STREAM, OK
from fila_server.core.frames cimport (
    body_new, directory_add, directory_remove, frame_free, frame_new, key_intern, key_release,
)
from fila_server.core.flows cimport flow_find, flow_reconsider
from fila_server.core.mailbox cimport command_free
from fila_server.core.maps cimport textmap_get, textmap_put, textmap_remove
from fila_server.core.records cimport (
    Times, dedup_record_delete, dedup_record_put, frame_record_put, key_record_put, meta_record_put, queue_record_put,
)
from fila_server.core.rocksdb cimport rocksdb_writebatch_t
from fila_server.core.state cimport Body, Dedup, Explicit, Flow, Policy, WeightRow
from fila_server.core.throttle cimport set_intern, set_release
from fila_server.core.wire cimport (
    Options, REFUSED_BYTES, REFUSED_DEDUP_FULL, REFUSED_DEPTH, REFUSED_DISK_FLOOR, REFUSED_NEIGHBOUR,
    REFUSED_QUEUE_UNKNOWN, REFUSED_ROUTING_KEY, REFUSED_STOPPING, header_find, put_nested, put_number_field,
    put_status, put_status_field, put_tag, put_uuid, refusal_code, refusal_reason, refusal_text,
)

cdef enum:
    MERGED_MESSAGES_MAX = 1024      # of small commands, in one frame
    MERGED_BYTES_MAX = 1048576
    OFFSETS_RESERVED = 1000000
    COST_ONE = 1000


cdef Queue* queue_find(Core* core, Slice name) noexcept nogil:
    return <Queue*> textmap_get(&core.queues, name.at, name.length)


cdef uint64_t random_next(Core* core) noexcept nogil:
    """xorshift128+ (Vigna 2017), seeded from outside: one seed, one run."""
    cdef uint64_t a = core.random[0]
    cdef uint64_t b = core.random[1]
    core.random[0] = b
    a ^= a << 23
    core.random[1] = a ^ b ^ (a >> 17) ^ (b >> 26)
    return core.random[1] + b


# --- routing ---------------------------------------------------------------------------------

cdef bint _number(Slice text, double* value) noexcept nogil:
    cdef char digits[64]
    cdef char* end
    if text.length == 0 or text.length >= 64:
        return False
    memcpy(digits, text.at, text.length)
    digits[text.length] = 0
    if digits[0] == c' ' or digits[0] == c'\t' or digits[0] == c'\n':
        return False
    value[0] = strtod(digits, &end)
    return end == digits + text.length and value[0] == value[0]


cdef uint32_t _clamp_weight(Queue* queue, double weight) noexcept nogil:
    if weight >= 1 and weight <= 1000:
        return <uint32_t> weight
    queue.counters.clamped += 1
    return 1 if not weight >= 1 else 1000


cdef uint32_t _clamp_cost(Queue* queue, double cost) noexcept nogil:
    """In thousandths, 1 to 10^9."""
    if cost >= 0.001 and cost <= 1000000:
        return <uint32_t> (cost * 1000 + 0.5)
    queue.counters.clamped += 1
    if not cost >= 0.001:
        return 1
    return 1000000000


cdef uint8_t route(Core* core, Queue* queue, Command* command, Item* item, Building* b) noexcept nogil:
    """Fairness key, weight, cost and throttle keys: a hook's word, else the queue's settings, else defaults."""
    cdef Policy* policy = &queue.policy
    cdef const char* body = command.bytes + item.at
    cdef Options* o = item.options
    cdef Slice key
    cdef Slice value
    cdef Slice names[16]
    cdef uint32_t i, names_count = 0
    cdef uint32_t weight = 1
    cdef double number
    cdef WeightRow* row
    key.at, key.length = b"default", 7
    b.cost = COST_ONE
    if policy.fairness_key_header.length and header_find(body, item.length, policy.fairness_key_header, &value):
        if value.length:
            key = value
    if policy.weight_header.length and header_find(body, item.length, policy.weight_header, &value):
        weight = _clamp_weight(queue, number) if _number(value, &number) else _clamp_weight(queue, 0)
    if policy.cost_header.length and header_find(body, item.length, policy.cost_header, &value):
        if _number(value, &number):
            b.cost = _clamp_cost(queue, number)
        else:
            queue.counters.clamped += 1
    for i in range(policy.throttle_header_count):
        if header_find(body, item.length, policy.throttle_headers[i], &value) and value.length:
            if value.length > core.limits.routing_key_bytes_max:
                return REFUSED_ROUTING_KEY
            names[names_count] = value
            names_count += 1
    if o != NULL and o.routed:
        if o.has_key:
            key = o.fairness_key
        if o.has_weight:
            weight = _clamp_weight(queue, o.weight)
        if o.has_cost:
            b.cost = _clamp_cost(queue, o.cost)
        if o.has_throttle:
            names_count = o.throttle_count
            for i in range(names_count):
                names[i] = o.throttle[i]
    if key.length > core.limits.routing_key_bytes_max:
        return REFUSED_ROUTING_KEY
    if policy.weights.count:
        row = <WeightRow*> textmap_get(&policy.weights, key.at, key.length)
        if row != NULL:
            weight = row.weight
    b.key = key_intern(core, queue, key)
    b.set = set_intern(core, names, names_count) if names_count else NULL
    _reweigh(core, b.key, weight)
    return 0


cdef void _reweigh(Core* core, Key* key, uint32_t weight) noexcept nogil:
    """The newest enqueue's weight counts, for what waits already too."""
    cdef Flow* flow
    if key.weight == weight:
        return
    key.weight = <unsigned short> weight
    if key.stored_weight != weight:
        key_record_put(core, key)
    if not key.admin_weight:
        flow = key.flows
        while flow != NULL:
            flow_reconsider(core, flow)
            flow = flow.next_of_key


# --- one message -----------------------------------------------------------------------------

cdef void _dedup_expire(Core* core, Queue* queue) noexcept nogil:
    cdef Dedup* row
    while queue.dedup_oldest != NULL and queue.dedup_oldest.expires_ms <= core.wall_ms:
        row = queue.dedup_oldest
        queue.dedup_oldest = row.next
        if queue.dedup_oldest == NULL:
            queue.dedup_newest = NULL
        textmap_remove(&queue.dedup, &row.text)
        dedup_record_delete(core, queue, row)
        core.dedup_rows -= 1
        free(row)


cdef void _dedup_add(Core* core, Queue* queue, Slice text) noexcept nogil:
    """Room for a key whose message gets its id when the frame is built (see _dedup_fill)."""
    cdef Dedup* row = <Dedup*> must_malloc(sizeof(Dedup) + text.length)
    cdef char* bytes = <char*> row + sizeof(Dedup)
    memset(row, 0, sizeof(Dedup))
    memcpy(bytes, text.at, text.length)
    row.text.bytes = bytes
    row.text.length = text.length
    row.expires_ms = core.wall_ms + <int64_t> queue.policy.dedup_window_ms
    row.epoch = core.epoch
    textmap_put(&queue.dedup, &row.text)
    if queue.dedup_newest == NULL:
        queue.dedup_oldest = row
    else:
        queue.dedup_newest.next = row
    queue.dedup_newest = row
    core.dedup_rows += 1


cdef bint _dedup_hit(Core* core, Queue* queue, Command* command, Item* item) noexcept nogil:
    """True when an earlier message has this key: its id is the answer."""
    cdef Dedup* row
    if item.options == NULL or item.options.dedup_key.length == 0:
        return False
    _dedup_expire(core, queue)
    row = <Dedup*> textmap_get(&queue.dedup, item.options.dedup_key.at, item.options.dedup_key.length)
    if row == NULL:
        return False
    if row.offset == 0:                 # it meets its first in this very pass: build that one now
        _builder_finish(core, &queue.building)
    item.id_high, item.id_low, item.offset = row.id_high, row.id_low, row.offset
    item.answered = True
    command.durable = True              # the first one's epoch is this one or an earlier one
    return True


cdef uint8_t _admit(Core* core, Queue* queue, Item* item) noexcept nogil:
    """Capacity, before anything is made for this message."""
    cdef Builder* builder = &queue.building
    if core.stopping:
        return REFUSED_STOPPING
    if core.disk_low:
        return REFUSED_DISK_FLOOR
    if queue.policy.max_depth and queue.depth + queue.arriving + builder.count >= queue.policy.max_depth:
        return REFUSED_DEPTH
    if queue.policy.max_bytes and queue.stored_bytes - queue.unwanted_bytes + builder.bytes + item.length > queue.policy.max_bytes:
        return REFUSED_BYTES
    if item.options != NULL and item.options.dedup_key.length and core.dedup_rows >= core.dedup_rows_max:
        return REFUSED_DEDUP_FULL
    return 0


cdef Building* _builder_add(Core* core, Builder* builder) noexcept nogil:
    cdef Building* b
    if builder.count == builder.capacity:
        builder.capacity = builder.capacity * 2 + 64
        builder.items = <Building*> must_realloc(builder.items, builder.capacity * sizeof(Building))
    b = &builder.items[builder.count]
    memset(b, 0, sizeof(Building))
    return b


cdef void _take(Core* core, Queue* queue, Command* command, uint32_t index) noexcept nogil:
    """Add one message to its queue's builder, or mark it refused."""
    cdef Item* item = &command.items[index]
    cdef Building* b
    cdef Options* o = item.options
    cdef uint8_t refused
    if item.refused:
        return
    if _dedup_hit(core, queue, command, item):
        return
    refused = _admit(core, queue, item)
    if refused == 0:
        b = _builder_add(core, &queue.building)
        refused = route(core, queue, command, item, b)
    if refused:
        item.refused = refused
        queue.counters.refused += 1
        return
    b.command = command
    b.item = index
    b.at = command.bytes + item.at
    b.length = item.length
    if o != NULL:
        if o.deliver_at_ms >= 0:
            b.deliver_at_ms = o.deliver_at_ms
        elif o.delay_ms > 0:
            b.deliver_at_ms = core.wall_ms + o.delay_ms
        if o.ttl_ms > 0:
            b.expires_ms = core.wall_ms + o.ttl_ms
        if o.dedup_key.length:
            _dedup_add(core, queue, o.dedup_key)
    queue.building.count += 1
    queue.building.bytes += item.length
    if queue.policy.durable:
        command.durable = True


cdef void _list_builder(Core* core, Queue* queue) noexcept nogil:
    if not queue.build_listed:
        queue.build_listed = True
        queue.building.queue = queue
        queue.building.next = core.builders
        core.builders = &queue.building


cdef void enqueue(Core* core, Command* command) noexcept nogil:
    cdef Queue* queue = NULL
    cdef Item* item
    cdef Slice last
    cdef uint32_t i
    cdef uint32_t before
    last.at, last.length = NULL, 0
    command.next = NULL
    if core.enqueued_last == NULL:
        core.enqueued = command
    else:
        core.enqueued_last.next = command
    core.enqueued_last = command
    core.counters.frames_in += 1
    core.counters.messages_in += command.count
    for i in range(command.count):
        item = &command.items[i]
        if item.queue.at != last.at or item.queue.length != last.length:
            last = item.queue
            queue = queue_find(core, last) if last.length else NULL
            if queue != NULL:
                if queue.building.count and (
                    queue.building.count + command.count > MERGED_MESSAGES_MAX
                    or queue.building.bytes + command.length > MERGED_BYTES_MAX
                ) and command.kind != ENQUEUE_ATOMIC:
                    _builder_finish(core, &queue.building)
                _list_builder(core, queue)
        if queue == NULL:
            if not item.refused:
                item.refused = REFUSED_QUEUE_UNKNOWN
            continue
        if command.kind == ENQUEUE_ATOMIC and i == 0:
            before = queue.building.count
        _take(core, queue, command, i)
    if command.kind == ENQUEUE_ATOMIC and queue != NULL:
        _all_or_nothing(core, queue, command, before)


cdef void _all_or_nothing(Core* core, Queue* queue, Command* command, uint32_t before) noexcept nogil:
    cdef uint32_t i
    cdef bint refused = False
    cdef Building* b
    for i in range(command.count):
        refused = refused or command.items[i].refused != 0
    if not refused:
        return
    for i in range(before, queue.building.count):
        b = &queue.building.items[i]
        queue.building.bytes -= b.length
        key_release(core, b.key)
        if b.set != NULL:
            set_release(core, b.set)
    queue.building.count = before
    for i in range(command.count):
        if not command.items[i].refused:
            command.items[i].refused = REFUSED_NEIGHBOUR


# --- frames ----------------------------------------------------------------------------------

cdef void _next_id(Core* core, uint64_t* high, uint64_t* low) noexcept nogil:
    """The first of a frame's ids: RFC 9562, version 7, method 1.

    The 12 bits behind the milliseconds count frames within one, so that ids rise strictly
    from frame to frame; within a frame the low half rises, and its topmost bit starts clear.
    """
    if <uint64_t> core.wall_ms > core.id_ms:
        core.id_ms = <uint64_t> core.wall_ms
        core.id_sequence = 0
    elif core.id_sequence == 4095:
        core.id_ms += 1
        core.id_sequence = 0
    else:
        core.id_sequence += 1
    high[0] = (core.id_ms << 16) | 0x7000 | core.id_sequence
    low[0] = (<uint64_t> 1 << 63) | (random_next(core) >> 3)


cdef uint64_t _next_offsets(Core* core, Queue* queue, uint32_t count) noexcept nogil:
    """`count` offsets that no power cut can give out again: a synced record promises them beforehand."""
    cdef uint64_t first = queue.next_offset
    queue.next_offset += count
    if queue.next_offset + OFFSETS_RESERVED // 2 > queue.offset_reserved:
        queue.offset_reserved = queue.next_offset + OFFSETS_RESERVED
        queue.offset_reserved_epoch = core.epoch
        queue_record_put(core, queue)
        core.sync_wanted = True
    elif core.durable >= queue.offset_reserved_epoch:
        queue.offset_reserved_durable = queue.offset_reserved
    return first


cdef bint _owns_command(Builder* builder) noexcept nogil:
    """Whether all of one command, and nothing else, is here: then its bytes are the frame's."""
    cdef Command* command = builder.items[0].command
    if command == NULL or builder.count != command.count or command.bytes == NULL:
        return False
    return builder.items[builder.count - 1].command == command


cdef char* _gather(Builder* builder, uint32_t* length) noexcept nogil:
    cdef uint64_t total = 0
    cdef uint32_t i
    cdef char* bytes
    cdef char* to
    for i in range(builder.count):
        total += builder.items[i].length
    bytes = to = <char*> must_malloc(total)
    for i in range(builder.count):
        memcpy(to, builder.items[i].at, builder.items[i].length)
        builder.items[i].at = to
        to += builder.items[i].length
    length[0] = <uint32_t> total
    return bytes


cdef void _builder_finish(Core* core, Builder* builder) noexcept nogil:
    """Make one frame of what is in the builder, and put its records into the pass's batch."""
    cdef Queue* queue = builder.queue
    cdef Frame* frame
    cdef Command* command
    cdef char* bytes
    cdef uint32_t length, i
    cdef Times* times = NULL
    cdef Building* b
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
    frame.first_offset = _next_offsets(core, queue, builder.count)
    durable = queue.policy.durable or builder.moves or queue.next_offset > queue.offset_reserved_durable
    if core.wall_ms > queue.appended_ms:
        queue.appended_ms = core.wall_ms
    frame.appended_ms = queue.appended_ms
    frame.body_bytes = length
    if not builder.moves:
        _next_id(core, &frame.id_high, &frame.id_low)
    else:
        frame.explicit = <Explicit*> must_malloc(builder.count * sizeof(Explicit))
        frame.only = builder.items[0].only
    for i in range(builder.count):
        b = &builder.items[i]
        frame.entries[i].key = b.key
        frame.entries[i].set = b.set
        frame.entries[i].cost = b.cost
        frame.entries[i].at = <uint32_t> (b.at - bytes)
        frame.entries[i].length = b.length
        frame.entries[i].enqueued_delta_ms = <int> (core.wall_ms - frame.appended_ms) if core.wall_ms - frame.appended_ms > -2000000000 else 0
        frame.live_bytes += b.length
        if frame.explicit != NULL:
            frame.explicit[i].id_high = b.id_high
            frame.explicit[i].id_low = b.id_low
            frame.explicit[i].offset = frame.first_offset + i
            frame.explicit[i].enqueued_ms = b.enqueued_ms
            frame.explicit[i].appended_ms = frame.appended_ms
        if b.deliver_at_ms or b.expires_ms:
            if times == NULL:
                times = <Times*> must_malloc(builder.count * sizeof(Times))
                memset(times, 0, builder.count * sizeof(Times))
            times[i].deliver_at_ms = b.deliver_at_ms
            times[i].expires_ms = b.expires_ms
        if b.command != NULL:
            b.command.items[b.item].id_high = frame.id_high
            b.command.items[b.item].id_low = frame.id_low + i
            b.command.items[b.item].offset = frame.first_offset + i
            b.command.items[b.item].answered = True
            if durable:
                b.command.durable = True
            if b.command.items[b.item].options != NULL:
                _dedup_fill(core, queue, b.command, &b.command.items[b.item])
    batch = core.settles if builder.moves else core.enqueues
    frame_record_put(core, batch, frame, bytes, length, times)
    frame.times = times
    body_new(core, frame, bytes, length)
    directory_add(&queue.directory, frame)
    queue.stored_bytes += length
    queue.arriving += frame.count
    if not builder.moves:
        queue.counters.enqueued += frame.count
    frame.durable = durable
    if builder.moves:
        reveal_later(core, frame, durable)
    else:                               # to be forgotten should the disk refuse the batch
        frame.next_dying = core.stored
        core.stored = frame
    builder.count = 0
    builder.bytes = 0


cdef void _dedup_fill(Core* core, Queue* queue, Command* command, Item* item) noexcept nogil:
    cdef Dedup* row
    cdef Slice text = item.options.dedup_key
    if text.length == 0:
        return
    # Where the command's bytes moved into the frame's body the slice still points at them.
    row = <Dedup*> textmap_get(&queue.dedup, text.at, text.length)
    if row != NULL and row.offset == 0:
        row.id_high, row.id_low, row.offset = item.id_high, item.id_low, item.offset
        dedup_record_put(core, core.enqueues, queue, row)


cdef void frames_build(Core* core) noexcept nogil:
    cdef Builder* builder = core.movers
    cdef Builder* following
    core.movers = NULL
    while builder != NULL:
        following = builder.next
        builder.queue.move_listed = False
        _builder_finish(core, builder)
        builder = following
    builder = core.builders
    core.builders = NULL
    while builder != NULL:
        following = builder.next
        builder.queue.build_listed = False
        _builder_finish(core, builder)
        builder = following


cdef void move_in(Core* core, Queue* queue, Key* key, ThrottleSet* set, uint32_t cost, char* bytes, uint32_t length, uint64_t id_high, uint64_t id_low, int64_t enqueued_ms, Channel* only) noexcept nogil:
    """Add a moved message. `bytes` must live until the frame is built; key and set carry a reference each."""
    cdef Builder* builder = &queue.moving
    cdef Building* b
    builder.moves = True
    builder.queue = queue
    if builder.count and (builder.items[0].only != only or builder.count >= MERGED_MESSAGES_MAX):
        _builder_finish(core, builder)
    if not queue.move_listed:
        queue.move_listed = True
        builder.next = core.movers
        core.movers = builder
    b = _builder_add(core, builder)
    b.key = key
    b.set = set
    b.cost = cost
    b.at = bytes
    b.length = length
    b.id_high = id_high
    b.id_low = id_low
    b.enqueued_ms = enqueued_ms
    b.only = only
    builder.count += 1
    builder.bytes += length


# --- after the write ---------------------------------------------------------------------------

cdef void _forget(Core* core, Frame* frame) noexcept nogil:
    cdef Queue* queue = frame.queue
    queue.stored_bytes -= frame.body_bytes
    queue.arriving -= frame.count
    queue.counters.enqueued -= frame.count
    directory_remove(&queue.directory, frame)
    free(frame.times)
    frame_free(core, frame)


cdef void _forget_dedup(Core* core, Command* command) noexcept nogil:
    cdef uint32_t i
    cdef Item* item
    cdef Queue* queue
    cdef Dedup* row
    for i in range(command.count):
        item = &command.items[i]
        if item.options == NULL or item.options.dedup_key.length == 0 or item.refused:
            continue
        queue = queue_find(core, item.queue)
        row = <Dedup*> textmap_get(&queue.dedup, item.options.dedup_key.at, item.options.dedup_key.length) if queue != NULL else NULL
        if row != NULL and row.epoch == core.epoch:
            row.expires_ms = 0          # the next look drops it; its record was never written


cdef void enqueue_written(Core* core, uint8_t refused) noexcept nogil:
    """Line up frames and answers behind their epoch; or, where the disk refused, undo and say so."""
    cdef Frame* frame = core.stored
    cdef Frame* following
    cdef Command* command
    cdef Command* next_command
    core.stored = NULL
    if refused:
        command = core.enqueued
        while command != NULL:
            _forget_dedup(core, command)
            command = command.next
    while frame != NULL:
        following = frame.next_dying
        frame.next_dying = NULL
        if refused:
            _forget(core, frame)
        else:
            reveal_later(core, frame, frame.durable)
        frame = following
    command = core.enqueued
    core.enqueued = core.enqueued_last = NULL
    while command != NULL:
        next_command = command.next
        _answer(core, command, refused)
        command_free(command)
        command = next_command


cdef void _answer(Core* core, Command* command, uint8_t refused) noexcept nogil:
    cdef Buffer payload
    cdef Item* item
    cdef uint32_t i, field
    cdef char text[256]
    cdef size_t size
    buffer_init(&payload)
    for i in range(command.count):
        if refused and not command.items[i].refused:
            command.items[i].refused = refused
        core.counters.refused += command.items[i].refused != 0
    if command.kind == ENQUEUE:
        item = command.items
        if item.refused:
            refusal_text(item.refused, &core.limits, text, sizeof(text))
            put_status(&payload, refusal_code(item.refused), text, refusal_reason(item.refused))
            answer(core, command.token, refusal_code(item.refused), &payload, False)
            return
        put_varint(&payload, 0x0A)
        put_varint(&payload, 36)
        put_uuid(&payload, item.id_high, item.id_low)
        put_number_field(&payload, 2, item.offset)
        answer(core, command.token, OK, &payload, command.durable)
        return
    field = 1
    if command.kind == ENQUEUE_STREAM:
        put_number_field(&payload, 1, command.sequence)
        field = 2
    for i in range(command.count):
        item = &command.items[i]
        put_tag(&payload, field, 2)
        if item.refused:
            refusal_text(item.refused, &core.limits, text, sizeof(text))
            core.tail.length = 0
            put_status_field(&core.tail, 3, refusal_code(item.refused), text, refusal_reason(item.refused))
            put_varint(&payload, core.tail.length)
            put_bytes(&payload, core.tail.data, core.tail.length)
        else:
            size = 38 + 1 + varint_size(item.offset)
            put_varint(&payload, size)
            put_varint(&payload, 0x0A)
            put_varint(&payload, 36)
            put_uuid(&payload, item.id_high, item.id_low)
            put_number_field(&payload, 2, item.offset)
    answer(core, command.token, OK, &payload, command.durable)
