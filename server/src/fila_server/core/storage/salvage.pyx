"""What can be read of a damaged store, copied into a sound one.

RocksDB reads around a damaged block, but it cannot get rid of one: the compaction that meets
it fails, and from then on every write does, at each start anew. So a store in which damage was
met is copied at the next start, record by record, without the blocks that cannot be read.

    rocksdb             the store
    rocksdb.copying     while records are copied; of no use after a crash
    rocksdb.salvaged    complete; from here on the exchange is finished at any later start
    rocksdb.damaged     what was exchanged, kept for the operator to look into
    salvage             the note that a copy is due

A damaged block hides more than it holds: no scan gets at what other tables have between its first key and its
last, which may belong to different queues. So each place that was stepped over is read once more, in a store
that has the same files but for the damaged table:

    rocksdb.beside      links to all files of `rocksdb`, an empty table for each that was met damaged

A deleted record may come back where the block that said "deleted" is the damaged one. That is
why the engine compares every record it recovers with its own counters.
"""

from libc.errno cimport ENOENT, errno
from libc.stdint cimport int64_t
from libc.stdio cimport rename, snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, strcmp, strerror

from fila_server.core.storage.families cimport FAMILY_COUNT, SalvageReport, only_returns
from fila_server.core.storage.past_damage cimport (
    KEY_BYTES_MAX, TABLE_NAME_BYTES, DamageScan, damage_scan_begin, damage_scan_end, damage_scan_from,
    damage_scan_next, damage_scan_valid, table_named_in,
)
from fila_server.core.storage.posix cimport (
    DIR, O_CLOEXEC, O_DIRECTORY, O_RDONLY, O_RDWR, SEEK_END, access, c_close, c_mkdir, c_open, closedir,
    dirent_t, fsync, link, lseek, opendir, pread, pwrite, readdir, rmdir, unlink,
)
from fila_server.core.storage.rocksdb cimport *
from fila_server.core.storage.status cimport STORE_FAILED, STORE_OK, store_classify, store_failed
from fila_server.core.storage.store cimport batch_bytes, batch_clear, batch_put, scan_key, scan_value
from fila_server.core.structures.buffer cimport must_malloc

cdef enum:
    BATCH_BYTES = 1048576
    FOOTER_BYTES = 53           # of tables of format 5, which is what tuning.pyx asks for
    PATH_BYTES = 4300


# --- the copy ----------------------------------------------------------------------------

cdef int salvage_records(Store* damaged, Store* sound, Gap** gaps, StoreError* error) noexcept nogil:
    cdef rocksdb_writebatch_t* batch = rocksdb_writebatch_create()
    # Nobody is served yet, so here a write may wait for the disk.
    cdef rocksdb_writeoptions_t* patient = rocksdb_writeoptions_create()
    cdef rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create()
    cdef char* message = NULL
    cdef int family
    for family in range(FAMILY_COUNT):
        _copy_family(damaged, sound, family, gaps, batch, patient, &message)
        if message == NULL:
            _write(sound, batch, patient, &message)
        if message == NULL:
            rocksdb_flush_cf(sound.db, flush, sound.family[family], &message)
        if message != NULL:
            break
    rocksdb_flushoptions_destroy(flush)
    rocksdb_writeoptions_destroy(patient)
    rocksdb_writebatch_destroy(batch)
    return STORE_OK if message == NULL else store_classify(error, message)


cdef void _copy_family(
        Store* damaged, Store* sound, int family, Gap** gaps, rocksdb_writebatch_t* batch,
        rocksdb_writeoptions_t* patient, char** message) noexcept nogil:
    cdef DamageScan scan
    cdef size_t key_bytes = 0, value_bytes = 0
    cdef const char* key
    cdef const char* value
    cdef int64_t stepped_over = 0
    damage_scan_begin(&scan, damaged, family)
    while message[0] == NULL and damage_scan_valid(&scan):
        key = scan_key(scan.iterator, &key_bytes)
        if scan.gaps != stepped_over:
            _gap_note(gaps, &scan, family, key, min(key_bytes, <size_t> KEY_BYTES_MAX))
            stepped_over = scan.gaps
        value = scan_value(scan.iterator, &value_bytes)
        batch_put(sound, batch, family, key, key_bytes, value, value_bytes)
        sound.salvage.records += 1
        if batch_bytes(batch) > BATCH_BYTES:
            _write(sound, batch, patient, message)
        damage_scan_next(&scan)
    if scan.gaps != stepped_over:
        _gap_note(gaps, &scan, family, NULL, 0)
    sound.salvage.gaps += scan.gaps
    if only_returns(family):
        sound.salvage.acks_lost += scan.gaps
    damage_scan_end(&scan)


