"""Whatever the bytes say, no entry reaches outside of the frame's bytes."""

from fila_server.core.formats.records cimport VERSION, WITH_ONLY, WITH_OWN_IDS, WITH_REPLACES, WITH_TIMES
from fila_server.core.structures.buffer cimport take_slice, take_u64be, take_u8, take_varint, take_zigzag


cdef bint index_begin(
        IndexRecord* record, uint64_t first_offset, const char* value, size_t length) noexcept nogil:
    cdef Cursor* c = &record.rest
    cdef uint64_t count
    c.at, c.end, c.bad = value, value + length, False
    record.first_offset = first_offset
    record.count = record.next = record.routings = 0
    record.at = record.only = 0
    if take_u8(c) != VERSION:
        return False
    record.flags = take_u8(c)
    count = take_varint(c)
    record.id_high = take_u64be(c)
    record.id_low = take_u64be(c)
    record.appended_ms = <int64_t> take_varint(c)
    record.body_bytes = take_varint(c)
    if record.flags & WITH_ONLY:
        record.only = take_varint(c)
    if c.bad or count == 0 or count > length:           # a message takes a byte at least
        return False
    record.count = <uint32_t> count
    return True


cdef bint index_next(IndexRecord* record, IndexEntry* entry) noexcept nogil:
    cdef Cursor* c = &record.rest
    cdef uint64_t number, gap, length
    if record.next == record.count:
        return False
    number = take_varint(c)
    entry.brings_routing = number == 0
    if number == 0:
        entry.routing = record.routings
        record.routings += 1
        entry.key = take_slice(c, take_varint(c))
        entry.weight = take_varint(c)
        entry.cost_bits = take_varint(c)
        entry.set = take_slice(c, take_varint(c))
    elif number > record.routings:
        return False
    else:
        entry.routing = <uint32_t> number - 1
    gap = take_varint(c)
    length = take_varint(c)
    # Each on its own: a sum of the three may wrap around and look small.
    if gap > record.body_bytes - record.at or length > record.body_bytes - record.at - gap:
        return False
    entry.at = <uint32_t> (record.at + gap)
    entry.length = <uint32_t> length
    record.at += gap + length
    entry.enqueued_delta_ms = <int32_t> take_zigzag(c)
    if record.flags & WITH_TIMES:
        entry.deliver_at_ms = <int64_t> take_varint(c)
        entry.expires_ms = <int64_t> take_varint(c)
    entry.replaces = take_varint(c) if record.flags & WITH_REPLACES else 0
    if record.flags & WITH_OWN_IDS:
        entry.id_high = take_u64be(c)
        entry.id_low = take_u64be(c)
        entry.offset = record.first_offset + take_varint(c)
        entry.enqueued_ms = <int64_t> take_varint(c)
        entry.appended_ms = <int64_t> take_varint(c)
    else:
        entry.id_high, entry.id_low = record.id_high, record.id_low + record.next
        entry.offset = record.first_offset + record.next
        entry.enqueued_ms = record.appended_ms + entry.enqueued_delta_ms
        entry.appended_ms = record.appended_ms
    if c.bad:
        return False
    record.next += 1
    return True


cdef bint index_is_whole(IndexRecord* record) noexcept nogil:
    return record.count > 0 and record.next == record.count and record.rest.at == record.rest.end
