"""One RocksDB directory with its eleven families, opened and
closed; no locks, no healing, no rules of ours."""

from fila_server.core.storage.families cimport Store, StoreOptions
from fila_server.core.storage.rocksdb cimport rocksdb_readoptions_t
from fila_server.core.storage.status cimport StoreError

# Fills the database part of the store. `lenient`: for salvage; opens past tables that cannot be read, and
# compacts nothing. On failure everything is released, and STORE_DAMAGED means that healing may help.
cdef int database_open(
    Store* store, const char* path, const StoreOptions* options, bint lenient,
    StoreError* error) noexcept nogil
cdef void database_close(Store* store) noexcept nogil
# Rebuilds a table of contents that cannot be read from the tables; payloads in blob files stay behind.
cdef int database_rebuild(const char* path, const StoreOptions* options, StoreError* error) noexcept nogil
# STORE_TOO_NEW when the directory has a family this server does not know; a directory that cannot be read is
# fine.
cdef int database_check_families(const char* path, StoreError* error) noexcept nogil
cdef void set_scan_options(rocksdb_readoptions_t* options) noexcept nogil
