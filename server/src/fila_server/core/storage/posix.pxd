"""The system's files and directories: what the modules of this room ask of it, declared once."""

from libc.stdint cimport int64_t

cdef extern from "<fcntl.h>" nogil:
    enum:
        AT_FDCWD
        O_CLOEXEC
        O_CREAT
        O_DIRECTORY
        O_RDONLY
        O_RDWR
        O_TRUNC
        O_WRONLY
    int c_open "open"(const char* path, int flags, ...)
    int posix_fallocate(int fd, int64_t offset, int64_t length)

cdef extern from "<unistd.h>" nogil:
    enum:
        SEEK_END
    int access(const char* path, int mode)
    int c_close "close"(int fd)
    ssize_t c_read "read"(int fd, void* buffer, size_t count)
    ssize_t c_write "write"(int fd, const void* buffer, size_t count)
    int fdatasync(int fd)
    int fsync(int fd)
    int ftruncate(int fd, int64_t length)
    int getpid()
    int link(const char* path, const char* another)
    int64_t lseek(int fd, int64_t offset, int whence)
    ssize_t pread(int fd, void* buffer, size_t count, int64_t offset)
    ssize_t pwrite(int fd, const void* buffer, size_t count, int64_t offset)
    int rmdir(const char* path)
    int unlink(const char* path)

cdef extern from "<dirent.h>" nogil:
    ctypedef struct DIR:
        pass
    cdef struct dirent_t "dirent":
        char d_name[256]
    int closedir(DIR* directory)
    int dirfd(DIR* directory)
    DIR* opendir(const char* path)
    dirent_t* readdir(DIR* directory)

cdef extern from "<sys/stat.h>" nogil:
    cdef struct stat_t "stat":
        unsigned long st_dev
        unsigned long st_ino
        int64_t st_blocks
        int64_t st_mtime
        int64_t st_mtime_part_ns "st_mtim.tv_nsec"
        int64_t st_size
    int fstat(int fd, stat_t* buffer)
    int fstatat(int directory_fd, const char* name, stat_t* buffer, int flags)
    int c_mkdir "mkdir"(const char* path, unsigned int mode)
