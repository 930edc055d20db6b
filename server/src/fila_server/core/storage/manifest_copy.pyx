"""A second copy of RocksDB's table of contents, since one flipped byte in it would hide whole tables.

    rocksdb/CURRENT             "MANIFEST-000005\n": which MANIFEST counts
    rocksdb/MANIFEST-000005     which tables and blob files there are; only appended to
    rocksdb/mirror              the name, filled up to 64 bytes; then the MANIFEST's bytes so far

The copy may be a second behind, which does no harm: it heals what it covers. It holds nothing that was not on
the disk before, so a MANIFEST that is shorter was cut. Each of the two carries checksums, so it is known
which one is right.
"""

from libc.errno cimport ENOENT, errno
from libc.stdint cimport uint8_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset, strchr, strncmp

from fila_server.core.storage.posix cimport (
    O_CLOEXEC, O_CREAT, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY, SEEK_END, access, c_close, c_open, fdatasync,
    fsync, lseek, pread, pwrite,
)
from fila_server.core.storage.walscan cimport is_whole_log

cdef enum:
    NAME_BYTES = 64
    MANIFEST_BYTES_MAX = 67108864       # RocksDB starts a new one at 16 MiB (tuning.pyx)


cdef uint8_t* _read(const char* path, int64_t* byte_count) noexcept nogil:
    """A whole file, malloc'd with a zero behind it; NULL when there is none, or too much."""
    cdef uint8_t* content = NULL
    cdef int64_t size
    cdef int fd = c_open(path, O_RDONLY | O_CLOEXEC)
    byte_count[0] = 0
    if fd < 0:
        return NULL
    size = lseek(fd, 0, SEEK_END)
    if 0 <= size <= MANIFEST_BYTES_MAX:
        content = <uint8_t*>malloc(size + 1)
    if content != NULL:
        byte_count[0] = max(<int64_t>0, <int64_t>pread(fd, content, size, 0))
        content[byte_count[0]] = 0
    c_close(fd)
    return content


cdef bint _current(const char* directory, char* name) noexcept nogil:
    """The name in CURRENT, if it is one."""
    cdef char path[MANIFEST_PATH_BYTES]
    cdef int64_t size = 0
    cdef char* end
    cdef uint8_t* content
    snprintf(path, sizeof(path), "%s/CURRENT", directory)
    content = _read(path, &size)
    memset(name, 0, NAME_BYTES)
    if content != NULL and 9 < size < NAME_BYTES and strncmp(<char*>content, "MANIFEST-", 9) == 0:
        end = strchr(<char*>content, b"\n")
        if end != NULL and end + 1 == <char*>content + size:
            memcpy(name, content, end - <char*>content)
    free(content)
    return name[0] != 0


cdef void manifest_copy_update(const char* directory) noexcept nogil:
    cdef char name[NAME_BYTES]
    cdef char held[NAME_BYTES]
    cdef char path[MANIFEST_PATH_BYTES]
    cdef uint8_t* added = NULL
    cdef int64_t have, want
    cdef int mirror, manifest
    if not _current(directory, name):
        return
    snprintf(path, sizeof(path), "%s/%s", directory, <char*>name)
    manifest = c_open(path, O_RDONLY | O_CLOEXEC)
    if manifest < 0:
        return
    snprintf(path, sizeof(path), "%s/mirror", directory)
    mirror = c_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    if mirror < 0:
        c_close(manifest)
        return
    if pread(mirror, held, NAME_BYTES, 0) != NAME_BYTES or memcmp(held, name, NAME_BYTES) != 0:
        c_close(mirror)
        mirror = c_open(path, O_RDWR | O_TRUNC | O_CLOEXEC)
        if mirror < 0 or pwrite(mirror, name, NAME_BYTES, 0) != NAME_BYTES:
            c_close(manifest)
            return
    have = lseek(mirror, 0, SEEK_END) - NAME_BYTES
    want = lseek(manifest, 0, SEEK_END)
    # A power cut must not leave the copy with more than the MANIFEST.
    if have < want <= MANIFEST_BYTES_MAX and fdatasync(manifest) == 0:
        added = <uint8_t*>malloc(want - have)
        if added != NULL and pread(manifest, added, want - have, have) == want - have:
            pwrite(mirror, added, want - have, NAME_BYTES + have)
        free(added)
    c_close(mirror)
    c_close(manifest)


