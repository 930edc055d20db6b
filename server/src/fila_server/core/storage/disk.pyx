"""The ballast is a file of real blocks that holds nothing.

While the disk fills up it is the one thing we can give back at once, and it buys the time in which acks empty
the store.
"""

from libc.stdio cimport snprintf
from libc.string cimport memset

from fila_server.core.storage.posix cimport (
    AT_FDCWD, O_CLOEXEC, O_CREAT, O_TRUNC, O_WRONLY, c_close, c_open, posix_fallocate, unlink,
)
from fila_server.core.storage.status cimport STORE_FULL, STORE_OK, store_failed

cdef extern from "sys/statvfs.h" nogil:
    cdef struct statvfs_t "statvfs":
        unsigned long f_frsize
        unsigned long f_blocks
        unsigned long f_bavail
    int statvfs(const char* path, statvfs_t* buffer)

cdef extern from "sys/stat.h" nogil:
    cdef struct stat_t "stat":
        int64_t st_blocks
    int fstatat(int directory_fd, const char* name, stat_t* buffer, int flags)

cdef enum:
    BALLAST_MARK_MIN = 33554432         # 32 MiB
    BALLAST_MARK_MAX = 67108864         # 64 MiB
    CRITICAL_MARK_MIN = 16777216        # 16 MiB, also when no floor was asked for
    CRITICAL_MARK_MAX = 33554432        # 32 MiB
    MIB = 1048576
    START_BYTES_MIN = 16777216          # 16 MiB: a log, its tables, and RocksDB's own files


cdef int disk_open(
        Disk* disk, const char* directory, int64_t min_free_bytes, int64_t ballast_bytes,
        StoreError* error) noexcept nogil:
    memset(disk, 0, sizeof(Disk))
    snprintf(disk.directory, sizeof(disk.directory), "%s", directory)
    snprintf(disk.ballast_path, sizeof(disk.ballast_path), "%s/ballast", directory)
    disk.min_free_bytes = min_free_bytes
    disk.ballast_bytes = ballast_bytes
    if ballast_bytes == 0:
        unlink(disk.ballast_path)       # of an earlier start that was told to have one
    disk_restore_ballast(disk)
    disk_check(disk)
    return STORE_OK


cdef int disk_check(Disk* disk) noexcept nogil:
    _measure(disk)
    if (
        disk.free_bytes < max(BALLAST_MARK_MIN, min(disk.min_free_bytes // 4, BALLAST_MARK_MAX))
        and disk.ballast_held
    ):
        unlink(disk.ballast_path)
        disk.ballast_held = False
        disk.released_count += 1
        _measure(disk)
    if disk.free_bytes < max(CRITICAL_MARK_MIN, min(disk.min_free_bytes // 8, CRITICAL_MARK_MAX)):
        disk.level = DISK_CRITICAL
    elif disk.free_bytes < disk.min_free_bytes:
        disk.level = DISK_LOW
    else:
        disk.level = DISK_ROOMY
    return disk.level


cdef void _measure(Disk* disk) noexcept nogil:
    cdef statvfs_t space
    if statvfs(disk.directory, &space) != 0:
        return      # the last answer stands; a directory that is gone makes itself heard elsewhere
    disk.free_bytes = <int64_t>space.f_bavail * <int64_t>space.f_frsize
    disk.total_bytes = <int64_t>space.f_blocks * <int64_t>space.f_frsize


cdef bint disk_has_room(const Disk* disk, int64_t bytes) noexcept nogil:
    return disk.free_bytes > disk.min_free_bytes + bytes


cdef bint disk_restore_ballast(Disk* disk) noexcept nogil:
    cdef int fd
    cdef stat_t found
    if disk.ballast_held or disk.ballast_bytes == 0:
        return disk.ballast_held
    _measure(disk)
    if fstatat(AT_FDCWD, disk.ballast_path, &found, 0) == 0 and found.st_blocks * 512 >= disk.ballast_bytes:
        disk.ballast_held = True        # of an earlier start
        return True
    if disk.free_bytes < disk.min_free_bytes + 2 * disk.ballast_bytes:
        return False        # twice, so that taking it does not bring back what made us give it up
    fd = c_open(disk.ballast_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    if fd < 0:
        return False
    disk.ballast_held = posix_fallocate(fd, 0, disk.ballast_bytes) == 0
    c_close(fd)
    if not disk.ballast_held:
        unlink(disk.ballast_path)
    return disk.ballast_held


cdef int disk_check_start(const char* directory, int64_t wal_bytes, StoreError* error) noexcept nogil:
    cdef Disk disk
    cdef char text[64]
    cdef int64_t need = wal_bytes + START_BYTES_MIN
    memset(&disk, 0, sizeof(Disk))
    disk.free_bytes = need          # what stands if the system does not tell
    snprintf(disk.directory, sizeof(disk.directory), "%s", directory)
    _measure(&disk)
    if disk.free_bytes < need:
        snprintf(disk.ballast_path, sizeof(disk.ballast_path), "%s/ballast", directory)
        unlink(disk.ballast_path)
        _measure(&disk)
    if disk.free_bytes >= need:
        return STORE_OK
    snprintf(text, sizeof(text), "%lld MiB, and %lld MiB are free",
             <long long>((need + MIB - 1) // MIB), <long long>(disk.free_bytes // MIB))
    return store_failed(
        error, STORE_FULL, "a start needs %s; make room on the disk of the data directory", text)
