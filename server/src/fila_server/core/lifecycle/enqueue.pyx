"""A command's items are taken one by one into their queues' builders; what refuses one refuses it
alone, unless the batch is all or nothing.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcmp

from fila_server.core.formats.records cimport schedule_due_put
from fila_server.core.history.traces cimport enqueue_traced, enqueue_written_traced
from fila_server.core.index.dedup cimport (
    IT_WAITS, dedup_add, dedup_find, dedup_forget, dedup_newest, dedup_replace, dedup_written, due_ms_of,
    stands,
)
from fila_server.core.index.frames cimport frame_free
from fila_server.core.index.keys cimport key_release
from fila_server.core.index.schedules cimport schedule_find, schedule_written
from fila_server.core.index.visits cimport visit_soon
from fila_server.core.lifecycle.answers cimport answer, answer_enqueued, reveal_later
from fila_server.core.lifecycle.building cimport (
    MERGED_BYTES_MAX, MERGED_MESSAGES_MAX, builder_add, builder_finish,
)
from fila_server.core.lifecycle.routing cimport route, route_plainly, weight_brought, weights_written
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport ENQUEUE, ENQUEUE_ATOMIC, ENQUEUE_STREAM, FIRE, MOVE_STAGED
from fila_server.core.protocol.protobuf cimport (
    BY_AN_EARLIER, LEN, Fields, Item, Options, fields_parse, put_number_field, put_status, put_status_field,
    put_tag, put_uuid,
)
from fila_server.core.protocol.refusals cimport (
    REFUSED_BYTES, REFUSED_DEDUP_FULL, REFUSED_DEPTH, REFUSED_DISK_FLOOR, REFUSED_FIRED, REFUSED_NEIGHBOUR,
    REFUSED_QUEUE_UNKNOWN, REFUSED_STOPPING, refusal_code, refusal_reason, refusal_text_of,
)
from fila_server.core.scheduling.throttle cimport set_release
from fila_server.core.state.directory cimport directory_remove
from fila_server.core.state.paths cimport queue_find
from fila_server.core.state.pending cimport Dedup, Schedule
from fila_server.core.state.state cimport Builder, Building, Frame, Queue
from fila_server.core.structures.buffer cimport (
    Buffer, Slice, buffer_init, put_bytes, put_u8, put_varint, varint_size,
)
from fila_server.core.threads.mailbox cimport command_free


cdef Dedup* _earlier(Core* core, Queue* queue, Item* item) noexcept nogil:
    """What is known of its dedup key; NULL: it has none, or is the first."""
    cdef Dedup* row
    if item.options == NULL or item.options.dedup_key.length == 0:
        return NULL
    row = dedup_find(core, queue, item.options.dedup_key)
    if row != NULL and row.known.offset == 0:   # it meets its first in this very pass: build that one now
        builder_finish(core, &queue.building)
    return row


cdef void _stands_for(Command* command, Item* item, const Dedup* row) noexcept nogil:
    """The earlier message's id is the answer."""
    item.id_high, item.id_low, item.offset = row.known.id_high, row.known.id_low, row.known.offset
    item.answered = BY_AN_EARLIER
    command.duplicates += 1
    command.durable = True              # the first one's epoch is this one or an earlier one


cdef uint8_t _admit(Core* core, Queue* queue, Item* item, const Dedup* row, bint replaces) noexcept nogil:
    """Capacity, before anything is made for this message; one that gives way to it makes room."""
    cdef Builder* builder = &queue.building
    cdef uint64_t bytes = queue.stored_bytes - queue.unwanted_bytes + queue.staged_bytes + builder.bytes
    cdef uint64_t messages = queue.depth + queue.arriving + queue.promised + builder.count
    if core.stopping:
        return REFUSED_STOPPING
    if core.disk_low:
        return REFUSED_DISK_FLOOR
    if queue.policy.max_depth and messages >= queue.policy.max_depth + replaces:
        return REFUSED_DEPTH
    if queue.policy.max_bytes and bytes + item.length > queue.policy.max_bytes:
        return REFUSED_BYTES
    if (
        item.options != NULL and item.options.dedup_key.length and row == NULL
        and core.dedup_rows + core.sinks.promised_dedup_keys >= core.dedup_rows_max
    ):
        return REFUSED_DEDUP_FULL
    return 0


