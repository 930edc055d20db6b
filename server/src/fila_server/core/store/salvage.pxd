"""What can be read of a damaged store, copied into a sound one."""

from fila_server.core.store.families cimport Store
from fila_server.core.store.status cimport StoreError

# Copies every readable record of `damaged` (open, without automatic compactions) into `sound` (open, empty).
# Counts what it had to step over in sound.salvage.
cdef int salvage_records(Store* damaged, Store* sound, StoreError* error) noexcept nogil

# Puts empty tables in the place of those that keep a whole family from being read, because they cannot be
# opened, and returns how many; each table once. After any, close the store, open it again and ask again.
cdef int salvage_replace_tables(Store* damaged, const char* path) noexcept nogil

# The exchange of directories around it: DIRECTORY/rocksdb is replaced whole or not at all, at any crash.
cdef void salvage_begin(const char* directory) noexcept nogil           # removes what an earlier try left
cdef int salvage_commit(const char* directory, StoreError* error) noexcept nogil
# at open: a commit that was cut off
cdef int salvage_finish(const char* directory, StoreError* error) noexcept nogil
