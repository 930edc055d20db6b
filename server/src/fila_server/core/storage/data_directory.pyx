"""The lock is flock's, which the kernel drops with the process. The format is written as a new file that
takes the old one's name, so that a crash leaves one of the two. What cannot be written names the path and
the setting."""

from libc.errno cimport EEXIST, ENOENT, ENOTDIR, ESRCH, ESTALE, errno
from libc.stdint cimport INT32_MAX
from libc.stdio cimport rename, snprintf
from libc.stdlib cimport atoll
from libc.string cimport memcpy, strerror, strlen, strncmp

from fila_server.core.storage.posix cimport (
    AT_FDCWD, DIR, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY, c_close, c_open,
    c_read, closedir, dirent_t, dirfd, fstat, fstatat, fsync, ftruncate, getpid, opendir, pread, pwrite,
    readdir, stat_t, unlink,
)
from fila_server.core.storage.status cimport STORE_ERROR_BYTES, STORE_IN_USE, STORE_OK, STORE_UNWRITABLE

cdef extern from "sys/stat.h" nogil:
    int mkdir(const char* path, unsigned int mode)

cdef extern from "sys/file.h" nogil:
    int flock(int fd, int operation)
    enum:
        LOCK_EX
        LOCK_NB
        LOCK_UN

cdef extern from "signal.h" nogil:
    int kill(int pid, int signal)

cdef extern from "unistd.h" nogil:
    int usleep(unsigned int)

cdef enum:
    LOOK_US = 10_000
    LOOKS_MAX = 200     # two seconds, for a child to come to its program on a machine that has much to do


cdef int _unwritable(StoreError* error, const char* path) noexcept nogil:
    error.status = STORE_UNWRITABLE
    snprintf(error.text, STORE_ERROR_BYTES,
             "the data directory cannot be written: %.300s: %s; check its owner and mode, or set "
             "server.data_dir",
             path, strerror(errno))
    return -1


cdef int directory_lock(const char* directory, StoreError* error) noexcept nogil:
    cdef char path[4096]
    cdef char text[64]
    cdef StoreError unused
    cdef int fd
    cdef int looks = 0
    if error == NULL:
        error = &unused
    if _make_directories(directory) != 0:
        return _unwritable(error, directory)
    snprintf(path, sizeof(path), "%s/fila.lock", directory)
    fd = c_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    if fd < 0:
        return _unwritable(error, path)
    # flock, not fcntl: it belongs to this open file, so a second engine in this process meets it too,
    # and the kernel drops it with the process however that ends.
    while flock(fd, LOCK_EX | LOCK_NB) != 0:
        _read_holder(fd, text, sizeof(text))
        # A child that a killed server had just forked holds this open file until it runs its program.
        if _is_gone(text) and looks < LOOKS_MAX:
            looks += 1
            usleep(LOOK_US)
            continue
        error.status = STORE_IN_USE
        snprintf(error.text, STORE_ERROR_BYTES,
                 "the data directory %.300s is in use by process %s; stop that server, or set "
                 "server.data_dir",
                 directory, text)
        c_close(fd)
        return -1
    snprintf(text, sizeof(text), "%d", getpid())
    if ftruncate(fd, 0) != 0 or pwrite(fd, text, strlen(text), 0) < 0:
        pass        # who holds it is a courtesy; holding it is what counts
    if _is_writable(directory, error) != 0:
        c_close(fd)
        return -1
    return fd


cdef void _read_holder(int fd, char* text, size_t size) noexcept nogil:
    cdef ssize_t got = pread(fd, text, size - 1, 0)
    text[got if got > 0 else 0] = 0


cdef bint _is_gone(const char* holder) noexcept nogil:
    """Whether the process that wrote its number there has ended."""
    cdef long long pid = atoll(holder)
    return 0 < pid <= INT32_MAX and kill(<int>pid, 0) != 0 and errno == ESRCH


cdef int _is_writable(const char* directory, StoreError* error) noexcept nogil:
    """The lock file may exist already in a directory where no new file can be made."""
    cdef char path[4096]
    cdef int fd
    snprintf(path, sizeof(path), "%s/fila.probe", directory)
    fd = c_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    if fd < 0:
        return _unwritable(error, directory)
    c_close(fd)
    unlink(path)
    return 0


cdef int _make_directories(const char* directory) noexcept nogil:
    """Like `mkdir -p`, but the last part is for this user only."""
    cdef char path[4096]
    cdef size_t length = strlen(directory)
    cdef size_t i
    if length == 0 or length >= sizeof(path) - 32:
        return -1
    memcpy(path, directory, length + 1)
    for i in range(1, length):
        if path[i] == b"/":
            path[i] = 0
            if mkdir(path, 0o755) != 0 and errno != EEXIST:
                return -1
            path[i] = b"/"
    if mkdir(path, 0o700) != 0 and errno != EEXIST:
        return -1
    return 0


cdef void directory_unlock(int lock_fd) noexcept nogil:
    # A child that another thread has just forked holds this open file, too, until it runs its program:
    # closing alone would leave the lock to it, and this process would find its own directory in use.
    flock(lock_fd, LOCK_UN)
    c_close(lock_fd)


