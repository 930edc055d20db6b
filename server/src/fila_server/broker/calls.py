"""What the edges talk to: hand a frame over, await its answer. Nothing here looks into a message.

    rpc, redis ──call/lease/open_stream──► Broker ──submit──► engine (compiled, no GIL)
                                             │ ▲                    │
                       frames of queues that │ │ futures, inboxes   │ one eventfd a batch of answers
                       have an on_enqueue    ▼ │                    ▼
                       script: hooks.route   `_on_wake` ◄───────── drain()

A call is one future under one token; a stream (stream.py) is one inbox under one token.
`_on_wake` runs once for everything the core finished since the last time, so the cost of
crossing the thread boundary is shared by all that was answered together.

Everything is bounded: calls by `outstanding_calls_max`, streams by what the core leaves
unwritten (two deliveries a consumer), the mailbox by its own capacity. At a bound a call
is refused at once; only what must not be lost (`post`) is kept and offered again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import structlog

from fila.v1.messages_pb2 import ItemStatus
from fila.v1.service_pb2 import LeaseRequest, LeaseResponse, Settle
from fila_server import commands, errors
from fila_server.broker.interfaces import Engine, EnqueueHooks, EventHandler, NoHooks, StagedFrame
from fila_server.broker.mirror import QueueMirror
from fila_server.broker.notices import Notice, report_lost
from fila_server.broker.pulls import PullWait
from fila_server.broker.speed import Speeds
from fila_server.broker.stream import Stream
from fila_server.broker.unwritten import PAGE_BYTES_MAX, Unwritten
from fila_server.hooks.stage import ParsedFrame

log = structlog.get_logger("fila_server.broker.calls")

OUTSTANDING_CALLS_MAX = 20_000
UNWRITTEN_BYTES_MAX = 256 * 1024 * 1024
OPENING_BYTES_MAX = 64 * 1024
"""Of a request that is kept for as long as its pull or stream lasts; such a one names a queue and little more."""
NOBODY = 0
"""The token of what is posted and whose answer nobody waits for."""
LOG_THREADS = 2
"""Pieces of ReadLog calls that are read at a time: reading old messages is not to crowd out new ones."""
LISTENED_EVERY_S = 0.1
"""How often the core is told that sockets are read; it counts a consumer's silence only while it is told."""
REPOST_DELAY_S = 0.002
"""How long to leave a full mailbox alone before offering again what it must take."""

DRAIN_TOLD_EVERY_S = 1.0
"""While calls in hand are finished at a stop, how many are left goes to the log so often."""