cdef void _gap_note(
        Gap** gaps, const DamageScan* scan, int family, const char* before,
        size_t before_bytes) noexcept nogil:
    cdef Gap* gap = <Gap*> must_malloc(sizeof(Gap))
    gap.family = family
    gap.after_bytes, gap.before_bytes = scan.last_bytes, before_bytes
    memcpy(gap.after, scan.last, scan.last_bytes)
    if before_bytes:
        memcpy(gap.before, before, before_bytes)
    memcpy(gap.table, scan.table, TABLE_NAME_BYTES)
    gap.next = gaps[0]
    gaps[0] = gap


cdef void _write(
        Store* sound, rocksdb_writebatch_t* batch, rocksdb_writeoptions_t* patient,
        char** message) noexcept nogil:
    rocksdb_write(sound.db, patient, batch, message)
    batch_clear(batch)


# --- what a damaged block hides of other tables ----------------------------------------------------

cdef bint salvage_beside(Store* damaged, const Gap* gaps, const char* directory) noexcept nogil:
    cdef char store[PATH_BYTES]
    cdef char beside[PATH_BYTES]
    cdef bint replaced = False
    snprintf(store, PATH_BYTES, "%s/rocksdb", directory)
    snprintf(beside, PATH_BYTES, "%s/rocksdb.beside", directory)
    _remove(directory, "rocksdb.beside")
    if gaps == NULL or c_mkdir(beside, 0o700) != 0 or not _link_all(store, beside):
        return False
    while gaps != NULL:
        if gaps.table[0]:               # of a table that was met twice the first stand-in stays
            replaced = _stand_in(damaged, gaps.family, beside, gaps.table) or replaced
        gaps = gaps.next
    return replaced


cdef bint _link_all(const char* from_, const char* to) noexcept nogil:
    cdef char old[PATH_BYTES + 300]
    cdef char new[PATH_BYTES + 300]
    cdef dirent_t* entry
    cdef bint linked = True
    cdef DIR* listing = opendir(from_)
    if listing == NULL:
        return False
    while linked:
        entry = readdir(listing)
        if entry == NULL:
            break
        if entry.d_name[0] == c"." or strcmp(entry.d_name, "LOCK") == 0:
            continue
        snprintf(old, sizeof(old), "%s/%s", from_, <char*> entry.d_name)
        snprintf(new, sizeof(new), "%s/%s", to, <char*> entry.d_name)
        linked = link(old, new) == 0
    closedir(listing)
    return linked


cdef int salvage_gaps(Store* beside, Store* sound, const Gap* gaps, StoreError* error) noexcept nogil:
    cdef rocksdb_writebatch_t* batch = rocksdb_writebatch_create()
    cdef rocksdb_writeoptions_t* patient = rocksdb_writeoptions_create()
    cdef char* message = NULL
    while gaps != NULL and message == NULL:
        _copy_gap(beside, sound, gaps, batch, patient, &message)
        if message == NULL:
            _write(sound, batch, patient, &message)
        gaps = gaps.next
    rocksdb_writeoptions_destroy(patient)
    rocksdb_writebatch_destroy(batch)
    return STORE_OK if message == NULL else store_classify(error, message)


