"""Offsets are reserved ahead by the queue's record; ids count on from a recorded time, so that a clock
set back repeats none.
"""

from fila_server.core.formats.records cimport queue_record_put
from fila_server.core.formats.reservations cimport OFFSETS_RESERVED
from fila_server.core.structures.maps cimport map64_get


cdef uint64_t random_next(Core* core) noexcept nogil:
    """xorshift128+ (Vigna 2017), seeded from outside: one seed, one run."""
    cdef uint64_t a = core.random[0]
    cdef uint64_t b = core.random[1]
    core.random[0] = b
    a ^= a << 23
    core.random[1] = a ^ b ^ (a >> 17) ^ (b >> 26)
    return core.random[1] + b


cdef void id_next(Core* core, uint64_t* high, uint64_t* low) noexcept nogil:
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


cdef uint64_t offsets_next(Core* core, Queue* queue, uint32_t count) noexcept nogil:
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


cdef void note_offset(Core* core, uint64_t queue_number, uint64_t offset) noexcept nogil:
    cdef Queue* queue = <Queue*> map64_get(&core.queues_by_number, queue_number)
    if queue != NULL and offset >= queue.next_offset:
        queue.next_offset = offset + 1