_ENQUEUES = range(commands.ENQUEUE, commands.ENQUEUE_ATOMIC + 1)


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
        self._streams: dict[int, Stream] = {}
        self._pulls: set[int] = set()
        # Commands the mailbox refused but must get: at most two WRITTEN and one
        # CONSUMER_CLOSE a stream, one CANCEL a lease, one DECIDE an event.
        self._unposted: deque[tuple[int, int, bytes]] = deque()
        self._draining = False
        self._log_threads = ThreadPoolExecutor(LOG_THREADS, thread_name_prefix="read-log")
        self._closers: set[Callable[[], object]] = set()
        self._listening: asyncio.Task[None] | None = None
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

    def listen(self) -> None:
        """Tell the core from now on that sockets are read. Call once clients can connect: until then, and while this
        loop or the mailbox is stuck, no consumer is taken for silent and no broken session for lost."""
        self._listening = self._loop.create_task(self._say_listened())

    async def _say_listened(self) -> None:
        while not self._draining:
            # What lay in the sockets is read in the turns of the loop that follow a pause, and the core adds no more
            # than a moment for it.
            with contextlib.suppress(errors.Overloaded):
                self._engine.submit(commands.LISTENED, NOBODY, b"")
            await asyncio.sleep(LISTENED_EVERY_S)

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

    async def drain(self, timeout_s: float) -> None:
        """Take nothing new, end streams and waiting pulls, and let what was accepted finish."""
        self._draining = True
        farewell = shutting_down()
        for stream in list(self._streams.values()):
            stream.end(farewell)
        ends_s = self._loop.time() + timeout_s
        parting = [told for close in list(self._closers) if asyncio.isfuture(told := close())]
        self.unwritten.close()
        for token in self._pulls:
            # A pull may wait for hours, and has nothing in hand that could be lost.
            pull = self._waiters.pop(token, None)
            if pull is not None and not pull.done():
                pull.set_exception(farewell)
                self.post(commands.CANCEL, token, b"")
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
            await asyncio.sleep(DRAIN_TOLD_EVERY_S)
            log.info(
                "broker.draining", outstanding=len(self._waiters), detail="calls in hand are finished first"
            )

    async def stop(self) -> None:
        """Close the core: it finishes, syncs and joins its threads. Safe to call once."""
        self._draining = True
        if self._listening is not None:
            self._listening.cancel()
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

    # --- calls ----------------------------------------------------------------------------

    @property
    def outstanding_count(self) -> int:
        """Calls that wait for an answer now, waiting pulls included; at most `outstanding_calls_max`."""
        return len(self._waiters)

    def call(self, kind: int, frame: bytes, caller: int | None = None) -> Awaitable[bytes]:
        """Submit one frame; the awaitable gives the reply's bytes or raises one of errors.py.

        `caller` is who sends it (access/door.py); None is the broker itself, or anybody while keys are off.
        """
        if kind in _ENQUEUES:
            if self._hooks.scripted:
                self._check_open()
                return self._routed(self._parse(kind, frame, caller))
        elif kind in self.mirror.kinds:
            return self.mirror.call(kind, frame)
        return self._call(kind, frame, caller)

    def stage(self, frame: bytes, caller: int | None, check: Callable[[str, str], None]) -> Awaitable[bytes]:
        """A Stage request. `check` is told its queue's name and its sink's first, and raises what refuses it."""
        self._check_open()
        parsed = cast("StagedFrame", self._parse(commands.STAGE, frame, caller))
        check(*parsed.staged())
        return self._routed(parsed)

    async def admit(self, kind: int, frame: bytes, caller: int | None = None) -> asyncio.Future[bytes]:
        """Submit an enqueue frame and return once it is in the mailbox, its answer still to come.

        A producer's stream needs the two apart: its frames must enter in order, hook or
        not, while their answers may be awaited together.
        """
        if not self._hooks.scripted:
            return self._call(kind, frame, caller)
        self._check_open()
        parsed = self._parse(kind, frame, caller)
        if self._hooks.concerns(parsed):
            await self._hooks.route(parsed)
        return self._submit_parsed(parsed)

    async def route(self, token: int, parsed: ParsedFrame) -> None:
        """Send a frame past its scripts and hand it over under `token`, whose answer is for another outbox.

        Raises Overloaded, after which the frame may be routed again.
        """
        self._check_open()
        if self._hooks.concerns(parsed):
            await self._hooks.route(parsed)
            self._check_open()
        self._engine.submit_parsed(token, parsed)

    async def lease(
        self,
        frame: bytes,
        caller: int | None = None,
        *,
        may_wait_for_room: bool = True,
        wait: PullWait | None = None,
    ) -> bytes:
        """A pull. It may wait in the core, so a caller that goes away is taken back out; `wait` ends it early.

        The answer is counted in `unwritten`; the caller says `unwritten.give(len(answer))` once it is
        written. Where there is no room for it its messages go back, and the pull waits for room as long
        as it meant to wait for messages, then raises Overloaded.
        """
        _check_opening(frame)
        ends_s = None
        while not self.unwritten.take(len(response := await self._pull(frame, caller, wait))):
            self.give_back(response)
            if ends_s is None:
                request = LeaseRequest.FromString(frame)
                ends_s = self._loop.time() + (request.wait_ms / 1000 if may_wait_for_room else 0)
            await self.unwritten.room(len(response), max(0.0, ends_s - self._loop.time()))
            request.wait_ms = max(0, int((ends_s - self._loop.time()) * 1000))
            frame = request.SerializeToString()
        return response

    async def _pull(self, frame: bytes, caller: int | None, wait: PullWait | None) -> bytes:
        token, waiter = self._submit(commands.LEASE, frame, caller)
        self._pulls.add(token)
        if wait is not None:
            wait.begins(lambda: self.post(commands.CANCEL, token, b"over"))
        try:
            return await waiter
        except asyncio.CancelledError:
            if self._waiters.pop(token, None) is not None:
                # Its place is free at once: the core answers a CANCEL with nothing. An answer that is on
                # its way already finds no waiter and is given back by `_on_wake`.
                self.post(commands.CANCEL, token, b"")
            elif waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.give_back(waiter.result())
            raise
        finally:
            self._pulls.discard(token)

    def give_back(self, response: bytes) -> None:
        """Return the messages of a LeaseResponse that nobody will read: pending again, no attempt counted."""
        self.give_back_leases(
            [message.metadata.lease_id for message in LeaseResponse.FromString(response).messages]
        )

    def give_back_leases(self, lease_ids: list[int]) -> None:
        """Return messages, in the order they were given: pending again, no attempt counted."""
        if lease_ids:
            # The last first: each finds its old place, in front of the one that was given before it.
            settle = Settle(lease_ids=lease_ids[::-1])
            self.post(commands.CANCEL, next(self._tokens), settle.SerializeToString())

    async def open_stream(self, kind: int, frame: bytes, caller: int | None = None) -> Stream:
        """Open a consumer; returns when the core has accepted it."""
        _check_opening(frame)
        token, waiter = self._submit(kind, frame, caller)
        # Registered before the answer is awaited: the first delivery may be in the same drain().
        stream = self._streams[token] = Stream(self, token, is_session=kind == commands.SESSION_OPEN)
        try:
            stream.opened = await waiter
        except asyncio.CancelledError:
            await stream.close()
            raise
        except errors.FilaServerError:
            self.forget_stream(token)
            raise
        return stream

    async def read_log(self, frame: bytes, peer: str = "") -> AsyncGenerator[bytes, None]:
        """The pieces of a ReadLog, each read in a thread that the loop can spare. Whoever stops reading closes it: a
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

    def submit_session(self, token: int, frame: bytes) -> None:
        """A later frame of a session. Raises Overloaded: its edge then stops reading for a while."""
        self._engine.submit(commands.SESSION, token, frame)

    def forget_stream(self, token: int) -> bool:
        """Drop a stream; False when it was dropped before."""
        return self._streams.pop(token, None) is not None

    # --- inside ---------------------------------------------------------------------------

    def _call(self, kind: int, frame: bytes, caller: int | None = None) -> asyncio.Future[bytes]:
        return self._submit(kind, frame, caller)[1]

    def _routed(self, parsed: ParsedFrame) -> Awaitable[bytes]:
        if self._hooks.scripted and self._hooks.concerns(parsed):
            return self._route_and_submit(parsed)
        return self._submit_parsed(parsed)

    async def _route_and_submit(self, parsed: ParsedFrame) -> bytes:
        await self._hooks.route(parsed)
        return await self._submit_parsed(parsed)

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

    def _submit(
        self, kind: int, frame: bytes, caller: int | None = None
    ) -> tuple[int, asyncio.Future[bytes]]:
        token, waiter = self._expect()
        try:
            if caller is None:
                self._engine.submit(kind, token, frame)
            else:
                self._engine.submit(kind, token, frame, caller, time.monotonic_ns())
        except BaseException:
            del self._waiters[token]
            raise
        return token, waiter

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
            raise shutting_down()

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
        waiters, streams = self._waiters, self._streams
        for token, reply_kind, status, payload in self._engine.drain():
            waiter = stream = None
            try:
                if reply_kind == commands.REPLY:
                    waiter = waiters.pop(token, None)
                    self._reply(token, waiter, status, payload)
                elif reply_kind == commands.LOST:
                    report_lost(token, payload)
                elif reply_kind == commands.NOTICE:
                    self._hear(Notice.of(payload))
                elif reply_kind == commands.EVENT:
                    self._handle_event(token, payload)
                elif (stream := streams.get(token)) is not None:
                    if reply_kind == commands.END:
                        stream.end(None if status == errors.OK else _error_of(status, payload))
                    else:
                        stream.push(payload, is_delivery=reply_kind == commands.DELIVERY)
            except Exception:
                # The outbox is empty by now: without this, everybody behind would wait for ever.
                log.exception("broker.answer_failed", token=token, reply_kind=reply_kind)
                _fail(waiter, stream)
        if self._draining and not waiters:
            self._idle.set()

    def _reply(self, token: int, waiter: asyncio.Future[bytes] | None, status: int, payload: bytes) -> None:
        if waiter is not None and not waiter.done():
            if status == errors.OK:
                waiter.set_result(payload)
            else:
                waiter.set_exception(_error_of(status, payload))
        # Only a pull leaves before its answer: what it was given is nobody's. One that was cancelled and whose task has
        # not run since will find that the answer was taken.
        elif (waiter is None or token in self._pulls) and status == errors.OK and payload:
            self.give_back(payload)

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


def _check_opening(frame: bytes) -> None:
    if len(frame) > OPENING_BYTES_MAX:
        raise errors.LimitExceeded("request", f"must be at most {OPENING_BYTES_MAX} bytes, got {len(frame)}")


def shutting_down() -> errors.Unavailable:
    """Return the error of everyone who comes while the server drains."""
    return errors.Unavailable("the server is shutting down; connect again in a moment")


def _fail(waiter: asyncio.Future[bytes] | None, stream: Stream | None) -> None:
    failure = errors.Internal("the server failed on this answer; its log says how")
    if waiter is not None and not waiter.done():
        waiter.set_exception(failure)
    if stream is not None:
        stream.end(failure)


def _error_of(status: int, payload: bytes) -> errors.FilaServerError:
    item = ItemStatus.FromString(payload)
    return errors.from_reply(status, item.message, item.reason)