cdef void _copy_gap(
        Store* beside, Store* sound, const Gap* gap, rocksdb_writebatch_t* batch,
        rocksdb_writeoptions_t* patient, char** message) noexcept nogil:
    cdef DamageScan scan
    cdef size_t key_bytes = 0, value_bytes = 0
    cdef const char* key
    cdef const char* value
    damage_scan_from(&scan, beside, gap.family, gap.after, gap.after_bytes)
    while message[0] == NULL and damage_scan_valid(&scan):
        key = scan_key(scan.iterator, &key_bytes)
        if gap.before_bytes and _order(key, key_bytes, gap.before, gap.before_bytes) >= 0:
            break
        if gap.after_bytes == 0 or _order(key, key_bytes, gap.after, gap.after_bytes) > 0:
            value = scan_value(scan.iterator, &value_bytes)
            batch_put(sound, batch, gap.family, key, key_bytes, value, value_bytes)
            sound.salvage.records += 1
            if batch_bytes(batch) > BATCH_BYTES:
                _write(sound, batch, patient, message)
        damage_scan_next(&scan)
    scan.gaps = 0                       # told already, by the scan of the whole
    damage_scan_end(&scan)


cdef int _order(const char* a, size_t a_bytes, const char* b, size_t b_bytes) noexcept nogil:
    cdef int order = memcmp(a, b, min(a_bytes, b_bytes))
    return order if order else (a_bytes > b_bytes) - (a_bytes < b_bytes)


cdef void salvage_gaps_free(const char* directory, Gap* gaps) noexcept nogil:
    cdef Gap* following
    _remove(directory, "rocksdb.beside")
    while gaps != NULL:
        following = gaps.next
        free(gaps)
        gaps = following


# --- tables that cannot be opened --------------------------------------------------------

cdef int salvage_replace_tables(Store* damaged, const char* path, SalvageReport* report) noexcept nogil:
    """A damaged block ends a scan where it lies; a table whose index
    or footer is damaged ends it everywhere."""
    cdef int family
    cdef int replaced = 0
    cdef char from_the_front[TABLE_NAME_BYTES]
    cdef char from_the_back[TABLE_NAME_BYTES]
    for family in range(FAMILY_COUNT):
        if not _unreadable_table(damaged, family, False, from_the_front):
            continue
        if (
            _unreadable_table(damaged, family, True, from_the_back)
            and strcmp(from_the_front, from_the_back) == 0
            and _stand_in(damaged, family, path, from_the_front)
        ):
            replaced += 1
            report.acks_lost += only_returns(family)
    report.tables_lost += replaced
    return replaced


cdef bint _unreadable_table(Store* damaged, int family, bint from_the_back, char* name) noexcept nogil:
    """Whether not one key can be read, coming from that end; and the table that is to blame."""
    cdef char* message = NULL
    cdef rocksdb_iterator_t* scan = rocksdb_create_iterator_cf(
        damaged.db, damaged.scan_options, damaged.family[family])
    name[0] = 0
    if from_the_back:
        rocksdb_iter_seek_to_last(scan)
    else:
        rocksdb_iter_seek_to_first(scan)
    if not rocksdb_iter_valid(scan):
        rocksdb_iter_get_error(scan, &message)
        if message != NULL:
            table_named_in(message, name)
            rocksdb_free(message)
    rocksdb_iter_destroy(scan)
    return name[0] != 0


cdef int64_t _recorded_bytes(Store* damaged, const char* name) noexcept nogil:
    """A table's length as the MANIFEST has it: the file may have been cut."""
    cdef const rocksdb_livefiles_t* files = rocksdb_livefiles(damaged.db)
    cdef int64_t found = 0
    cdef int i
    for i in range(rocksdb_livefiles_count(files)):
        if strcmp(rocksdb_livefiles_name(files, i) + 1, name) == 0:     # behind a slash
            found = <int64_t> rocksdb_livefiles_size(files, i)
    rocksdb_livefiles_destroy(files)
    return found


cdef bint _stand_in(Store* damaged, int family, const char* path, const char* name) noexcept nogil:
    """A table that deletes one key nobody has, under the name of the broken one. One that was replaced and
    still can't be read is given up: asked for again, it would be replaced for ever."""
    cdef char broken[PATH_BYTES]
    cdef char aside[PATH_BYTES]
    cdef char* message = NULL
    cdef rocksdb_envoptions_t* environment
    cdef rocksdb_sstfilewriter_t* writer
    snprintf(broken, PATH_BYTES, "%s/%s", path, name)
    snprintf(aside, PATH_BYTES, "%s/%s.unreadable", path, name)
    if access(aside, 0) == 0 or (rename(broken, aside) != 0 and errno != ENOENT):
        return False
    environment = rocksdb_envoptions_create()
    writer = rocksdb_sstfilewriter_create(environment, damaged.options[family])
    rocksdb_sstfilewriter_open(writer, broken, &message)
    if message == NULL:
        rocksdb_sstfilewriter_delete(writer, "\xff\xff", 2, &message)
    if message == NULL:
        rocksdb_sstfilewriter_finish(writer, &message)
    rocksdb_sstfilewriter_destroy(writer)
    rocksdb_envoptions_destroy(environment)
    if message != NULL:
        rocksdb_free(message)
        return False
    return _stretch(broken, _recorded_bytes(damaged, name))


