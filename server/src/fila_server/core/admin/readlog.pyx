"""ReadLog: a queue's retained messages by offset or time, read from the disk and from nothing else.

It shares no memory with the scheduler thread, only the store, which takes many readers: so it
can't delay a delivery, and it is called from whatever thread the edge can spare. Each piece
is read on a snapshot of its own, let go before the piece is sent, so that a slow reader
doesn't keep what is deleted meanwhile on the disk. What goes away between two pieces is gone.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memset

from fila_server import errors
from fila_server.core.formats.index_record cimport IndexEntry, IndexRecord, index_begin, index_next
from fila_server.core.formats.records cimport WITH_OWN_IDS
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.protobuf cimport (
    Fields, View, fields_parse, put_message, put_number_field, timestamp_ms,
)
from fila_server.core.state.open_core cimport LOOK_STANDS, LOOK_WAITS, Look, OpenCore
from fila_server.core.state.paths cimport bits_cost, bits_priority
from fila_server.core.state.state cimport Core
from fila_server.core.storage.families cimport FRAMES, INDEX, QUEUES, Store
from fila_server.core.storage.rocksdb cimport (
    rocksdb_iter_seek_for_prev, rocksdb_iterator_t, rocksdb_snapshot_t,
)
from fila_server.core.storage.status cimport STORE_OK, StoreError
from fila_server.core.storage.store cimport (
    scan_free, scan_key, scan_next, scan_seek, scan_seek_first, scan_status, scan_valid, scan_value,
    store_get_many, store_iterate, store_snapshot, store_snapshot_release,
)
from fila_server.core.structures.atomics cimport atomic_load
from fila_server.core.structures.buffer cimport (
    Buffer, Cursor, Slice, buffer_free, buffer_init, must_malloc, read_u32be, read_u64be, take_slice, take_u8,
    take_varint, write_u64be,
)

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int)

cdef enum:
    BATCH_DEFAULT = 100
    BATCH_MAX = 10000
    PIECE_BYTES_MAX = 2097152           # of messages; under 4 MiB with the largest frame's rest
    DURABLE_LOOK_US = 500
    DURABLE_WAIT_US_MAX = 5000000       # a sync takes milliseconds; longer is trouble, and told so
    FRAMES_PER_PIECE_MAX = 4096         # a filter that matches little answers empty pieces now and then

cdef struct Routing:
    Slice key
    uint64_t weight
    uint64_t cost_bits
    Slice set

cdef struct Range:
    uint64_t queue_number
    uint64_t next_offset                # where to go on
    uint64_t to_offset                  # below
    int64_t  from_ms
    int64_t  to_ms
    Slice    key
    Slice    queue
    uint32_t batch
    uint64_t damaged_from               # where what can't be read begins, and below what it ends; 0 = nowhere
    uint64_t damaged_to


cdef void _throttle_names(View* view, Slice set) noexcept nogil:
    cdef Cursor c
    cdef uint32_t length
    c.at, c.end, c.bad = set.at, set.at + set.length, False
    view.throttle_count = 0
    while c.end - c.at >= 4 and view.throttle_count < 16:
        length = read_u32be(c.at)
        c.at += 4
        view.throttle[view.throttle_count] = take_slice(&c, length)
        if c.bad:
            return
        view.throttle_count += 1


cdef int64_t _frame(
        Range* range_, uint64_t first_offset, Slice index, Slice body, uint32_t most, Buffer* out,
        Buffer* tail) noexcept nogil:
    """Encode what the range wants of one frame; returns how many, and moves `next_offset`. -1: it can't be
    read."""
    cdef IndexRecord record
    cdef IndexEntry entry
    cdef Routing* routings
    cdef Routing* routing
    cdef uint32_t taken = 0
    cdef View view
    if not index_begin(&record, first_offset, index.at, index.length):
        return -1
    if record.body_bytes != body.length:        # another version's, which a lost table brought to light
        return -1
    memset(&view, 0, sizeof(View))
    routings = <Routing*> must_malloc(record.count * sizeof(Routing))
    while index_next(&record, &entry):
        routing = &routings[entry.routing]
        if entry.brings_routing:
            routing.key, routing.set = entry.key, entry.set
            routing.weight, routing.cost_bits = entry.weight, entry.cost_bits
        if entry.offset < range_.next_offset:
            continue
        if entry.offset >= range_.to_offset or taken == most or (taken and out.length > PIECE_BYTES_MAX):
            break
        range_.next_offset = entry.offset + 1
        if not _is_wanted(range_, &entry, routing):
            continue
        view.body, view.body_length = body.at + entry.at, entry.length
        view.id_high, view.id_low, view.offset = entry.id_high, entry.id_low, entry.offset
        view.appended_ms, view.enqueued_ms = entry.appended_ms, entry.enqueued_ms
        view.fairness_key = routing.key
        view.weight = <uint32_t> routing.weight
        view.cost, view.priority = bits_cost(routing.cost_bits), bits_priority(routing.cost_bits)
        view.queue = range_.queue
        _throttle_names(&view, routing.set)
        put_message(out, v1.READ_LOG_RESPONSE_MESSAGES, &view, tail)
        taken += 1
    free(routings)
    return taken


cdef bint _is_wanted(Range* range_, IndexEntry* entry, Routing* routing) noexcept nogil:
    if entry.appended_ms < range_.from_ms or entry.appended_ms >= range_.to_ms:
        return False
    return range_.key.length == 0 or (
        routing.key.length == range_.key.length
        and memcmp(routing.key.at, range_.key.at, range_.key.length) == 0
    )


cdef rocksdb_iterator_t* _seek(
        Store* store, const rocksdb_snapshot_t* snapshot, uint64_t queue_number,
        uint64_t offset) noexcept nogil:
    """A scan of INDEX at the frame that holds `offset`, or at the first one behind it."""
    cdef rocksdb_iterator_t* scan = store_iterate(store, INDEX, snapshot)
    cdef char key[16]
    cdef const char* found
    cdef size_t length
    write_u64be(key, queue_number)
    write_u64be(key + 8, offset)
    rocksdb_iter_seek_for_prev(scan, key, 16)
    if scan_valid(scan):
        found = scan_key(scan, &length)
        if length == 16 and memcmp(found, key, 8) == 0:
            return scan
    scan_seek(scan, key, 16)
    return scan


cdef void _damaged(Range* range_, rocksdb_iterator_t* scan, uint64_t first) noexcept nogil:
    """This frame can't be read: from where the range has come to, up to the next frame's beginning."""
    cdef const char* key
    cdef size_t length
    range_.damaged_from = max(first, range_.next_offset)
    range_.damaged_to = range_.to_offset
    scan_next(scan)
    if scan_valid(scan):
        key = scan_key(scan, &length)
        if length == 16 and read_u64be(key) == range_.queue_number:
            range_.damaged_to = min(range_.to_offset, read_u64be(key + 8))


cdef bint _piece(Store* store, Range* range_, Buffer* out, Buffer* tail) noexcept nogil:
    """One response's messages; False when the range is at its end."""
    cdef const rocksdb_snapshot_t* snapshot = store_snapshot(store)
    cdef rocksdb_iterator_t* scan = _seek(store, snapshot, range_.queue_number, range_.next_offset)
    cdef const char* keys[1]
    cdef size_t key_length, value_length
    cdef char* value = NULL
    cdef int status
    cdef StoreError error
    cdef Slice index
    cdef Slice body
    cdef uint64_t first, before
    cdef int64_t found
    cdef uint32_t taken = 0
    cdef uint32_t looked = 0
    cdef bint more = False
    while scan_valid(scan):
        keys[0] = scan_key(scan, &key_length)
        if key_length != 16 or read_u64be(keys[0]) != range_.queue_number:
            break
        first = read_u64be(keys[0] + 8)
        if first >= range_.to_offset:
            break
        if taken == range_.batch or out.length > PIECE_BYTES_MAX or looked == FRAMES_PER_PIECE_MAX:
            more = True
            break
        looked += 1
        index.at = scan_value(scan, &value_length)
        index.length = <uint32_t> value_length
        store_get_many(store, FRAMES, snapshot, 1, keys, &key_length, &value, &value_length, &status, &error)
        before = range_.next_offset
        found = -1
        if status == STORE_OK and value != NULL:
            body.at, body.length = value, <uint32_t> value_length
            found = _frame(range_, first, index, body, range_.batch - taken, out, tail)
        free(value)
        value = NULL
        if found < 0 and taken:
            more = True                 # told when what lies before it has left
            break
        if found < 0:
            _damaged(range_, scan, first)
            break
        taken += <uint32_t> found
        if taken == range_.batch or out.length > PIECE_BYTES_MAX:
            more = True                 # there may be more in this very frame
            break
        if range_.next_offset == before and first >= before:
            range_.next_offset = first + 1
        scan_next(scan)
    if not more and range_.damaged_from == 0 and scan_status(store, scan, &error) != STORE_OK:
        range_.damaged_from, range_.damaged_to = range_.next_offset, range_.to_offset
    scan_free(scan)
    store_snapshot_release(store, snapshot)
    return more


