"""What can be read of a damaged store, copied into a sound one."""

from fila_server.core.storage.families cimport SalvageReport, Store
from fila_server.core.storage.past_damage cimport KEY_BYTES_MAX, TABLE_NAME_BYTES
from fila_server.core.storage.status cimport StoreError

cdef struct Gap:                        # a place that was stepped over
    Gap*   next
    int    family
    size_t after_bytes                  # the last key before it, and the first one behind it; 0 bytes: none
    size_t before_bytes
    char   after[KEY_BYTES_MAX]
    char   before[KEY_BYTES_MAX]
    char   table[TABLE_NAME_BYTES]      # the damaged one, or empty

# Copies every readable record of `damaged` (open, without automatic compactions) into `sound` (open, empty).
# Counts what it had to step over in sound.salvage, and lists it.
cdef int salvage_records(Store* damaged, Store* sound, Gap** gaps, StoreError* error) noexcept nogil

# DIRECTORY/rocksdb.beside: the same files, linked, but for the damaged tables. False where it cannot be made;
# then what other tables hold within the gaps stays lost. Opened, it yields that to salvage_gaps.
cdef bint salvage_beside(Store* damaged, const Gap* gaps, const char* directory) noexcept nogil
cdef int salvage_gaps(Store* beside, Store* sound, const Gap* gaps, StoreError* error) noexcept nogil
cdef void salvage_gaps_free(const char* directory, Gap* gaps) noexcept nogil        # and the directory beside

# Puts empty tables in the place of those that keep a whole family from being read, because they cannot be
# opened, counts them in `report` and returns how many; each table once. After any, close the store, open it
# again and ask again.
cdef int salvage_replace_tables(Store* damaged, const char* path, SalvageReport* report) noexcept nogil

# The exchange of directories around it: DIRECTORY/rocksdb is replaced whole or not at all, at any crash.
cdef void salvage_begin(const char* directory) noexcept nogil           # removes what an earlier try left
cdef int salvage_commit(const char* directory, StoreError* error) noexcept nogil
# at open: a commit that was cut off
cdef int salvage_finish(const char* directory, StoreError* error) noexcept nogil
