"""A store is opened and closed; everything that can be put right on the way is."""

from libc.stdint cimport int64_t

from fila_server.core.storage.families cimport Store, StoreOptions
from fila_server.core.storage.status cimport StoreError

cdef enum:
    COPY_FORMAT = 3         # of a copy of a group's store, where that of a broker alone is STORE_FORMAT

# --- open and close --------------------------------------------------------------------
cdef void store_default_options(StoreOptions* options) noexcept nogil
# Takes the directory for this process (lock file), creates what is missing, checks the
# format, scans the WAL, opens. On any failure everything is released again.
# `format`: STORE_FORMAT or COPY_FORMAT; neither opens what is the other's.
cdef int store_open(
    Store* store, const char* directory, const StoreOptions* options, int64_t format,
    StoreError* error) noexcept nogil
# Flushes nothing by itself: call store_sync first for what must survive a power cut.
cdef void store_close(Store* store) noexcept nogil
