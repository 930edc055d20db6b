"""A queue or channel is in its tables before its record is written, in the same pass."""

from libc.string cimport memcmp, memcpy, memset

from fila_server.core.formats.records cimport reservation_record_put
from fila_server.core.index.visits cimport visit_soon
from fila_server.core.scheduling.clocks cimport channel_room
from fila_server.core.scheduling.eligibility cimport channel_deactivate
from fila_server.core.scheduling.tokens cimport channel_full
from fila_server.core.state.kinds cimport SOUGHT
from fila_server.core.state.state cimport Consumer
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.maps cimport map64_init, map64_put, textmap_init, textmap_put, textmap_remove
from fila_server.core.structures.ring cimport ring_init

cdef enum:
    NUMBERS_RESERVED = 1000


cdef uint64_t number_next(Core* core) noexcept nogil:
    """A number for a queue or channel, never used twice: its record is synced with the one that uses it."""
    core.next_number += 1
    if core.next_number > core.number_reserved:
        core.number_reserved = core.next_number + NUMBERS_RESERVED
        reservation_record_put(core, b"numbers", core.number_reserved)
        core.sync_wanted = True
    return core.next_number


# --- queues ----------------------------------------------------------------------------------

cdef Queue* queue_new(Core* core, Slice name, uint64_t number) noexcept nogil:
    cdef Queue* queue = <Queue*> must_malloc(sizeof(Queue) + name.length)
    cdef char* bytes = <char*> queue + sizeof(Queue)
    memset(queue, 0, sizeof(Queue))
    memcpy(bytes, name.at, name.length)
    queue.text.bytes = bytes
    queue.text.length = name.length
    queue.number = number
    queue.created_ms = core.wall_ms
    queue.used_ms = core.heard_ms
    queue.next_offset = 1
    textmap_init(&queue.keys)
    textmap_init(&queue.channels_by_name)
    textmap_init(&queue.dedup)
    textmap_init(&queue.schedules)
    textmap_init(&queue.policy.weights)
    map64_init(&queue.expiries)
    queue.building.queue = queue
    queue.moving.queue = queue
    queue.is_dlq = name.length > 4 and memcmp(name.at + name.length - 4, b".dlq", 4) == 0
    textmap_put(&core.queues, &queue.text)
    visit_soon(core, queue)
    map64_put(&core.queues_by_number, number, queue)
    return queue


# --- channels --------------------------------------------------------------------------------

cdef Channel* channel_new(
        Core* core, Queue* queue, Slice name, uint64_t number, uint64_t start_offset) noexcept nogil:
    cdef Channel* channel = <Channel*> must_malloc(sizeof(Channel) + name.length)
    cdef char* bytes = <char*> channel + sizeof(Channel)
    memset(channel, 0, sizeof(Channel))
    memcpy(bytes, name.at, name.length)
    channel.text.bytes = bytes
    channel.text.length = name.length
    channel.queue = queue
    channel.number = channel.birth = number
    channel.start_offset = start_offset
    channel.created_ms = channel.touched_ms = core.wall_ms
    channel.used_ms = core.heard_ms
    channel.next_position = 1
    channel.placed_to = queue.next_offset - 1
    ring_init(&channel.ring, core.quantum)
    channel.next = queue.channels
    queue.channels = channel
    queue.channel_count += 1
    textmap_put(&queue.channels_by_name, &channel.text)
    visit_soon(core, queue)
    return channel


cdef void channel_rebuild_end(Core* core, Channel* channel) noexcept nogil:
    if channel.rebuild_at:
        channel.rebuild_at = 0
        core.rebuilding -= 1
        visit_soon(core, channel.queue)


cdef void channel_part(Core* core, Channel* channel, uint8_t gone) noexcept nogil:
    """Off the tables and the turn of channels. What it holds on disk and in memory is the caller's."""
    cdef Queue* queue = channel.queue
    cdef Channel** link = &queue.channels
    while link[0] != channel:
        link = &link[0].next
    link[0] = channel.next
    queue.channel_count -= 1
    textmap_remove(&queue.channels_by_name, &channel.text)
    channel_rebuild_end(core, channel)
    channel_deactivate(core, channel)
    channel.gone = gone
    visit_soon(core, queue)
    link = &queue.gone
    while link[0] != NULL:
        link = &link[0].next
    link[0] = channel
    channel.next = NULL


cdef void _consumers_move(Channel* old, Channel* fresh) noexcept nogil:
    cdef Consumer* first[2]
    cdef Consumer* consumer
    cdef int i
    first[0], first[1] = old.turn, old.away
    fresh.turn, fresh.away = old.turn, old.away
    old.turn = old.away = NULL
    for i in range(2):
        consumer = first[i]
        while consumer != NULL:
            consumer.channel = fresh
            consumer = consumer.next if consumer.next != first[i] else NULL
    fresh.consumers, fresh.waiting_pulls = old.consumers, old.waiting_pulls
    old.consumers = old.waiting_pulls = 0


cdef Channel* channel_anew(Core* core, Channel* old) noexcept nogil:
    cdef Slice name
    cdef Channel* fresh
    cdef Channel* before = old.queue.channels if old.queue.channels != old else NULL
    while before != NULL and before.next != old:
        before = before.next
    name.at, name.length = old.text.bytes, old.text.length
    channel_part(core, old, SOUGHT)
    fresh = channel_new(core, old.queue, name, number_next(core), old.start_offset)
    if before != NULL:                  # where the old one stood
        old.queue.channels = fresh.next
        fresh.next = before.next
        before.next = fresh
    fresh.birth, fresh.created_ms, fresh.idle_after_ms = old.birth, old.created_ms, old.idle_after_ms
    fresh.touched_ms, fresh.used_ms, fresh.noticed_ms = old.touched_ms, old.used_ms, old.noticed_ms
    fresh.leased, fresh.delivered = old.leased, old.delivered
    fresh.acked, fresh.returned, fresh.failed = old.acked, old.returned, old.failed
    fresh.served, fresh.hour = old.served, old.hour
    _consumers_move(old, fresh)
    channel_full(core, old)             # tokens that were counted on here are others' now
    if fresh.turn != NULL:
        channel_room(core, fresh, True)
    return fresh
