"""An INDEX record taken apart, message by message; records.pyx writes it, and has its layout.

    index_begin(&record, first_offset, value, length)
    while index_next(&record, &entry):
        ...
    if not index_is_whole(&record): it is damaged, or from a version this server does not know

Recovery and readers of the log both go through here. Slices point into the record's bytes.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t

from fila_server.core.structures.buffer cimport Cursor, Slice

cdef struct IndexRecord:
    Cursor   rest                   # what was not read yet
    uint8_t  flags                  # records.WITH_...
    uint32_t count                  # of messages; 0 = unreadable from the start
    uint32_t next                   # the message that index_next gives
    uint32_t routings               # brought so far
    uint64_t first_offset
    uint64_t id_high
    uint64_t id_low
    int64_t  appended_ms
    uint64_t body_bytes
    uint64_t only                   # see Frame.only
    uint64_t at                     # of the frame's bytes: behind the message before

cdef struct IndexEntry:
    bint     brings_routing         # key, weight, cost and set are its own; else those of
                                    # message number `routing`'s bringer
    uint32_t routing                # counted from 0, in the order in which they are brought
    Slice    key
    uint64_t weight
    uint64_t cost_bits              # as an Entry's
    Slice    set                    # throttle keys, length-prefixed
    uint32_t at                     # in the frame's bytes; with its length it lies inside of them
    uint32_t length
    int32_t  enqueued_delta_ms      # against the record's appended_ms
    int64_t  deliver_at_ms          # WITH_TIMES
    int64_t  expires_ms
    uint64_t replaces               # an offset; 0 = of none
    uint64_t offset
    uint64_t id_high
    uint64_t id_low
    int64_t  enqueued_ms
    int64_t  appended_ms

cdef bint index_begin(
    IndexRecord* record, uint64_t first_offset, const char* value, size_t length) noexcept nogil
cdef bint index_next(IndexRecord* record, IndexEntry* entry) noexcept nogil     # False: the end, or damage
# once index_next answered False
cdef bint index_is_whole(IndexRecord* record) noexcept nogil
