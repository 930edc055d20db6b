"""An open store at one moment as a second directory: links to tables and payload files, and the log."""

from fila_server.core.storage.families cimport Store
from fila_server.core.storage.status cimport StoreError

# Any thread, beside all others. `path` must not exist and lies best on the store's own disk, where tables and
# payload files are linked and only the newest log is copied. Everything written before the call is in it; of
# what is written meanwhile, all up to some record. Nothing is flushed: no table is made for it.
cdef int store_checkpoint(Store* store, const char* path, StoreError* error) noexcept nogil