cdef bint _stretch(const char* table, int64_t want) noexcept nogil:
    """RocksDB looks for a table's footer where the MANIFEST says the file ends: move it there."""
    cdef char footer[FOOTER_BYTES]
    cdef int64_t have
    cdef bint done = False
    cdef int fd = c_open(table, O_RDWR | O_CLOEXEC)
    have = lseek(fd, 0, SEEK_END)
    if FOOTER_BYTES < have <= want and pread(fd, footer, FOOTER_BYTES, have - FOOTER_BYTES) == FOOTER_BYTES:
        done = pwrite(fd, footer, FOOTER_BYTES, want - FOOTER_BYTES) == FOOTER_BYTES
    c_close(fd)
    return done


# --- the exchange ------------------------------------------------------------------------

cdef void salvage_begin(const char* directory) noexcept nogil:
    _remove(directory, "rocksdb.copying")


cdef int salvage_commit(const char* directory, StoreError* error) noexcept nogil:
    cdef char copying[PATH_BYTES]
    cdef char salvaged[PATH_BYTES]
    snprintf(copying, PATH_BYTES, "%s/rocksdb.copying", directory)
    snprintf(salvaged, PATH_BYTES, "%s/rocksdb.salvaged", directory)
    if rename(copying, salvaged) != 0:
        return store_failed(error, STORE_FAILED, "cannot rename rocksdb.copying: %s", strerror(errno))
    _sync_directory(directory)
    return salvage_finish(directory, error)


cdef int salvage_finish(const char* directory, StoreError* error) noexcept nogil:
    cdef char salvaged[PATH_BYTES]
    cdef char damaged[PATH_BYTES]
    cdef char path[PATH_BYTES]
    snprintf(salvaged, PATH_BYTES, "%s/rocksdb.salvaged", directory)
    snprintf(damaged, PATH_BYTES, "%s/rocksdb.damaged", directory)
    snprintf(path, PATH_BYTES, "%s/rocksdb", directory)
    if access(salvaged, 0) != 0:
        return STORE_OK
    if access(path, 0) == 0:
        _remove(directory, "rocksdb.damaged")       # of an earlier time; only the last one is kept
        if rename(path, damaged) != 0:
            return store_failed(
                error, STORE_FAILED, "cannot set the damaged store aside: %s", strerror(errno))
    if rename(salvaged, path) != 0:
        return store_failed(
            error, STORE_FAILED, "cannot take the salvaged store into use: %s", strerror(errno))
    snprintf(path, PATH_BYTES, "%s/salvage", directory)
    unlink(path)
    _sync_directory(directory)
    return STORE_OK


cdef void _remove(const char* directory, const char* name) noexcept nogil:
    """A directory of plain files, with all that is in it."""
    cdef char path[PATH_BYTES]
    cdef char inside[PATH_BYTES + 300]
    cdef dirent_t* entry
    cdef DIR* listing
    snprintf(path, PATH_BYTES, "%s/%s", directory, name)
    listing = opendir(path)
    if listing == NULL:
        return
    while True:
        entry = readdir(listing)
        if entry == NULL:
            break
        if strcmp(entry.d_name, ".") != 0 and strcmp(entry.d_name, "..") != 0:
            snprintf(inside, sizeof(inside), "%s/%s", <char*>path, <char*>entry.d_name)
            unlink(inside)
    closedir(listing)
    rmdir(path)


cdef void _sync_directory(const char* directory) noexcept nogil:
    cdef int fd = c_open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if fd >= 0:
        fsync(fd)
        c_close(fd)
