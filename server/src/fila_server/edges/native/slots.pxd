"""Whose an answer is: a table of calls, parcels and replies, and the tokens that name its places.

    token   outbox 8 bits | a pull's 1 | generation 27 | place 28

A place is used again under another generation, so that a late answer finds nobody. Of a pull's answer it must
be known even then: what it brings is given back.
"""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.edges.native.iothread cimport Call, Connection, IoThread, Parcel, Reply, Slot

cdef uint32_t slot_new(IoThread* io, Call* call, Parcel* parcel) noexcept nogil        # never 0
cdef uint32_t slot_of_reply(IoThread* io, Reply* reply) noexcept nogil
cdef uint32_t slot_of_connection(IoThread* io, Connection* connection) noexcept nogil
cdef void slot_free(IoThread* io, uint32_t slot) noexcept nogil
cdef uint64_t slot_token(IoThread* io, uint32_t slot, bint is_pull) noexcept nogil
cdef Slot* slot_find(IoThread* io, uint64_t token) noexcept nogil                      # NULL: nobody
cdef uint32_t slot_number(IoThread* io, const Slot* slot) noexcept nogil
cdef bint token_is_pull(uint64_t token) noexcept nogil
