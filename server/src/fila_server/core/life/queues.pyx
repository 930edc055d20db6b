"""See queues.pxd."""

from libc.string cimport memcmp, memcpy, memset

from fila_server.core.records.records cimport reservation_record_put
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.maps cimport map64_init, map64_put, textmap_init, textmap_put
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
    textmap_init(&queue.policy.weights)
    map64_init(&queue.expiries)
    queue.building.queue = queue
    queue.moving.queue = queue
    queue.is_dlq = name.length > 4 and memcmp(name.at + name.length - 4, b".dlq", 4) == 0
    textmap_put(&core.queues, &queue.text)
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
    return channel