cdef void _take_options(
        Core* core, Queue* queue, const Options* o, Dedup* row, int stood, Building* b) noexcept nogil:
    """`row`: of the message that it replaces, which `stood` so in the channels; NULL = there was none."""
    cdef bint waits = stood & IT_WAITS != 0
    cdef int64_t waited_ms = 0
    if o.deliver_at_ms > core.wall_ms:      # a moment that has passed is now, in line with its neighbours
        b.deliver_at_ms = o.deliver_at_ms
    elif o.delay_ms > 0:
        b.deliver_at_ms = core.wall_ms + o.delay_ms
    elif o.deliver_at_ms < 0 and waits:     # where it says nothing, it has the other one's delay
        b.deliver_at_ms = due_ms_of(queue, dedup_newest(queue, row))
        b.deliver_at_ms = b.deliver_at_ms if b.deliver_at_ms > core.wall_ms else 0
    if o.max_wait_ms and b.deliver_at_ms:
        waited_ms = (core.mono_ns - row.known.first_ns) // 1000000 if waits else 0
        b.deliver_at_ms = min(b.deliver_at_ms, core.wall_ms + o.max_wait_ms - waited_ms)
        b.deliver_at_ms = b.deliver_at_ms if b.deliver_at_ms > core.wall_ms else 0
    if o.ttl_ms > 0:
        b.expires_ms = core.wall_ms + o.ttl_ms
    if row != NULL:
        b.replaces = dedup_newest(queue, row)
        dedup_replace(core, queue, row, stood)
        b.behind = row.known.before if row.known.before != b.replaces else 0
    elif o.dedup_key.length:
        dedup_add(core, queue, o.dedup_key, o.replaces)


cdef void _take(Core* core, Queue* queue, Command* command, uint32_t index) noexcept nogil:
    """Add one message to its queue's builder, or mark it refused."""
    cdef Item* item = &command.items[index]
    cdef Building* b
    cdef Options* o = item.options
    cdef Dedup* row
    cdef uint8_t refused
    cdef int stood
    if item.refused:
        return
    core.counters.work += 1
    row = _earlier(core, queue, item)
    if row != NULL and not o.replaces:
        _stands_for(command, item, row)
        return
    stood = stands(queue, dedup_newest(queue, row)) if row != NULL else 0
    # Of a published batch: its room was reserved, and none of it may be refused any more.
    refused = _admit(core, queue, item, row, stood & IT_WAITS) if command.kind != MOVE_STAGED else 0
    if refused == 0:
        b = builder_add(core, &queue.building)
        refused = route(core, queue, command, item, b)
        if refused and command.kind == MOVE_STAGED:     # the queue's settings changed since it was staged
            route_plainly(core, queue, b)
            refused = 0
    if refused:
        item.refused = refused
        queue.counters.refused += 1
        return
    b.command = command
    b.item = index
    b.at = command.bytes + item.at
    b.length = item.length
    if o != NULL:
        _take_options(core, queue, o, row, stood, b)
    if command.kind != ENQUEUE_ATOMIC:      # else once none of its neighbours was refused
        weight_brought(core, b.key, b.weight)
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


cdef void enqueue_command(Core* core, Command* command) noexcept nogil:
    cdef Queue* queue = NULL
    cdef Item* item
    cdef Slice last
    cdef uint32_t i
    cdef uint32_t before = 0
    cdef uint32_t channels = 0
    last.at, last.length = NULL, 0
    command.next = NULL
    if core.enqueued_last == NULL:
        core.enqueued = command
    else:
        core.enqueued_last.next = command
    core.enqueued_last = command
    core.counters.frames_in += 1
    core.counters.messages_in += command.count
    if core.traces != NULL:
        enqueue_traced(core, command)
    for i in range(command.count):      # how much comes for which queue, before any of it is taken
        item = &command.items[i]
        queue = _queue_of(core, item, &last, queue)
        if queue != NULL:
            queue.coming += 1
            queue.coming_bytes += item.length
    for i in range(command.count):
        item = &command.items[i]
        queue = _queue_of(core, item, &last, queue)
        if queue == NULL:
            if not item.refused:
                item.refused = REFUSED_QUEUE_UNKNOWN
            continue
        if queue.coming:
            _make_way(core, queue)
            if queue.channel_count > channels:
                channels = queue.channel_count
                command.queue_number = queue.number
            before = queue.building.count
        _take(core, queue, command, i)
    if command.kind == ENQUEUE_ATOMIC and queue != NULL:
        _all_or_nothing(core, queue, command, before)


