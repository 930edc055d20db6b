"""The data directory as the operating system sees it: its lock, its format file, its free space.

The free space has three levels, because RocksDB 7.8.3 aborts the process when a write to
its log meets a full disk, and fails every write for a while when a table does:

    DISK_ROOMY     |  everything goes
    -- min_free_bytes (the floor) ---------------------------------------------------------
    DISK_LOW       |  enqueues are refused; acks and deliveries go on
    -- a quarter of it, 32 to 64 MiB: the ballast file is deleted: room for acks -----------
    -- an eighth of it, 16 to 32 MiB -------------------------------------------------------
    DISK_CRITICAL  |  every write is refused

watch.pyx looks each 100 ms.
"""

from libc.stdint cimport int64_t

from fila_server.core.store.status cimport StoreError

cdef enum DiskLevel:
    DISK_ROOMY = 0
    DISK_LOW = 1
    DISK_CRITICAL = 2

cdef struct Disk:
    char ballast_path[4096]
    char directory[4096]
    int64_t min_free_bytes
    int64_t ballast_bytes
    int64_t free_bytes              # as of the last check
    int64_t total_bytes
    bint ballast_held
    int level                       # DiskLevel of the last check
    int64_t released_count          # times the ballast was given up


# --- free space ------------------------------------------------------------------------
# Call after store_open (the directory exists then, and what a start needs is not taken). Takes the ballast if
# there is room for it and the floor.
cdef int disk_open(
    Disk* disk, const char* directory, int64_t min_free_bytes, int64_t ballast_bytes,
    StoreError* error) noexcept nogil
# Answers the level; gives the ballast up when it must, which may take a while: not for the scheduler thread.
cdef int disk_check(Disk* disk) noexcept nogil
# Takes the ballast again when there is room for it and the floor. True when it is held afterwards.
cdef bint disk_restore_ballast(Disk* disk) noexcept nogil

# Whether a start, which may write all of the WAL to tables, has the room for it; gives the ballast up if it
# must.
cdef int disk_check_start(const char* directory, int64_t wal_bytes, StoreError* error) noexcept nogil

# --- the directory (store_open calls these) --------------------------------------------
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
# The name of what a running server must find there and does not, or NULL: the directory under its own name,
# with the very lock file that this process holds, and RocksDB's CURRENT. An error that says nothing about
# that counts as found.
cdef const char* directory_is_gone(const char* directory, int lock_fd) noexcept nogil
cdef int format_write(const char* directory, int64_t format, StoreError* error) noexcept nogil
# The note that the next start has to copy the store without what is damaged (salvage.pyx); `path` is
# .../rocksdb.
cdef void salvage_ask(const char* path) noexcept nogil
cdef bint salvage_is_asked(const char* directory) noexcept nogil
