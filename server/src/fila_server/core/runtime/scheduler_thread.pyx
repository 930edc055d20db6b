"""The real clock: three threads that drive the core. Nothing below this file knows what time it is.

    scheduler    passes; sleeps on the mailbox until a command, a poke, or the moment the core asked for
    commit       syncs the write-ahead log whenever an epoch is wanted, then pokes the scheduler; of a group's
                 owner it waits for the log, and one more thread syncs each second, for which nobody waits
    reader       reads cold frames back

None of them holds the GIL while it runs.
"""

import os
import threading

from libc.stdint cimport int64_t, uint64_t

from fila_server import errors
from fila_server.core.runtime.commit cimport commit_pass, sync_took
from fila_server.core.runtime.confirming cimport (
    GROUP_OWNS, Group, group_confirm, group_is_full, group_sync,
)
from fila_server.core.runtime.engine cimport CoreEngine
from fila_server.core.runtime.passes cimport run_pass
from fila_server.core.runtime.store_copy cimport StoreCopy
from fila_server.core.storage.database cimport store_checkpoint
from fila_server.core.storage.reclaim cimport upkeep_start, upkeep_stop
from fila_server.core.storage.status cimport (
    STORE_FAILED, STORE_GONE, STORE_OK, StoreError, StoreFailure, failure_is_reported, failure_report,
)
from fila_server.core.storage.watch cimport Watch, watch_start, watch_stop
from fila_server.core.structures.atomics cimport atomic_load, flag_store
from fila_server.core.threads.mailbox cimport mailbox_poke, mailbox_sleep
from fila_server.core.threads.reader cimport loader_serve, loader_stop

cdef extern from *:
    """
    #include <errno.h>
    #include <linux/futex.h>
    #include <sys/prctl.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>
    static long long fila_now(clockid_t clock) {
        struct timespec t;
        clock_gettime(clock, &t);
        return t.tv_sec * 1000000000LL + t.tv_nsec;
    }
    static void fila_sleep(long long ns) {
        struct timespec t = { ns / 1000000000LL, ns % 1000000000LL };
        nanosleep(&t, 0);
    }
    /* Timers as exact as the kernel can make them: by default it may add 50 us to each. */
    static void fila_exact_timers(void) { prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0); }
    #define fila_seq_load(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
    #define fila_seq_store(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
    static void fila_futex_wait(int *word, int value, long long ns) {
        struct timespec t = { ns / 1000000000LL, ns % 1000000000LL };
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &t, 0, 0);
    }
    static void fila_futex_wake(int *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0); }
    """
    int CLOCK_MONOTONIC
    int CLOCK_REALTIME
    long long fila_now(int clock) nogil
    void fila_exact_timers() nogil
    void fila_sleep(long long ns) nogil
    int fila_seq_load(int* p) nogil
    void fila_seq_store(int* p, int v) nogil
    void fila_futex_wait(int* word, int value, long long ns) nogil
    void fila_futex_wake(int* word) nogil

cdef enum:
    CONFIRM_WAIT_MS = 100               # for a report, which wakes it
    SYNC_LOOK_NS = 50000000
    COMMIT_PARK_NS = 1000000000         # it is woken when an epoch is wanted, or something has failed
    LINGER_NS = 300000                  # about a sync; a slow disk must not hold up what needs none
    LINGER_COMMANDS = 32
    SYNC_GAP_NS = 500000                # syncs closer together than this, on average, ...
    SYNC_SPACING_NS = 1000000           # ... wait until the last began so long ago


def _give_up(int status, str why):
    """Nothing can be promised any more: what was written may be gone, and a
    second try could lie. Stop as a crash would."""
    if status == STORE_GONE:
        line = f"fila-server: {why}\n"
    else:
        line = (
            f"fila-server: the disk refused to write or sync ({why}). Check the disk, then start again: "
            f"what was answered before is recovered\n"
        )
    os.write(2, line.encode())
    os._exit(1)


