"""The store with Python hands: for tests, benchmarks and offline tools, never on the message path.

Each method is one call of store.pxd; an answer that is not STORE_OK becomes a StoreRefused
with the status and the text, so that tests can say what they expect by number.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.storage.database cimport database_close, database_open
from fila_server.core.storage.disk cimport Disk, disk_check, disk_open, disk_restore_ballast
from fila_server.core.storage.families cimport STORE_FORMAT, Store, StoreOptions, WalReport
from fila_server.core.storage.opening cimport COPY_FORMAT, store_close, store_default_options, store_open
from fila_server.core.storage.past_damage cimport (
    DamageScan, damage_scan_begin, damage_scan_end, damage_scan_next, damage_scan_valid,
)
from fila_server.core.storage.reclaim cimport Upkeep, upkeep_round, upkeep_start, upkeep_stop
from fila_server.core.storage.rocksdb cimport rocksdb_iterator_t, rocksdb_snapshot_t, rocksdb_writebatch_t
from fila_server.core.storage.status cimport STORE_NOT_FOUND, STORE_OK, StoreError
from fila_server.core.storage.store cimport (
    batch_delete, batch_delete_range, batch_free, batch_new, batch_put, batch_put_parts, scan_free, scan_key,
    scan_next, scan_seek, scan_status, scan_valid, scan_value, store_cache_bytes, store_compact,
    store_disk_bytes, store_flush, store_get, store_get_many, store_is_stopped, store_iterate,
    store_memtable_bytes, store_snapshot, store_snapshot_release, store_sync, store_table_bytes,
    store_wal_bytes, store_write,
)
from fila_server.core.storage.walscan cimport scan_wal


class StoreRefused(Exception):
    """A store call answered with something else than STORE_OK."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


