"""See frame_record.pxd."""

from libc.stdint cimport int64_t, uint32_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.holdings.frames cimport frame_free, frame_new
from fila_server.core.holdings.keys cimport key_intern
from fila_server.core.records.records cimport VERSION, WITH_EXPLICIT, WITH_ONLY, WITH_TIMES
from fila_server.core.state.pending cimport Explicit
from fila_server.core.state.state cimport Entry
from fila_server.core.structures.buffer cimport (
    Cursor, Slice, must_malloc, take_slice, take_u64be, take_u8, take_varint, take_zigzag,
)
from fila_server.core.turns.throttle cimport set_intern


cdef bint _read_routing(Core* core, Queue* queue, Cursor* c, Entry* entry) noexcept nogil:
    cdef Slice key
    cdef Slice text
    cdef Slice names[16]
    cdef Cursor inner
    cdef uint64_t weight, cost
    cdef uint32_t count = 0
    key = take_slice(c, take_varint(c))
    weight = take_varint(c)
    cost = take_varint(c)
    text = take_slice(c, take_varint(c))
    inner.at, inner.end, inner.bad = text.at, text.at + text.length, False
    while not c.bad and inner.at < inner.end and count < 16:
        if inner.end - inner.at < 4:
            return False
        names[count] = take_slice(&inner, _u32(&inner))
        if inner.bad:
            return False
        count += 1
    if c.bad or weight < 1 or weight > 1000 or cost < 1 or cost > 1000000000:
        return False
    entry.key = key_intern(core, queue, key)
    if not entry.key.recorded:          # a record of its own is newer than any frame
        entry.key.weight = <unsigned short> weight
    entry.cost = <uint32_t> cost
    entry.set = set_intern(core, names, count)
    return True


cdef inline uint64_t _u32(Cursor* c) noexcept nogil:
    cdef uint64_t value = (
        (<uint64_t> take_u8(c) << 24) | (<uint64_t> take_u8(c) << 16) | (<uint64_t> take_u8(c) << 8)
    )
    return value | take_u8(c)


cdef Frame* frame_record_read(Core* core, Queue* queue, uint64_t first_offset, const char* value, size_t length, Times** times) noexcept nogil:
    cdef Cursor c
    cdef Frame* frame
    cdef Entry* entry
    cdef Entry* routed
    cdef uint32_t* routing_of           # routing number -> entry that brought it
    cdef uint64_t count, number, length_of, at = 0
    cdef uint32_t i, routings = 0
    cdef uint8_t flags
    cdef bint good = True
    times[0] = NULL
    c.at, c.end, c.bad = value, value + length, False
    if take_u8(&c) != VERSION:
        return NULL
    flags = take_u8(&c)
    count = take_varint(&c)
    if c.bad or count == 0 or count > length:
        return NULL
    frame = frame_new(core, queue, <uint32_t> count)
    frame.first_offset = first_offset
    frame.id_high = take_u64be(&c)
    frame.id_low = take_u64be(&c)
    frame.appended_ms = <int64_t> take_varint(&c)
    frame.body_bytes = <uint32_t> take_varint(&c)
    if flags & WITH_ONLY:
        frame.only = take_varint(&c)
    if flags & WITH_EXPLICIT:
        frame.explicit = <Explicit*> must_malloc(count * sizeof(Explicit))
        memset(frame.explicit, 0, count * sizeof(Explicit))
    if flags & WITH_TIMES:
        times[0] = <Times*> must_malloc(count * sizeof(Times))
    routing_of = <uint32_t*> must_malloc(count * sizeof(uint32_t))
    for i in range(<uint32_t> count):
        entry = &frame.entries[i]
        number = take_varint(&c)
        if number == 0:
            if not _read_routing(core, queue, &c, entry):
                good = False
                break
            routing_of[routings] = i
            routings += 1
        elif number > routings:
            good = False
            break
        else:
            routed = &frame.entries[routing_of[number - 1]]
            entry.key = routed.key
            entry.key.refs += 1
            entry.set = routed.set
            if entry.set != NULL:
                entry.set.refs += 1
            entry.cost = routed.cost
        number = take_varint(&c)
        length_of = take_varint(&c)
        if number > frame.body_bytes - at or length_of > frame.body_bytes - at - number:
            good = False                # each on its own: a sum of the three may wrap around and look small
            break
        entry.at = <uint32_t> (at + number)
        entry.length = <uint32_t> length_of
        at = entry.at + length_of
        entry.enqueued_delta_ms = <int> take_zigzag(&c)
        if flags & WITH_TIMES:
            times[0][i].deliver_at_ms = <int64_t> take_varint(&c)
            times[0][i].expires_ms = <int64_t> take_varint(&c)
        if flags & WITH_EXPLICIT:
            frame.explicit[i].id_high = take_u64be(&c)
            frame.explicit[i].id_low = take_u64be(&c)
            frame.explicit[i].offset = first_offset + take_varint(&c)
            frame.explicit[i].enqueued_ms = <int64_t> take_varint(&c)
            frame.explicit[i].appended_ms = <int64_t> take_varint(&c)
        if c.bad:
            good = False
            break
        frame.live_bytes += entry.length
    free(routing_of)
    if not good or c.at != c.end:
        free(times[0])
        times[0] = NULL
        frame_free(core, frame)
        return NULL
    return frame
