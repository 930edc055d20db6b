"""Of what is counted anyway; what only a walk over a queue's keys can tell is in core/admin/key_stats."""

from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.admin.explain cimport explain_key
from fila_server.core.admin.key_stats cimport CELLS_AT_ONCE, Walked, key_stats_page, keys_walk
from fila_server.core.index.ages cimport channel_age, channel_lease_age, queue_age, queue_lease_age
from fila_server.core.index.holders cimport holder_bound, holder_reported, holder_room
from fila_server.core.index.policy cimport QUEUE_PAUSED, channel_paused
from fila_server.core.lifecycle.answers cimport answer, answer_no_channel, answer_no_queue
from fila_server.core.protocol cimport seam, v1
from fila_server.core.protocol.commands cimport (
    EXPLAIN_KEY, GET_STATS, LIST_CHANNELS, LIST_CONSUMERS, LIST_QUEUES, OK, STATS_PAGE,
)
from fila_server.core.protocol.protobuf cimport (
    VARINT, fields_parse, next_field, put_nested, put_number_field, put_tag, put_text_field,
    put_timestamp_field,
)
from fila_server.core.state.directory cimport directory_from, directory_next, queue_oldest
from fila_server.core.state.kinds cimport DONE, PULL
from fila_server.core.state.paths cimport (
    channel_find, frame_last_offset, frame_offset, queue_find, share_find,
)
from fila_server.core.state.pending cimport Holder
from fila_server.core.state.state cimport Channel, Consumer, Directory, Frame, Key, Share
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc, put_varint,
)
from fila_server.core.structures.maps cimport map64_get, text_hash, textmap_get_hashed, textmap_next
from fila_server.core.structures.ranking cimport Ranked, keep_largest, largest_first


cdef inline Slice _text(const char* at, uint32_t length) noexcept nogil:
    cdef Slice s
    s.at, s.length = at, length
    return s


cdef uint64_t channel_tail(Channel* channel) noexcept nogil:
    """The oldest offset the channel has not finished; the next to be given when it has all.

    What is finished stays so until a seek, which makes the channel anew: each look goes on where the last one
    found something, however much is kept in front of that.
    """
    cdef Directory* directory = &channel.queue.directory
    cdef Frame* frame
    cdef Share* share
    cdef uint32_t i
    cdef uint32_t cell = directory_from(directory, max(channel.tail_from, channel.start_offset))
    while True:
        frame = directory_next(directory, &cell)
        if frame == NULL:
            break
        channel.tail_from = frame.first_offset
        share = share_find(frame, channel)
        if share != NULL and share.remaining:
            for i in range(frame.count):
                if share.slots[i].state != DONE:
                    return frame_offset(frame, i)
        if (
            share == NULL and (frame.only == 0 or frame.only == channel.birth)
            and (
                not frame.revealed
                or (channel.rebuild_at and channel.rebuild_at <= frame_last_offset(frame)))
        ):
            return max(frame_offset(frame, 0), channel.start_offset)
    channel.tail_from = channel.queue.next_offset
    return channel.queue.next_offset


cdef void _channel_info(Buffer* b, uint32_t field, Channel* channel) noexcept nogil:
    cdef Buffer inner
    buffer_init(&inner)
    put_text_field(&inner, v1.CHANNEL_INFO_NAME, _text(channel.text.bytes, channel.text.length))
    put_number_field(&inner, v1.CHANNEL_INFO_DEPTH, channel.ready + channel.delayed)
    put_number_field(&inner, v1.CHANNEL_INFO_IN_FLIGHT, channel.in_flight)
    put_number_field(&inner, v1.CHANNEL_INFO_TAIL_OFFSET, channel_tail(channel))
    put_number_field(&inner, v1.CHANNEL_INFO_HEAD_OFFSET, channel.queue.next_offset)
    put_number_field(&inner, v1.CHANNEL_INFO_CONSUMERS, channel.consumers)
    put_timestamp_field(&inner, v1.CHANNEL_INFO_CREATED_AT, channel.created_ms)
    put_number_field(&inner, v1.CHANNEL_INFO_REPLAY_OFFSET, channel.rebuild_at)
    put_number_field(&inner, v1.CHANNEL_INFO_PAUSED, channel_paused(channel))
    put_nested(b, field, &inner)
    buffer_free(&inner)


