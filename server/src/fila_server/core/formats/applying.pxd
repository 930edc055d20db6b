"""The store of a copy is made of the log's records alone: owner, standby and recovery write it by one
function.

    record_apply        what log_take or log_confirm just took: a pass is one atomic write, and beside it
                        stands where in the log it was (META's record `applied`). Parts are kept until the
                        last is there. Of barriers some thousands are taken before that record says so: where
                        nothing happens for weeks a copy does not fall behind the beginning of its log
    applied_read        that record, into the reading of a node that starts
    applied_put         the same record, into a batch: the data of a broker alone become a copy

So a store is what the log is up to `applied`, on every node, and after every crash.
"""

from libc.stdint cimport uint64_t

from fila_server.core.log.reading cimport Reading, Taken
from fila_server.core.log.record cimport Record
from fila_server.core.state.opaque cimport Store, StoreError
from fila_server.core.storage.rocksdb cimport rocksdb_writebatch_t
from fila_server.core.structures.buffer cimport Buffer

cdef struct Applying:
    Store*   store
    StoreError* error               # of the thread that applies
    Reading* reading
    Buffer   parts                  # of a pass of which not all are there
    uint64_t end                    # the store says that it has the log up to here; any thread reads it

# False: the store refuses it, and `error` says why.
cdef bint record_apply(Applying* applying, Taken taken, const Record* record) noexcept nogil
# A status of the store; STORE_NOT_FOUND: nothing was applied yet.
cdef int applied_read(Applying* applying) noexcept nogil
cdef void applied_put(Applying* applying, rocksdb_writebatch_t* batch) noexcept nogil
cdef void applied_remove(Applying* applying, rocksdb_writebatch_t* batch) noexcept nogil
# Whether this store's families have the numbers by which records name them.
cdef bint families_agree(Applying* applying) noexcept nogil