cdef bint manifest_copy_exists(const char* directory) noexcept nogil:
    cdef char path[MANIFEST_PATH_BYTES]
    snprintf(path, sizeof(path), "%s/mirror", directory)
    return access(path, 0) == 0


cdef bint manifest_path(const char* directory, char* path) noexcept nogil:
    cdef char name[NAME_BYTES]
    if not _current(directory, name):
        return False
    snprintf(path, MANIFEST_PATH_BYTES, "%s/%s", directory, <char*>name)
    return True


cdef uint8_t* manifest_read(const char* directory, int64_t* byte_count) noexcept nogil:
    cdef char path[MANIFEST_PATH_BYTES]
    return _read(path, byte_count) if manifest_path(directory, path) else NULL


cdef int64_t manifest_copy_heal(const char* directory, bint repairing) noexcept nogil:
    cdef char path[MANIFEST_PATH_BYTES]
    cdef int64_t size = 0, healed = 0
    cdef uint8_t* mirror
    snprintf(path, sizeof(path), "%s/mirror", directory)
    mirror = _read(path, &size)
    if mirror != NULL and size > NAME_BYTES:
        mirror[NAME_BYTES - 1] = 0
        if (
            strncmp(<char*>mirror, "MANIFEST-", 9) == 0
            and is_whole_log(mirror + NAME_BYTES, size - NAME_BYTES)
        ):
            healed = _heal_current(directory, <char*>mirror, repairing)
            healed += _heal_manifest(
                directory, <char*>mirror, mirror + NAME_BYTES, size - NAME_BYTES, repairing)
    free(mirror)
    return healed


cdef int64_t _heal_current(const char* directory, const char* name, bint repairing) noexcept nogil:
    """Only a CURRENT that names no file is wrong; one that names another file is newer than the copy."""
    cdef char path[MANIFEST_PATH_BYTES]
    cdef char found[NAME_BYTES]
    cdef char line[NAME_BYTES + 2]
    cdef int fd, length
    if _current(directory, found):
        snprintf(path, sizeof(path), "%s/%s", directory, <char*>found)
        fd = c_open(path, O_RDONLY | O_CLOEXEC)
        if fd >= 0 or errno != ENOENT:
            c_close(fd)
            return 0
    length = snprintf(line, sizeof(line), "%s\n", name)
    if not repairing:
        return length
    snprintf(path, sizeof(path), "%s/CURRENT", directory)
    fd = c_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    if fd < 0:
        return 0
    pwrite(fd, line, length, 0)
    fsync(fd)
    c_close(fd)
    return length


cdef int64_t _write_anew(const char* path, const uint8_t* copy, int64_t copy_bytes) noexcept nogil:
    """The MANIFEST that CURRENT names is gone: all of it comes from the copy."""
    cdef bint done
    cdef int fd
    if access(path, 0) == 0 or errno != ENOENT:
        return 0                        # it is there and cannot be read just now
    fd = c_open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
    if fd < 0:
        return 0
    done = pwrite(fd, copy, copy_bytes, 0) == copy_bytes and fsync(fd) == 0
    c_close(fd)
    return copy_bytes if done else 0


cdef int64_t _heal_manifest(
        const char* directory, const char* name, const uint8_t* copy, int64_t copy_bytes,
        bint repairing) noexcept nogil:
    cdef char path[MANIFEST_PATH_BYTES]
    cdef char found[NAME_BYTES]
    cdef uint8_t* manifest
    cdef int64_t size = 0, i, healed = 0
    cdef int fd
    if not _current(directory, found) or strncmp(found, name, NAME_BYTES) != 0:
        return 0
    snprintf(path, sizeof(path), "%s/%s", directory, name)
    manifest = _read(path, &size)
    if manifest == NULL:
        return _write_anew(path, copy, copy_bytes) if repairing else copy_bytes
    for i in range(min(size, copy_bytes)):
        healed += manifest[i] != copy[i]
    healed += max(<int64_t>0, copy_bytes - size)
    free(manifest)
    if healed and repairing:
        fd = c_open(path, O_WRONLY | O_CLOEXEC)
        if fd < 0:
            return 0
        pwrite(fd, copy, copy_bytes, 0)
        fsync(fd)
        c_close(fd)
    return healed
