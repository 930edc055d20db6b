"""From disk to memory: queues, keys, buckets, then every pending message in its order."""

from fila_server.core.state.state cimport Core

# A StoreStatus; core.error has the text.
cdef int recover_core(Core* core) noexcept nogil
