"""One line of text with its checksum, always as long and written in place: a torn one fails its sum,
and then it proves nothing.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.stdio cimport snprintf, sscanf
from libc.string cimport memcpy, memset, strchr, strcmp

from fila_server.core.storage.checksum cimport crc32c
from fila_server.core.storage.data_directory cimport directory_newest_log
from fila_server.core.storage.posix cimport (
    O_CLOEXEC, O_CREAT, O_RDONLY, O_WRONLY, SEEK_END, access, c_close, c_open, lseek, pread, pwrite,
)
from fila_server.core.storage.rocksdb cimport rocksdb_get_latest_sequence_number
from fila_server.core.structures.atomics cimport atomic_load

cdef enum:
    PATH_BYTES = 4200
    NOTE_BYTES = 256
    NAME_BYTES = 64
    FRAGMENT_HEADER_BYTES = 7           # of the log's format, see walscan.pyx; the batch's number follows
    WHOLE = 1
    FIRST = 2

cdef struct Note:
    uint64_t synced
    int64_t log                         # 0 = not known
    uint64_t first
    char manifest[NAME_BYTES]
    int64_t manifest_bytes


cdef ssize_t _read(const char* directory, const char* name, char* content, size_t room) noexcept nogil:
    """The beginning of a file, with a zero behind it; -1 when it cannot be read."""
    cdef char path[PATH_BYTES]
    cdef ssize_t got
    cdef int fd
    snprintf(path, sizeof(path), "%s/%s", directory, name)
    fd = c_open(path, O_RDONLY | O_CLOEXEC)
    if fd < 0:
        return -1
    got = pread(fd, content, room - 1, 0)
    c_close(fd)
    content[got if got > 0 else 0] = 0
    return got


cdef void _contents(const char* directory, Note* note) noexcept nogil:
    """The MANIFEST that CURRENT names, and its size."""
    cdef char path[PATH_BYTES]
    cdef char* end
    cdef int fd
    note.manifest_bytes = -1
    if _read(directory, "CURRENT", note.manifest, NAME_BYTES) <= 0:
        return
    end = strchr(note.manifest, b"\n")
    if end != NULL:
        end[0] = 0
    snprintf(path, sizeof(path), "%s/%s", directory, <char*> note.manifest)
    fd = c_open(path, O_RDONLY | O_CLOEXEC)
    if fd >= 0:
        note.manifest_bytes = lseek(fd, 0, SEEK_END)
        c_close(fd)


cdef uint64_t _first_record(const char* directory, int64_t log) noexcept nogil:
    """The number of a log file's first record, 0 when it has none yet."""
    cdef char name[NAME_BYTES]
    cdef char head[FRAGMENT_HEADER_BYTES + 9]
    cdef uint64_t first
    snprintf(name, sizeof(name), "%06lld.log", <long long> log)
    if _read(directory, name, head, sizeof(head)) != sizeof(head) - 1 or not WHOLE <= head[6] <= FIRST:
        return 0
    memcpy(&first, head + FRAGMENT_HEADER_BYTES, 8)
    return first


cdef uint32_t _sum(const char* text, size_t length) noexcept nogil:
    return crc32c(<const uint8_t*> text, length)


cdef void lognote_write(Store* store) noexcept nogil:
    cdef char text[NOTE_BYTES]
    cdef char path[PATH_BYTES]
    cdef Note note
    cdef int64_t oldest = 0
    cdef int fd, length
    memset(&note, 0, sizeof(note))
    # Read before the rest: a table written meanwhile makes the MANIFEST differ, and then the note proves
    # nothing.
    _contents(store.directory, &note)
    if note.manifest_bytes < 0 or directory_newest_log(store.directory, &oldest) <= 0:
        return
    if oldest == store.noted_log and note.manifest_bytes == store.noted_manifest_bytes:
        note.first = _first_record(store.directory, oldest)
        note.log = oldest if note.first else 0
    store.noted_log, store.noted_manifest_bytes = oldest, note.manifest_bytes
    memset(text, 0, sizeof(text))
    length = snprintf(
        text, sizeof(text), "synced %llu log %lld first %llu manifest %s %lld",
        <unsigned long long> atomic_load(&store.synced), <long long> note.log,
        <unsigned long long> note.first, <char*> note.manifest, <long long> note.manifest_bytes)
    snprintf(text + length, sizeof(text) - length, " sum %08x\n", <unsigned int> _sum(text, length))
    snprintf(path, sizeof(path), "%s/synced", store.directory)
    fd = c_open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    if fd >= 0:
        pwrite(fd, text, sizeof(text), 0)       # always as long, so that no rest of a longer one stays
        c_close(fd)


cdef bint _note(const char* directory, Note* note) noexcept nogil:
    cdef char text[NOTE_BYTES + 1]
    cdef unsigned long long synced = 0, first = 0
    cdef long long log = 0, size = 0
    cdef unsigned int stored = 0
    cdef int length = 0
    memset(note, 0, sizeof(Note))
    if _read(directory, "synced", text, sizeof(text)) <= 0:
        return False
    if sscanf(text, "synced %llu log %lld first %llu manifest %63s %lld%n sum %x",
              &synced, &log, &first, <char*> note.manifest, &size, &length, &stored) != 6:
        return False
    note.synced, note.log, note.first, note.manifest_bytes = synced, log, first, size
    return stored == _sum(text, length)


cdef void lognote_check_files(Store* store) noexcept nogil:
    cdef Note note
    cdef Note now
    cdef char path[PATH_BYTES]
    cdef uint64_t behind
    store.promised = 0
    if not _note(store.directory, &note):
        return
    store.promised = note.synced
    snprintf(path, sizeof(path), "%s/%06lld.log", store.directory, <long long> note.log)
    if note.log == 0 or access(path, 0) == 0:
        return
    _contents(store.directory, &now)
    if strcmp(now.manifest, note.manifest) != 0 or now.manifest_bytes != note.manifest_bytes:
        return                          # it may be in tables by now
    behind = store.wal.first_sequence if store.wal.first_sequence else note.synced + 1
    store.wal.logs_missing = 1
    if behind > note.first:
        store.wal.records_lost += behind - note.first
        store.wal.first_lost_sequence = note.first
    snprintf(store.wal.first_damaged_file, 64, "%06lld.log", <long long> note.log)
    if store.wal.first_sequence == 0:
        store.promised = 0              # the end is in these records


cdef void lognote_check_end(Store* store) noexcept nogil:
    cdef uint64_t have = rocksdb_get_latest_sequence_number(store.db)
    if have >= store.promised:
        return
    if store.wal.files:
        store.wal.damaged_regions += 1
    else:
        store.wal.logs_missing = 1
    store.wal.records_lost += store.promised - have
