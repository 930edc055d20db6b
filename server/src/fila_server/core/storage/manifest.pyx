"""RocksDB's table of contents, read before RocksDB does.

    file    = fragments, as in the write-ahead log (walscan.pyx); joined, each is one edit
    edit    = fields: tag varint | value by tag
    value   = numbers as varints, texts and all later inventions as length varint | bytes

Three fields count here. Each family has a log number: of what older logs hold, everything that is the
family's is in tables. And one number for all says which logs RocksDB keeps, since a family that
is empty needs none. RocksDB syncs these before it deletes a log, so a log that is needed was deleted by
somebody else.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from fila_server.core.storage.manifest_copy cimport MANIFEST_PATH_BYTES, manifest_path, manifest_read
from fila_server.core.storage.posix cimport O_CLOEXEC, O_WRONLY, c_close, c_open, fsync, ftruncate
from fila_server.core.storage.walscan cimport FIRST, HEADER_BYTES, LAST, WHOLE, fragment_bytes

cdef enum:
    FAMILIES_MAX = 256          # ids of families that there are or were

cdef enum:                      # tags
    COMPARATOR = 1
    LOG_NUMBER = 2
    NEXT_FILE = 3
    LAST_SEQUENCE = 4
    COMPACT_CURSOR = 5
    DELETED_TABLE = 6
    PREVIOUS_LOG = 9
    OLDEST_LOG_KEPT = 10
    NEW_TABLE = 103
    FAMILY = 200
    FAMILY_ADDED = 201
    FAMILY_DROPPED = 202
    LARGEST_FAMILY = 203
    IN_GROUP = 300
    NEW_PAYLOAD_FILE = 400
    PAYLOAD_FILE_GARBAGE = 401
    MAY_BE_SKIPPED = 8192       # a bit of tags whose value is a length and bytes

cdef struct Reading:
    const uint8_t* at
    const uint8_t* end
    bint failed

cdef struct Contents:
    int64_t bytes
    int64_t log_of[FAMILIES_MAX]        # the oldest log that a family needs; -1 = there is no such family
    int64_t oldest_log_kept
    int64_t last_sequence               # never falls from edit to edit
    int64_t repeated_at                 # where an edit begins in which it does; -1 = nowhere


cdef int64_t manifest_needed_log(const char* directory) noexcept nogil:
    cdef int64_t oldest = -1
    cdef int family
    cdef Contents contents
    if not _read(&contents, directory):
        return -1
    for family in range(FAMILIES_MAX):
        if contents.log_of[family] >= 0 and (oldest < 0 or contents.log_of[family] < oldest):
            oldest = contents.log_of[family]
    return max(oldest, contents.oldest_log_kept)


cdef int64_t manifest_drop_repeated(const char* directory, bint repairing) noexcept nogil:
    cdef char path[MANIFEST_PATH_BYTES]
    cdef Contents contents
    cdef int fd
    if not _read(&contents, directory) or contents.repeated_at < 0:
        return 0
    if repairing and manifest_path(directory, path):
        fd = c_open(path, O_WRONLY | O_CLOEXEC)
        if fd < 0:
            return 0
        ftruncate(fd, contents.repeated_at)
        fsync(fd)
        c_close(fd)
    return contents.bytes - contents.repeated_at


cdef bint _read(Contents* contents, const char* directory) noexcept nogil:
    cdef int64_t size = 0
    cdef uint8_t* content = manifest_read(directory, &size)
    cdef bint understood
    memset(contents, 0xff, sizeof(Contents))
    contents.log_of[0] = contents.oldest_log_kept = 0       # the family that is always there
    contents.bytes = size
    understood = content != NULL and _edits(contents, content, size)
    free(content)
    return understood


cdef bint _edits(Contents* contents, const uint8_t* content, int64_t size) noexcept nogil:
    """Up to the first fragment that is damaged, or not whole yet, or repeated; False when one cannot be
    understood."""
    cdef uint8_t* edit = <uint8_t*>malloc(size + 1)
    cdef int64_t at = 0, begin = 0, length, joined = 0, edits = 0
    cdef int kind
    cdef bint understood = edit != NULL
    while understood and contents.repeated_at < 0:
        length = fragment_bytes(content, size, &at)
        if length < 0:
            break
        kind = content[at + 6]
        if kind == WHOLE or kind == FIRST:
            joined, begin = 0, at
        memcpy(edit + joined, content + at + HEADER_BYTES, length)
        joined += length
        at += HEADER_BYTES + length
        if kind == WHOLE or kind == LAST:
            understood = _edit(contents, edit, joined, begin)
            edits += 1
    free(edit)
    return understood and edits > 0


cdef uint64_t _number(Reading* reading) noexcept nogil:
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while reading.at < reading.end and shift < 64:
        byte = reading.at[0]
        reading.at += 1
        value |= <uint64_t>(byte & 127) << shift
        if byte < 128:
            return value
        shift += 7
    reading.failed = True
    return 0


cdef void _numbers(Reading* reading, int count) noexcept nogil:
    cdef int i
    for i in range(count):
        _number(reading)


cdef void _texts(Reading* reading, int count) noexcept nogil:
    cdef uint64_t length
    cdef int i
    for i in range(count):
        length = _number(reading)
        if length > <uint64_t>(reading.end - reading.at):
            reading.failed = True
            return
        reading.at += length


cdef void _additions(Reading* reading, uint64_t end) noexcept nogil:
    """Fields of a field: tag varint | length varint | bytes, up to the tag `end`, which stands alone."""
    while not reading.failed and _number(reading) != end:
        _texts(reading, 1)


cdef bint _edit(Contents* contents, const uint8_t* content, int64_t size, int64_t begin) noexcept nogil:
    cdef Reading reading
    cdef uint64_t family = 0
    cdef int64_t log = -1, kept = -1, last_sequence = -1
    cdef bint dropped = False, added = False
    cdef uint32_t tag
    reading.at, reading.end, reading.failed = content, content + size, False
    while reading.at < reading.end and not reading.failed:
        tag = <uint32_t>_number(&reading)
        if tag == LOG_NUMBER:
            log = <int64_t>_number(&reading)
        elif tag == OLDEST_LOG_KEPT:
            kept = <int64_t>_number(&reading)
        elif tag == FAMILY:
            family = _number(&reading)
        elif tag == LAST_SEQUENCE:
            last_sequence = <int64_t>_number(&reading)
        elif tag == FAMILY_ADDED:
            added = True
            _texts(&reading, 1)
        elif tag == FAMILY_DROPPED:
            dropped = True
        else:
            _step_over(&reading, tag)
    if reading.failed or family >= FAMILIES_MAX:
        return False
    if 0 <= last_sequence < contents.last_sequence:
        contents.repeated_at = begin
        return True
    contents.last_sequence = max(contents.last_sequence, last_sequence)
    if added:
        contents.log_of[family] = 0
    if dropped:
        contents.log_of[family] = -1
    elif log > contents.log_of[family] >= 0:
        contents.log_of[family] = log
    contents.oldest_log_kept = max(contents.oldest_log_kept, kept)
    return True


cdef void _step_over(Reading* reading, uint32_t tag) noexcept nogil:
    if tag == NEXT_FILE or tag == PREVIOUS_LOG or tag == LARGEST_FAMILY or tag == IN_GROUP:
        _number(reading)
    elif tag == COMPARATOR or tag & MAY_BE_SKIPPED:
        _texts(reading, 1)
    elif tag == COMPACT_CURSOR:
        _number(reading)
        _texts(reading, 1)
    elif tag == DELETED_TABLE:
        _numbers(reading, 2)                    # level, table
    elif tag == NEW_TABLE:
        _numbers(reading, 3)                    # level, table, bytes
        _texts(reading, 2)                      # first and last key
        _numbers(reading, 2)                    # first and last record
        _additions(reading, 1)
    elif tag == NEW_PAYLOAD_FILE:
        _numbers(reading, 3)                    # file, payloads, bytes
        _texts(reading, 2)                      # its checksum's method and value
        _additions(reading, 0)
    elif tag == PAYLOAD_FILE_GARBAGE:
        _numbers(reading, 3)
        _additions(reading, 0)
    else:
        reading.failed = True
