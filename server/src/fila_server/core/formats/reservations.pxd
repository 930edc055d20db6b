"""What must not be given out again over a start: lease ids, numbers of queues and channels, ids of messages.

Each has a record, kept twice, that says how far it was promised. No start trusts these records alone: a
number or lease id that stands on anything that is read raises what they say (numbers_met here, lease ids and
offsets in notes.pyx).
"""

from libc.stdint cimport uint64_t

from fila_server.core.state.state cimport Core

# How many are promised at a time; the next ones when half of them are given out.
cdef enum:
    LEASE_IDS_RESERVED = 1000000
    OFFSETS_RESERVED = 1000000      # of a queue

# Before anything else is read. STORE_DAMAGED when a record cannot be read and the owner wants to stop at
# damage.
cdef int reservations_read(Core* core) noexcept nogil
cdef void number_met(Core* core, uint64_t number) noexcept nogil
# Those in the key of a record of `family`.
cdef void numbers_met(Core* core, int family, const char* key, size_t length) noexcept nogil
# STORE_DAMAGED, and the sentence for it.
cdef int damage_stops(Core* core) noexcept nogil
