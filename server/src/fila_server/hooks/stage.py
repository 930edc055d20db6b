"""All queues' scripts, between the edge and the mailbox. What the broker talks to.

    edge ──parsed frame──► route ──► consecutive messages of a queue, one crossing into Lua
                             │         ├─ Routing: written into the frame
                             │         └─ HookFailure: nothing written, so the declarative policy applies,
                             │            or (hook_fallback = hold) the message waits here
                             ▼
    core ──failed message──► decide_failure ──► Retry | DeadLetter | None: the policy decides

It runs on the I/O loop's thread and lets others run after 5 ms, however many frames wait (slices.py).
A script never fails an enqueue; only a stage whose waiting room is full refuses one.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import structlog

from fila_server import errors
from fila_server.events import emit
from fila_server.hooks.breaker import CircuitBreaker
from fila_server.hooks.counters import HookCounters, HookStatus
from fila_server.hooks.notes import Notebook, read_notes
from fila_server.hooks.on_enqueue import CROSSING_BYTES_MAX, MESSAGES_A_CROSSING_MAX, Answers, OnEnqueue
from fila_server.hooks.on_failure import DeadLetter, FailedMessage, OnFailure, Retry
from fila_server.hooks.packed import first_headers, shown_headers
from fila_server.hooks.sandbox import (
    CONFIG_VALUE_BYTES_MAX,
    HookFailure,
    HookLimits,
    Sandbox,
    ScriptRefused,
    new_runtime_config,
)
from fila_server.hooks.slices import Slices

log = structlog.get_logger("fila_server.hooks")

REPORT_EVERY_NS = 10_000_000_000
"""Of a hook's failures at most one so often goes to the log; all are counted."""

HELD_MESSAGES_MAX = 10_000
HELD_BYTES_MAX = 64 * 1024 * 1024
"""Messages, and bytes of the frames they came in, that may wait for a circuit to close, over all queues."""

FALLBACK_POLICY = "policy"
FALLBACK_HOLD = "hold"