# --- a schedule fires ---------------------------------------------------------------------------
# The batch of new messages is written whole or not at all, so message and next moment are. Only then does the
# schedule stand there in memory, too: what the disk refuses is due as before. No change of a schedule, and no
# deletion of its queue, runs in a pass behind a firing (runtime/passes.pyx): their records are written first.

cdef Schedule* _due(Queue* queue, Slice name, uint64_t due_ms) noexcept nogil:
    """The schedule, where this is its moment and nobody took it in this pass."""
    cdef Schedule* schedule = schedule_find(queue, name)
    if schedule == NULL or schedule.is_firing or due_ms == 0 or schedule.due_ms != due_ms:
        return NULL
    return schedule


cdef bint fire_command(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Schedule* schedule = NULL
    cdef Slice name = command.items[0].queue
    cdef Queue* queue = queue_find(core, name) if name.length else NULL
    fields_parse(&fields, command.bytes, command.length - command.rewritten)    # the parse has read it once
    if queue != NULL:
        schedule = _due(queue, fields.text[seam.FIRING_SCHEDULE], fields.number[seam.FIRING_DUE_MS])
        if schedule == NULL and not command.items[0].refused:
            command.items[0].refused = REFUSED_FIRED
    if schedule != NULL:
        schedule.next_ms = fields.number[seam.FIRING_NEXT_MS]
    enqueue_command(core, command)
    if schedule != NULL and not command.items[0].refused:
        schedule.is_firing = True
        command.firing = schedule
        # The command's bytes stay where they are until the frame is built.
        schedule_due_put(core, queue, fields.text[seam.FIRING_SCHEDULE], fields.text[seam.FIRING_RECORD])
    return False


cdef inline Queue* _queue_of(Core* core, Item* item, Slice* last, Queue* queue) noexcept nogil:
    """Found anew only where the name differs from the one before: a message may name its queue itself."""
    if item.queue.length == last.length and (
        item.queue.at == last.at or memcmp(item.queue.at, last.at, last.length) == 0
    ):
        return queue
    last[0] = item.queue
    return queue_find(core, item.queue) if item.queue.length else NULL


cdef void _make_way(Core* core, Queue* queue) noexcept nogil:
    """Before the first of a command's messages for this queue: all of
    them join what is being built, or none does."""
    if queue.building.count and (
        queue.building.count + queue.coming > MERGED_MESSAGES_MAX
        or queue.building.bytes + queue.coming_bytes > MERGED_BYTES_MAX
    ):
        builder_finish(core, &queue.building)
    queue.coming, queue.coming_bytes = 0, 0
    _list_builder(core, queue)


cdef void _all_or_nothing(Core* core, Queue* queue, Command* command, uint32_t before) noexcept nogil:
    cdef uint32_t i
    cdef bint refused = False
    cdef Building* b
    for i in range(command.count):
        refused = refused or command.items[i].refused != 0
    if not refused:
        for i in range(before, queue.building.count):
            b = &queue.building.items[i]
            weight_brought(core, b.key, b.weight)
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


# --- after the write ---------------------------------------------------------------------------

cdef void _forget(Core* core, Frame* frame) noexcept nogil:
    cdef Queue* queue = frame.queue
    queue.stored_bytes -= frame.body_bytes
    queue.arriving -= frame.count
    queue.arriving_durable -= frame.durable
    queue.counters.enqueued -= frame.count
    directory_remove(&queue.directory, frame)
    visit_soon(core, queue)
    free(frame.times)
    frame_free(core, frame)


cdef inline int _bits(uint32_t number) noexcept nogil:
    cdef int bits = 0
    while number and bits < 31:
        number >>= 1
        bits += 1
    return bits


cdef void enqueue_written(Core* core, uint8_t refused) noexcept nogil:
    """Line up frames and answers behind their epoch; or, where the disk refused, undo and say so."""
    cdef Frame* frame = core.stored
    cdef Frame* following
    cdef Command* command
    cdef Command* next_command
    cdef uint32_t stored = 0
    core.stored = NULL
    weights_written(core, refused != 0)
    dedup_written(core, refused != 0)
    if refused:
        command = core.enqueued
        while command != NULL:
            dedup_forget(core, command)
            command = command.next
    while frame != NULL:
        following = frame.next_dying
        frame.next_dying = NULL
        if refused and frame.own_ids == NULL:
            _forget(core, frame)
        else:                           # what was moved here is written with the settles, and never refused
            stored += frame.count
            reveal_later(core, frame, frame.durable)
        frame = following
    core.enqueued_batch += 1
    if stored:
        core.counters.batch[_bits(stored)] += 1
        core.counters.batch_messages += stored
    command = core.enqueued
    core.enqueued = core.enqueued_last = NULL
    while command != NULL:
        next_command = command.next
        if core.traces != NULL:
            enqueue_written_traced(core, command, refused)
        if command.kind == MOVE_STAGED:     # nobody waits for its answer but sinks/moving.pyx
            _move_written(core, command, refused)
        else:
            if command.firing != NULL:
                schedule_written(<Schedule*> command.firing, refused != 0)
            _answer(core, command, refused)
            command_free(command)
        command = next_command


cdef inline void _move_written(Core* core, Command* command, uint8_t refused) noexcept nogil:
    cdef Command** list = &core.sinks.unmoved if refused else &core.sinks.moved
    command.next = list[0]
    list[0] = command


cdef inline uint64_t _reported_offset(const Command* command, const Item* item) noexcept nogil:
    """None for a tenant: it would count the others' messages."""
    return 0 if command.sees_a_part else item.offset


cdef void _answer(Core* core, Command* command, uint8_t refused) noexcept nogil:
    cdef Buffer payload
    cdef Item* item
    cdef uint32_t i, field
    cdef char text[384]
    cdef uint64_t offset
    cdef size_t size
    buffer_init(&payload)
    if refused:
        command.durable = False         # nothing of it was stored: its answer waits for no sync
    for i in range(command.count):
        if refused and not command.items[i].refused:
            command.items[i].refused = refused
        if command.items[i].refused:
            core.counters.refused += 1
            core.counters.refused_by[command.items[i].refused] += 1
    if command.kind == ENQUEUE or command.kind == FIRE:
        item = command.items
        if item.refused:
            refusal_text_of(item.refused, item.queue, &core.limits, text, sizeof(text))
            put_status(&payload, refusal_code(item.refused), text, refusal_reason(item.refused))
            answer(core, command.token, refusal_code(item.refused), &payload, False)
            return
        put_u8(&payload, v1.ENQUEUE_RESPONSE_MESSAGE_ID << 3 | LEN)
        put_u8(&payload, 36)
        put_uuid(&payload, item.id_high, item.id_low)
        put_number_field(&payload, v1.ENQUEUE_RESPONSE_OFFSET, _reported_offset(command, item))
        answer_enqueued(core, command, &payload)
        return
    field = v1.ENQUEUE_BATCH_RESPONSE_RESULTS
    if command.kind == ENQUEUE_STREAM:
        put_number_field(&payload, v1.ENQUEUE_STREAM_RESPONSE_SEQUENCE, command.sequence)
        field = v1.ENQUEUE_STREAM_RESPONSE_RESULTS
    for i in range(command.count):
        item = &command.items[i]
        put_tag(&payload, field, LEN)
        if item.refused:
            refusal_text_of(item.refused, item.queue, &core.limits, text, sizeof(text))
            core.tail.length = 0
            put_status_field(
                &core.tail, v1.ENQUEUE_RESULT_ERROR, refusal_code(item.refused), text,
                refusal_reason(item.refused))
            put_varint(&payload, core.tail.length)
            put_bytes(&payload, core.tail.data, core.tail.length)
        else:
            offset = _reported_offset(command, item)
            size = 38 + (1 + varint_size(offset) if offset else 0)
            put_varint(&payload, size)
            put_u8(&payload, v1.ENQUEUE_RESULT_MESSAGE_ID << 3 | LEN)
            put_u8(&payload, 36)
            put_uuid(&payload, item.id_high, item.id_low)
            put_number_field(&payload, v1.ENQUEUE_RESULT_OFFSET, offset)
    answer_enqueued(core, command, &payload)
