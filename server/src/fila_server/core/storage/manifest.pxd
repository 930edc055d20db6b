"""RocksDB's table of contents: which logs it needs, and whether it was doubled."""

from libc.stdint cimport int64_t

# The oldest log file that holds what no table has: each log from it to the newest must be there. 0 = all that
# there are; -1 = not known, since the MANIFEST cannot be read.
cdef int64_t manifest_needed_log(const char* directory) noexcept nogil
# Counts the bytes from the first edit on that was there before, and cuts them off if told so: there RocksDB
# 7.8 aborts the process.
cdef int64_t manifest_drop_repeated(const char* directory, bint repairing) noexcept nogil