cdef void _put_counters(Core* core, Buffer* b, Queue* queue) noexcept nogil:
    put_timestamp_field(b, v1.GET_STATS_RESPONSE_TOTALS_SINCE, max(core.opened_ms, queue.created_ms))
    put_number_field(b, v1.GET_STATS_RESPONSE_HARD_DROPPED, queue.counters.hard_dropped)
    put_number_field(b, v1.GET_STATS_RESPONSE_DEAD_LETTERED_TOTAL, queue.counters.dead_lettered)
    put_number_field(b, v1.GET_STATS_RESPONSE_ENQUEUED_TOTAL, queue.counters.enqueued)
    put_number_field(b, v1.GET_STATS_RESPONSE_LEASED_TOTAL, queue.counters.leased)
    put_number_field(b, v1.GET_STATS_RESPONSE_DELIVERED_TOTAL, queue.counters.delivered)
    put_number_field(b, v1.GET_STATS_RESPONSE_ACKED_TOTAL, queue.counters.acked)
    put_number_field(b, v1.GET_STATS_RESPONSE_NACKED_TOTAL, queue.counters.nacked)
    put_number_field(b, v1.GET_STATS_RESPONSE_EXPIRED_TOTAL, queue.counters.expired)
    put_number_field(b, v1.GET_STATS_RESPONSE_TTL_DROPPED_TOTAL, queue.counters.ttl_dropped)
    put_number_field(b, v1.GET_STATS_RESPONSE_STALE_ACKS_TOTAL, queue.counters.stale_acks)
    put_number_field(b, v1.GET_STATS_RESPONSE_WEIGHTS_CLAMPED_TOTAL, queue.counters.clamped)
    put_number_field(b, v1.GET_STATS_RESPONSE_DEAD_LETTERS_DROPPED_TOTAL, queue.counters.dead_dropped)