class ParsedFrame(Protocol):
    """A frame of messages the core has parsed, waiting for its routing (core/requests/parsed_frame.pyx)."""

    def queues(self) -> set[bytes]: ...
    def unrefused(self) -> Sequence[int]: ...
    def queue(self, i: int) -> bytes: ...
    def frame_bytes(self) -> int: ...
    def pack(
        self, indices: Sequence[int], at: int, count_max: int, bytes_max: int, fairness_header: bytes = b""
    ) -> tuple[int, bytes]: ...
    def route(
        self, indices: Sequence[int], at: int, count: int, routings: bytes, start: int
    ) -> tuple[int, str | None, int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    threshold: int = 3
    cooldown_ms: int = 10_000


Hook = TypeVar("Hook", OnEnqueue, OnFailure)


@dataclass(slots=True)
class _Guarded(Generic[Hook]):
    """A script with its circuit breaker and its counters; compiled when it is first called."""

    queue: str
    name: str
    script: bytes
    breaker: CircuitBreaker
    compile: Callable[[], Hook]
    counters: HookCounters = field(default_factory=HookCounters)
    hook: Hook | None = None
    reported_ns: int = -REPORT_EVERY_NS
    notebook: Notebook = field(default_factory=Notebook)
    open_circuits: set[tuple[str, str]] = field(default_factory=set)
    """The stage's: (queue, script) of each whose circuit is open."""

    def ready(self) -> Hook | HookFailure:
        if self.hook is None:
            try:
                self.hook = self.compile()
            except ScriptRefused as refusal:
                return HookFailure("error", str(refusal))
        return self.hook

    def record_failure(self, failure: HookFailure, now_ns: int, headers: Mapping[str, str]) -> None:
        counters = self.counters
        counters.errors += 1
        counters.last_error = failure.text
        counters.last_error_ms = time.time_ns() // 1_000_000
        counters.last_error_headers = dict(headers)
        if now_ns - self.reported_ns >= REPORT_EVERY_NS:
            self.reported_ns = now_ns
            emit(
                "hook.failed",
                queue=self.queue,
                level="warning",
                hook=self.name,
                error=failure.text,
                errors=counters.errors,
                headers=dict(headers),
            )
        was_open = self.breaker.is_open
        self.breaker.record_failure(now_ns)
        if self.breaker.is_open and not was_open:
            self.open_circuits.add((self.queue, self.name))
            emit("hook.circuit_opened", queue=self.queue, level="warning", hook=self.name, error=failure.text)

    def record_notes(self, packed: bytes, now_ns: int) -> None:
        """Write what the script told with fila.log, and name fields that it returns in vain, once each."""
        lines, missed, fields = self.notebook.take(read_notes(packed), self.counters, now_ns)
        for line in lines:
            log.info(
                "hook.log",
                queue=self.queue,
                hook=self.name,
                line=line,
                **({"missed": missed} if missed else {}),
            )
            missed = 0
        for name in fields:
            log.warning(
                "hook.field_ignored",
                queue=self.queue,
                hook=self.name,
                field=name,
                detail="the script returns a field that nobody reads; see docs/lua-patterns.md for those that are",
            )

    def record_success(self) -> bool:
        """Return whether this closed the circuit."""
        closed = self.breaker.record_success()
        if closed:
            self.open_circuits.discard((self.queue, self.name))
            emit("hook.circuit_closed", queue=self.queue, hook=self.name)
        return closed


class HookStage:
    """Owns every script. All methods belong to the loop's thread."""

    def __init__(
        self,
        *,
        now_ns: Callable[[], int],  # called from within Lua, so best a function in C: time.monotonic_ns
        seed: int,
        limits: HookLimits | None = None,
        breaker: BreakerSettings | None = None,
        held_messages_max: int = HELD_MESSAGES_MAX,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._now_ns = now_ns
        self._random = random.Random(seed)  # noqa: S311  (jitter, not secrets)
        self._limits = limits or HookLimits()
        self._breaker_settings = breaker or BreakerSettings()
        self._held_messages_max = held_messages_max
        self._sleep = sleep
        self._config = new_runtime_config()
        self._on_enqueue: dict[bytes, _Guarded[OnEnqueue]] = {}
        self._on_failure: dict[bytes, _Guarded[OnFailure]] = {}
        self._holding: set[bytes] = set()
        self.open_circuits: set[tuple[str, str]] = set()
        """(queue, script) of each that is not called now, because it fails."""
        self._fairness_headers: dict[bytes, bytes] = {}
        self._held_count = 0
        self._held_bytes = 0
        self._slices = Slices()
        self._is_closing = False
        self._retry_held = asyncio.Event()

    # --- what admins set ------------------------------------------------------------------

    @property
    def scripted(self) -> bool:
        """True while any queue has an on_enqueue script; frames skip the stage otherwise."""
        return bool(self._on_enqueue)

    def concerns(self, parsed: ParsedFrame) -> bool:
        """True when a message of the frame goes to a queue with an on_enqueue script."""
        return not self._on_enqueue.keys().isdisjoint(parsed.queues())

    @property
    def limits(self) -> HookLimits:
        """What one call of a script may take."""
        return self._limits

    def check_scripts(self, on_enqueue_script: str, on_failure_script: str) -> None:
        """Raise errors.Invalid unless each script that is given compiles and defines its function."""
        for function_name, script in (("on_enqueue", on_enqueue_script), ("on_failure", on_failure_script)):
            if not script:
                continue
            try:
                Sandbox(
                    script.encode(),
                    function_name,
                    limits=self._limits,
                    config=self._config,
                    now_ns=self._now_ns,
                    seed=0,
                )
            except ScriptRefused as refusal:
                raise errors.Invalid(f"config.{function_name}_script", f"is refused: {refusal}") from None

    def set_queue(
        self,
        queue: str,
        on_enqueue_script: str = "",
        on_failure_script: str = "",
        fallback: str = FALLBACK_POLICY,
        fairness_header: str = "",
    ) -> None:
        """Take over a queue's scripts ("" = none). One that is unchanged keeps its state, circuit and counters."""
        name = queue.encode()
        self._set(self._on_enqueue, OnEnqueue, name, on_enqueue_script.encode())
        self._set(self._on_failure, OnFailure, name, on_failure_script.encode())
        # Where scripts read the fairness key from: a tenant's message says its tenant there.
        if fairness_header:
            self._fairness_headers[name] = fairness_header.encode()
        else:
            self._fairness_headers.pop(name, None)
        if fallback == FALLBACK_HOLD:
            self._holding.add(name)
        else:
            self._holding.discard(name)
        self.wake_held()

    def remove_queue(self, queue: str) -> None:
        self.set_queue(queue)

    def set_config(self, config_key: str | bytes, value: str | bytes) -> None:
        """Make a config value visible to scripts; an empty one removes it."""
        self._config.set(_bytes(config_key), _config_value(value))

    def _set(self, hooks: dict[bytes, _Guarded[Hook]], kind: type[Hook], queue: bytes, script: bytes) -> None:
        hook = "on_enqueue" if hooks is self._on_enqueue else "on_failure"
        known = hooks.get(queue)
        if known is not None and known.script == script:
            return
        self.open_circuits.discard((queue.decode(), hook))
        if not script:
            hooks.pop(queue, None)
            return
        limits, config, now_ns, seed = self._limits, self._config, self._now_ns, self._random.getrandbits(62)
        hooks[queue] = _Guarded(
            queue.decode(),
            hook,
            script,
            CircuitBreaker(
                threshold=self._breaker_settings.threshold, cooldown_ms=self._breaker_settings.cooldown_ms
            ),
            lambda: kind(script, limits=limits, config=config, now_ns=now_ns, seed=seed),
            counters=known.counters if known is not None else HookCounters(),
            open_circuits=self.open_circuits,
        )

    # --- on_enqueue -----------------------------------------------------------------------

    async def route(self, parsed: ParsedFrame) -> None:
        """Route every message of the frame; returns when none has to wait any more.

        Raises errors.Overloaded when messages would have to wait and the waiting room is full, and
        errors.Unavailable when the stage closes while they wait.
        """
        held = await self.try_route(parsed)
        if not held:
            return
        waiting = len(held)
        # The whole frame stays in memory for as long as one of its messages waits.
        waiting_bytes = parsed.frame_bytes()
        self._check_room(waiting, waiting_bytes)
        self._held_count += waiting
        self._held_bytes += waiting_bytes
        try:
            while held:
                if self._is_closing:
                    raise errors.Unavailable("the server is shutting down; connect again in a moment")
                await self._wait(parsed, held)
                held = await self._route_some(parsed, held)
                self._held_count -= waiting - len(held)
                waiting = len(held)
        finally:
            self._held_count -= waiting
            self._held_bytes -= waiting_bytes

    def _check_room(self, count: int, frame_bytes: int) -> None:
        if self._held_count + count > self._held_messages_max:
            full = f"{self._held_count} messages"
        elif self._held_bytes + frame_bytes > HELD_BYTES_MAX:
            full = f"{self._held_bytes} bytes of messages"
        else:
            return
        raise errors.HooksFull(
            f"{full} already wait for on_enqueue scripts that fail; "
            "repair the script, or set hook_fallback to policy"
        )

    async def try_route(self, parsed: ParsedFrame) -> list[int]:
        """Route what can be routed now; return the messages that have to wait."""
        held = await self._route_some(parsed, parsed.unrefused())
        for i in held:
            entry = self._on_enqueue.get(parsed.queue(i))
            if entry is not None:
                entry.counters.held += 1
        return held

    def wake_held(self) -> None:
        """Let everything that waits try again now."""
        self._retry_held.set()
        self._retry_held = asyncio.Event()

    def close(self) -> None:
        """Refuse what waits now or would wait later: the server stops."""
        self._is_closing = True
        self.wake_held()

    @property
    def held_count(self) -> int:
        return self._held_count

    async def _route_some(self, parsed: ParsedFrame, indices: Sequence[int]) -> list[int]:
        held: list[int] = []
        at = 0
        while at < len(indices):
            queue = parsed.queue(indices[at])
            if queue not in self._on_enqueue:
                at += 1
                continue
            await self._slices.may_begin(queue)
            began_ns = self._now_ns()
            try:
                # Looked up again: its script may have been taken away while it waited.
                entry = self._on_enqueue.get(queue)
                at += self._route_crossing(entry, queue, parsed, indices, at, held) if entry else 1
            finally:
                self._slices.ended(self._now_ns() - began_ns)
        return held

    def _route_crossing(
        self,
        entry: _Guarded[OnEnqueue],
        queue: bytes,
        parsed: ParsedFrame,
        indices: Sequence[int],
        at: int,
        held: list[int],
    ) -> int:
        """Route messages of `queue` from indices[at] on; return how many are done with, at least 1."""
        now_ns = self._now_ns()
        if not entry.breaker.admits_calls(now_ns):
            self._fall_back(entry, queue, indices[at], held)
            return 1
        hook = entry.ready()
        if isinstance(hook, HookFailure):
            answers = Answers(0, b"", hook, 0)
        else:
            count, messages = parsed.pack(
                indices,
                at,
                MESSAGES_A_CROSSING_MAX,
                CROSSING_BYTES_MAX,
                self._fairness_headers.get(queue, b""),
            )
            answers = hook.route(queue, count, messages)
        entry.counters.clamped_weights += answers.clamped_weight_count
        ended_ns = self._now_ns()
        if answers.notes:
            entry.record_notes(answers.notes, ended_ns)
        done = read = 0
        while True:
            taken, problem, read = parsed.route(
                indices, at + done, answers.answered - done, answers.routings, read
            )
            done += taken
            if taken and entry.record_success():
                self.wake_held()
            failure = answers.failure if problem is None else HookFailure("error", problem)
            if failure is not None:
                entry.record_failure(failure, ended_ns, _headers(parsed, indices, at + done))
                self._fall_back(entry, queue, indices[at + done], held)
                done += 1
            # A key that the core cannot take is its message's alone: the others' answers are still good.
            if problem is None or not entry.breaker.admits_calls(ended_ns):
                entry.counters.record_runs(done, ended_ns - now_ns)
                return done

    def _fall_back(self, entry: _Guarded[OnEnqueue], queue: bytes, i: int, held: list[int]) -> None:
        if queue in self._holding:
            held.append(i)
        else:
            entry.counters.fallbacks += 1

    async def _wait(self, parsed: ParsedFrame, held: Sequence[int]) -> None:
        """Wait until one of the circuits lets a call through, or somebody changed a queue."""
        now_ns = self._now_ns()
        entries = [self._on_enqueue.get(queue) for queue in {parsed.queue(i) for i in held}]
        waits_ns = [entry.breaker.wait_ns(now_ns) if entry else 0 for entry in entries]
        woken = asyncio.ensure_future(self._retry_held.wait())
        timer = asyncio.ensure_future(self._sleep(min(waits_ns) / 1e9))
        try:
            await asyncio.wait((woken, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
            timer.cancel()

    # --- on_failure -----------------------------------------------------------------------

    def decide_failure(self, failed: FailedMessage) -> Retry | DeadLetter | HookFailure | None:
        """Ask the queue's script; None (no script) and HookFailure leave it to the declarative policy."""
        entry = self._on_failure.get(failed.queue)
        if entry is None:
            return None
        began_ns = self._now_ns()
        if not entry.breaker.admits_calls(began_ns):
            entry.counters.fallbacks += 1
            return HookFailure("circuit_open", entry.counters.last_error)
        hook = entry.ready()
        decision = hook if isinstance(hook, HookFailure) else hook.decide(failed)
        ended_ns = self._now_ns()
        entry.counters.record_runs(1, ended_ns - began_ns)
        if not isinstance(hook, HookFailure) and hook.notes:
            entry.record_notes(hook.notes, ended_ns)
        if isinstance(decision, HookFailure):
            entry.record_failure(decision, ended_ns, shown_headers(failed.headers))
            entry.counters.fallbacks += 1
        else:
            entry.record_success()
        return decision

    # --- what others read -----------------------------------------------------------------

    def status(self, queue: str) -> list[HookStatus]:
        """One entry for each script the queue has."""
        name, now_ns = queue.encode(), self._now_ns()
        return [
            HookStatus(hook, entry.breaker.state(now_ns), entry.counters)
            for hook, entry in (
                ("on_enqueue", self._on_enqueue.get(name)),
                ("on_failure", self._on_failure.get(name)),
            )
            if entry is not None
        ]

    def queues(self) -> Iterable[str]:
        """The queues that have a script, for telemetry."""
        return sorted(name.decode() for name in {*self._on_enqueue, *self._on_failure})


def _headers(parsed: ParsedFrame, indices: Sequence[int], at: int) -> dict[str, str]:
    """Of the message on which a script failed."""
    count, packed = parsed.pack(indices, at, 1, CROSSING_BYTES_MAX)
    return first_headers(packed) if count else {}


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def _config_value(value: str | bytes) -> bytes:
    raw = _bytes(value)
    # Longer ones could meet the memory limit halfway through Python's frames (fila.lua says why).
    if len(raw) > CONFIG_VALUE_BYTES_MAX:
        raise errors.LimitExceeded(
            "value", f"has {len(raw)} bytes; at most {CONFIG_VALUE_BYTES_MAX} are allowed"
        )
    return raw
