"""A node's copy of the broker: its store, and how far it has read the log.

    open        the store is what the log was up to some record; a damaged one is not opened
    follow      as a standby
    bid         append a takeover; when it is met among what is read, and counts, this node owns
    engine      CoreEngine(..., copy=copy) recovers from the store and serves; the copy says how the term
                goes

A term that is over (RESIGNS, HALTS) serves nobody: the process begins again with a new copy of the same
directory.
"""

import os
import threading

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server import errors
from fila_server.core.formats.applying cimport (
    Applying, applied_put, applied_read, applied_remove, families_agree,
)
from fila_server.core.log.reading cimport (
    HALT_ANEW, HALT_BEGINS_LATER, HALT_FORMAT, HALT_FOUNDED, HALT_GAP, HALT_NONE, TAKEN_HALT, Reading,
    log_short_terms, log_take, reading_init, reading_why,
)
from fila_server.core.log.record cimport MOVED, Record, takeover_says
from fila_server.core.runtime.confirming cimport (
    GROUP_BIDS, GROUP_FOLLOWS, GROUP_HALTS, GROUP_OWNS, GROUP_RESIGNS, LIVE_UNKNOWN, Group, group_bid,
    group_follow, group_free, group_init, group_rebase, group_sync,
)
from fila_server.core.runtime.settings cimport store_configure
from fila_server.core.storage.database cimport store_checkpoint
from fila_server.core.storage.disk cimport (
    DISK_CRITICAL, DISK_LOW, DISK_ROOMY, Disk, disk_check, disk_open,
)
from fila_server.core.storage.families cimport Store, StoreOptions
from fila_server.core.storage.opening cimport (
    ANY_FORMAT, COPY_FORMAT, store_close, store_format, store_format_file, store_open, store_turn,
)
from fila_server.core.storage.reclaim cimport Upkeep, upkeep_round
from fila_server.core.storage.rocksdb cimport rocksdb_writebatch_t, rocksdb_writeoptions_set_no_slowdown
from fila_server.core.storage.status cimport (
    STORE_DAMAGED, STORE_IN_USE, STORE_NOT_FOUND, STORE_OK, STORE_TOO_NEW, STORE_UNWRITABLE, StoreError,
)
from fila_server.core.storage.store cimport batch_new, store_compact_again, store_compact_cancel
from fila_server.core.structures.atomics cimport atomic_load, atomic_store
from fila_server.core.structures.buffer cimport must_malloc

_STORE_ERRORS = {
    STORE_IN_USE: errors.DataDirInUse,
    STORE_UNWRITABLE: errors.DataDirUnwritable,
    STORE_TOO_NEW: errors.FormatTooNew,
    STORE_DAMAGED: errors.StoreDamaged,
}
ROOMY, LOW, CRITICAL = DISK_ROOMY, DISK_LOW, DISK_CRITICAL
FORMAT = COPY_FORMAT                    # the newest of a data directory that this server reads
FOLLOWS, BIDS, OWNS = GROUP_FOLLOWS, GROUP_BIDS, GROUP_OWNS
RESIGNS, HALTS = GROUP_RESIGNS, GROUP_HALTS
BEGINS_LATER, GAP = HALT_BEGINS_LATER, HALT_GAP
FOUNDED, ANEW = HALT_FOUNDED, HALT_ANEW
NEWER = HALT_FORMAT                     # at a takeover whose owner writes a newer format of the log


cdef object store_error(int status, str text, str data_dir):
    kind = _STORE_ERRORS.get(status, errors.StoreError)
    error = kind.__new__(kind)
    Exception.__init__(error, text)
    error.data_dir = data_dir
    return error


cdef struct Within:                     # what a copy knows by pointer alone
    Store    store
    StoreError error
    Group    group
    Disk     disk
    Upkeep   upkeep


