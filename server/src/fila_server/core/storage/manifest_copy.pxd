"""A second copy of RocksDB's table of contents, since one flipped byte in it would hide whole tables."""

from libc.stdint cimport int64_t

# Copies what was appended to the MANIFEST since the last call; cheap when that is nothing. Upkeep, each
# second.
cdef void manifest_copy_update(const char* directory) noexcept nogil
# Before RocksDB opens: puts right what differs from a copy that is whole. Returns the bytes put right.
cdef int64_t manifest_copy_heal(const char* directory) noexcept nogil