cdef void _get_stats(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Channel* channel = NULL
    cdef Channel* each
    cdef Walked walked
    # The one that asks without them knows what a walk over all keys finds.
    cdef bint is_all = fields.number[seam.STATS_ASKED_WITHOUT_KEYS] != 0
    cdef uint64_t consumers = 0
    cdef uint64_t unbegun = 0
    cdef uint64_t returned = 0
    cdef Buffer b
    if fields.text[seam.STATS_ASKED_CHANNEL].length:
        channel = channel_find(queue, fields.text[seam.STATS_ASKED_CHANNEL])
        if channel == NULL:
            answer_no_channel(core, command)
            return
    buffer_init(&b)
    if not is_all and queue.keys.capacity <= CELLS_AT_ONCE:
        walked = keys_walk(
            core, queue, channel, fields.number[seam.STATS_ASKED_MOST], 0, 0, CELLS_AT_ONCE, False, &b)
        put_number_field(&b, v1.GET_STATS_RESPONSE_ACTIVE_FAIRNESS_KEYS, walked.active)
        is_all = walked.cursor >= queue.keys.capacity
    if not is_all:
        b.length = 0
        put_number_field(&b, seam.STATS_LEFT_KEYS_LEFT, 1)        # the edge walks, and adds what is found
    each = queue.channels
    while each != NULL:
        if channel == NULL or each == channel:
            consumers += each.consumers
            unbegun += each.unbegun
            returned += each.returned
            _channel_info(&b, v1.GET_STATS_RESPONSE_CHANNELS, each)
        each = each.next
    put_number_field(
        &b, v1.GET_STATS_RESPONSE_DEPTH, queue.depth if channel == NULL else channel.ready + channel.delayed)
    put_number_field(
        &b, v1.GET_STATS_RESPONSE_IN_FLIGHT, queue.in_flight if channel == NULL else channel.in_flight)
    put_number_field(
        &b, v1.GET_STATS_RESPONSE_OLDEST_AGE_MS,
        queue_age(core, queue) if channel == NULL else channel_age(core, channel))
    put_number_field(
        &b, v1.GET_STATS_RESPONSE_OLDEST_LEASE_AGE_MS,
        queue_lease_age(core, queue) if channel == NULL else channel_lease_age(core, channel))
    put_number_field(&b, v1.GET_STATS_RESPONSE_ACTIVE_CONSUMERS, consumers)
    put_number_field(&b, v1.GET_STATS_RESPONSE_QUANTUM, <uint64_t> core.quantum)
    _put_counters(core, &b, queue)
    put_number_field(&b, v1.GET_STATS_RESPONSE_HEAD_OFFSET, queue.next_offset)
    put_number_field(
        &b, v1.GET_STATS_RESPONSE_TAIL_OFFSET,
        queue_oldest(queue) if channel == NULL else channel_tail(channel))
    put_number_field(&b, v1.GET_STATS_RESPONSE_STORED_BYTES, queue.stored_bytes)
    put_number_field(&b, v1.GET_STATS_RESPONSE_UNBEGUN, unbegun)
    put_number_field(
        &b, v1.GET_STATS_RESPONSE_RETURNED_TOTAL, queue.counters.returned if channel == NULL else returned)
    _identity(&b, queue)
    answer(core, command.token, OK, &b, False)


cdef void _identity(Buffer* b, Queue* queue) noexcept nogil:
    """Which queue this is, and how long it keeps messages: what a reader of its log judges offsets by."""
    cdef char creation[64]
    cdef int length
    cdef Buffer kept
    # A number is never used twice in a data directory; another directory begins with the same numbers again.
    length = snprintf(
        creation, sizeof(creation), b"%llx-%llx", <unsigned long long> queue.number,
        <unsigned long long> queue.created_ms)
    put_text_field(b, v1.GET_STATS_RESPONSE_CREATION_ID, _text(creation, <uint32_t> length))
    buffer_init(&kept)
    put_number_field(&kept, v1.RETENTION_SOFT_PERIOD_MS, queue.policy.soft_period_ms)
    put_number_field(&kept, v1.RETENTION_SOFT_BYTES, queue.policy.soft_bytes)
    put_number_field(&kept, v1.RETENTION_HARD_PERIOD_MS, queue.policy.hard_period_ms)
    put_number_field(&kept, v1.RETENTION_HARD_BYTES, queue.policy.hard_bytes)
    put_nested(b, v1.GET_STATS_RESPONSE_RETENTION, &kept)
    buffer_free(&kept)


cdef void _queue_info(Core* core, Buffer* b, Queue* queue) noexcept nogil:
    """A QueueInfo, of what is counted anyway: it costs the same however much the queue holds."""
    cdef Channel* channel = queue.channels
    cdef uint64_t consumers = 0
    cdef uint32_t active = 0
    while channel != NULL:
        consumers += channel.consumers
        active = max(active, channel.active_keys)
        channel = channel.next
    put_text_field(b, v1.QUEUE_INFO_NAME, _text(queue.text.bytes, queue.text.length))
    put_number_field(b, v1.QUEUE_INFO_DEPTH, queue.depth)
    put_number_field(b, v1.QUEUE_INFO_IN_FLIGHT, queue.in_flight)
    put_number_field(b, v1.QUEUE_INFO_ACTIVE_CONSUMERS, consumers)
    put_number_field(b, v1.QUEUE_INFO_ENQUEUED_TOTAL, queue.counters.enqueued)
    put_number_field(b, v1.QUEUE_INFO_DELIVERED_TOTAL, queue.counters.delivered)
    put_number_field(b, v1.QUEUE_INFO_ACKED_TOTAL, queue.counters.acked)
    put_number_field(b, v1.QUEUE_INFO_DEAD_LETTERED_TOTAL, queue.counters.dead_lettered)
    put_number_field(b, v1.QUEUE_INFO_OLDEST_AGE_MS, queue_age(core, queue))
    put_number_field(b, v1.QUEUE_INFO_OLDEST_LEASE_AGE_MS, queue_lease_age(core, queue))
    put_number_field(b, v1.QUEUE_INFO_ACTIVE_FAIRNESS_KEYS, active)
    put_number_field(b, v1.QUEUE_INFO_PAUSED, queue.policy.paused & QUEUE_PAUSED)
    put_timestamp_field(b, v1.QUEUE_INFO_TOTALS_SINCE, max(core.opened_ms, queue.created_ms))


cdef void _list_queue(Core* core, Buffer* b, Buffer* inner, Queue* queue) noexcept nogil:
    inner.length = 0
    _queue_info(core, inner, queue)
    put_nested(b, v1.LIST_QUEUES_RESPONSE_QUEUES, inner)


cdef void _list_queues(Core* core, Command* command) noexcept nogil:
    """Those that are named, or all."""
    cdef uint32_t cursor = 0
    cdef Queue* queue
    cdef Buffer b
    cdef Buffer inner
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice name
    cdef uint64_t number
    buffer_init(&b)
    buffer_init(&inner)
    put_number_field(&b, v1.LIST_QUEUES_RESPONSE_CLUSTER_NODE_COUNT, 1)          # nodes: this one
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &name, &number):
        if field == seam.QUEUES_ASKED_NAMES:
            queue = queue_find(core, name)
            if queue != NULL:
                _list_queue(core, &b, &inner, queue)
    while command.length == 0:
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            break
        _list_queue(core, &b, &inner, queue)
    buffer_free(&inner)
    answer(core, command.token, OK, &b, False)