cdef class StoreCopy:
    """One data directory of a group, open. One thread follows; an owner's is the one that commits."""

    def __cinit__(self):
        cdef Within* held = <Within*> must_malloc(sizeof(Within))
        memset(held, 0, sizeof(Within))
        self.store, self.group, self.used = &held.store, &held.group, threading.Condition()
        group_init(self.group, self.store, &held.error, NULL, 0)

    def __init__(
            self, str data_dir, dict settings, LogEnd log not None, *, uint64_t node, bytes cluster,
            str name=""):
        cdef Store* store = self.store
        cdef Group* group = self.group
        cdef StoreError* error = group.applying.error
        cdef StoreOptions options
        cdef bytes path = data_dir.encode()
        cdef const char* path_bytes = path
        cdef int status
        if log.log.append == NULL:
            raise errors.StoreError("the log was opened to be read only, and a copy needs one with appends")
        store_configure(&options, True, settings)
        self.min_free_bytes = settings.get("storage.min_free_bytes", 268435456)
        self.ballast_bytes = settings.get("storage.ballast_bytes", options.ballast_bytes)
        with nogil:
            status = store_open(store, path_bytes, &options, COPY_FORMAT, error)
        if status != STORE_OK:
            raise store_error(status, error.text.decode("utf-8", "replace"), data_dir)
        self.log, self.cluster, self.name, self.is_open = log, cluster, name, True
        self.has_store = True
        group.log, group.node = log.log, node
        # Who applies may wait for RocksDB: nobody else writes, and what is confirmed cannot be refused.
        rocksdb_writeoptions_set_no_slowdown(store.write_options, 0)
        status = applied_read(&group.applying)
        if status == STORE_NOT_FOUND:
            status = STORE_OK
            memcpy(group.reading.cluster, <const char*> cluster, 16)
            group.reading.has_cluster = True
        if status != STORE_OK or not families_agree(&group.applying):
            self.close()
            raise store_error(status, error.text.decode("utf-8", "replace"), data_dir)
        if (<char*> group.reading.cluster)[:16] != cluster:
            self.close()
            raise errors.StoreError(
                f"the data directory {data_dir} is a copy of another cluster; name the right one, or move it "
                "away")

    def __dealloc__(self):
        self.close()
        group_free(self.group)
        free(<Within*> self.store)

    def close(self):
        if self.is_open:
            self.is_open = False
            self.ends()
            with nogil:
                store_close(self.store)

    cdef ends(self):
        """Wait until nobody copies the store; the caller closes it next."""
        self.has_store = False
        with self.used:
            while self.users:
                self.used.wait()

    def checkpoint(self, str path):
        """Make the store, as it is at one moment, a directory of its own; `path` must not exist.

        For any thread, also while another one follows, or an engine serves. Raises errors.StoreError.
        """
        cdef bytes encoded = os.fsencode(path)
        cdef const char* at = encoded
        cdef StoreError error
        cdef int status
        if not self.has_store:
            raise errors.StoreError("the node is about to end")
        self.users += 1                 # under the GIL, as is the look of who closes at it
        with nogil:
            status = store_checkpoint(self.store, at, &error)
        self._used()
        if status != STORE_OK:
            raise errors.StoreError(error.text.decode("utf-8", "replace"))

    def _used(self):
        with self.used:
            self.users -= 1
            self.used.notify_all()

    cdef _open_disk(self):
        """Under the GIL: the thread that follows and that of the upkeep may both be the first."""
        cdef Within* held = <Within*> self.store
        cdef bytes directory = os.path.dirname(held.store.directory)
        if not self.has_disk:
            disk_open(&held.disk, directory, self.min_free_bytes, self.ballast_bytes, &held.upkeep.error)
            held.upkeep.store, held.upkeep.disk, self.has_disk = &held.store, &held.disk, True

    def look_at_disk(self):
        """The level of the disk (ROOMY, LOW, CRITICAL), and its free bytes; gives up the ballast.

        For the thread that follows.
        """
        cdef Within* held = <Within*> self.store
        self._open_disk()
        with nogil:
            disk_check(&held.disk)
        return held.disk.level, held.disk.free_bytes

    def upkeep(self):
        """A standby's round of what keeps a disk small (storage/reclaim), each second, on its own thread.

        What its messages take the owner knows, and says in its records: returns that, or -1.
        """
        cdef Within* held = <Within*> self.store
        cdef Group* group = self.group
        cdef uint64_t live
        if not self.has_store:
            return -1
        self._open_disk()
        self.users += 1
        with nogil:
            live = atomic_load(&group.live_bytes)
            # As long as it is not known, nothing is too much.
            held.upkeep.live_frame_bytes = <int64_t> min(live, <uint64_t> (INT64_MAX // 4))
            upkeep_round(&held.upkeep)
        self._used()
        return -1 if live == LIVE_UNKNOWN else <int64_t> live

    def break_off(self, bint is_broken_off):
        """Cut a round short, as all later ones, until they may go on again."""
        if self.has_store and is_broken_off:
            store_compact_cancel(self.store)
        elif self.has_store:
            store_compact_again(self.store)

    def follow(self, int32_t wait_ms=0):
        """Take what the log has, at most some dozens of records; how many it took."""
        cdef uint32_t taken
        with nogil:
            taken = group_follow(self.group, wait_ms)
        return taken

    def look_again(self):
        """The next round reads the last record once more: is it what it was, and what lies behind it?"""
        cdef Group* group = self.group
        group.has_looked = False

    def rebase(self, int64_t end):
        """Go on at the end of the log, whatever it holds before: for a bid of a newer incarnation."""
        group_rebase(self.group, end)

    def reads_up_to(self, uint16_t log_format):
        """Halt at a takeover whose owner writes a newer format than this one."""
        cdef Group* group = self.group
        group.reading.format_max = log_format

    def goes_on(self, uint16_t log_format):
        """One that halted there reads that takeover once more, up to this format."""
        cdef Group* group = self.group
        assert group.state == GROUP_HALTS and group.reading.halted == HALT_FORMAT
        group.reading.format_max = log_format
        group.reading.halted, group.reading.halted_at = HALT_NONE, 0
        # The takeover that it halted at comes next. It is this node's bid, or ends that one.
        atomic_store(&group.state, GROUP_BIDS if group.nonce else GROUP_FOLLOWS)

    def bid(
            self, uint64_t nonce, int64_t wall_ms, *, uint16_t log_format=1, bint is_moved=False,
            uint32_t incarnation=0):
        """Append a takeover of the term that is; False: the log takes nothing just now.

        Its owner will write `log_format`. `is_moved`: the owner that is hands over. A newer `incarnation`
        begins with this copy, whatever term is.
        """
        cdef Group* group = self.group
        cdef Record record
        cdef bytes name = self.name.encode()
        memset(&record, 0, sizeof(Record))
        memcpy(record.cluster, <const char*> self.cluster, 16)
        record.nonce, record.wall_ms, record.format = nonce, wall_ms, log_format
        record.incarnation = max(incarnation, group.reading.incarnation, <uint32_t> 1)
        record.flags = MOVED if is_moved else 0
        takeover_says(&record, name, b"", b"")
        return group_bid(group, &record)

    def sync(self):
        """What was applied survives a power cut. Nobody waits for it: the log has it all."""
        cdef StoreError error
        cdef int status
        with nogil:
            status = group_sync(self.group, &error)
        if status != STORE_OK:
            raise errors.StoreError(error.text.decode("utf-8", "replace"))

    @property
    def state(self):
        cdef Group* group = self.group
        return group.state

    @property
    def position(self):
        """Of the last record that was read."""
        cdef Group* group = self.group
        return group.reading.position

    @property
    def applied(self):
        """Of the last record that the store says it has; -1: none."""
        cdef Group* group = self.group
        return <int64_t> atomic_load(&group.applying.end) - 1

    @property
    def synced(self):
        """Of the last record that the store says it has on its disk; -1: none."""
        cdef Group* group = self.group
        return <int64_t> atomic_load(&group.synced) - 1

    @property
    def read_bytes(self):
        """Of all records that were taken from the log since the start, or confirmed."""
        cdef Group* group = self.group
        return group.read_bytes

    @property
    def halted(self):
        """Why it halted, as a number, and at which offset; 0: it did not."""
        cdef Group* group = self.group
        return group.reading.halted, group.reading.halted_at

    @property
    def term(self):
        cdef Group* group = self.group
        return group.reading.term.offset, group.reading.term.nonce

    @property
    def incarnation(self):
        """Of the term; 0: there was none yet."""
        cdef Group* group = self.group
        return group.reading.incarnation

    @property
    def answers(self):
        """How often the log has answered a read, and whether it had nothing more the last time."""
        cdef Group* group = self.group
        return group.answers, bool(group.is_end)

    @property
    def owner(self):
        """The node whose term it is, None before the first, and how many terms in a row have been short."""
        cdef Group* group = self.group
        if group.reading.term.offset < 0:
            return None, 0
        return group.reading.node, log_short_terms(&group.reading)

    @property
    def wall_ms(self):
        """The time in the last record that counts."""
        cdef Group* group = self.group
        return group.reading.wall_ms

    @property
    def serves(self):
        """It owns, and its term's first record is in the log: before that no lease id is promised."""
        cdef Group* group = self.group
        return group.state == GROUP_OWNS and group.confirmed > 0

    @property
    def waiting(self):
        """Records of the owner that are not confirmed, and their bytes."""
        cdef Group* group = self.group
        return group.count, group.bytes

    @property
    def formats(self):
        """Of the store, and the newest of the log that is read."""
        cdef Group* group = self.group
        return COPY_FORMAT, group.reading.format_max

    @property
    def skipped(self):
        """Records that did not count, of those that were read since the start."""
        cdef Group* group = self.group
        return group.reading.stale + group.reading.void_bids

    @property
    def why(self):
        """Why the term is over, as a sentence; empty for a takeover of another node."""
        cdef Group* group = self.group
        cdef StoreError* error = group.applying.error
        if group.state == GROUP_HALTS:
            return reading_why(&group.reading)
        if group.error.text[0]:
            return f"the log takes no more: {group.error.text.decode('utf-8', 'replace')}"
        return error.text.decode("utf-8", "replace")


cdef struct Turned:
    Store    store
    StoreError error
    Reading  reading
    Applying applying


cdef class TurningStore:
    """The data of a broker that stands still: they become a copy of a group's, or a broker's alone again.

        begin_group     the store is what the log makes of it, from the record behind these on
        leave_group     nothing of a group is known to it any more
        write_format    the file says what the store says by then

    Each of the first two is one write, synced. A process that ends before the file is written leaves a
    directory that no server opens; write_format then finishes. Damage is not repaired: it is not opened.
    """

    cdef Turned* held
    cdef bytes directory
    cdef bint is_open

    def __cinit__(self):
        self.held = <Turned*> must_malloc(sizeof(Turned))
        memset(self.held, 0, sizeof(Turned))

    def __init__(self, str data_dir, dict settings):
        cdef Turned* held = self.held
        cdef StoreOptions options
        cdef const char* directory
        cdef int status
        self.directory = data_dir.encode()
        directory = self.directory
        store_configure(&options, True, settings)
        with nogil:
            status = store_open(&held.store, directory, &options, ANY_FORMAT, &held.error)
        if status != STORE_OK:
            raise self._error(status)
        self.is_open = True
        held.applying.store, held.applying.error = &held.store, &held.error
        held.applying.reading = &held.reading
        reading_init(&held.reading, 1)
        status = applied_read(&held.applying)
        if status == STORE_NOT_FOUND:
            status = STORE_OK
        if status == STORE_OK and not families_agree(&held.applying):
            status = held.error.status
        if status != STORE_OK:
            self.close()
            raise self._error(status)

    def __dealloc__(self):
        self.close()
        free(self.held)

    def close(self):
        if self.is_open:
            self.is_open = False
            with nogil:
                store_close(&self.held.store)

    cdef object _error(self, int status):
        text = self.held.error.text.decode("utf-8", "replace")
        return store_error(status, text, self.directory.decode("utf-8", "replace"))

    @property
    def format(self):
        """COPY, or that of a broker alone; as the store says, whatever the file does."""
        return store_format(&self.held.store, &self.held.error)

    @property
    def applied(self):
        """Of a copy: its cluster, and the last record of the log that it says it has; -1: none."""
        cdef Reading* reading = &self.held.reading
        return (<char*> reading.cluster)[:16], reading.position

    def begin_group(self, bytes cluster, uint64_t chain, list records):
        """From now on a copy that has read these records, the log's first; `chain` is the term's first."""
        cdef Turned* held = self.held
        cdef Reading* reading = &held.reading
        cdef Record record
        cdef rocksdb_writebatch_t* batch
        cdef bytes content
        reading_init(reading, 1)
        memcpy(reading.cluster, <const char*> cluster, 16)
        reading.has_cluster, reading.chain = True, chain
        for offset, content in records:
            if log_take(
                reading, <int64_t> offset, <const uint8_t*> <const char*> content, len(content), &record
            ) == TAKEN_HALT:
                raise errors.StoreError(reading_why(reading))
        batch = batch_new()
        applied_put(&held.applying, batch)
        self._turn(batch, True)

    def leave_group(self):
        """From now on a broker's alone."""
        cdef rocksdb_writebatch_t* batch = batch_new()
        applied_remove(&self.held.applying, batch)
        self._turn(batch, False)

    cdef _turn(self, rocksdb_writebatch_t* batch, bint is_copy):
        cdef Turned* held = self.held
        cdef int status
        with nogil:
            status = store_turn(&held.store, batch, is_copy, &held.error)
        if status != STORE_OK:
            raise self._error(status)

    def write_format(self):
        cdef Turned* held = self.held
        cdef const char* directory = self.directory
        cdef int64_t format = store_format(&held.store, &held.error)
        cdef int status
        with nogil:
            status = store_format_file(directory, format, &held.error)
        if status != STORE_OK:
            raise self._error(status)
