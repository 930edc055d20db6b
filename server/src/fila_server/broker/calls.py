"""What Python asks of the core: hand a frame over, await its answer. Nothing here looks into a message.

    handlers, operations ──call/stage──► Broker ──submit──► engine (compiled, no GIL)
                                           │ ▲                  │
                     frames of queues that │ │ futures          │ one eventfd a batch of answers
                     have an on_enqueue    ▼ │                  ▼
                     script: hooks.route   `_on_wake` ◄─────── drain()

Messages do not pass here: the edge's threads hand them to the core themselves. What they leave to Python is admin's
calls, Redis commands that no message passes, and frames for scripts (`route`).

A call is one future under one token. `_on_wake` runs once for everything the core finished since the last time, so the
cost of crossing the thread boundary is shared by all that was answered together.

Everything is bounded: calls by `outstanding_calls_max`, the mailbox by its own capacity. At a bound a call is refused
at once; only what must not be lost (`post`) is kept and offered again.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import structlog

from fila.v1.messages_pb2 import ItemStatus
from fila_server import errors
from fila_server.broker.interfaces import Engine, EnqueueHooks, EventHandler, NoHooks, StagedFrame
from fila_server.broker.mirror import QueueMirror
from fila_server.broker.notices import Notice, report_lost
from fila_server.broker.speed import Speeds
from fila_server.broker.unwritten import PAGE_BYTES_MAX, Unwritten
from fila_server.core.protocol import commands
from fila_server.hooks.stage import ParsedFrame

log = structlog.get_logger("fila_server.broker.calls")

OUTSTANDING_CALLS_MAX = 20_000
UNWRITTEN_BYTES_MAX = 256 * 1024 * 1024
NOBODY = 0
"""The token of what is posted and whose answer nobody waits for."""
LOG_THREADS = 2
"""Pieces of ReadLog calls that are read at a time: reading old messages is not to crowd out new ones."""
REPOST_DELAY_S = 0.002
"""How long to leave a full mailbox alone before offering again what it must take."""

DRAIN_REPORTED_EVERY_S = 1.0
"""While calls in hand are finished at a stop, how many are left goes to the log so often."""


class Broker:
    """Owns the engine's seam on the asyncio side. Every method belongs to the loop's thread."""

    def __init__(
        self,
        engine: Engine,
        *,
        outstanding_calls_max: int = OUTSTANDING_CALLS_MAX,
        unwritten_bytes_max: int = UNWRITTEN_BYTES_MAX,
    ) -> None:
        self._engine = engine
        self._outstanding_calls_max = outstanding_calls_max
        self._hooks: EnqueueHooks = NoHooks()
        self._on_event: EventHandler | None = None
        self._tokens = itertools.count(1)
        self._waiters: dict[int, asyncio.Future[bytes]] = {}
        # Commands the mailbox refused but must get: one DECIDE an event, and what operations keep of themselves.
        self._unposted: deque[tuple[int, int, bytes]] = deque()
        self._draining = False
        self._refusal = shutting_down
        self._log_threads = ThreadPoolExecutor(LOG_THREADS, thread_name_prefix="read-log")
        self._closers: set[Callable[[], object]] = set()
        self._looking: set[asyncio.Task[None]] = set()
        self._idle: asyncio.Event = asyncio.Event()
        self.unwritten = Unwritten(unwritten_bytes_max)
        self.speeds = Speeds()
        self.mirror = QueueMirror(self._call)
        self.queue_configs = self.mirror.queue_configs
        self.runtime_config = self.mirror.runtime_config

    # --- life -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the core's threads, listen for their answers, and load the mirror."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._engine.wake_fd, self._on_wake)
        self._engine.start()
        await self.mirror.load()

    def use_hooks(self, hooks: EnqueueHooks, on_event: EventHandler | None = None) -> None:
        """Put the hooks stage in. Call before start(); without it scripts are refused."""
        self._hooks = hooks
        self._on_event = on_event

    @property
    def hooks(self) -> EnqueueHooks:
        """The stage in use."""
        return self._hooks

    @property
    def is_draining(self) -> bool:
        """True once nothing new is taken."""
        return self._draining

    def at_drain(self, close: Callable[[], object]) -> Callable[[], None]:
        """Call `close` when draining begins, and wait for what it gives back if that is a future; the returned function
        takes that back."""
        self._closers.add(close)
        return lambda: self._closers.discard(close)

    async def drain(self, timeout_s: float, refusal: Callable[[], errors.Unavailable] | None = None) -> None:
        """Take nothing new, end what waits for something, and let what was accepted finish. `refusal` makes what others
        are told; None: that the server stops."""
        self._draining, self._refusal = True, refusal or self._refusal
        ends_s = self._loop.time() + timeout_s
        parting = [reported for close in list(self._closers) if asyncio.isfuture(reported := close())]
        self.unwritten.close()
        if self._waiters:
            self._idle.clear()
            telling = self._loop.create_task(self._say_what_is_left())
            try:
                async with asyncio.timeout(timeout_s):
                    await self._idle.wait()
            except TimeoutError:
                log.warning("broker.drain_timed_out", outstanding=len(self._waiters))
            finally:
                telling.cancel()
        if parting:
            await asyncio.wait(parting, timeout=max(0.0, ends_s - self._loop.time()))

    async def _say_what_is_left(self) -> None:
        while True:
            await asyncio.sleep(DRAIN_REPORTED_EVERY_S)
            log.info(
                "broker.draining", outstanding=len(self._waiters), detail="calls in hand are finished first"
            )

    async def stop(self) -> None:
        """Close the core: it finishes, syncs and joins its threads. Safe to call once."""
        self._draining = True
        self._loop.remove_reader(self._engine.wake_fd)
        # Joining threads blocks; a loop that stands still could not answer health checks.
        await self._loop.run_in_executor(None, self._close)
        gone = errors.Unavailable("the server has stopped")
        for waiter in self._waiters.values():
            if not waiter.done():
                waiter.set_exception(gone)
        self._waiters.clear()

    def _close(self) -> None:
        # A caller that went away leaves its read running, and the store must outlive it.
        self._log_threads.shutdown(wait=True)
        self._engine.stop()

    @property
    def stirs(self) -> int:
        """A number that stays the same while nothing changes of what METRICS tells, but for ages, and nobody consumes
        or holds a lease. Who looks again and again need not look while it stands still."""
        return self._engine.stirs

    # --- calls ----------------------------------------------------------------------------

    @property
    def outstanding_count(self) -> int:
        """Calls that wait for an answer now; at most `outstanding_calls_max`."""
        return len(self._waiters)

    def call(self, kind: int, frame: bytes) -> Awaitable[bytes]:
        """Submit one frame; the awaitable gives the reply's bytes or raises one of errors.py."""
        if kind in self.mirror.kinds:
            return self.mirror.call(kind, frame)
        return self._call(kind, frame)

    async def stage(self, frame: bytes, caller: int | None, check: Callable[[str, str], None]) -> bytes:
        """A Stage request of `caller` (access/admission.py; None while keys are off). `check` gets its queue's name and
        its sink's first, and raises what refuses it."""
        self._check_open()
        parsed = cast("StagedFrame", self._parse(commands.STAGE, frame, caller))
        check(*parsed.staged())
        if self._hooks.scripted and self._hooks.concerns(parsed):
            await self._hooks.route(parsed)
        return await self._submit_parsed(parsed)

    async def routed(self, kind: int, frame: bytes) -> ParsedFrame:
        """A frame of messages that the broker itself enqueues, past its scripts. `send` takes it."""
        self._check_open()
        parsed = self._parse(kind, frame, None)
        if self._hooks.concerns(parsed):
            await self._hooks.route(parsed)
        return parsed

    def check_frame(self, kind: int, frame: bytes) -> None:
        """Raise what the parse of a frame of messages finds wrong with it."""
        self._parse(kind, frame, None)

    def send(self, parsed: ParsedFrame) -> Awaitable[bytes]:
        """Hand over what `routed` gave; the awaitable is as `call`'s."""
        return self._submit_parsed(parsed)

    async def route(self, token: int, parsed: ParsedFrame) -> None:
        """Send a frame past its scripts and hand it over under `token`, whose answer is for another outbox.

        Raises Overloaded, after which the frame may be routed again. While the server drains it raises shutting_down()
        whatever other calls are told: of earlier frames of its stream nobody knows whether they were taken.
        """
        if self._draining:
            raise shutting_down()
        if self._hooks.concerns(parsed):
            await self._hooks.route(parsed)
            if self._draining:
                raise shutting_down()
        self._engine.submit_parsed(token, parsed)

    async def read_log(self, frame: bytes, peer: str = "") -> AsyncGenerator[bytes, None]:
        """The pieces of a ReadLog, each read in a thread that the loop can spare. A caller that stops closes it: a
        piece is counted in `unwritten`, in the share of the connection `peer`, until the next one is asked for."""
        self._check_open()
        reader = self._engine.log_reader(frame)
        self.unwritten.set_page_aside(peer)
        while True:
            size = 0
            try:
                piece = await self._loop.run_in_executor(self._log_threads, reader.read)
                size = len(piece or b"")
            finally:
                self.unwritten.page_is(size, peer)
            if piece is None:
                return
            try:
                yield piece
            finally:
                self.unwritten.give(size, peer)
            self._check_open()
            while not self.unwritten.take(PAGE_BYTES_MAX, peer):
                await self.unwritten.room(PAGE_BYTES_MAX, peer=peer)
                self._check_open()

    def post(self, kind: int, token: int, frame: bytes) -> None:
        """Submit what has no answer and must not be lost, even when the mailbox is full just now."""
        if self._unposted:
            self._unposted.append((kind, token, frame))
            return
        try:
            self._engine.submit(kind, token, frame)
        except errors.Overloaded:
            self._unposted.append((kind, token, frame))
            self._loop.call_later(REPOST_DELAY_S, self._repost)

    # --- inside ---------------------------------------------------------------------------

    def _call(self, kind: int, frame: bytes) -> asyncio.Future[bytes]:
        token, waiter = self._expect()
        try:
            self._engine.submit(kind, token, frame)
        except BaseException:
            del self._waiters[token]
            raise
        return waiter

    def _submit_parsed(self, parsed: ParsedFrame) -> asyncio.Future[bytes]:
        token, waiter = self._expect()
        try:
            self._engine.submit_parsed(token, parsed)
        except BaseException:
            del self._waiters[token]
            raise
        return waiter

    def _parse(self, kind: int, frame: bytes, caller: int | None) -> ParsedFrame:
        if caller is None:
            return self._engine.parse(kind, frame)
        return self._engine.parse(kind, frame, caller, time.monotonic_ns())

    def _expect(self) -> tuple[int, asyncio.Future[bytes]]:
        self._check_open()
        if len(self._waiters) >= self._outstanding_calls_max:
            raise errors.Overloaded(f"{self._outstanding_calls_max} calls are already waiting for an answer")
        token = next(self._tokens)
        waiter: asyncio.Future[bytes] = self._loop.create_future()
        self._waiters[token] = waiter
        return token, waiter

    def _check_open(self) -> None:
        if self._draining:
            raise self._refusal()

    def _repost(self) -> None:
        while self._unposted:
            kind, token, frame = self._unposted[0]
            try:
                self._engine.submit(kind, token, frame)
            except errors.Overloaded:
                self._loop.call_later(REPOST_DELAY_S, self._repost)
                return
            self._unposted.popleft()

    def _on_wake(self) -> None:
        """Hand out everything the core has finished since the last wake-up."""
        for token, reply_kind, status, payload in self._engine.drain():
            waiter = None
            try:
                if reply_kind == commands.REPLY:
                    waiter = self._waiters.pop(token, None)
                    if waiter is not None and not waiter.done():
                        _answer(waiter, status, payload)
                elif reply_kind == commands.LOST:
                    report_lost(token, payload)
                elif reply_kind == commands.NOTICE:
                    self._hear(Notice.of(payload))
                elif reply_kind == commands.EVENT:
                    self._handle_event(token, payload)
            except Exception:
                # The outbox is empty by now: without this, everybody behind would wait for ever.
                log.exception("broker.answer_failed", token=token, reply_kind=reply_kind)
                if waiter is not None and not waiter.done():
                    waiter.set_exception(
                        errors.Internal("the server failed on this answer; its log says how")
                    )
        if self._draining and not self._waiters:
            self._idle.set()

    def _hear(self, notice: Notice) -> None:
        notice.log()
        if notice.ends_something:
            looking = self._loop.create_task(self.mirror.look_again(notice.queue))
            self._looking.add(looking)
            looking.add_done_callback(self._looking.discard)

    def _handle_event(self, number: int, payload: bytes) -> None:
        if self._on_event is None:
            log.error("event.unhandled", number=number)
            return
        self._on_event(number, payload)


def shutting_down() -> errors.Unavailable:
    """Return the error of everyone who comes while the server drains."""
    return errors.Unavailable("the server is shutting down; connect again in a moment")


def _answer(waiter: asyncio.Future[bytes], status: int, payload: bytes) -> None:
    if status == errors.OK:
        waiter.set_result(payload)
        return
    item = ItemStatus.FromString(payload)
    waiter.set_exception(errors.from_reply(status, item.message, item.reason))
