"""Whose an answer is: a table of calls, parcels and replies, and the tokens that name its places.

    token   outbox 8 bits | a pull's 1 | generation 27 | place 28

A place is used again under another generation, so that a late answer finds nobody. Of a pull's answer it must
be known even then: what it brings is given back.
"""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.edge.io.iothread cimport Call, Connection, IoThread, Parcel, Reply, TokenEntry

cdef uint32_t entry_new(IoThread* io, Call* call, Parcel* parcel) noexcept nogil       # never 0
cdef uint32_t entry_of_reply(IoThread* io, Reply* reply) noexcept nogil
cdef uint32_t entry_of_connection(IoThread* io, Connection* connection) noexcept nogil
cdef void entry_free(IoThread* io, uint32_t entry) noexcept nogil
cdef uint64_t entry_token(IoThread* io, uint32_t entry, bint is_pull) noexcept nogil
cdef TokenEntry* entry_find(IoThread* io, uint64_t token) noexcept nogil               # NULL: nobody
cdef uint32_t entry_number(IoThread* io, const TokenEntry* entry) noexcept nogil
cdef bint token_is_pull(uint64_t token) noexcept nogil
