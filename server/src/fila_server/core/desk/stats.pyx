"""Read by scans over one queue's keys; bounded by the keys asked for in what it writes."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from fila_server.core.desk.explain cimport explain_key
from fila_server.core.desk.roster cimport roster_command
from fila_server.core.life.answers cimport answer, answer_no_channel, answer_no_queue
from fila_server.core.state.directory cimport directory_first, queue_oldest
from fila_server.core.state.kinds cimport DONE, PARKED_THROTTLED
from fila_server.core.state.paths cimport (
    channel_find, frame_offset, key_has_policy, key_weight, queue_find, share_find,
)
from fila_server.core.state.state cimport Channel, Flow, Frame, Key, Queue, Share, Subqueue, ThrottleKey
from fila_server.core.structures.bucket cimport bucket_refill
from fila_server.core.structures.buffer cimport Buffer, Slice, buffer_free, buffer_init, must_malloc
from fila_server.core.structures.maps cimport (
    Map64, map64_free, map64_get, map64_init, map64_put, textmap_next,
)
from fila_server.core.structures.ranking cimport Ranked, keep_largest, largest_first
from fila_server.core.turns.clocks cimport flow_age
from fila_server.core.wire.commands cimport (
    EXPLAIN_KEY, GET_STATS, LIST_CHANNELS, LIST_CONSUMERS, LIST_QUEUES, OK,
)
from fila_server.core.wire.protobuf cimport (
    Fields, fields_parse, put_double_field, put_nested, put_number_field, put_text_field, put_timestamp_field,
)

cdef enum:
    KEYS_DEFAULT = 1000
    KEYS_MAX = 100000


cdef inline Slice _text(const char* at, uint32_t length) noexcept nogil:
    cdef Slice s
    s.at, s.length = at, length
    return s


cdef uint64_t channel_tail(Channel* channel) noexcept nogil:
    """The oldest offset the channel has not finished; the next to be given when it has all."""
    cdef Frame* frame = directory_first(&channel.queue.directory)
    cdef Share* share
    cdef uint32_t i, at
    at = channel.queue.directory.start
    while at < channel.queue.directory.count:
        frame = channel.queue.directory.cells[at].frame
        at += 1
        if frame == NULL:
            continue
        share = share_find(frame, channel)
        if share != NULL and share.remaining:
            for i in range(frame.count):
                if share.slots[i].state != DONE:
                    return frame_offset(frame, i)
        if (
            share == NULL and (frame.only == 0 or frame.only == channel.birth)
            and (not frame.revealed or (channel.rebuild_at and channel.rebuild_at <= frame.first_offset))
        ):
            return frame_offset(frame, 0)
    return channel.queue.next_offset


cdef void _channel_info(Buffer* b, uint32_t field, Channel* channel) noexcept nogil:
    cdef Buffer inner
    buffer_init(&inner)
    put_text_field(&inner, 1, _text(channel.text.bytes, channel.text.length))
    put_number_field(&inner, 2, channel.ready + channel.delayed)
    put_number_field(&inner, 3, channel.in_flight)
    put_number_field(&inner, 4, channel_tail(channel))
    put_number_field(&inner, 5, channel.queue.next_offset)
    put_number_field(&inner, 6, channel.consumers)
    put_timestamp_field(&inner, 7, channel.created_ms)
    put_number_field(&inner, 8, channel.rebuild_at)
    put_nested(b, field, &inner)
    buffer_free(&inner)


cdef void _key_stats(Core* core, Buffer* b, Key* key, Channel* channel, uint64_t pending) noexcept nogil:
    cdef Flow* flow
    cdef Buffer inner
    cdef uint64_t in_flight = 0
    cdef uint64_t age = 0
    cdef uint64_t delivered = 0
    cdef uint64_t served = 0
    cdef int64_t deficit = 0
    cdef bint throttled = False
    flow = key.flows
    while flow != NULL:
        if channel == NULL or flow.channel == channel:
            in_flight += flow.in_flight
            delivered += flow.delivered
            served += flow.served
            deficit = flow.turn.deficit if flow.turn.deficit > deficit else deficit
            if flow.backlog:
                age = max(age, flow_age(core, flow))
                throttled = throttled or flow.parked == PARKED_THROTTLED
        flow = flow.next_of_key
    buffer_init(&inner)
    put_text_field(&inner, 1, _text(key.text.bytes, key.text.length))
    put_number_field(&inner, 2, pending)
    put_number_field(&inner, 3, <uint64_t> deficit)
    put_number_field(&inner, 4, key_weight(key))
    put_number_field(&inner, 5, in_flight)
    put_number_field(&inner, 6, age)
    put_number_field(&inner, 7, delivered)
    put_double_field(&inner, 8, <double> served / 1000.0)
    put_number_field(&inner, 9, key.paused)
    put_number_field(&inner, 10, key.cap)
    put_number_field(&inner, 11, throttled)
    if key.pace != NULL:
        put_double_field(&inner, 12, key.pace.bucket.rate)
        put_double_field(&inner, 13, key.pace.bucket.burst)
    put_nested(b, 6, &inner)
    buffer_free(&inner)


cdef uint64_t _pending(Key* key, Channel* channel) noexcept nogil:
    cdef Flow* flow = key.flows
    cdef uint64_t pending = 0
    while flow != NULL:
        if channel == NULL or flow.channel == channel:
            pending = max(pending, <uint64_t> flow.backlog + flow.delayed)
        flow = flow.next_of_key
    return pending


cdef void _keys(
        Core* core, Queue* queue, Channel* channel, uint32_t most, Buffer* b, uint64_t* active,
        uint64_t* oldest) noexcept nogil:
    cdef Ranked* rows = <Ranked*> must_malloc(most * sizeof(Ranked))
    cdef uint32_t cursor = 0
    cdef uint32_t count = 0
    cdef uint32_t i
    cdef Key* key
    cdef Flow* flow
    cdef uint64_t pending
    while True:
        key = <Key*> textmap_next(&queue.keys, &cursor)
        if key == NULL:
            break
        pending = _pending(key, channel)
        if pending:
            active[0] += 1
            flow = key.flows
            while flow != NULL:
                if flow.backlog and (channel == NULL or flow.channel == channel):
                    oldest[0] = max(oldest[0], flow_age(core, flow))
                flow = flow.next_of_key
            keep_largest(rows, &count, most, key, pending)
        elif key_has_policy(key) or key.refs:
            keep_largest(rows, &count, most, key, 0)
    largest_first(rows, count)
    for i in range(count):
        _key_stats(core, b, <Key*> rows[i].what, channel, rows[i].rank)
    free(rows)


cdef void _count_waiting(Map64* waiting, Key* key, Channel* channel) noexcept nogil:
    """Add the key's messages to the buckets they name: address -> 1 + how many wait in its lines."""
    cdef Flow* flow = key.flows
    cdef Subqueue* sub
    cdef ThrottleKey* bucket
    cdef uint64_t before
    cdef uint32_t i
    while flow != NULL:
        sub = (
            flow.subqueues.first if flow.subqueues != NULL and (channel == NULL or flow.channel == channel)
            else NULL
        )
        while sub != NULL:
            for i in range(sub.set.count):
                bucket = sub.set.members[i]
                before = <uint64_t> map64_get(waiting, <uint64_t> bucket)
                if sub.line != NULL and sub.line.bucket == bucket:
                    map64_put(
                        waiting, <uint64_t> bucket,
                        <void*> ((before if before else <uint64_t> 1) + sub.count))
                elif before == 0 and bucket.limited:
                    map64_put(waiting, <uint64_t> bucket, <void*> 1)
            sub = sub.sibling
        flow = flow.next_of_key


