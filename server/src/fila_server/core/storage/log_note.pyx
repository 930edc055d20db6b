"""Lines of text with their checksums, always as long and written in place: a torn one fails its sum."""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.stdio cimport snprintf, sscanf
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.structures.checksum cimport crc32c
from fila_server.core.storage.families cimport NOTED_LOGS_MAX, LogBegin
from fila_server.core.storage.manifest_copy cimport manifest_copy_exists
from fila_server.core.storage.posix cimport (
    O_CLOEXEC, O_CREAT, O_DIRECTORY, O_RDONLY, O_WRONLY, access, c_close, c_open, fdatasync, fstat, fsync,
    pread, pwrite, stat_t,
)
from fila_server.core.storage.rocksdb cimport rocksdb_get_latest_sequence_number
from fila_server.core.storage.walscan cimport FIRST, HEADER_BYTES, WHOLE, log_numbers
from fila_server.core.structures.atomics cimport atomic_load, atomic_store

cdef enum:
    PATH_BYTES = 4200
    PLACE_BYTES = 4096                  # of the two; more than a line with NOTED_LOGS_MAX logs

cdef struct Note:
    uint64_t synced
    int64_t written_ms                  # wall clock
    int count
    LogBegin logs[NOTED_LOGS_MAX]


# --- write -------------------------------------------------------------------------------

cdef uint64_t _first_record(const char* directory, int64_t log) noexcept nogil:
    """The number of a log file's first record, 0 when it has none yet."""
    cdef char path[PATH_BYTES]
    cdef char head[HEADER_BYTES + 8]    # the batch's number follows the fragment's header
    cdef ssize_t got
    cdef uint64_t first = 0
    cdef int fd
    snprintf(path, sizeof(path), "%s/%06lld.log", directory, <long long> log)
    fd = c_open(path, O_RDONLY | O_CLOEXEC)
    if fd < 0:
        return 0
    got = pread(fd, head, sizeof(head), 0)
    c_close(fd)
    if got == sizeof(head) and WHOLE <= head[6] <= FIRST:
        memcpy(&first, head + HEADER_BYTES, 8)
    return first


cdef uint64_t _noted_first(Store* store, int64_t log) noexcept nogil:
    cdef int i
    for i in range(store.noted_count):
        if store.noted[i].log == log and store.noted[i].first:
            return store.noted[i].first
    return _first_record(store.directory, log)


cdef void _list_logs(Store* store) noexcept nogil:
    """The oldest ones, if there are more than the note has room for: of the first that is needed the rest
    follows."""
    cdef LogBegin logs[NOTED_LOGS_MAX]
    cdef int count = 0, i
    cdef int64_t* numbers = log_numbers(store.directory, &count)
    count = min(count, <int>NOTED_LOGS_MAX)
    for i in range(count):
        logs[i].log, logs[i].first = numbers[i], _noted_first(store, numbers[i])
    free(numbers)
    memcpy(store.noted, logs, count * sizeof(LogBegin))
    store.noted_count = count


cdef uint32_t _sum(const char* text, size_t length) noexcept nogil:
    return crc32c(<const uint8_t*> text, length)


