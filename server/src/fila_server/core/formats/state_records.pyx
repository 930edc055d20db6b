"""A message that took another's place has no place of its own on disk: its record names the offset whose
place it has, and that one's record stays for as long. So a chain of replacements writes one record each, and
reads none.
"""

from libc.stdint cimport uint8_t

from fila_server.core.formats.records cimport VERSION, state_delete, state_put
from fila_server.core.state.kinds cimport BEGUN_ONCE, RECORDED, RECORDED_RETURN
from fila_server.core.state.paths cimport frame_offset, share_of
from fila_server.core.state.state cimport Share
from fila_server.core.structures.buffer cimport Buffer, put_u8, put_varint
from fila_server.core.structures.maps cimport Map64, map64_get, map64_remove


cdef uint64_t place_taken(Slot* slot) noexcept nogil:
    cdef Share* share = share_of(slot)
    cdef uint64_t offset = frame_offset(share.frame, slot.index)
    cdef uint64_t place = (
        <uint64_t> map64_remove(&share.channel.places, offset) if share.channel.places.count else 0)
    if place:
        return place
    if slot.marks & RECORDED and not slot.marks & RECORDED_RETURN:
        slot.marks &= ~<uint8_t> RECORDED           # its record stays when it ends
    return offset


cdef void place_given_up(Core* core, Channel* channel, uint64_t place) noexcept nogil:
    state_delete(core, channel.queue.number, channel.number, place)


cdef void _state_put(
        Core* core, Slot* slot, uint8_t kind, uint64_t last_lease, uint64_t first, uint64_t second,
        bint keeps_place) noexcept nogil:
    """What `first` and `second` say depends on the kind, as records.pxd has it."""
    cdef Share* share = share_of(slot)
    cdef Map64* places = &share.channel.places
    cdef Buffer* b = &core.tail
    cdef uint64_t place
    b.length = 0
    put_u8(b, VERSION)
    put_u8(b, kind)
    put_varint(b, slot.attempts)
    put_varint(b, last_lease)
    put_varint(b, first)
    put_varint(b, second)
    if places.count:                    # it replaced another one, and may stand where that one stood
        place = <uint64_t> (
            map64_get(places, frame_offset(share.frame, slot.index)) if keeps_place
            else map64_remove(places, frame_offset(share.frame, slot.index)))
        if place and keeps_place:
            b.data[0] = VERSION_PLACED
            put_varint(b, place)
        elif place:
            place_given_up(core, share.channel, place)
    state_put(
        core, share.frame.queue.number, share.channel.number, frame_offset(share.frame, slot.index), b)
    slot.marks = (slot.marks | RECORDED) & ~<uint8_t> RECORDED_RETURN


cdef void state_record_ready(
        Core* core, Slot* slot, uint64_t base, uint64_t seq, uint64_t last_lease) noexcept nogil:
    """Ready again behind everything up to offset `base`, `seq` ordering those that came back there."""
    _state_put(core, slot, STATE_READY, last_lease, base, seq, keeps_place=False)


cdef void state_record_in_place(Core* core, Slot* slot) noexcept nogil:
    _state_put(core, slot, STATE_IN_PLACE, 0, 0, 0, keeps_place=True)     # it was never leased


cdef void state_record_held(Core* core, Slot* slot, uint64_t before) noexcept nogil:
    _state_put(core, slot, STATE_HELD, 0, before, 0, keeps_place=True)    # it was never leased


cdef void state_record_delayed(Core* core, Slot* slot, int64_t delay_ms, uint64_t last_lease) noexcept nogil:
    _state_later(core, slot, STATE_DELAYED, delay_ms, last_lease)


cdef void state_record_retry(Core* core, Slot* slot, int64_t delay_ms, uint64_t last_lease) noexcept nogil:
    """It was in flight, so all that stand before it in its key were done: whatever its place was, the one of
    its offset is before all others that wait. Where more were in flight, since its queue's keys came in order
    only then, they have the order of their offsets."""
    _state_later(core, slot, STATE_RETRY, delay_ms, last_lease)


cdef void _state_later(
        Core* core, Slot* slot, uint8_t kind, int64_t delay_ms, uint64_t last_lease) noexcept nogil:
    _state_put(
        core, slot, kind, last_lease, <uint64_t> (core.wall_ms + delay_ms), <uint64_t> delay_ms,
        keeps_place=kind == STATE_RETRY)


cdef void state_record_returned(Core* core, Slot* slot, uint64_t last_lease) noexcept nogil:
    """It was delivered and came back uncounted, to its old place: so that its next delivery says so after a
    restart, too."""
    _state_put(
        core, slot, STATE_RETURNED, last_lease, slot.marks & BEGUN_ONCE != 0, 0, keeps_place=True)
    slot.marks |= RECORDED_RETURN


cdef void state_record_delete(Core* core, Slot* slot) noexcept nogil:
    cdef Share* share = share_of(slot)
    cdef uint64_t place
    if share.channel.places.count:
        place = <uint64_t> map64_remove(&share.channel.places, frame_offset(share.frame, slot.index))
        if place:
            place_given_up(core, share.channel, place)
    state_delete(core, share.frame.queue.number, share.channel.number, frame_offset(share.frame, slot.index))
    slot.marks &= ~<uint8_t> (RECORDED | RECORDED_RETURN)