cdef int64_t directory_bytes(const char* directory, const char* suffix) noexcept nogil:
    cdef int64_t total = 0
    cdef dirent_t* entry
    cdef stat_t found
    cdef size_t length, suffix_bytes = strlen(suffix)
    cdef DIR* listing = opendir(directory)
    if listing == NULL:
        return 0
    while True:
        entry = readdir(listing)
        if entry == NULL:
            break
        length = strlen(entry.d_name)
        if entry.d_name[0] == b"." or length < suffix_bytes:
            continue
        if strncmp(entry.d_name + length - suffix_bytes, suffix, suffix_bytes) != 0:
            continue
        if fstatat(dirfd(listing), entry.d_name, &found, 0) == 0:
            total += found.st_blocks * 512
    closedir(listing)
    return total


cdef int64_t directory_newest_log(const char* path, int64_t* oldest) noexcept nogil:
    cdef int64_t newest = 0, number
    cdef dirent_t* entry
    cdef size_t length
    cdef DIR* listing = opendir(path)
    oldest[0] = 0
    if listing == NULL:
        return 0 if errno == ENOENT or errno == ENOTDIR else -1
    while True:
        entry = readdir(listing)
        if entry == NULL:
            break
        length = strlen(entry.d_name)
        if length > 4 and strncmp(entry.d_name + length - 4, ".log", 4) == 0:
            number = atoll(entry.d_name)
            newest = max(newest, number)
            oldest[0] = min(oldest[0], number) if oldest[0] else number
    closedir(listing)
    return newest


cdef int64_t directory_changed_ns(const char* path) noexcept nogil:
    cdef stat_t found
    if fstatat(AT_FDCWD, path, &found, 0) != 0:
        return -1
    return found.st_mtime * 1000000000 + found.st_mtime_part_ns


cdef const char* directory_is_gone(const char* directory, int lock_fd) noexcept nogil:
    cdef char path[4200]
    cdef stat_t named
    cdef stat_t ours
    snprintf(path, sizeof(path), "%s/fila.lock", directory)
    if fstatat(AT_FDCWD, path, &named, 0) != 0:
        if errno == ENOENT or errno == ENOTDIR or errno == ESTALE:
            return "fila.lock"
    elif fstat(lock_fd, &ours) == 0 and (named.st_ino != ours.st_ino or named.st_dev != ours.st_dev):
        return "fila.lock"              # another directory has taken the name
    snprintf(path, sizeof(path), "%s/rocksdb/CURRENT", directory)
    if fstatat(AT_FDCWD, path, &named, 0) != 0 and (errno == ENOENT or errno == ENOTDIR or errno == ESTALE):
        return "rocksdb/CURRENT"
    return NULL


cdef int64_t format_read(const char* directory) noexcept nogil:
    cdef char path[4096]
    cdef char text[64]
    cdef ssize_t got
    cdef int64_t format
    cdef int fd
    snprintf(path, sizeof(path), "%s/format", directory)
    fd = c_open(path, O_RDONLY | O_CLOEXEC)
    if fd < 0:
        return FORMAT_MISSING if errno == ENOENT else FORMAT_UNREADABLE
    got = c_read(fd, text, sizeof(text) - 1)
    c_close(fd)
    text[got if got > 0 else 0] = 0
    format = atoll(text + 5) if strncmp(text, "fila ", 5) == 0 else 0
    return format if format > 0 else FORMAT_UNREADABLE


cdef int format_write(const char* directory, int64_t format, StoreError* error) noexcept nogil:
    """Whole or not at all: a new file, synced, takes the old one's name."""
    cdef char path[4096]
    cdef char new_path[4096]
    cdef char text[32]
    cdef int fd, length
    snprintf(path, sizeof(path), "%s/format", directory)
    snprintf(new_path, sizeof(new_path), "%s/format.new", directory)
    length = snprintf(text, sizeof(text), "fila %lld\n", <long long>format)
    fd = c_open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    if fd < 0 or pwrite(fd, text, length, 0) != length or fsync(fd) != 0:
        if fd >= 0:
            c_close(fd)
        _unwritable(error, new_path)
        return STORE_UNWRITABLE
    c_close(fd)
    if rename(new_path, path) != 0:
        _unwritable(error, path)
        return STORE_UNWRITABLE
    fd = c_open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if fd >= 0:
        fsync(fd)
        c_close(fd)
    return STORE_OK


cdef void salvage_ask(const char* path) noexcept nogil:
    cdef char note[4200]
    cdef int fd
    snprintf(note, sizeof(note), "%s/../salvage", path)
    fd = c_open(note, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    if fd >= 0:
        c_close(fd)


cdef bint salvage_is_asked(const char* directory) noexcept nogil:
    cdef char note[4200]
    cdef stat_t found
    snprintf(note, sizeof(note), "%s/salvage", directory)
    return fstatat(AT_FDCWD, note, &found, 0) == 0