cdef class StoreProbe:
    cdef Store store
    cdef StoreError error
    cdef Upkeep upkeep
    cdef bint is_open

    def __init__(self, directory, **settings):
        cdef StoreOptions options
        cdef bytes path = directory.encode()
        cdef const char* c_path = path
        cdef int status
        cdef int64_t format = STORE_FORMAT
        store_default_options(&options)
        for name, value in settings.items():
            if name == "memtable_bytes":
                options.memtable_bytes = value
            elif name == "memtable_count":
                options.memtable_count = value
            elif name == "wal_bytes_max":
                options.wal_bytes_max = value
            elif name == "block_cache_bytes":
                options.block_cache_bytes = value
            elif name == "blob_min_bytes":
                options.blob_min_bytes = value
            elif name == "background_threads":
                options.background_threads = value
            elif name == "stop_on_damage":
                options.stop_on_damage = value
            elif name == "is_copy":
                format = COPY_FORMAT if value else STORE_FORMAT
            else:
                raise TypeError(f"no store option is called {name}")
        with nogil:
            status = store_open(&self.store, c_path, &options, format, &self.error)
        self._check(status)
        self.is_open = True
        self.upkeep.store = &self.store

    def close(self):
        if self.is_open:
            self.is_open = False
            with nogil:
                upkeep_stop(&self.upkeep)
                store_close(&self.store)

    def __dealloc__(self):
        if self.is_open:
            upkeep_stop(&self.upkeep)
            store_close(&self.store)

    cdef int _check(self, int status) except -1:
        if status != STORE_OK:
            raise StoreRefused(
                status, self.error.text.decode(errors="replace") if self.error.status == status else "")
        return 0

    def write(self, changes):
        """One batch: (family, key, value) puts, (family, key, None) deletes, (family, first, end, "range")
        deletes."""
        cdef rocksdb_writebatch_t* batch = batch_new()
        cdef bytes key, value
        cdef int status
        try:
            for change in changes:
                key = change[1]
                if len(change) == 4:
                    value = change[2]
                    batch_delete_range(&self.store, batch, change[0], key, len(key), value, len(value))
                elif change[2] is None:
                    batch_delete(&self.store, batch, change[0], key, len(key))
                else:
                    value = change[2]
                    batch_put(&self.store, batch, change[0], key, len(key), value, len(value))
            with nogil:
                status = store_write(&self.store, batch, &self.error)
            self._check(status)
        finally:
            batch_free(batch)

    def write_parts(self, int family, bytes key, list parts):
        cdef rocksdb_writebatch_t* batch = batch_new()
        cdef const char* pointers[16]
        cdef size_t sizes[16]
        cdef int status, i
        assert len(parts) <= 16
        for i in range(len(parts)):
            pointers[i] = <const char*>parts[i]
            sizes[i] = len(parts[i])
        batch_put_parts(&self.store, batch, family, key, len(key), len(parts), pointers, sizes)
        status = store_write(&self.store, batch, &self.error)
        batch_free(batch)
        self._check(status)

    def sync(self):
        cdef int status
        with nogil:
            status = store_sync(&self.store, &self.error)
        self._check(status)

    def get(self, int family, bytes key):
        """The value, or None when there is no such record."""
        cdef char* value = NULL
        cdef size_t value_bytes = 0
        cdef int status = store_get(&self.store, family, key, len(key), &value, &value_bytes, &self.error)
        if status == STORE_NOT_FOUND:
            return None
        self._check(status)
        found = value[:value_bytes]
        free(value)
        return found

    def get_many(self, int family, list keys):
        """(status, value or None) for each key, all of one moment."""
        cdef const char* pointers[64]
        cdef size_t sizes[64]
        cdef char* values[64]
        cdef size_t value_sizes[64]
        cdef int statuses[64]
        cdef int i
        cdef const rocksdb_snapshot_t* snapshot = store_snapshot(&self.store)
        assert len(keys) <= 64
        for i in range(len(keys)):
            pointers[i] = <const char*>keys[i]
            sizes[i] = len(keys[i])
        store_get_many(
            &self.store, family, snapshot, len(keys), pointers, sizes, values, value_sizes, statuses,
                       &self.error)
        store_snapshot_release(&self.store, snapshot)
        found = []
        for i in range(len(keys)):
            found.append((statuses[i], values[i][:value_sizes[i]] if values[i] != NULL else None))
            free(values[i])
        return found

    def scan(self, int family, bytes start=b"", bint skip_damage=False):
        """All (key, value) from `start` on; with skip_damage (from the first key), over damaged blocks
        too."""
        if skip_damage:
            return self._scan_all(family)
        cdef rocksdb_iterator_t* scan = store_iterate(&self.store, family, NULL)
        cdef size_t key_bytes = 0, value_bytes = 0
        cdef const char* key
        cdef const char* value
        found = []
        try:
            scan_seek(scan, start, len(start))
            while scan_valid(scan):
                key = scan_key(scan, &key_bytes)
                value = scan_value(scan, &value_bytes)
                found.append((key[:key_bytes], value[:value_bytes]))
                scan_next(scan)
            self._check(scan_status(&self.store, scan, &self.error))
        finally:
            scan_free(scan)
        return found

    def _scan_all(self, int family):
        cdef DamageScan scan
        cdef size_t key_bytes = 0, value_bytes = 0
        cdef const char* key
        cdef const char* value
        found = []
        damage_scan_begin(&scan, &self.store, family)
        while damage_scan_valid(&scan):
            key = scan_key(scan.iterator, &key_bytes)
            value = scan_value(scan.iterator, &value_bytes)
            found.append((key[:key_bytes], value[:value_bytes]))
            damage_scan_next(&scan)
        damage_scan_end(&scan)
        return found

    def flush(self, int family):
        cdef int status
        with nogil:
            status = store_flush(&self.store, family, &self.error)
        self._check(status)

    def compact(self, int family, bytes first=b"", bytes end=b""):
        cdef const char* c_first = <const char*>first if first else NULL
        cdef const char* c_end = <const char*>end if end else NULL
        cdef size_t first_bytes = len(first), end_bytes = len(end)
        cdef int status
        with nogil:
            status = store_compact(&self.store, family, c_first, first_bytes, c_end, end_bytes, &self.error)
        self._check(status)

    def start_upkeep(self):
        upkeep_start(&self.upkeep, &self.store, NULL)

    def set_live_frame_bytes(self, int64_t live_frame_bytes):
        self.upkeep.live_frame_bytes = live_frame_bytes

    def upkeep_round(self):
        """Returns (times something was compacted, of these the times live payloads were rewritten) so far."""
        cdef int status
        with nogil:
            status = upkeep_round(&self.upkeep)
        self._check(status)
        return self.upkeep.reclaim_count, self.upkeep.rewrite_count

    def held(self):
        """Bytes in memtables, cache, tables, WAL, and on disk altogether."""
        return {
            "memtables": store_memtable_bytes(&self.store),
            "cache": store_cache_bytes(&self.store),
            "tables": store_table_bytes(&self.store),
            "wal": store_wal_bytes(&self.store),
            "disk": store_disk_bytes(&self.store),
        }

    def counters(self):
        return self.store.counters

    @property
    def created(self):
        return self.store.created

    @property
    def repaired(self):
        """What this open did about damage: bytes of the table of contents healed, records copied, gaps
        stepped over."""
        salvage = self.store.salvage
        return (
            self.store.healed_bytes, salvage.records, salvage.gaps, salvage.tables_lost,
            bool(self.store.rebuilt))

    @property
    def stopped(self):
        return store_is_stopped(&self.store)

    @property
    def wal(self):
        return _report(self.store.wal)


cdef dict _report(WalReport report):
    found = dict(report)
    found["first_damaged_file"] = report.first_damaged_file.decode()
    return found


def make_families(directory):
    """The families and nothing else, as a first start has them before it writes its first record: the next
    start is the first in everything but that it finds them."""
    cdef Store store
    cdef StoreOptions options
    cdef StoreError error
    cdef bytes path = directory.encode()
    memset(&store, 0, sizeof(Store))
    store_default_options(&options)
    snprintf(store.directory, sizeof(store.directory), "%s/rocksdb", <const char*>path)
    if database_open(&store, store.directory, &options, False, &error) != STORE_OK:
        raise StoreRefused(error.status, error.text.decode())
    database_close(&store)


def scan_wal_of(directory):
    """What a start would find in the write-ahead log of `directory`, without opening anything."""
    cdef WalReport report
    cdef bytes path = f"{directory}/rocksdb".encode()
    memset(&report, 0, sizeof(report))
    scan_wal(path, 0, 0, 0, &report)
    return _report(report)


cdef class DiskProbe:
    cdef Disk disk

    def __init__(self, directory, int64_t min_free_bytes, int64_t ballast_bytes):
        cdef StoreError error
        cdef bytes path = directory.encode()
        disk_open(&self.disk, path, min_free_bytes, ballast_bytes, &error)

    def check(self):
        return disk_check(&self.disk)

    def restore_ballast(self):
        return bool(disk_restore_ballast(&self.disk))

    @property
    def free_bytes(self):
        return self.disk.free_bytes

    @property
    def ballast_held(self):
        return bool(self.disk.ballast_held)