cdef bint _await_durable(Core* core) noexcept nogil:
    """Wait until all that a snapshot of a moment ago may hold is synced:
    what a power cut can take back is shown to nobody."""
    cdef uint64_t coming = atomic_load(&core.shared.coming)
    cdef uint32_t waited_us = 0
    while atomic_load(&core.shared.durable) < coming and atomic_load(&core.shared.coming) >= coming:
        if waited_us >= DURABLE_WAIT_US_MAX:
            return False
        usleep(DURABLE_LOOK_US)
        waited_us += DURABLE_LOOK_US
    return True


cdef class LogReader:
    """One ReadLog call: `read()` gives ReadLogResponse after ReadLogResponse, then None."""

    cdef OpenCore source
    cdef bytes request
    cdef Range range
    cdef bint ended
    cdef uint64_t look                  # that the next piece waits for, in a group

    def __init__(self, OpenCore source, bytes request):
        """Take the request apart; nothing is read from the disk yet.

        Raises errors.Invalid for a time that is none.
        """
        cdef Fields fields
        cdef bint bad = False
        cdef Range* r = &self.range
        self.source = source
        self.request = request
        memset(r, 0, sizeof(Range))
        if not fields_parse(&fields, PyBytes_AS_STRING(request), PyBytes_GET_SIZE(request)):
            raise errors.Invalid("request", "the bytes are no valid ReadLogRequest")
        r.queue, r.key = fields.text[v1.READ_LOG_REQUEST_QUEUE], fields.text[v1.READ_LOG_REQUEST_FAIRNESS_KEY]
        r.next_offset = fields.number[v1.READ_LOG_REQUEST_FROM_OFFSET]
        r.to_offset = fields.number[v1.READ_LOG_REQUEST_TO_OFFSET]
        r.to_ms = INT64_MAX
        if fields.seen & (1 << v1.READ_LOG_REQUEST_FROM_TIME):
            r.from_ms = timestamp_ms(fields.text[v1.READ_LOG_REQUEST_FROM_TIME], &bad)
        if fields.seen & (1 << v1.READ_LOG_REQUEST_TO_TIME):
            r.to_ms = timestamp_ms(fields.text[v1.READ_LOG_REQUEST_TO_TIME], &bad)
        if bad:
            raise errors.Invalid("from_time, to_time", "must lie between the years 1 and 9999")
        r.batch = min(
            fields.number[v1.READ_LOG_REQUEST_MAX_BATCH] or BATCH_DEFAULT, <uint64_t> BATCH_MAX)
        if not source.is_open:
            raise errors.Unavailable("the broker is shutting down; connect again")

    cdef void _find(self) noexcept nogil:
        """The queue's number, and the head as of now."""
        cdef rocksdb_iterator_t* scan = store_iterate(self.source.core.store, QUEUES, NULL)
        cdef const char* key
        cdef size_t length
        cdef Cursor c
        cdef Slice name
        cdef Range* r = &self.range
        scan_seek_first(scan)
        while scan_valid(scan):
            key = scan_key(scan, &length)
            if length == 8:
                c.at = scan_value(scan, &length)
                c.end, c.bad = c.at + length, False
                take_u8(&c)
                name = take_slice(&c, take_varint(&c))
                if (
                    not c.bad and name.length == r.queue.length
                    and memcmp(name.at, r.queue.at, name.length) == 0
                ):
                    r.queue_number = read_u64be(key)
                    break
            scan_next(scan)
        scan_free(scan)
        if r.queue_number and r.to_offset == 0:
            r.to_offset = self._head()

    cdef uint64_t _head(self) noexcept nogil:
        cdef rocksdb_iterator_t* scan = _seek(
            self.source.core.store, NULL, self.range.queue_number, <uint64_t> -1)
        cdef const char* key
        cdef size_t length
        cdef uint64_t head = 0
        cdef Cursor c
        cdef uint64_t count
        if scan_valid(scan):
            key = scan_key(scan, &length)
            if length == 16 and read_u64be(key) == self.range.queue_number:
                head = read_u64be(key + 8)
                c.at = scan_value(scan, &length)
                c.end, c.bad = c.at + length, False
                take_u8(&c)
                # Offsets of a rewritten frame have gaps: then nothing below 2^32 behind its first is missed.
                if take_u8(&c) & WITH_OWN_IDS:
                    head += <uint64_t> 1 << 32
                else:
                    head += take_varint(&c)
        scan_free(scan)
        return head

    def ask(self):
        """In a group, ask for the look that the next piece waits for; read() does so itself."""
        if self.look == 0:
            self.look = self.source.look()

    @property
    def is_ready(self):
        """Whether read() would wait for no look."""
        return self.look == 0 or self.source.looked(self.look) != LOOK_WAITS

    cdef bint _await_look(self) noexcept nogil:
        cdef uint32_t waited_us = 0
        cdef Look found = self.source.looked(self.look)
        while found == LOOK_WAITS and waited_us < DURABLE_WAIT_US_MAX:
            usleep(DURABLE_LOOK_US)
            waited_us += DURABLE_LOOK_US
            found = self.source.looked(self.look)
        return found == LOOK_STANDS

    def read(self):
        """The next response's bytes, or None at the end. Reads the disk: not for the I/O loop's thread.

        The first call finds the queue and fixes the end of the range. Raises errors.QueueNotFound,
        errors.Unavailable where what was read does not become durable, as on a full disk, or where a
        group's log does not confirm that nobody else answered anything meanwhile, and
        errors.LogDamaged at what can't be read, once all that lies before it was returned.
        """
        cdef Buffer out
        cdef Buffer tail
        cdef bint more = False
        cdef bint durable = False
        cdef Range* r = &self.range
        cdef bytes payload
        if self.ended or not self.source.is_open:
            return None
        buffer_init(&out)
        buffer_init(&tail)
        self.ask()
        self.source.readers += 1            # under the GIL, as is closing's look at it
        with nogil:
            if r.queue_number == 0:
                self._find()
            if r.queue_number:
                more = _piece(self.source.core.store, r, &out, &tail)
            if self.look:
                durable = self._await_look()
            else:
                durable = r.queue_number == 0 or _await_durable(self.source.core)
        with self.source.readers_changed:
            self.source.readers -= 1
            self.source.readers_changed.notify_all()
        self.ended = not more
        if not durable or r.queue_number == 0:
            self.ended = True
            buffer_free(&out)
            buffer_free(&tail)
            if durable:
                raise errors.QueueNotFound(r.queue.at[:r.queue.length].decode("utf-8", "replace"))
            raise errors.Unavailable(
                "the log of the group does not confirm that this node still serves; try again shortly"
                if self.look else
                "what was read is not on the disk yet; make room there, or try again shortly")
        self.look = 0
        if r.damaged_from:
            self.ended = True
            buffer_free(&out)
            buffer_free(&tail)
            raise errors.LogDamaged(
                r.queue.at[:r.queue.length].decode("utf-8", "replace"), r.damaged_from, r.damaged_to)
        if out.length == 0 and self.ended:
            buffer_free(&out)
            buffer_free(&tail)
            return None
        put_number_field(&out, v1.READ_LOG_RESPONSE_NEXT_OFFSET, self.range.next_offset)
        payload = PyBytes_FromStringAndSize(out.data, out.length)
        buffer_free(&out)
        buffer_free(&tail)
        return payload
