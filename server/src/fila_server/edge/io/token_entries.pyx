from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from fila_server.core.structures.buffer cimport must_realloc
from fila_server.core.threads.outbox cimport TOKEN_OUTBOX_SHIFT

cdef enum:
    PLACE_BITS = 28
    GENERATION_BITS = 27
    PULL_SHIFT = 55
    ENTRIES_MIN = 1024


cdef void _grow(IoThread* io) noexcept nogil:
    cdef uint32_t count = io.entries_count * 2 if io.entries_count else ENTRIES_MIN
    cdef uint32_t i = io.entries_count if io.entries_count else 1   # place 0 means none
    io.entries = <TokenEntry*> must_realloc(io.entries, count * sizeof(TokenEntry))
    memset(io.entries + io.entries_count, 0, (count - io.entries_count) * sizeof(TokenEntry))
    while i < count:
        io.entries[i].next_free = io.entry_free
        io.entry_free = i
        i += 1
    io.entries_count = count


cdef uint32_t _take(IoThread* io) noexcept nogil:
    cdef uint32_t entry
    if io.entry_free == 0:
        _grow(io)
    entry = io.entry_free
    io.entry_free = io.entries[entry].next_free
    return entry


cdef uint32_t entry_new(IoThread* io, Call* call, Parcel* parcel) noexcept nogil:
    cdef uint32_t entry = _take(io)
    io.entries[entry].call = call
    io.entries[entry].parcel = parcel
    return entry


cdef uint32_t entry_of_reply(IoThread* io, Reply* reply) noexcept nogil:
    cdef uint32_t entry = _take(io)
    io.entries[entry].reply = reply
    return entry


cdef uint32_t entry_of_connection(IoThread* io, Connection* connection) noexcept nogil:
    cdef uint32_t entry = _take(io)
    io.entries[entry].connection = connection
    return entry


cdef void entry_free(IoThread* io, uint32_t entry) noexcept nogil:
    io.entries[entry].call = NULL
    io.entries[entry].parcel = NULL
    io.entries[entry].reply = NULL
    io.entries[entry].connection = NULL
    io.entries[entry].generation = (io.entries[entry].generation + 1) & ((1 << GENERATION_BITS) - 1)
    io.entries[entry].next_free = io.entry_free
    io.entry_free = entry


cdef uint64_t entry_token(IoThread* io, uint32_t entry, bint is_pull) noexcept nogil:
    return (
        <uint64_t> io.number << TOKEN_OUTBOX_SHIFT | <uint64_t> is_pull << PULL_SHIFT
        | <uint64_t> io.entries[entry].generation << PLACE_BITS | entry)


cdef TokenEntry* entry_find(IoThread* io, uint64_t token) noexcept nogil:
    cdef uint32_t place = <uint32_t> (token & ((1 << PLACE_BITS) - 1))
    cdef uint32_t generation = <uint32_t> (token >> PLACE_BITS & ((1 << GENERATION_BITS) - 1))
    cdef TokenEntry* entry
    if place == 0 or place >= io.entries_count:
        return NULL
    entry = &io.entries[place]
    if entry.generation != generation:
        return NULL
    if entry.call == NULL and entry.reply == NULL and entry.connection == NULL:
        return NULL
    return entry


cdef uint32_t entry_number(IoThread* io, const TokenEntry* entry) noexcept nogil:
    return <uint32_t> (entry - io.entries)


cdef bint token_is_pull(uint64_t token) noexcept nogil:
    return (token >> PULL_SHIFT & 1) != 0
