"""A store is opened and closed; everything that can be put right on the way is."""

from libc.stdint cimport int64_t

from fila_server.core.storage.families cimport Store, StoreOptions
from fila_server.core.storage.rocksdb cimport rocksdb_writebatch_t
from fila_server.core.storage.status cimport StoreError

cdef enum:
    ANY_FORMAT = 0          # either of the two; nothing is created, and the number stays as it is
    COPY_FORMAT = 3         # of a copy of a group's store, where that of a broker alone is STORE_FORMAT

# --- open and close --------------------------------------------------------------------
cdef void store_default_options(StoreOptions* options) noexcept nogil
# Takes the directory for this process (lock file), creates what is missing, checks the
# format, scans the WAL, opens. On any failure everything is released again.
# `format`: STORE_FORMAT or COPY_FORMAT, of which neither opens what is the other's; or ANY_FORMAT.
cdef int store_open(
    Store* store, const char* directory, const StoreOptions* options, int64_t format,
    StoreError* error) noexcept nogil
# The number that the store itself has; 0 where it has none.
cdef int64_t store_format(Store* store, StoreError* error) noexcept nogil
# The batch, which is freed, and that the store is a copy from now on, or a broker's alone, in one write
# that is synced. The file follows by store_format_file: as long as it does not, no server opens the
# directory.
cdef int store_turn(
    Store* store, rocksdb_writebatch_t* batch, bint is_copy, StoreError* error) noexcept nogil
cdef int store_format_file(const char* directory, int64_t format, StoreError* error) noexcept nogil
# Flushes nothing by itself: call store_sync first for what must survive a power cut.
cdef void store_close(Store* store) noexcept nogil