cdef void _buckets(Core* core, Queue* queue, Channel* channel, uint32_t most, Buffer* b) noexcept nogil:
    """The buckets that this queue's pending messages name, those with the longest lines first."""
    cdef Map64 waiting
    cdef Ranked* rows = <Ranked*> must_malloc(most * sizeof(Ranked))
    cdef uint32_t cursor = 0
    cdef uint32_t count = 0
    cdef uint32_t i
    cdef Key* key
    cdef ThrottleKey* bucket
    cdef Buffer inner
    map64_init(&waiting)
    while True:
        key = <Key*> textmap_next(&queue.keys, &cursor)
        if key == NULL:
            break
        _count_waiting(&waiting, key, channel)
    cursor = 0
    while waiting.count:
        bucket = <ThrottleKey*> textmap_next(&core.throttle_keys, &cursor)
        if bucket == NULL:
            break
        if map64_get(&waiting, <uint64_t> bucket) != NULL:
            keep_largest(rows, &count, most, bucket, <uint64_t> map64_get(&waiting, <uint64_t> bucket) - 1)
    largest_first(rows, count)
    buffer_init(&inner)
    for i in range(count):
        bucket = <ThrottleKey*> rows[i].what
        bucket_refill(&bucket.bucket, core.mono_ns, bucket.in_lines > 0)
        inner.length = 0
        put_text_field(&inner, 1, _text(bucket.text.bytes, bucket.text.length))
        put_double_field(&inner, 2, bucket.bucket.level)
        put_double_field(&inner, 3, bucket.bucket.rate)
        put_double_field(&inner, 4, bucket.bucket.burst)
        put_number_field(&inner, 5, rows[i].rank)
        put_nested(b, 7, &inner)
    buffer_free(&inner)
    map64_free(&waiting)
    free(rows)


