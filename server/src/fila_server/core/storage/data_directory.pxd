"""The data directory as the operating system sees it: its lock, its format file, the note that asks for
a salvage."""

from libc.stdint cimport int64_t

from fila_server.core.storage.status cimport StoreError

# Creates the directory and takes its lock; -1 with STORE_IN_USE or STORE_UNWRITABLE in `error`.
cdef int directory_lock(const char* directory, StoreError* error) noexcept nogil
cdef void directory_unlock(int lock_fd) noexcept nogil
# Bytes taken on disk by the files directly in the directory whose name ends so ("" = all).
cdef int64_t directory_bytes(const char* directory, const char* suffix) noexcept nogil
cdef enum:
    FORMAT_MISSING = 0
    FORMAT_UNREADABLE = -1

cdef int64_t format_read(const char* directory) noexcept nogil      # the number, or one of these
# The highest and the lowest number of a log file there, 0 when there is none, -1 when the directory cannot be
# listed.
cdef int64_t directory_newest_log(const char* path, int64_t* oldest) noexcept nogil
# When an entry of it was last made, removed or renamed, as its file system tells; -1 when nobody can know.
cdef int64_t directory_changed_ns(const char* path) noexcept nogil
# The name of what a running server must find there and does not, or NULL: the directory under its own name,
# with the very lock file that this process holds, and RocksDB's CURRENT. An error that says nothing about
# that counts as found.
cdef const char* directory_is_gone(const char* directory, int lock_fd) noexcept nogil
cdef int format_write(const char* directory, int64_t format, StoreError* error) noexcept nogil
# The note that the next start has to copy the store without what is damaged (salvage.pyx); `path` is
# .../rocksdb.
cdef void salvage_ask(const char* path) noexcept nogil
cdef bint salvage_is_asked(const char* directory) noexcept nogil
