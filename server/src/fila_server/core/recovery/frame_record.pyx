"""The record's positions are checked against the frame's bytes before any entry is made of them."""

from libc.stdint cimport UINT32_MAX, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.formats.index_record cimport (
    IndexEntry, IndexRecord, index_begin, index_is_whole, index_next,
)
from fila_server.core.formats.records cimport WITH_OWN_IDS, WITH_TIMES
from fila_server.core.index.frames cimport frame_free, frame_new
from fila_server.core.index.keys cimport key_intern
from fila_server.core.scheduling.throttle cimport set_intern
from fila_server.core.state.pending cimport OwnIds
from fila_server.core.state.state cimport Entry
from fila_server.core.structures.buffer cimport Cursor, Slice, must_malloc, read_u32be, take_slice


cdef bint _set_routing(Core* core, Queue* queue, const IndexEntry* found, Entry* entry) noexcept nogil:
    cdef Slice names[16]
    cdef Cursor inner
    cdef uint32_t count = 0
    inner.at, inner.end, inner.bad = found.set.at, found.set.at + found.set.length, False
    while inner.at < inner.end and count < 16:
        if inner.end - inner.at < 4:
            return False
        names[count].length = read_u32be(inner.at)
        inner.at += 4
        names[count] = take_slice(&inner, names[count].length)
        if inner.bad:
            return False
        count += 1
    if found.weight < 1 or found.weight > 1000 or found.cost < 1 or found.cost > 1000000000:
        return False
    entry.key = key_intern(core, queue, found.key)
    if not entry.key.recorded:          # a record of its own is newer than any frame
        entry.key.weight = <unsigned short> found.weight
    entry.cost = <uint32_t> found.cost
    entry.set = set_intern(core, names, count)
    return True


cdef void _share_routing(Entry* entry, Entry* bringer) noexcept nogil:
    entry.key = bringer.key
    entry.key.refs += 1
    entry.set = bringer.set
    if entry.set != NULL:
        entry.set.refs += 1
    entry.cost = bringer.cost


cdef bint _read_entries(Core* core, Frame* frame, IndexRecord* record, Times* times) noexcept nogil:
    cdef IndexEntry found
    cdef Entry* entry
    cdef uint32_t i = 0
    cdef bint good = True
    # the entry that brought it
    cdef uint32_t* routing_of = <uint32_t*> must_malloc(record.count * sizeof(uint32_t))
    while good and index_next(record, &found):
        entry = &frame.entries[i]
        if found.brings_routing:
            routing_of[found.routing] = i
            good = _set_routing(core, frame.queue, &found, entry)
        else:
            _share_routing(entry, &frame.entries[routing_of[found.routing]])
        entry.at, entry.length = found.at, found.length
        if entry.key != NULL:
            entry.key.stored_bytes += entry.length
        entry.enqueued_delta_ms = found.enqueued_delta_ms
        if times != NULL:
            times[i].deliver_at_ms, times[i].expires_ms = found.deliver_at_ms, found.expires_ms
        if frame.own_ids != NULL:
            frame.own_ids[i].id_high, frame.own_ids[i].id_low = found.id_high, found.id_low
            frame.own_ids[i].offset = found.offset
            frame.own_ids[i].enqueued_ms = found.enqueued_ms
            frame.own_ids[i].appended_ms = found.appended_ms
        frame.live_bytes += entry.length
        i += 1
    free(routing_of)
    return good and index_is_whole(record)


cdef Frame* frame_record_read(
        Core* core, Queue* queue, uint64_t first_offset, const char* value, size_t length,
        Times** times) noexcept nogil:
    cdef IndexRecord record
    cdef Frame* frame
    times[0] = NULL
    if not index_begin(&record, first_offset, value, length) or record.body_bytes > UINT32_MAX:
        return NULL
    frame = frame_new(core, queue, record.count)
    frame.first_offset = first_offset
    frame.id_high, frame.id_low = record.id_high, record.id_low
    frame.appended_ms = record.appended_ms
    frame.body_bytes = <uint32_t> record.body_bytes
    frame.only = record.only
    if record.flags & WITH_OWN_IDS:
        frame.own_ids = <OwnIds*> must_malloc(record.count * sizeof(OwnIds))
        memset(frame.own_ids, 0, record.count * sizeof(OwnIds))
    if record.flags & WITH_TIMES:
        times[0] = <Times*> must_malloc(record.count * sizeof(Times))
    if _read_entries(core, frame, &record, times[0]):
        return frame
    free(times[0])
    times[0] = NULL
    frame_free(core, frame)
    return NULL
