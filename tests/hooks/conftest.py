"""Scripts under attack, and a stage whose clock stands still unless told."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from fila_server.hooks.on_enqueue import OnEnqueue
from fila_server.hooks.on_failure import FailedMessage, OnFailure
from fila_server.hooks.packed import KeyLimits, Routing, pack_messages, unpack_routings
from fila_server.hooks.sandbox import HookFailure, HookLimits, RuntimeConfig, new_runtime_config
from fila_server.hooks.stage import HookStage

CPU_SECONDS_MAX = 0.060
"""A cut-off call's own processor time: 10 ms, the overshoot of one slow instruction, and a slow machine."""

CPU_SECONDS_WITHOUT_CLOCK_MAX = 1.0
"""The same when only the instructions end it."""


def standing_clock() -> int:
    """Time does not pass: innocent scripts never fail for a busy machine, and loops end by their instructions."""
    return 0


def compile_on_enqueue(
    script: str | bytes,
    *,
    config: RuntimeConfig | None = None,
    limits: HookLimits | None = None,
    now_ns: Callable[[], int] = standing_clock,
    seed: int = 1,
) -> OnEnqueue:
    source = script if isinstance(script, bytes) else script.encode()
    return OnEnqueue(
        source, limits=limits or HookLimits(), config=config or new_runtime_config(), now_ns=now_ns, seed=seed
    )


def compile_on_failure(script: str, *, config: RuntimeConfig | None = None, seed: int = 1) -> OnFailure:
    return OnFailure(
        script.encode(),
        limits=HookLimits(),
        config=config or new_runtime_config(),
        now_ns=standing_clock,
        seed=seed,
    )


def route(
    hook: OnEnqueue,
    headers: Sequence[tuple[bytes, bytes]] = (),
    payload_size: int = 0,
    queue: bytes = b"orders",
) -> Routing | HookFailure:
    routings, failure = route_many(hook, [(headers, payload_size)], queue)
    return failure or routings[0]


def route_many(
    hook: OnEnqueue, messages: Sequence[tuple[Sequence[tuple[bytes, bytes]], int]], queue: bytes = b"orders"
) -> tuple[list[Routing], HookFailure | None]:
    """One crossing: the routings of the first messages, and why the next one has none."""
    answers = hook.route(queue, len(messages), pack_messages(messages))
    routings, problem, _ = unpack_routings(answers.routings, 0, answers.answered, KeyLimits())
    return routings, answers.failure if problem is None else HookFailure("error", problem)


def failed(**changes: Any) -> FailedMessage:
    message = FailedMessage(b"orders", b"default", [], b"id-1", 1, b"boom", b"acme")
    return message._replace(**changes)


def value_of(expression: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> bytes:
    """What a Lua expression is to a script, as text."""
    hook = compile_on_enqueue(
        f"function on_enqueue(msg) return {{ fairness_key = tostring({expression}) }} end"
    )
    routing = route(hook, headers)
    assert isinstance(routing, Routing), routing
    assert routing.fairness_key is not None
    return routing.fairness_key


@dataclass
class Attack:
    """The outcome of a hostile body, and that the runtime works for the next message."""

    failure: HookFailure | None
    routing: Routing | None
    cpu_seconds: float


def attack(
    body: str,
    *,
    prelude: str = "",
    headers: Sequence[tuple[bytes, bytes]] = (),
    now_ns: Callable[[], int] = standing_clock,
) -> Attack:
    """Run `body` in a script twice, an innocent message after each, and time it."""
    hook = compile_on_enqueue(
        f"{prelude}\nfunction on_enqueue(msg)\n"
        f"  if msg.headers.attack then {body}\n  end\n"
        "  return { fairness_key = 'fine' } end",
        now_ns=now_ns,
    )
    outcome = Attack(None, None, 0.0)
    for _ in range(2):
        began = time.thread_time()
        answer = route(hook, [(b"attack", b"1"), *headers])
        outcome.cpu_seconds = max(outcome.cpu_seconds, time.thread_time() - began)
        innocent = route(hook)
        assert isinstance(innocent, Routing), f"the next message was harmed: {innocent}"
        assert innocent.fairness_key == b"fine"
        if isinstance(answer, HookFailure):
            outcome.failure = answer
        else:
            outcome.routing = answer
    return outcome


def cut_off(
    body: str,
    *,
    prelude: str = "",
    headers: Sequence[tuple[bytes, bytes]] = (),
    now_ns: Callable[[], int] = standing_clock,
    cpu_seconds_max: float | None = None,
) -> HookFailure:
    """Run `body`, check that it was stopped in time, and return why."""
    outcome = attack(body, prelude=prelude, headers=headers, now_ns=now_ns)
    assert outcome.failure is not None, f"not cut off: {outcome.routing}"
    if cpu_seconds_max is None:
        cpu_seconds_max = CPU_SECONDS_WITHOUT_CLOCK_MAX if now_ns is standing_clock else CPU_SECONDS_MAX
    assert outcome.cpu_seconds < cpu_seconds_max
    return outcome.failure


@dataclass
class ManualClock:
    ns: int = 0

    def __call__(self) -> int:
        return self.ns

    def advance(self, *, ms: int) -> None:
        self.ns += ms * 1_000_000


@dataclass
class SteppingClock:
    """Time goes on by `step_ns` whenever somebody looks."""

    step_ns: int
    ns: int = 0

    def __call__(self) -> int:
        self.ns += self.step_ns
        return self.ns


@dataclass
class FakeFrame:
    """A parsed frame of messages, each (queue, headers)."""

    messages: list[tuple[bytes, list[tuple[bytes, bytes]]]]
    routings: dict[int, Routing] = field(default_factory=dict)
    limits: KeyLimits = field(default_factory=KeyLimits)
    refused: set[int] = field(default_factory=set)

    def queues(self) -> set[bytes]:
        return {queue for queue, _ in self.messages}

    def unrefused(self) -> Sequence[int]:
        return [i for i in range(len(self.messages)) if i not in self.refused]

    def queue(self, i: int) -> bytes:
        return self.messages[i][0]

    def frame_bytes(self) -> int:
        return 100 * len(self.messages)

    def pack(
        self, indices: Sequence[int], at: int, count_max: int, bytes_max: int, fairness_header: bytes = b""
    ) -> tuple[int, bytes]:
        together: list[tuple[list[tuple[bytes, bytes]], int]] = []
        for i in indices[at : at + count_max]:
            if self.queue(i) != self.queue(indices[at]) or len(pack_messages(together)) - 8 > bytes_max:
                break
            together.append((self.messages[i][1], 100))
        return len(together), pack_messages(together)

    def route(
        self, indices: Sequence[int], at: int, count: int, routings: bytes, start: int
    ) -> tuple[int, str | None, int]:
        decided, problem, end = unpack_routings(routings, start, count, self.limits)
        self.routings.update(zip(indices[at:], decided, strict=False))
        return len(decided), problem, end


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def stage(clock: ManualClock) -> HookStage:
    return HookStage(now_ns=clock, seed=1)