cdef void _write(Store* store, const char* text, int place) noexcept nogil:
    cdef char path[PATH_BYTES]
    cdef bint made
    cdef int fd
    snprintf(path, sizeof(path), "%s/synced", store.directory)
    made = access(path, 0) != 0
    fd = c_open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    if fd < 0:
        return
    pwrite(fd, text, PLACE_BYTES, place * PLACE_BYTES)
    fdatasync(fd)
    c_close(fd)
    if not made:
        return
    fd = c_open(store.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if fd >= 0:
        fsync(fd)
        c_close(fd)


cdef void lognote_write(Store* store) noexcept nogil:
    cdef char text[PLACE_BYTES]
    cdef int length, i
    # Read before the logs are listed: then a log that is not named has nothing at or below it.
    cdef uint64_t synced = atomic_load(&store.synced)
    if synced == store.noted_synced:
        return
    _list_logs(store)
    memset(text, 0, sizeof(text))
    length = snprintf(text, sizeof(text), "synced %llu", <unsigned long long> synced)
    for i in range(store.noted_count):
        length += snprintf(
            text + length, sizeof(text) - length, " log %lld first %llu",
            <long long> store.noted[i].log, <unsigned long long> store.noted[i].first)
    snprintf(text + length, sizeof(text) - length, " sum %08x\n", <unsigned int> _sum(text, length))
    _write(store, text, store.noted_place)
    store.noted_place ^= 1
    store.noted_synced = synced


cdef void lognote_begin(Store* store) noexcept nogil:
    cdef int i
    # What an opening found in the log is in tables by now.
    atomic_store(&store.synced, <uint64_t> rocksdb_get_latest_sequence_number(store.db))
    for i in range(2):
        store.noted_synced = 0
        lognote_write(store)


# --- read --------------------------------------------------------------------------------

cdef bint _parse(const char* text, Note* note) noexcept nogil:
    cdef unsigned long long number = 0
    cdef long long log = 0
    cdef unsigned int stored = 0
    cdef int step = 0
    cdef size_t at
    note.count = 0
    if sscanf(text, "synced %llu%n", &number, &step) != 1:
        return False
    note.synced, at = number, <size_t> step
    while sscanf(text + at, " log %lld first %llu%n", &log, &number, &step) == 2:
        at += step
        if log > 0 and note.count < NOTED_LOGS_MAX:
            note.logs[note.count].log, note.logs[note.count].first = log, number
            note.count += 1
    step = 0
    sscanf(text + at, " manifest %*s %*d%n", &step)     # as notes had it that named one log alone
    at += step
    return sscanf(text + at, " sum %x", &stored) == 1 and stored == _sum(text, at)


cdef bint _read(const char* directory, Note* newest) noexcept nogil:
    """The newer of the two that can be read; False when none can."""
    cdef char path[PATH_BYTES]
    cdef char text[PLACE_BYTES + 1]
    cdef stat_t found
    cdef Note note
    cdef bint any = False
    cdef ssize_t got
    cdef int fd, place
    memset(newest, 0, sizeof(Note))
    snprintf(path, sizeof(path), "%s/synced", directory)
    fd = c_open(path, O_RDONLY | O_CLOEXEC)
    if fd < 0:
        return False
    note.written_ms = <int64_t> found.st_mtime * 1000 if fstat(fd, &found) == 0 else 0
    for place in range(2):
        got = pread(fd, text, PLACE_BYTES, place * PLACE_BYTES)
        text[got if got > 0 else 0] = 0
        if _parse(text, &note) and (not any or note.synced > newest.synced):
            newest[0] = note
            any = True
    c_close(fd)
    return any


cdef bint _is_there(const char* directory, int64_t log) noexcept nogil:
    cdef char path[PATH_BYTES]
    snprintf(path, sizeof(path), "%s/%06lld.log", directory, <long long> log)
    return access(path, 0) == 0


cdef uint64_t lognote_read(Store* store, int64_t oldest_log) noexcept nogil:
    cdef Note note
    cdef uint64_t first = 0
    cdef bint is_first = True
    cdef int i
    store.promised = 0
    if not _read(store.directory, &note):
        store.wal.notes_missing = manifest_copy_exists(store.directory)
        return 0
    store.promised = note.synced
    store.wal.noted_ms = note.written_ms
    if oldest_log < 0:
        return 0
    for i in range(note.count):
        if note.logs[i].log < oldest_log:
            continue
        if is_first:
            first, is_first = note.logs[i].first, False
        if _is_there(store.directory, note.logs[i].log):
            continue
        if not 0 < note.logs[i].first <= note.synced:
            store.wal.logs_unsynced += 1
            continue
        store.wal.logs_missing += 1
        if store.wal.logs_missing == 1:
            snprintf(store.wal.first_damaged_file, 64, "%06lld.log", <long long> note.logs[i].log)
    return first
