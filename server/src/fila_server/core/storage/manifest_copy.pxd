"""A second copy of RocksDB's table of contents, since one flipped byte in it would hide whole tables."""

from libc.stdint cimport int64_t, uint8_t

# Copies what was appended to the MANIFEST since the last call; cheap when that is nothing. Upkeep, each
# second.
cdef void manifest_copy_update(const char* directory) noexcept nogil
# Before RocksDB opens: counts the bytes that differ from a copy that is whole, and puts them right if told
# so.
cdef int64_t manifest_copy_heal(const char* directory, bint repairing) noexcept nogil
# Whether there is a copy, in whatever state.
cdef bint manifest_copy_exists(const char* directory) noexcept nogil
cdef enum:
    MANIFEST_PATH_BYTES = 4200

# The path of the MANIFEST that CURRENT names; False when it names none.
cdef bint manifest_path(const char* directory, char* path) noexcept nogil
# All of that file, malloc'd; NULL when it cannot be read.
cdef uint8_t* manifest_read(const char* directory, int64_t* byte_count) noexcept nogil
