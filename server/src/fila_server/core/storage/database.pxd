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


# --- a copy of the directory -----------------------------------------------------------------
# An open store at one moment as a second directory: links to tables and payload files, and the log.

# Any thread, beside all others. `path` must not exist and lies best on the store's own disk, where tables and
# payload files are linked and only the newest log is copied. Everything written before the call is in it; of
# what is written meanwhile, all up to some record. Nothing is flushed: no table is made for it.
cdef int store_checkpoint(Store* store, const char* path, StoreError* error) noexcept nogil
