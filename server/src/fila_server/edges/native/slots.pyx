"""See slots.pxd."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from fila_server.core.structures.buffer cimport must_realloc
from fila_server.core.threads.outbox cimport TOKEN_OUTBOX_SHIFT

cdef enum:
    PLACE_BITS = 28
    GENERATION_BITS = 27
    PULL_SHIFT = 55
    SLOTS_MIN = 1024


cdef void _grow(IoThread* io) noexcept nogil:
    cdef uint32_t count = io.slots_count * 2 if io.slots_count else SLOTS_MIN
    cdef uint32_t i = io.slots_count if io.slots_count else 1       # place 0 means none
    io.slots = <Slot*> must_realloc(io.slots, count * sizeof(Slot))
    memset(io.slots + io.slots_count, 0, (count - io.slots_count) * sizeof(Slot))
    while i < count:
        io.slots[i].next_free = io.slot_free
        io.slot_free = i
        i += 1
    io.slots_count = count


cdef uint32_t _take(IoThread* io) noexcept nogil:
    cdef uint32_t slot
    if io.slot_free == 0:
        _grow(io)
    slot = io.slot_free
    io.slot_free = io.slots[slot].next_free
    return slot


cdef uint32_t slot_new(IoThread* io, Call* call, Parcel* parcel) noexcept nogil:
    cdef uint32_t slot = _take(io)
    io.slots[slot].call = call
    io.slots[slot].parcel = parcel
    return slot


cdef uint32_t slot_of_reply(IoThread* io, Reply* reply) noexcept nogil:
    cdef uint32_t slot = _take(io)
    io.slots[slot].reply = reply
    return slot


cdef uint32_t slot_of_connection(IoThread* io, Connection* connection) noexcept nogil:
    cdef uint32_t slot = _take(io)
    io.slots[slot].connection = connection
    return slot


cdef void slot_free(IoThread* io, uint32_t slot) noexcept nogil:
    io.slots[slot].call = NULL
    io.slots[slot].parcel = NULL
    io.slots[slot].reply = NULL
    io.slots[slot].connection = NULL
    io.slots[slot].generation = (io.slots[slot].generation + 1) & ((1 << GENERATION_BITS) - 1)
    io.slots[slot].next_free = io.slot_free
    io.slot_free = slot


cdef uint64_t slot_token(IoThread* io, uint32_t slot, bint is_pull) noexcept nogil:
    return (
        <uint64_t> io.number << TOKEN_OUTBOX_SHIFT | <uint64_t> is_pull << PULL_SHIFT
        | <uint64_t> io.slots[slot].generation << PLACE_BITS | slot)


cdef Slot* slot_find(IoThread* io, uint64_t token) noexcept nogil:
    cdef uint32_t place = <uint32_t> (token & ((1 << PLACE_BITS) - 1))
    cdef uint32_t generation = <uint32_t> (token >> PLACE_BITS & ((1 << GENERATION_BITS) - 1))
    cdef Slot* slot
    if place == 0 or place >= io.slots_count:
        return NULL
    slot = &io.slots[place]
    if slot.generation != generation:
        return NULL
    if slot.call == NULL and slot.reply == NULL and slot.connection == NULL:
        return NULL
    return slot


cdef uint32_t slot_number(IoThread* io, const Slot* slot) noexcept nogil:
    return <uint32_t> (slot - io.slots)


cdef bint token_is_pull(uint64_t token) noexcept nogil:
    return (token >> PULL_SHIFT & 1) != 0