cdef void _list_channels(Core* core, Command* command, Queue* queue) noexcept nogil:
    cdef Buffer b
    cdef Channel* channel = queue.channels
    buffer_init(&b)
    while channel != NULL:
        _channel_info(&b, v1.LIST_CHANNELS_RESPONSE_CHANNELS, channel)
        channel = channel.next
    answer(core, command.token, OK, &b, False)


cdef void stats_command(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Queue* queue
    fields_parse(&fields, command.bytes, command.length)
    if command.kind == LIST_QUEUES:
        _list_queues(core, command)
        return
    queue = queue_find(core, fields.text[seam.STATS_ASKED_QUEUE])
    if queue == NULL:
        answer_no_queue(core, command)
    elif command.kind == GET_STATS:
        _get_stats(core, command, &fields, queue)
    elif command.kind == STATS_PAGE:
        key_stats_page(core, command, &fields, queue)
    elif command.kind == LIST_CHANNELS:
        _list_channels(core, command, queue)
    elif command.kind == LIST_CONSUMERS:
        roster_command(core, command, &fields, queue)
    elif command.kind == EXPLAIN_KEY:
        explain_key(core, command, &fields, queue)


# --- messages in flight by principal ---------------------------------------------------------

cdef void _bound_and_report(Core* core, const Fields* asked, Buffer* reported) noexcept nogil:
    cdef Holder* holder = <Holder*> map64_get(&core.holders, asked.number[seam.HOLDER_PRINCIPAL])
    if holder == NULL:                  # nothing of it is here; it brings its bound along
        return
    holder_bound(core, holder, <uint32_t> asked.number[seam.HOLDER_MOST])
    put_number_field(reported, seam.HELD_ROW_IN_FLIGHT, holder.in_flight)
    put_number_field(reported, seam.HELD_ROW_REFUSED, holder.refused)
    holder_reported(core, holder)


cdef void in_flight_command(Core* core, Command* command) noexcept nogil:
    cdef Cursor c
    cdef uint32_t field, kind
    cdef Slice text
    cdef uint64_t number
    cdef Fields asked
    cdef Buffer row
    cdef Buffer b
    buffer_init(&b)
    buffer_init(&row)
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == seam.HOLDERS_HOLDERS and fields_parse(&asked, text.at, text.length):
            row.length = 0
            _bound_and_report(core, &asked, &row)
            put_nested(&b, seam.HELD_ROWS, &row)     # an empty one too: the rows answer one by one
    buffer_free(&row)
    answer(core, command.token, OK, &b, False)


# --- bytes by fairness key -------------------------------------------------------------------

cdef enum:
    KEYS_MAX = 64
    QUEUES_A_PART = 512             # 32,768 look-ups in one command; some milliseconds of a pass


cdef void stored_command(Core* core, Command* command) noexcept nogil:
    cdef Slice[KEYS_MAX] names
    cdef uint64_t[KEYS_MAX] hashes
    cdef uint64_t[KEYS_MAX] stored
    cdef Cursor c
    cdef Slice text
    cdef Buffer b
    cdef Queue* queue
    cdef Key* key
    cdef uint64_t number
    cdef uint32_t field, kind, i, queues = 0, count = 0, cursor = 0
    memset(stored, 0, sizeof(stored))
    c.at, c.end, c.bad = command.bytes, command.bytes + command.length, False
    while next_field(&c, &field, &kind, &text, &number):
        if field == seam.STORED_PAGE_KEYS and count < KEYS_MAX:
            names[count] = text
            hashes[count] = text_hash(text.at, text.length)
            count += 1
        elif field == seam.STORED_PAGE_CURSOR:
            cursor = <uint32_t> number
    while queues < QUEUES_A_PART:
        queue = <Queue*> textmap_next(&core.queues, &cursor)
        if queue == NULL:
            break
        queues += 1
        for i in range(count):
            key = <Key*> textmap_get_hashed(&queue.keys, names[i].at, names[i].length, hashes[i])
            if key != NULL:
                stored[i] += key.stored_bytes
    buffer_init(&b)
    for i in range(count):
        # Zeros too: the numbers answer the keys one by one.
        put_tag(&b, seam.STORED_BYTES_STORED, VARINT)
        put_varint(&b, stored[i])
    put_number_field(&b, seam.STORED_BYTES_CURSOR, cursor if queues == QUEUES_A_PART else 0)
    put_number_field(&b, seam.STORED_BYTES_CAPACITY, core.queues.capacity)
    answer(core, command.token, OK, &b, False)


# --- who consumes a queue --------------------------------------------------------------------
# Consumers stand on their channel's two circles, those here and those away; the oldest of both are
# kept by number.

cdef enum:
    CONSUMERS_MAX = 10000           # the oldest; one connection has as many streams at most


cdef void _gather(Consumer* first, Ranked* rows, uint32_t* count) noexcept nogil:
    """Numbers only grow, so the oldest have the lowest."""
    cdef Consumer* consumer = first
    while consumer != NULL:
        if consumer.kind != PULL:
            keep_largest(rows, count, CONSUMERS_MAX, consumer, UINT64_MAX - consumer.number)
        consumer = consumer.next if consumer.next != first else NULL


cdef Slice _slice_of(const Buffer* b) noexcept nogil:
    cdef Slice s
    s.at, s.length = b.data, <uint32_t> b.length
    return s


cdef void _put(Buffer* b, Consumer* consumer) noexcept nogil:
    cdef Buffer row
    cdef Slice channel
    channel.at, channel.length = consumer.channel.text.bytes, consumer.channel.text.length
    buffer_init(&row)
    put_number_field(&row, v1.CONSUMER_INFO_CONSUMER_ID, consumer.number)
    if consumer.name.length:
        put_text_field(&row, v1.CONSUMER_INFO_NAME, _slice_of(&consumer.name))
    if consumer.peer.length:
        put_text_field(&row, v1.CONSUMER_INFO_PEER, _slice_of(&consumer.peer))
    put_text_field(&row, v1.CONSUMER_INFO_CHANNEL, channel)
    put_number_field(&row, v1.CONSUMER_INFO_HELD, consumer.in_flight)
    put_number_field(&row, v1.CONSUMER_INFO_BEGUN, consumer.begun)
    put_number_field(&row, v1.CONSUMER_INFO_RETURNED_TOTAL, consumer.returned)
    put_number_field(&row, v1.CONSUMER_INFO_HANDLING_TIME_US, consumer.handling_us)
    put_number_field(&row, v1.CONSUMER_INFO_WINDOW, consumer.limit)
    put_number_field(&row, v1.CONSUMER_INFO_TRACKS_BEGUN, consumer.tracks_begun)
    put_timestamp_field(&row, v1.CONSUMER_INFO_CONNECTED_AT, consumer.opened_ms)
    put_number_field(&row, v1.CONSUMER_INFO_AWAY, consumer.away)
    put_number_field(&row, v1.CONSUMER_INFO_AT_QUOTA, holder_room(consumer.holder) == 0)
    put_nested(b, v1.LIST_CONSUMERS_RESPONSE_CONSUMERS, &row)
    buffer_free(&row)


cdef void roster_command(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil:
    cdef Channel* channel = queue.channels
    cdef Channel* only = NULL
    cdef Ranked* rows
    cdef uint32_t count = 0
    cdef uint32_t i
    cdef Buffer b
    if fields.text[v1.LIST_CONSUMERS_REQUEST_CHANNEL].length:
        only = channel_find(queue, fields.text[v1.LIST_CONSUMERS_REQUEST_CHANNEL])
        if only == NULL:
            answer_no_channel(core, command)
            return
    rows = <Ranked*> must_malloc(CONSUMERS_MAX * sizeof(Ranked))
    while channel != NULL:
        if only == NULL or channel == only:
            _gather(channel.turn, rows, &count)
            _gather(channel.away, rows, &count)
        channel = channel.next
    largest_first(rows, count)
    buffer_init(&b)
    for i in range(count):
        _put(&b, <Consumer*> rows[i].what)
    free(rows)
    answer(core, command.token, OK, &b, False)
