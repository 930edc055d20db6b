"""The core as Python sees it: frames in, answers out, and passes that are told the time.

`CoreEngine` has no thread and no clock. Its owner calls `run_pass`, `commit` and `load`: tests and the
simulation under their own clock, `scheduler_thread.Engine` under the real one.
"""

import json
import os

from cython cimport no_gc_clear
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport errno
from libc.stdint cimport INT64_MAX, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server import errors
from fila_server.core.admin.access cimport audit_recover
from fila_server.core.admin.chores cimport chores_forget
from fila_server.core.admin.deleting cimport forget_all
from fila_server.core.admin.readlog import LogReader
from fila_server.core.formats.records cimport meta_record_put, queue_record_put, reservation_record_put
from fila_server.core.formats.reservations cimport LEASE_IDS_RESERVED
from fila_server.core.history.inputs cimport base_put
from fila_server.core.history.tap cimport Recording
from fila_server.core.index.holders cimport holders_wake
from fila_server.core.index.leases cimport groups_flush
from fila_server.core.index.visits cimport housekeeping_by
from fila_server.core.recovery.recover cimport recover_core
from fila_server.core.requests.parsed_frame cimport ParsedFrame
from fila_server.core.requests.rights_table cimport Rights
from fila_server.core.requests.submit cimport (
    DISK_FULL, LOG_STANDS, MAILBOX_FULL, Posted, judged_parse, request_post,
)
from fila_server.core.runtime.commit cimport commit_last, commit_pass
from fila_server.core.runtime.confirming cimport GROUP_OWNS, Group, group_look, group_looked
from fila_server.core.runtime.engine_numbers cimport core_counters, log_found, opening_found
from fila_server.core.runtime.passes cimport run_pass
from fila_server.core.runtime.settings cimport core_configure, store_configure
from fila_server.core.runtime.store_copy cimport StoreCopy, store_error
from fila_server.core.search.lookups cimport lookups_forget
from fila_server.core.sinks.registry cimport sinks_forget
from fila_server.core.state.kinds cimport TIMER_HOUSEKEEPING
from fila_server.core.scheduling.limits cimport limits_init, limits_reported
from fila_server.core.state.open_core cimport Look
from fila_server.core.state.state cimport Core, Queue
from fila_server.core.storage.disk cimport disk_open
from fila_server.core.storage.families cimport STORE_FORMAT, Store, StoreOptions
from fila_server.core.storage.opening cimport store_close, store_open
from fila_server.core.storage.reclaim cimport Upkeep, upkeep_round
from fila_server.core.storage.status cimport STORE_OK, StoreError, StoreFailure, failure_is_reported
from fila_server.core.storage.store cimport batch_free, batch_new
from fila_server.core.storage.watch cimport Watch, watch_begin, watch_look
from fila_server.core.structures.atomics cimport flag_store
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.maps cimport map64_init, maps_seed, textmap_init, textmap_next
from fila_server.core.structures.timers cimport timers_init
from fila_server.core.threads.blocks cimport History, block_end
from fila_server.core.threads.mailbox cimport command_free, mailbox_free, mailbox_new
from fila_server.core.threads.outbox cimport (
    Out, Outboxes, outbox_add, outbox_take, outboxes_free, outboxes_open, outs_forget,
)
from fila_server.core.threads.reader cimport loader_free, loader_new, loader_serve
from fila_server.core.threads.spans cimport SpanTap

cdef enum:
    COMMANDS_MARGIN = 1000      # of a pass and postponed ones, beside those in the mailbox

HEADERS_KEPT = ("none", "policy", "all")        # in the order of HeadersKept

# Grows when the same inputs decide otherwise. 2: lines before buckets are rings. 3: no second burst. 4: of
# one of several limits something is kept, 6: no slot for long. 5: lines wait for nothing gone. 7: nor save.
DECISION_RULES = 7

_hash_seed = None


cdef struct Whole:                      # the core, and what of its own it knows by pointer alone
    Core     core
    Store    store
    StoreError error
    Outboxes outboxes
    Watch    watch
    Upkeep   upkeep
    StoreFailure failure


