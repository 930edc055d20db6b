"""The free space of the data directory, and the ballast that keeps some of it.

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

from fila_server.core.storage.status cimport StoreError

cdef enum DiskLevel:
    DISK_ROOMY = 0
    DISK_LOW = 1
    DISK_CRITICAL = 2

cdef struct Disk "fila_disk":
    char ballast_path[4096]
    char directory[4096]
    int64_t min_free_bytes
    int64_t ballast_bytes
    int64_t free_bytes              # as of the last check
    int64_t total_bytes
    bint ballast_held
    int level                       # DiskLevel of the last check
    int64_t released_count          # times the ballast was given up


# Call after store_open (the directory exists then, and what a start needs is not taken). Takes the ballast if
# there is room for it and the floor.
cdef int disk_open(
    Disk* disk, const char* directory, int64_t min_free_bytes, int64_t ballast_bytes,
    StoreError* error) noexcept nogil
# Answers the level; gives the ballast up when it must, which may take a while: not for the scheduler thread.
cdef int disk_check(Disk* disk) noexcept nogil
# As of the last check: whether there is the floor's room and so much more; any thread.
cdef bint disk_has_room(const Disk* disk, int64_t bytes) noexcept nogil
# Takes the ballast again when there is room for it and the floor. True when it is held afterwards.
cdef bint disk_restore_ballast(Disk* disk) noexcept nogil

# Whether a start, which may write all of the WAL to tables, has the room for it; gives the ballast up if it
# must.
cdef int disk_check_start(const char* directory, int64_t wal_bytes, StoreError* error) noexcept nogil
