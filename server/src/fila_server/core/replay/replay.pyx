"""The core fed with what it once took in: the same passes, and so the same decisions, over a store that keeps
nothing.

A Replay opens an empty directory, puts the base's records there, and recovers as the recording broker did;
from then on nothing is written. Payloads come back as zeros of their length. What it decides is in its own
`recording`, whose blocks its owner takes while it feeds rows.

A Model begins in the same place and then goes its own way: its owner tells the time, offers commands, and
answers what the core asks of its disk.

One process replays one recording: the seed of the hash maps is set once a process, and orders depend on it.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from fila_server import errors
from fila_server.core.history.inputs cimport (
    INPUT_COMMAND, INPUT_LOAD, INPUT_PASS, INPUT_WRITE, LOAD_IS_STAGED,
)
from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport ENQUEUE, ENQUEUE_ATOMIC, FIRE, STAGE
from fila_server.core.protocol.problem cimport Problem
from fila_server.core.protocol.protobuf cimport LEN
from fila_server.core.requests.parse cimport command_parse_adopted
from fila_server.core.runtime.engine cimport CoreEngine
from fila_server.core.runtime.passes cimport run_pass
from fila_server.core.state.directory cimport directory_at
from fila_server.core.state.state cimport Frame, Queue
from fila_server.core.storage.families cimport FAMILY_COUNT, FRAMES, STAGED, Store
from fila_server.core.storage.status cimport STORE_NOT_FOUND, STORE_OK, StoreError
from fila_server.core.storage.store cimport batch_free, batch_new, batch_put, store_write
from fila_server.core.structures.atomics cimport atomic_store, flag_store
from fila_server.core.structures.buffer cimport Cursor, must_malloc, take_slice, take_varint
from fila_server.core.structures.maps cimport map64_get
from fila_server.core.threads.blocks cimport History
from fila_server.core.threads.mailbox cimport Command, HookRoutings, mailbox_post
from fila_server.core.threads.outbox cimport OUTBOXES_MAX, Out, Outboxes, outbox_add, outbox_take
from fila_server.core.threads.reader cimport Load, Loader


class NotReplayable(Exception):
    """What was recorded cannot have led to what happened, or was changed since."""


cdef class Replay(CoreEngine):
    """One recording, from its base on."""

    def __init__(self, str data_dir, dict head, object records, *, uint32_t sample=1):
        """data_dir: an empty directory. head: the row `base`. records: the store's then, as (family, key,
        value)."""
        cdef Outboxes* outboxes = self.core.outboxes
        self.seed_hashes(head["hash_seed"])
        self.head = head
        self.records = records
        self.headers = head.get("headers", "policy")
        self.clocks = (head["mono_ns"], head["wall_ns"])
        settings = head["settings"] | {
            "history.enabled": True, "history.sample": sample, "storage.ballast_bytes": 0,
            "storage.min_free_bytes": 0,
        }
        CoreEngine.__init__(
            self, data_dir, settings, mono_ns=head["mono_ns"], wall_ns=head["wall_ns"], seed=head["seed"])
        self.first = self.core.counters.passes
        while outboxes.count < OUTBOXES_MAX:      # whatever thread a token belonged to
            if outbox_add(self.core.outboxes) < 0:
                raise OSError("no descriptors for the answers of a replay: 17 are needed")

    cdef _record_base(self, dict settings, int64_t mono_ns, int64_t wall_ns, uint64_t seed):
        """Recovery comes next: it finds what the recording broker found."""
        cdef Store* store = self.core.store
        cdef StoreError* error = self.core.error
        cdef History* history = self.core.history
        cdef bytes key, value
        cdef int family
        cdef int status = STORE_OK
        batch = batch_new()
        for family, key, value in self.records:
            if not 0 <= family < FAMILY_COUNT:
                raise NotReplayable(f"a record of the base names family {family}, which there is not")
            batch_put(store, batch, family, key, len(key), value, len(value))
        status = store_write(store, batch, error)
        batch_free(batch)
        if status != STORE_OK:
            raise errors.StoreError(error.text.decode("utf-8", "replace"))
        self.records = None
        # Where no lease id is reserved it counts whether the store was new: then they begin with 1.
        store.created = self.head.get("created", True)
        store.muted = True
        history.inputs_over = True

    def runs_in_group(self):
        """It goes on as an owner's core; of one that is behind its base, and has been fed nothing.

        Its opening was that of a broker alone, which promises lease ids at once. An owner's are promised
        once the log has its first record, and the recorded passes say when that was.
        """
        self.core.shared.in_group = True
        atomic_store(&self.core.shared.durable, 0)
        self.core.durable = self.core.lease_id_durable = 0

    @property
    def passes(self):
        """How many there were, those of opening included."""
        return self.core.counters.passes

    def feed(
            self, const uint8_t[:] kind, const int64_t[:] passes, const int64_t[:] at_us,
            const int64_t[:] token, const int64_t[:] a, const int64_t[:] b, const int64_t[:] c,
            const int32_t[:] begins, const uint8_t[:] data, Py_ssize_t start):
        """Take rows from `start` on, one after the other; a row's bytes are data[begins[i]:begins[i + 1]].

        Returns the row to go on with: all are taken, or there are full blocks to be taken first. Raises
        NotReplayable.
        """
        cdef Py_ssize_t i = start
        cdef const char* bytes
        cdef History* history = self.core.history
        cdef Store* store = self.core.store
        while i < kind.shape[0]:
            if kind[i] == INPUT_PASS:
                if self.begun:
                    self._run()
                    if history.full != NULL:
                        return i
                self._begin_pass(passes[i], at_us[i] // 1000, a[i], b[i], c[i])
                i += 1
                continue
            if not self.begun or <uint64_t> passes[i] != self.number:
                if <uint64_t> passes[i] <= self.first:
                    i += 1              # of the pass that opening ran by itself
                    continue
                raise NotReplayable(f"an input of pass {passes[i]} comes after pass {self.number}")
            bytes = <const char*> &data[begins[i]] if begins[i + 1] > begins[i] else NULL
            if kind[i] == INPUT_COMMAND:
                self._command(a[i], token[i], b[i], c[i], bytes, begins[i + 1] - begins[i])
            elif kind[i] == INPUT_LOAD:
                self._load(token[i], a[i], b[i], c[i], bytes, begins[i + 1] - begins[i])
            elif kind[i] == INPUT_WRITE:
                if not 0 <= a[i] < 4:
                    raise NotReplayable(f"pass {self.number} has a write {a[i]}; there are at most 4")
                store.reported[a[i]] = <int32_t> b[i]
            else:
                raise NotReplayable(f"an input of kind {kind[i]} stands where none belongs")
            i += 1
        return i

    def finish(self):
        """Run the last pass that was fed."""
        if self.begun:
            self._run()

    cdef _begin_pass(
            self, uint64_t number, int64_t wall_ms, int64_t mono_ns, int64_t durable, int64_t level):
        if number <= self.first:        # opening ran it by itself
            return
        if number != self.core.counters.passes + 1:
            raise NotReplayable(f"pass {number} follows pass {self.core.counters.passes}")
        if mono_ns < self.core.mono_ns or durable < <int64_t> self.core.shared.durable:
            raise NotReplayable(f"in pass {number} the clock or the durable epoch runs backwards")
        self.begun = True
        self.number = number
        self.mono_ns, self.wall_ms, self.durable, self.level = mono_ns, wall_ms, durable, level

    cdef _run(self):
        cdef Loader* loader = self.core.loader
        cdef Store* store = self.core.store
        self.begun = False
        if self.durable > <int64_t> self.core.shared.wanted:
            raise NotReplayable(
                f"pass {self.number} saw epoch {self.durable} durable; only {self.core.shared.wanted} was "
                f"wanted")
        with nogil:
            atomic_store(&self.core.shared.durable, <uint64_t> self.durable)
            atomic_store(&self.core.shared.disk_level, <uint64_t> (self.level & 0xFF))
            flag_store(&self.core.shared.stopping, (self.level >> 8) & 1)
            run_pass(self.core, self.mono_ns, self.wall_ms)
            memset(store.reported, 0, sizeof(store.reported))
            self._forget_answers()
            self._forget_asked()
        if self.core.mailbox.count:
            raise NotReplayable(
                f"pass {self.number} left {self.core.mailbox.count} of the commands that it took when "
                f"recorded")
        if loader.answered != NULL:
            raise NotReplayable(f"pass {self.number} took in no frames, and did when recorded")

    cdef void _forget_answers(self) noexcept nogil:
        cdef Outboxes* outboxes = self.core.outboxes
        cdef Out* outs = NULL
        cdef uint32_t box, i, count
        for box in range(outboxes.count):
            count = outbox_take(outboxes.boxes[box], &outs)
            for i in range(count):
                free(outs[i].payload)
            free(outs)

    cdef void _forget_asked(self) noexcept nogil:
        """What it asks of the disk comes as rows."""
        cdef Loader* loader = self.core.loader
        cdef Load* load = loader.asked
        cdef Load* following
        loader.asked = loader.asked_last = NULL
        while load != NULL:
            following = load.next
            free(load)
            load = following

    cdef char* _expanded(self, Cursor* c, int64_t length) except NULL:
        """Bytes as they were, zeros where they were left out."""
        cdef uint64_t cuts = take_varint(c)
        cdef Cursor kept = c[0]
        cdef uint64_t i, gap, cut
        cdef uint64_t at = 0
        cdef char* bytes
        for i in range(min(cuts, <uint64_t> (c.end - c.at))):
            take_varint(&kept)
            take_varint(&kept)
        if kept.bad or length < 0 or length > 1 << 31:
            raise NotReplayable(f"pass {self.number}: the bytes of an input are cut short")
        bytes = <char*> must_malloc(<size_t> length + 1)
        for i in range(cuts):
            gap, cut = take_varint(c), take_varint(c)
            if at + gap + cut > <uint64_t> length or gap > <uint64_t> (kept.end - kept.at):
                free(bytes)
                raise NotReplayable(f"pass {self.number}: the bytes of an input do not fit their length")
            memcpy(bytes + at, kept.at, gap)
            memset(bytes + at + gap, 0, cut)
            kept.at += gap
            at += gap + cut
        if at + <uint64_t> (kept.end - kept.at) != <uint64_t> length:
            free(bytes)
            raise NotReplayable(f"pass {self.number}: the bytes of an input do not fit their length")
        memcpy(bytes + at, kept.at, kept.end - kept.at)
        bytes[length] = 0
        return bytes

    cdef _command(
            self, int64_t kind, int64_t token, int64_t length, int64_t checksum, const char* bytes,
            size_t size):
        cdef Cursor c
        cdef Cursor routings
        cdef Command* command
        cdef Problem problem
        cdef char* whole
        cdef uint64_t i, count
        c.at, c.end, c.bad = bytes, bytes + size, False
        count = take_varint(&c)
        routings = c
        for i in range(min(count, size)):
            take_varint(&c)
            take_slice(&c, take_varint(&c))
        if c.bad:
            raise NotReplayable(f"pass {self.number}: the bytes of a command are cut short")
        whole = self._expanded(&c, length)
        command = command_parse_adopted(
            <int32_t> kind, <uint64_t> token, whole, <size_t> length, &self.core.limits, &problem)
        if command == NULL:
            raise NotReplayable(
                f"pass {self.number}: a command is none: {problem.text.decode('utf-8', 'replace')}")
        if ENQUEUE <= kind <= ENQUEUE_ATOMIC or kind == STAGE or kind == FIRE:
            self._route(command, &routings, count)
        if command.stage != NULL:
            command.stage.checksum = <uint32_t> checksum
        if not mailbox_post(self.core.mailbox, command):
            raise NotReplayable(f"pass {self.number} has more commands than the mailbox takes")

    cdef _route(self, Command* command, Cursor* c, uint64_t count):
        """What hooks had decided for each."""
        cdef HookRoutings* kept
        cdef uint64_t i, index, length
        for i in range(count):
            index, length = take_varint(c), take_varint(c)
            if index >= command.count or length > <uint64_t> (c.end - c.at):
                raise NotReplayable(f"pass {self.number}: a routing is of no message")
            kept = <HookRoutings*> must_malloc(sizeof(HookRoutings) + length)
            kept.next = command.routings
            command.routings = kept
            memcpy(kept.bytes, c.at, length)
            c.at += length
            command.items[index].routing = kept.bytes

    cdef _load(
            self, int64_t queue, int64_t first_offset, int64_t length, int64_t status, const char* bytes,
            size_t size):
        cdef Load* load
        cdef Cursor c
        cdef char* whole = NULL
        if length >= 0:
            if size:
                c.at, c.end, c.bad = bytes, bytes + size, False
                whole = self._expanded(&c, length)
            else:
                whole = <char*> calloc(1, <size_t> length + 1)
        load = <Load*> must_malloc(sizeof(Load))
        memset(load, 0, sizeof(Load))
        load.family = STAGED if status & LOAD_IS_STAGED else FRAMES
        load.queue_number, load.first_offset = <uint64_t> queue, <uint64_t> first_offset
        load.bytes, load.length = whole, <size_t> max(length, <int64_t> 0)
        load.status = <int> (status & ~<int64_t> LOAD_IS_STAGED)
        self._answer(load)

    cdef void _answer(self, Load* load) noexcept nogil:
        cdef Loader* loader = self.core.loader
        if loader.answered_last == NULL:
            loader.answered = load
        else:
            loader.answered_last.next = load
        loader.answered_last = load


cdef void _as_payloads(const Frame* frame, char* bytes, uint64_t length) noexcept nogil:
    """Make each message of a frame of zeros one payload, as long as its bytes, so that it can be read.

    A length is written in as many bytes as tag, length and payload need to fill the message's bytes.
    """
    cdef uint32_t i, size
    cdef uint64_t left
    cdef char* at
    for i in range(frame.count):
        if frame.entries[i].length < 2 or frame.entries[i].at + <uint64_t> frame.entries[i].length > length:
            continue
        at = bytes + frame.entries[i].at
        left = frame.entries[i].length - 1
        size = 1
        while left - size >= <uint64_t> 1 << 7 * size:
            size += 1
        left -= size
        at[0] = <char> (v1.MESSAGE_PAYLOAD << 3 | LEN)
        while size > 1:
            at += 1
            at[0] = <char> (left & 0x7F | 0x80)
            left >>= 7
            size -= 1
        at[1] = <char> left


cdef class Model(Replay):
    """The same beginning, and from there on another course, which the caller sets."""

    cdef dict loads                     # (queue number, first offset): length and data of a recorded LOAD

    def remember(self, uint64_t queue, uint64_t first_offset, int64_t length, bytes data):
        """Keep a recorded frame for when the core asks for it."""
        if self.loads is None:
            self.loads = {}
        self.loads[queue, first_offset] = (length, data)

    def request(self, int64_t length, bytes data):
        """The bytes of a recorded command as they were, zeros where they were left out."""
        cdef Cursor c
        cdef char* whole
        cdef uint64_t i, count
        c.at = PyBytes_AS_STRING(data)
        c.end, c.bad = c.at + len(data), False
        count = take_varint(&c)
        for i in range(min(count, <uint64_t> len(data))):
            take_varint(&c)
            take_slice(&c, take_varint(&c))
        whole = self._expanded(&c, length)
        try:
            return whole[:length]
        finally:
            free(whole)

    def offer(self, int64_t kind, uint64_t token, int64_t length, bytes data):
        """Put a recorded command into the mailbox, with what hooks had decided."""
        self._command(kind, <int64_t> token, length, 0, PyBytes_AS_STRING(data), len(data))

    def load(self):
        """Answer what passes asked of the disk: as recorded, or as long, payloads of zeros; how many."""
        cdef Loader* loader = self.core.loader
        cdef Load* load = loader.asked
        cdef Load* following
        cdef Queue* queue
        cdef Frame* frame
        cdef Cursor c
        cdef bytes data
        cdef int served = 0
        loader.asked = loader.asked_last = NULL
        while load != NULL:
            following = load.next
            load.next = NULL
            load.status = STORE_NOT_FOUND
            queue = <Queue*> map64_get(&self.core.queues_by_number, load.queue_number)
            frame = directory_at(&queue.directory, load.first_offset) if queue != NULL else NULL
            if load.family == FRAMES and frame != NULL and frame.first_offset == load.first_offset:
                length, data = (self.loads or {}).get((load.queue_number, load.first_offset), (0, b""))
                load.status = STORE_OK
                load.length = <size_t> max(<int64_t> length, <int64_t> frame.body_bytes)
                if data:
                    c.at = PyBytes_AS_STRING(data)
                    c.end, c.bad = c.at + len(data), False
                    load.bytes = self._expanded(&c, length)
                    load.length = length
                else:
                    load.bytes = <char*> calloc(1, load.length + 1)
                    _as_payloads(frame, load.bytes, load.length)
            self._answer(load)
            served += 1
            load = following
        return served