cdef void _get_stats(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Channel* channel = NULL
    cdef Channel* each
    cdef uint32_t most = <uint32_t> fields.number[3]
    cdef uint64_t active = 0
    cdef uint64_t oldest = 0
    cdef uint64_t consumers = 0
    cdef uint64_t unbegun = 0
    cdef uint64_t returned = 0
    cdef Buffer b
    if fields.text[2].length:
        channel = channel_find(queue, fields.text[2])
        if channel == NULL:
            answer_no_channel(core, command)
            return
    if most == 0:
        most = KEYS_DEFAULT
    if most > KEYS_MAX:
        most = KEYS_MAX
    buffer_init(&b)
    if fields.number[4] == 0:           # else who asks knows what the walks over all keys find
        _keys(core, queue, channel, most, &b, &active, &oldest)
        if core.throttle_keys.count:
            _buckets(core, queue, channel, most, &b)
    each = queue.channels
    while each != NULL:
        if channel == NULL or each == channel:
            consumers += each.consumers
            unbegun += each.unbegun
            returned += each.returned
            _channel_info(&b, 24, each)
        each = each.next
    put_number_field(&b, 1, queue.depth if channel == NULL else channel.ready + channel.delayed)
    put_number_field(&b, 2, queue.in_flight if channel == NULL else channel.in_flight)
    put_number_field(&b, 3, active)
    put_number_field(&b, 4, consumers)
    put_number_field(&b, 5, <uint64_t> core.quantum)
    put_number_field(&b, 10, oldest)
    put_number_field(&b, 12, queue.counters.hard_dropped)
    put_number_field(&b, 13, queue.counters.dead_lettered)
    put_number_field(&b, 14, queue.counters.enqueued)
    put_number_field(&b, 15, queue.counters.delivered)
    put_number_field(&b, 16, queue.counters.acked)
    put_number_field(&b, 17, queue.counters.nacked)
    put_number_field(&b, 18, queue.counters.expired)
    put_number_field(&b, 19, queue.counters.ttl_dropped)
    put_number_field(&b, 20, queue.next_offset)
    put_number_field(&b, 21, queue_oldest(queue) if channel == NULL else channel_tail(channel))
    put_number_field(&b, 22, queue.stored_bytes)
    put_number_field(&b, 23, queue.counters.stale_acks)
    put_number_field(&b, 27, queue.counters.clamped)
    put_number_field(&b, 28, unbegun)
    put_number_field(&b, 29, queue.counters.returned if channel == NULL else returned)
    put_number_field(&b, 30, queue.counters.dead_dropped)
    answer(core, command.token, OK, &b, False)


cdef void _queue_info(Core* core, Buffer* b, Queue* queue) noexcept nogil:
    """A QueueInfo, of what is counted anyway: it costs the same however much the queue holds."""
    cdef Channel* channel = queue.channels
    cdef Frame* oldest = directory_first(&queue.directory)
    cdef uint64_t consumers = 0
    cdef uint32_t active = 0
    while channel != NULL:
        consumers += channel.consumers
        active = max(active, channel.active_keys)
        channel = channel.next
    put_text_field(b, 1, _text(queue.text.bytes, queue.text.length))
    put_number_field(b, 2, queue.depth)
    put_number_field(b, 3, queue.in_flight)
    put_number_field(b, 4, consumers)
    put_number_field(b, 6, queue.counters.enqueued)
    put_number_field(b, 7, queue.counters.delivered)
    put_number_field(b, 8, queue.counters.acked)
    put_number_field(b, 9, queue.counters.dead_lettered)
    if oldest != NULL and queue.depth + queue.in_flight:
        put_number_field(b, 10, <uint64_t> max(core.wall_ms - oldest.appended_ms, <int64_t> 0))
    put_number_field(b, 11, active)
    put_number_field(b, 12, queue.policy.paused)


cdef void _list_queues(Core* core, Command* command) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef Queue* queue
    cdef Buffer b
    cdef Buffer inner
    buffer_init(&b)
    buffer_init(&inner)
    put_number_field(&b, 2, 1)          # nodes: this one
    while True:
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            break
        inner.length = 0
        _queue_info(core, &inner, queue)
        put_nested(&b, 1, &inner)
    buffer_free(&inner)
    answer(core, command.token, OK, &b, False)


cdef void _list_channels(Core* core, Command* command, Queue* queue) noexcept nogil:
    cdef Buffer b
    cdef Channel* channel = queue.channels
    buffer_init(&b)
    while channel != NULL:
        _channel_info(&b, 1, channel)
        channel = channel.next
    answer(core, command.token, OK, &b, False)


cdef void stats_command(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Queue* queue
    fields_parse(&fields, command.bytes, command.length)
    if command.kind == LIST_QUEUES:
        _list_queues(core, command)
        return
    queue = queue_find(core, fields.text[1])
    if queue == NULL:
        answer_no_queue(core, command)
    elif command.kind == GET_STATS:
        _get_stats(core, command, &fields, queue)
    elif command.kind == LIST_CHANNELS:
        _list_channels(core, command, queue)
    elif command.kind == LIST_CONSUMERS:
        roster_command(core, command, &fields, queue)
    elif command.kind == EXPLAIN_KEY:
        explain_key(core, command, &fields, queue)
