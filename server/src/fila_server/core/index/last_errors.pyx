"""A row says after how many attempts it was written. Where the message has failed again since, without a
word, the row is not of its last failure.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.index.leases cimport id_cell
from fila_server.core.state.paths cimport frame_id, frame_of, share_of
from fila_server.core.state.pending cimport LastError
from fila_server.core.structures.buffer cimport must_malloc


cdef inline LastError* _row(Core* core, uint64_t high, uint64_t low, uint64_t channel) noexcept nogil:
    cdef uint64_t mixed = id_cell(high, low) ^ (channel << 32)
    return &core.lookups.errors[(mixed * <uint64_t> 0x9E3779B97F4A7C15 >> 32) % LAST_ERRORS]


cdef void last_error_keep(Core* core, Slot* slot, Slice error) noexcept nogil:
    cdef LastError* row
    cdef uint64_t high, low
    cdef uint64_t channel = share_of(slot).channel.number
    cdef uint32_t length = min(error.length, <uint32_t> sizeof(row.text))
    if length == 0:
        return
    while length < error.length and length and <unsigned char> error.at[length] & 0xC0 == 0x80:
        length -= 1                     # not within a character
    if core.lookups.errors == NULL:
        core.lookups.errors = <LastError*> must_malloc(LAST_ERRORS * sizeof(LastError))
        memset(core.lookups.errors, 0, LAST_ERRORS * sizeof(LastError))
    frame_id(frame_of(slot), slot.index, &high, &low)
    row = _row(core, high, low, channel)
    row.id_high, row.id_low, row.channel = high, low, channel
    row.attempts = <uint32_t> slot.attempts + 1
    row.length = length
    memcpy(row.text, error.at, length)


cdef Slice last_error(Core* core, Slot* slot) noexcept nogil:
    cdef Slice error
    cdef LastError* row
    cdef uint64_t high, low
    cdef uint64_t channel = share_of(slot).channel.number
    error.at, error.length = NULL, 0
    if core.lookups.errors == NULL or slot.attempts == 0:
        return error
    frame_id(frame_of(slot), slot.index, &high, &low)
    row = _row(core, high, low, channel)
    if (
        row.id_high == high and row.id_low == low and row.channel == channel
        and row.attempts == slot.attempts
    ):
        error.at, error.length = row.text, row.length
    return error


cdef void last_errors_forget(Core* core) noexcept nogil:
    free(core.lookups.errors)
    core.lookups.errors = NULL
