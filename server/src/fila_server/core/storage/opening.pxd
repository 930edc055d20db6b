"""A store is opened and closed; everything that can be put right on the way is."""

from fila_server.core.storage.families cimport Store, StoreOptions
from fila_server.core.storage.status cimport StoreError

# --- open and close --------------------------------------------------------------------
cdef void store_default_options(StoreOptions* options) noexcept nogil
# Takes the directory for this process (lock file), creates what is missing, checks the
# format, scans the WAL, opens. On any failure everything is released again.
cdef int store_open(
    Store* store, const char* directory, const StoreOptions* options, StoreError* error) noexcept nogil
# Flushes nothing by itself: call store_sync first for what must survive a power cut.
cdef void store_close(Store* store) noexcept nogil