@no_gc_clear                            # what it records to must outlive its last pass
cdef class CoreEngine(OpenCore):
    """One data directory, open. Not shared: one thread runs passes, one commits, one loads."""

    def __cinit__(self):
        cdef Whole* whole = <Whole*> must_malloc(sizeof(Whole))
        memset(whole, 0, sizeof(Whole))
        self.rights, self.core = Rights(), &whole.core
        self.core.store, self.core.error = &whole.store, &whole.error
        self.core.shared.watch, self.core.shared.upkeep = &whole.watch, &whole.upkeep
        self.core.outboxes, self.core.shared.failure = &whole.outboxes, &whole.failure

    def __init__(
            self, str data_dir, dict settings, *, int64_t mono_ns, int64_t wall_ns, uint64_t seed,
            StoreCopy copy=None):
        """Open and recover `data_dir`, or what the node of a group that owns has open.

        settings: flat, as Config.engine_settings gives them. Raises errors.StoreError's kinds.
        """
        cdef Core* core = self.core
        cdef Store* store = core.store
        cdef StoreError* error = core.error
        cdef Watch* watch = core.shared.watch
        cdef Upkeep* upkeep = core.shared.upkeep
        cdef StoreOptions options
        cdef int status
        cdef bytes path = data_dir.encode()
        cdef const char* path_bytes = path
        self._settings(settings)
        store_configure(&options, core.stop_on_damage, settings)
        if copy is not None:
            store = self._take(copy)
        with nogil:
            status = STORE_OK if copy is not None else store_open(
                store, path_bytes, &options, STORE_FORMAT, error)
        if status != STORE_OK:
            self._release()
            raise store_error(status, error.text.decode("utf-8", "replace"), data_dir)
        self._begin(mono_ns, wall_ns, seed)
        self._record_base(settings, mono_ns, wall_ns, seed)
        self.is_open = True
        disk_open(
            &watch.disk, path_bytes, settings.get("storage.min_free_bytes", 268435456),
            settings.get("storage.ballast_bytes", options.ballast_bytes), error)
        watch_begin(
            watch, store, core.shared.failure, &core.shared.disk_level, &core.shared.disk_free_bytes)
        upkeep.store = store
        with nogil:
            status = recover_core(core)
            audit_recover(core)
        if status != STORE_OK:
            text = error.text.decode("utf-8", "replace")
            self.close()
            raise store_error(status, text, data_dir)
        self._record_begins()
        self._promise(mono_ns, wall_ns)

    @staticmethod
    def seed_hashes(uint64_t seed):
        """Seed this process's hash maps; ValueError when they have another seed already."""
        global _hash_seed
        if _hash_seed is None:
            maps_seed(seed)
            _hash_seed = seed
        elif _hash_seed != seed:
            raise ValueError("this process's hash maps have another seed; replay in a process of its own")

    cdef _record_base(self, dict settings, int64_t mono_ns, int64_t wall_ns, uint64_t seed):
        """What recovery is about to see; a store that cannot be read has no base, and recovery says why."""
        cdef History* history = self.core.history
        cdef Store* store = self.core.store
        cdef bytes head
        cdef const char* at
        cdef size_t length
        if self.recording is None:
            return
        follow = {name: v for name, v in settings.items() if not name.startswith(("history.", "telemetry."))}
        head = json.dumps({
            "settings": follow, "mono_ns": mono_ns, "wall_ns": wall_ns, "seed": seed, "hash_seed": _hash_seed,
            "sample": history.sample, "headers": HEADERS_KEPT[history.headers],
            "created": bool(store.created), "rules": DECISION_RULES,
        }).encode()
        at, length = PyBytes_AS_STRING(head), PyBytes_GET_SIZE(head)
        with nogil:
            base_put(self.core, at, length, self.core.error)

    cdef _record_begins(self):
        """From here on decisions are rows; the limits there are come first."""
        cdef History* history = self.core.history
        if self.recording is not None:
            history.quiet = False
            limits_reported(self.core)

    cdef Store* _take(self, StoreCopy copy) except NULL:
        cdef Core* core = self.core
        cdef Group* group = copy.group
        if group.state != GROUP_OWNS:
            raise ValueError("only an owner's copy serves")
        self.copy, copy.is_open = copy, False
        core.store, core.stop_on_damage = copy.store, True
        core.shared.group, core.shared.in_group = copy.group, True
        return core.store

    cdef _settings(self, dict settings):
        cdef Core* core = self.core
        core_configure(core, settings)
        core.mailbox = mailbox_new(settings.get("scheduler.command_channel_capacity", 10000))
        if not outboxes_open(core.outboxes):
            number = errno
            self._release()
            raise OSError(number, f"no eventfd for the answers: {os.strerror(number)}")
        core.loader = loader_new()
        if settings.get("history.enabled", False):
            kept = HEADERS_KEPT.index(settings.get("history.headers", "policy"))
            self.recording = Recording(settings.get("history.sample", 1), kept)
            core.history = self.recording.history
        if "telemetry.trace_low_max" in settings:
            self.spans = SpanTap(settings["telemetry.trace_low_max"])
            core.traces = self.spans.traces

    cdef _begin(self, int64_t mono_ns, int64_t wall_ns, uint64_t seed):
        cdef Core* core = self.core
        core.mono_ns = core.opened_ns = mono_ns
        core.mono_ms = <uint32_t> (mono_ns // 1000000)
        core.wall_ms = core.opened_ms = wall_ns // 1000000
        core.random[0] = seed ^ <uint64_t> 0x9E3779B97F4A7C15
        core.random[1] = seed * <uint64_t> 0xBF58476D1CE4E5B9 + 1
        # Once a process: a second seed would hide what the maps of an open engine hold.
        if _hash_seed is None:
            self.seed_hashes(seed)
        textmap_init(&core.queues)
        textmap_init(&core.throttle_keys)
        textmap_init(&core.throttle_sets)
        limits_init(core)
        textmap_init(&core.config)
        map64_init(&core.queues_by_number)
        textmap_init(&core.sinks.by_name)
        map64_init(&core.sinks.by_number)
        map64_init(&core.leases)
        map64_init(&core.leased_ids)
        map64_init(&core.consumers)
        map64_init(&core.readers)
        map64_init(&core.streams)
        map64_init(&core.holders)
        map64_init(&core.decisions)
        timers_init(&core.timers)
        timers_init(&core.visits)
        core.housekeeping_ns = mono_ns
        core.wall_ahead_ms = core.wall_ms - mono_ns // 1000000
        core.settles, core.apart, core.enqueues = batch_new(), batch_new(), batch_new()
        core.epoch = core.no_throttle_keys.refs = 1     # that set is never freed
        core.housekeeping.kind = TIMER_HOUSEKEEPING

    cdef _promise(self, int64_t mono_ns, int64_t wall_ns):
        """Write what recovery found out, and the first reservations, before anybody is served."""
        cdef Core* core = self.core
        core.lease_id_reserved = core.next_lease_id + LEASE_IDS_RESERVED
        reservation_record_put(core, b"leases", core.lease_id_reserved)
        reservation_record_put(core, b"numbers", core.number_reserved)
        meta_record_put(core, b"id", core.id_ms)
        core.sync_wanted = True
        core.lease_id_epoch = core.epoch
        housekeeping_by(core, mono_ns)
        run_pass(core, mono_ns, wall_ns // 1000000)
        if core.shared.group == NULL:   # else they are promised once the log has them
            commit_pass(core)
            core.lease_id_durable = core.lease_id_reserved

    def __dealloc__(self):
        CoreEngine.close(self)          # and no other: what a subclass added may be gone by now
        self._release()
        free(self.core)

    def close(self):
        """Close the store as it is, and give back what the core holds; stop_cleanly comes before it."""
        cdef Core* core = self.core
        cdef Command* command
        if not self.is_open:
            return
        self._ends()
        while core.postponed != NULL:
            command = core.postponed
            core.postponed = command.next
            command_free(command)
        chores_forget(core)
        lookups_forget(core)
        sinks_forget(core)
        # The tables first: letting go of them fills a batch, which nobody writes.
        forget_all(core)
        holders_wake(core)              # nobody is left to wake: those that were to look for some are freed
        free(core.brought)
        free(core.renames.rows)
        free(core.replacings.rows)
        free(core.spare_items)
        groups_flush(core)
        with nogil:
            store_close(core.store)
        outs_forget(core.outboxes)
        batch_free(core.settles)
        batch_free(core.apart)
        batch_free(core.enqueues)
        self._release()

    cdef _leave(self):
        """As close, where the process ends next: what it holds in memory goes with it, at once."""
        if not self.is_open:
            return
        self._ends()
        with nogil:
            store_close(self.core.store)

    cdef _ends(self):
        """Nothing more comes in; who reads comes to an end, and so does what is recorded."""
        cdef History* history = self.core.history
        self.is_open = False
        with self.readers_changed:
            while self.readers:             # each is at most one piece long
                self.readers_changed.wait()
        if self.copy is not None:
            self.copy.ends()
        if history != NULL:
            history.quiet = history.inputs_over = True
            block_end(history)
            self.recording.closed = True

    cdef _release(self):
        """Give back what is there without a store, too."""
        cdef Core* core = self.core
        if core.mailbox != NULL:
            mailbox_free(core.mailbox)
        outboxes_free(core.outboxes)
        if core.loader != NULL:
            loader_free(core.loader)
        core.mailbox, core.loader = NULL, NULL

    # --- the edge's side ------------------------------------------------------------------

    @property
    def wake_fd(self):
        """An eventfd, readable when drain() has something."""
        cdef Outboxes* outboxes = self.core.outboxes
        return outboxes.boxes[0].wake_fd if self.is_open else -1

    cdef _post(self, Command* command):
        """Hand it to the scheduler. When this raises, the command is still the caller's."""
        cdef Posted posted
        if not self.is_open:
            raise errors.Unavailable("the server has stopped")
        posted = request_post(self.core, command)
        if posted == DISK_FULL:
            raise errors.DiskFloor("the disk is full; nothing is stored until there is room again")
        if posted == LOG_STANDS:
            raise errors.Overloaded("the group's log confirms nothing just now; try again shortly")
        if posted == MAILBOX_FULL:
            raise errors.Overloaded(
                f"{self.core.mailbox.capacity} requests are already waiting for the scheduler; try again "
                f"shortly")

    def open_outbox(self):
        """One more outbox, for a thread that takes its answers itself; its number, the highest byte of its
        tokens. Not after start()."""
        cdef int number = outbox_add(self.core.outboxes)
        if number < 0:
            raise OSError(errno, f"no eventfd for the answers: {os.strerror(errno)}")
        return number

    def submit(self, int kind, uint64_t token, bytes frame):
        """Parse a request of the broker's own, check its bounds, and hand it to the scheduler; the answer
        comes by drain()."""
        cdef Command* command = judged_parse(self.core, self.rights, kind, token, frame, None, 0)
        try:
            self._post(command)
        except BaseException:
            command_free(command)
            raise

    def parse(self, int kind, bytes frame, caller=None, int64_t now_ns=0):
        """The first half of submit, for frames that pass through hooks and for those of others.

        `caller` is who sends it (requests/rights.pxd) and `now_ns` the moment that its quotas go by, of the
        monotonic clock; None is the broker itself, which may do everything.
        """
        cdef ParsedFrame parsed = ParsedFrame.__new__(ParsedFrame)
        parsed.limits = self.core.limits
        parsed.command = judged_parse(self.core, self.rights, kind, 0, frame, caller, now_ns)
        return parsed

    def submit_parsed(self, uint64_t token, ParsedFrame parsed):
        """The second half. Once it was taken the frame can't be used again; when this raises, it can."""
        cdef Command* command = parsed.command
        if command == NULL:
            raise ValueError("the frame was submitted already")
        command.token = token
        self._post(command)
        parsed.command = NULL

    def drain(self):
        """Everything that is ready to leave: a list of (token, reply kind, status, payload)."""
        cdef Outboxes* outboxes = self.core.outboxes
        cdef Out* outs = NULL
        cdef uint32_t count, i
        cdef list answers = []
        if not self.is_open:
            return answers
        count = outbox_take(outboxes.boxes[0], &outs)
        for i in range(count):
            answers.append((
                outs[i].token, outs[i].kind, outs[i].status,
                PyBytes_FromStringAndSize(outs[i].payload, outs[i].length)))
            free(outs[i].payload)
        free(outs)
        return answers

    # --- the owner's side -----------------------------------------------------------------

    def run_pass(self, int64_t mono_ns, int64_t wall_ns):
        """One pass; when the next is wanted (monotonic ns), or None when only a command can want one."""
        cdef int64_t next_ns
        with nogil:
            next_ns = run_pass(self.core, mono_ns, wall_ns // 1000000)
        return None if next_ns == INT64_MAX else next_ns

    def commit(self):
        """Sync what passes wanted synced; True when there was something."""
        cdef bint done
        with nogil:
            done = commit_pass(self.core)
        return done

    def load(self):
        """Read back what passes asked for; how many frames."""
        cdef int served
        with nogil:
            served = loader_serve(self.core.loader, self.core.store, self.core.mailbox, False)
        return served

    def watch(self):
        """Look at the disk, as a thread does ten times a second; why the server has to stop, or None."""
        cdef Core* core = self.core
        with nogil:
            watch_look(core.shared.watch)
        return self.failure()

    def upkeep(self):
        """One round of what a thread does each second (core/storage/reclaim.pyx)."""
        with nogil:
            upkeep_round(self.core.shared.upkeep)

    def failure(self):
        """Why nothing can be promised any more, as one sentence, or None."""
        cdef StoreFailure* failure = self.core.shared.failure
        if not failure_is_reported(failure):
            return None
        return failure.error.text.decode("utf-8", "replace")

    def stop_cleanly(self, int64_t mono_ns, int64_t wall_ns):
        """Last pass and sync of a clean stop: exact offsets are kept instead of their reservations."""
        cdef Core* core = self.core
        cdef History* history = core.history
        cdef uint32_t cursor = 0
        cdef Queue* queue
        cdef int64_t wall_ms = wall_ns // 1000000
        flag_store(&core.shared.stopping, True)
        if history != NULL:             # what follows is not made of passes alone
            history.inputs_over = True
        # Without the GIL: syncs may take as long as the disk likes, and main.py's deadline must still fire.
        with nogil:
            run_pass(core, mono_ns, wall_ms)
            while True:
                queue = <Queue*> textmap_next(&core.queues, &cursor)
                if queue == NULL:
                    break
                if queue.offset_reserved != queue.next_offset:
                    queue.offset_reserved = queue.next_offset
                    queue_record_put(core, queue)
            # No lease is given out any more (see passes.pyx); a stream that is still to be opened takes one
            # id for itself.
            reservation_record_put(
                core, b"leases", core.next_lease_id + core.mailbox.capacity + COMMANDS_MARGIN)
            core.sync_wanted = True
            run_pass(core, mono_ns, wall_ms)
            commit_last(core)
            run_pass(core, mono_ns, wall_ms)
            while core.outgoing != NULL or core.revealing != NULL:     # no time for it in one pass
                run_pass(core, mono_ns, wall_ms)

    @property
    def stirs(self):
        """A number that stays the same while nobody asks for anything, consumes or holds a lease, and nothing
        comes due: what METRICS tells is then what it told, but for ages."""
        return self.core.counters.stirs

    def counters(self):
        """The core's own counts, for tests and telemetry."""
        return core_counters(self.core)

    cdef uint64_t look(self) noexcept nogil:
        return group_look(self.core)

    cdef Look looked(self, uint64_t look) noexcept nogil:
        return group_looked(self.core.shared.group, look)

    def log_reader(self, bytes request):
        """A reader for one ReadLogRequest; see readlog.LogReader."""
        return LogReader(self, request)

    def open_report(self):
        """What opening found; all zero after a clean stop of a sound store."""
        return opening_found(self.core)

    def wal_report(self):
        """What opening found in the write-ahead log; all zero after a clean stop."""
        return log_found(self.core)
