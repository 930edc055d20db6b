"""Reads the write-ahead log before RocksDB does, to know what RocksDB will skip.

RocksDB can go on behind a damaged place in its log, but it tells nobody what was there.
The log numbers every put and delete, though, so a gap in the numbers is a loss with a size.

    file    = blocks of 32 KiB
    block   = fragments, then at most 6 zero bytes
    fragment= checksum u32 | length u16 | type u8 (whole, first, middle, last) | bytes
    batch   = fragments joined = first sequence number u64 | count u32 | puts and deletes

A fragment that fails its checksum takes the rest of its block with it, in RocksDB as here:
its length can't be trusted, so nobody knows where the next one starts.

RocksDB 7.8 steps over that, but keeps the running checksum of a batch that it has begun to join
and whose end it does not find. The next batch of several fragments then looks corrupted, the open
fails, and what is left is a rebuild that loses all of the log. So before RocksDB reads a damaged
log, the header of each such batch's first fragment is overwritten with zeros, which RocksDB takes
for unwritten room: a first fragment is the last of its block, so nothing else is stepped over, and
without a beginning the rest of the batch is, too.

A file that was doubled, or has the content of another time, holds numbers that were there before. RocksDB
would play them once more, and 7.8 aborts the process at a record that it has. Such a file ends there.

Damage or the end? A power cut leaves files without their last bytes; that is no damage, since
nothing that was answered under fsync lay there. It may happen to several files at once: what
the disk had written of a newer file by itself survives, so batches may be missing between two
files. Bytes that are there and fail their checksum are damage, unless they are the very last. And whatever is
missing at or below the record that was on the disk for certain (log_note.pxd) was answered: it is lost,
however its absence looks.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport atoll, free, malloc, realloc
from libc.string cimport memcpy, memset, strcmp, strlen

from fila_server.core.structures.checksum cimport crc32c
from fila_server.core.storage.posix cimport (
    DIR, O_CLOEXEC, O_RDONLY, O_RDWR, c_close, c_open, c_read, closedir, dirent_t, ftruncate, opendir, pwrite,
    readdir,
)

cdef enum:
    BLOCK_BYTES = 32768
    BATCH_HEADER_BYTES = 12
    BUFFER_BLOCKS = 32
    FILES_MAX = 65536

cdef struct Scan:
    WalReport* report
    char file_name[64]
    char file_before[64]        # empty at the first file
    uint64_t next_sequence      # the one the next batch should start with, 0 = not known
    uint64_t synced             # all up to this one must be there
    uint8_t head[BATCH_HEADER_BYTES]
    int head_bytes              # of the batch being joined
    bint joining                # between a FIRST and its LAST
    bint ignore_batches         # fragments only
    int64_t fragments           # that passed their checksum
    bint in_file                # a batch of this file was read already
    bint out_of_order           # and one that was there before: the file ends with it
    bint bad_checksum           # among the bad bytes are whole fragments with a wrong checksum
    bint end_damaged            # the file before this one ended so
    int64_t bad_bytes           # unreadable so far, with nothing readable behind them yet
    int fd                      # of this file
    bint leaving_out            # batches whose end cannot be read are made unreadable from their beginning
    int64_t block_at            # of the block at hand, in its file
    int64_t joined_from         # where the FIRST lies that is being joined


cdef void scan_wal(
        const char* directory, int64_t oldest_log, uint64_t first, uint64_t synced,
        WalReport* report) noexcept nogil:
    cdef Scan scan
    memset(&scan, 0, sizeof(Scan))
    scan.report, scan.next_sequence, scan.synced = report, first, synced
    _scan_files(&scan, directory, oldest_log)
    if 0 < scan.next_sequence <= synced:
        _lost(&scan, scan.next_sequence, synced + 1, scan.file_name)


cdef void leave_out_bad_batches(const char* directory, int64_t oldest_log, uint64_t first) noexcept nogil:
    cdef WalReport ignored
    cdef Scan scan
    memset(&ignored, 0, sizeof(WalReport))
    memset(&scan, 0, sizeof(Scan))
    scan.report, scan.next_sequence, scan.leaving_out = &ignored, first, True
    _scan_files(&scan, directory, oldest_log)


cdef void _scan_files(Scan* scan, const char* directory, int64_t oldest_log) noexcept nogil:
    cdef int count = 0, i
    cdef int64_t* numbers = log_numbers(directory, &count)
    cdef uint8_t* buffer = <uint8_t*>malloc(BUFFER_BLOCKS * BLOCK_BYTES)
    if numbers != NULL and buffer != NULL:
        for i in range(count):
            if numbers[i] >= oldest_log:
                _scan_file(scan, directory, numbers[i], buffer)
    free(numbers)
    free(buffer)


cdef int64_t fragment_bytes(const uint8_t* content, int64_t byte_count, int64_t* at) noexcept nogil:
    cdef int64_t left = BLOCK_BYTES - at[0] % BLOCK_BYTES
    cdef int64_t length
    if left < HEADER_BYTES:
        at[0] += left
        left = BLOCK_BYTES
    left = min(left, byte_count - at[0]) - HEADER_BYTES
    if left < 0:
        return -1
    content += at[0]
    length = content[4] | (<int64_t>content[5] << 8)
    if content[6] == UNWRITTEN or length > left or not _passes(content, <size_t>length):
        return -1
    return length


cdef bint _passes(const uint8_t* fragment, size_t length) noexcept nogil:
    cdef uint32_t stored
    cdef uint32_t computed = crc32c(fragment + 6, length + 1)
    memcpy(&stored, fragment, 4)
    # masked as RocksDB stores it
    return stored == ((computed >> 15) | (computed << 17)) + <uint32_t>0xa282ead8


cdef bint is_whole_log(uint8_t* content, int64_t byte_count) noexcept nogil:
    cdef WalReport report
    cdef Scan scan
    cdef int64_t at = 0
    memset(&report, 0, sizeof(report))
    memset(&scan, 0, sizeof(scan))
    scan.report = &report
    scan.ignore_batches = True
    while at < byte_count:
        _scan_block(&scan, content + at, <size_t>min(<int64_t>BLOCK_BYTES, byte_count - at))
        at += BLOCK_BYTES
    return scan.fragments > 0 and scan.bad_bytes == 0


cdef int64_t* log_numbers(const char* directory, int* count) noexcept nogil:
    cdef int64_t* numbers = NULL
    cdef int64_t* grown
    cdef int room = 0, i
    cdef int64_t number
    cdef size_t length
    cdef dirent_t* entry
    cdef DIR* listing = opendir(directory)
    if listing == NULL:
        return NULL
    while count[0] < FILES_MAX:
        entry = readdir(listing)
        if entry == NULL:
            break
        length = strlen(entry.d_name)
        if length < 5 or strcmp(entry.d_name + length - 4, ".log") != 0:
            continue
        number = atoll(entry.d_name)
        if count[0] == room:
            room = 2 * room + 16
            grown = <int64_t*>realloc(numbers, room * sizeof(int64_t))
            if grown == NULL:
                break
            numbers = grown
        i = count[0]
        while i > 0 and numbers[i - 1] > number:        # a handful of files: insertion sort
            numbers[i] = numbers[i - 1]
            i -= 1
        numbers[i] = number
        count[0] += 1
    closedir(listing)
    return numbers


cdef void _scan_file(Scan* scan, const char* directory, int64_t number, uint8_t* buffer) noexcept nogil:
    cdef char path[4200]
    cdef ssize_t got
    cdef size_t filled = 0, at
    memcpy(scan.file_before, scan.file_name, sizeof(scan.file_name))
    snprintf(scan.file_name, sizeof(scan.file_name), "%06lld.log", <long long>number)
    snprintf(path, sizeof(path), "%s/%s", directory, <char*>scan.file_name)
    scan.joining = scan.in_file = scan.out_of_order = scan.bad_checksum = False
    scan.bad_bytes = scan.block_at = 0
    scan.fd = c_open(path, (O_RDWR if scan.leaving_out else O_RDONLY) | O_CLOEXEC)
    if scan.fd < 0:
        return
    scan.report.files += 1
    while True:
        filled = 0
        while filled < BUFFER_BLOCKS * BLOCK_BYTES:
            got = c_read(scan.fd, buffer + filled, BUFFER_BLOCKS * BLOCK_BYTES - filled)
            if got <= 0:
                break
            filled += got
        at = 0
        while at < filled:
            _scan_block(scan, buffer + at, min(<size_t>BLOCK_BYTES, filled - at))
            at += BLOCK_BYTES
            scan.block_at += BLOCK_BYTES
        scan.report.bytes += filled
        if filled < BUFFER_BLOCKS * BLOCK_BYTES:
            break
    c_close(scan.fd)
    # Nothing readable followed: the file just ends here.
    scan.report.tail_bytes_dropped += scan.bad_bytes
    scan.end_damaged = scan.bad_bytes > 0 and scan.bad_checksum


cdef void _scan_block(Scan* scan, uint8_t* block, size_t size) noexcept nogil:
    cdef size_t at = 0
    cdef size_t length
    cdef int kind
    while at + HEADER_BYTES <= size:
        length = block[at + 4] | (<size_t>block[at + 5] << 8)
        kind = block[at + 6]
        if kind == UNWRITTEN and length == 0:
            _cut(scan)      # a batch that goes on never leaves room in its block
            return
        if at + HEADER_BYTES + length > size:
            scan.bad_checksum |= size == BLOCK_BYTES        # a fragment ends in its block,
                                                            # unless the file does
            _bad(scan, size - at)
            return
        if not _passes(block + at, length):
            scan.bad_checksum = True
            _bad(scan, size - at)
            return
        if kind == WHOLE or kind == FIRST:
            _cut(scan)
            scan.joined_from = scan.block_at + <int64_t>at
        _fragment(scan, kind, block + at + HEADER_BYTES, length)
        at += HEADER_BYTES + length


cdef void _bad(Scan* scan, size_t byte_count) noexcept nogil:
    scan.bad_bytes += byte_count
    _cut(scan)


cdef void _cut(Scan* scan) noexcept nogil:
    """A batch that is being joined ends here without its last fragment."""
    cdef uint8_t unwritten[HEADER_BYTES]
    if scan.joining and scan.leaving_out and not scan.out_of_order:
        memset(unwritten, 0, HEADER_BYTES)
        # If it cannot be written, RocksDB refuses the log as it did before.
        pwrite(scan.fd, unwritten, HEADER_BYTES, scan.joined_from)
    scan.joining = False


cdef void _fragment(Scan* scan, int kind, uint8_t* content, size_t length) noexcept nogil:
    cdef size_t take
    scan.fragments += 1
    if scan.ignore_batches:
        return
    if kind == WHOLE or kind == FIRST:
        scan.head_bytes = 0
        scan.joining = True
    elif (kind == MIDDLE or kind == LAST) and not scan.joining:
        scan.bad_bytes += length        # the rest of a batch whose beginning is lost
        return
    elif kind > LAST:
        return                          # a kind that carries no batch
    if scan.head_bytes < BATCH_HEADER_BYTES:
        take = min(<size_t>(BATCH_HEADER_BYTES - scan.head_bytes), length)
        memcpy(scan.head + scan.head_bytes, content, take)
        scan.head_bytes += <int>take
    if kind == WHOLE or kind == LAST:
        scan.joining = False
        if scan.head_bytes == BATCH_HEADER_BYTES:
            _batch(scan)


cdef void _batch(Scan* scan) noexcept nogil:
    cdef uint64_t sequence
    cdef uint32_t count
    cdef WalReport* report = scan.report
    if scan.out_of_order:
        return
    memcpy(&sequence, scan.head, 8)
    memcpy(&count, scan.head + 8, 4)
    if sequence < scan.next_sequence:
        scan.out_of_order = True
        report.damaged_regions += 1
        _name_damage(report, scan.file_name)
        if scan.leaving_out:
            ftruncate(scan.fd, scan.joined_from)
        return
    report.batches += 1
    if report.first_sequence == 0:
        report.first_sequence = <int64_t> sequence
    if scan.bad_bytes > 0:
        report.damaged_regions += 1
        _name_damage(report, scan.file_name)
    if scan.next_sequence != 0 and sequence > scan.next_sequence:
        _gap(scan, sequence)
    scan.next_sequence = sequence + count
    scan.in_file = True
    scan.end_damaged = scan.bad_checksum = False
    scan.bad_bytes = 0


cdef void _gap(Scan* scan, uint64_t sequence) noexcept nogil:
    """Records are missing before this one."""
    cdef uint64_t unsynced = max(scan.next_sequence, min(sequence, scan.synced + 1))
    # A file whose first byte begins this batch lacks nothing: the one before it ends too early.
    cdef bint is_before = not scan.in_file and scan.joined_from == 0 and scan.file_before[0] != 0
    if scan.bad_bytes > 0 or scan.in_file or scan.end_damaged:
        scan.report.batches_lost += 1
        unsynced = sequence                     # none: all of them are lost
    scan.report.records_unsynced += sequence - unsynced
    if unsynced > scan.next_sequence:
        _lost(scan, scan.next_sequence, unsynced, &scan.file_before[0] if is_before else &scan.file_name[0])


cdef void _lost(Scan* scan, uint64_t first, uint64_t end, const char* file_name) noexcept nogil:
    cdef WalReport* report = scan.report
    if report.damaged_regions == 0 and report.logs_missing == 0:
        report.damaged_regions = 1              # bytes that are gone leave nothing that fails a checksum
    report.records_lost += end - first
    if report.first_lost_sequence == 0:
        report.first_lost_sequence = <int64_t> first
    _name_damage(report, file_name)


cdef void _name_damage(WalReport* report, const char* file_name) noexcept nogil:
    if report.first_damaged_file[0] == 0:
        snprintf(report.first_damaged_file, 64, "%s", file_name)