cdef class Engine(CoreEngine):
    """The core with its threads: what main.py opens and the broker talks to."""

    cdef int stopping_threads
    cdef int commit_word                # futex: raised when there is something to sync
    cdef object threads
    cdef int64_t idle_ns
    cdef bint upkeep_running
    cdef readonly object term_over      # an Event: it owns no more, and the process is to start anew

    def __init__(
            self, str data_dir, dict settings, *, int64_t mono_ns, int64_t wall_ns, uint64_t seed,
            StoreCopy copy=None):
        CoreEngine.__init__(self, data_dir, settings, mono_ns=mono_ns, wall_ns=wall_ns, seed=seed, copy=copy)
        self.threads = []
        self.term_over = threading.Event()
        self.idle_ns = settings.get("scheduler.idle_timeout_ms", 500) * 1000000

    def start(self):
        """Start the threads; from here on only submit, parse and drain may be called."""
        cdef Watch* watch = self.core.shared.watch
        targets = [("scheduler", self._schedule), ("commit", self._commit), ("reader", self._read)]
        if self.core.shared.group != NULL:
            targets[1:2] = [("commit", self._confirm), ("sync", self._sync)]
        for name, target in targets:
            thread = threading.Thread(target=target, name=name, daemon=True)
            thread.start()
            self.threads.append(thread)
        self.upkeep_running = upkeep_start(self.core.shared.upkeep, self.core.store, &watch.disk) == 0
        watch_start(watch)

    def _schedule(self):
        cdef int64_t next_ns, now_ns, wait_ns, wall_ms
        cdef uint64_t wanted = 0
        cdef Group* group = self.core.shared.group
        with nogil:
            fila_exact_timers()
            while not fila_seq_load(&self.stopping_threads):
                # In this order, nothing ends before the moment that was told, wherever it is held up.
                wall_ms = fila_now(CLOCK_REALTIME) // 1000000
                now_ns = fila_now(CLOCK_MONOTONIC)
                next_ns = run_pass(self.core, now_ns, wall_ms)
                if (
                    atomic_load(&self.core.shared.wanted) != wanted
                    or failure_is_reported(self.core.shared.failure)    # by a thread that cannot wake it
                ):
                    wanted = atomic_load(&self.core.shared.wanted)
                    fila_seq_store(&self.commit_word, 1)
                    fila_futex_wake(&self.commit_word)
                if next_ns <= now_ns:
                    continue
                wait_ns = next_ns - fila_now(CLOCK_MONOTONIC)
                if wait_ns > self.idle_ns:
                    wait_ns = self.idle_ns
                if self.core.unsynced == NULL:
                    mailbox_sleep(self.core.mailbox, wait_ns, 1)
                elif group != NULL and not mailbox_sleep(
                        self.core.mailbox, wait_ns, LINGER_COMMANDS if group_is_full(group) else 1):
                    continue            # a log takes many times LINGER_NS: that often nothing is found
                else:
                    # A sync is under way and its end pokes. What comes meanwhile would wait for the
                    # next one anyway: taken in together it costs one wake-up, not one each.
                    mailbox_sleep(
                        self.core.mailbox, wait_ns if wait_ns < LINGER_NS else LINGER_NS, LINGER_COMMANDS)

    def _commit(self):
        cdef int64_t began_ns = 0
        cdef int64_t now_ns
        cdef int64_t gap_ns = 100 * SYNC_SPACING_NS     # between syncs, on average
        cdef StoreFailure* failure = self.core.shared.failure
        with nogil:
            while not fila_seq_load(&self.stopping_threads):
                fila_seq_store(&self.commit_word, 0)
                now_ns = fila_now(CLOCK_MONOTONIC)
                if gap_ns < SYNC_GAP_NS and now_ns - began_ns < SYNC_SPACING_NS:
                    # More than a few thousand syncs a second: a little patience lets each serve more callers.
                    fila_sleep(SYNC_SPACING_NS - (now_ns - began_ns))
                    now_ns = fila_now(CLOCK_MONOTONIC)
                if failure_is_reported(failure):
                    with gil:
                        _give_up(failure.error.status, self.failure())
                if commit_pass(self.core):
                    gap_ns = (gap_ns * 15 + min(now_ns - began_ns, <int64_t> 10 * SYNC_SPACING_NS)) // 16
                    began_ns = now_ns
                    sync_took(self.core, fila_now(CLOCK_MONOTONIC) - began_ns)
                    mailbox_poke(self.core.mailbox)
                elif not failure_is_reported(self.core.shared.failure):
                    fila_futex_wait(&self.commit_word, 0, COMMIT_PARK_NS)

    def _confirm(self):
        """As _commit, of a group's owner."""
        cdef StoreFailure* failure = self.core.shared.failure
        cdef Group* group = self.core.shared.group
        with nogil:
            while not fila_seq_load(&self.stopping_threads) and atomic_load(&group.state) == GROUP_OWNS:
                if failure_is_reported(failure):
                    with gil:
                        _give_up(failure.error.status, self.failure())
                if group_confirm(self.core, CONFIRM_WAIT_MS):
                    mailbox_poke(self.core.mailbox)
                    sync_took(self.core, fila_now(CLOCK_MONOTONIC) - group.waited_ns)
        if group.state != GROUP_OWNS:
            self.term_over.set()

    def _sync(self):
        """What a power cut takes back is in the log, and comes back from there."""
        cdef StoreError error
        cdef int64_t waited_ns = 0
        with nogil:
            while not fila_seq_load(&self.stopping_threads):
                fila_sleep(SYNC_LOOK_NS)
                waited_ns += SYNC_LOOK_NS
                if waited_ns >= COMMIT_PARK_NS:
                    waited_ns = 0
                    if group_sync(self.core.shared.group, &error) == STORE_FAILED:
                        failure_report(self.core.shared.failure, &error)

    def _read(self):
        with nogil:
            while not fila_seq_load(&self.stopping_threads):
                loader_serve(self.core.loader, self.core.store, self.core.mailbox, True)

    def checkpoint(self, str path):
        """Make all of the store, as it is at one moment, a directory of its own; `path` must not exist.

        For any thread: it blocks on the disk, without the GIL, and a close waits for it. Raises
        errors.StoreError.
        """
        cdef bytes encoded = os.fsencode(path)
        cdef const char* at = encoded
        cdef StoreError error
        cdef int status
        if not self.is_open:
            raise errors.StoreError("the server has stopped")
        self.readers += 1               # under the GIL, as is closing's look at it
        with nogil:
            status = store_checkpoint(self.core.store, at, &error)
        with self.readers_changed:
            self.readers -= 1
            self.readers_changed.notify_all()
        if status != STORE_OK:
            raise errors.StoreError(error.text.decode("utf-8", "replace"))

    def stop(self):
        """Finish what is in hand, sync, end the threads, close the store. The process is to end next: memory
        is left to that. May take as long as the disk does, without the GIL."""
        if not self.is_open:
            return
        flag_store(&self.core.shared.stopping, True)
        fila_seq_store(&self.stopping_threads, 1)
        mailbox_poke(self.core.mailbox)
        loader_stop(self.core.loader)
        fila_seq_store(&self.commit_word, 1)
        fila_futex_wake(&self.commit_word)
        for thread in self.threads:
            thread.join()           # no deadline: with a thread still in it the core could not be closed
        with nogil:
            watch_stop(self.core.shared.watch)
            if self.upkeep_running:
                upkeep_stop(self.core.shared.upkeep)
        self.stop_cleanly(fila_now(CLOCK_MONOTONIC), fila_now(CLOCK_REALTIME))
        self._leave()
