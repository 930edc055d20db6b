"""How RocksDB is set up for each family; the measurements behind it are in docs/durability.md."""

from fila_server.core.storage.families cimport StoreOptions
from fila_server.core.storage.rocksdb cimport rocksdb_cache_t, rocksdb_options_t

cdef void default_store_options(StoreOptions* options) noexcept nogil
# A new options object for one family; its database-wide part is the same for every family.
cdef rocksdb_options_t* tuned_options(
    const StoreOptions* options, int family, rocksdb_cache_t* cache) noexcept nogil
