"""A script on trial: run in the very sandbox, on a message that somebody made up, without a broker.

What it answers is read as the broker would read it. One more run counts each instruction and what it allocates, which
would make the timed ones slower.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import msgspec

from fila_server.hooks.notes import read_notes
from fila_server.hooks.on_enqueue import OnEnqueue
from fila_server.hooks.on_failure import DeadLetter, FailedMessage, OnFailure, Retry
from fila_server.hooks.packed import KeyLimits, Routing, pack_messages, unpack_routings
from fila_server.hooks.sandbox import (
    HookFailure,
    HookLimits,
    RuntimeConfig,
    Sandbox,
    ScriptRefused,
    new_runtime_config,
)

RUNS_MAX = 100_000
METERED_SLOWER = 50
"""How much longer the run may take in which each instruction is counted."""


class Trial(msgspec.Struct, kw_only=True):
    """What to try. `hook` empty means the one the script defines."""

    script: str
    hook: str = ""
    queue: str = "trial"
    headers: dict[str, str] = {}
    payload_size: int = 0
    runs: int = 1
    attempts: int = 1
    error: str = "error"
    fairness_key: str = "default"
    config: dict[str, str] = {}


class Outcome(msgspec.Struct, kw_only=True):
    """What came of it. `problem` empty: it worked; `ignored`: fields that were returned and mean nothing."""

    hook: str
    result: dict[str, Any] = {}
    ignored: list[str] = []
    problem: str = ""
    runs: int = 0
    fastest_us: float = 0.0
    median_us: float = 0.0
    slowest_us: float = 0.0
    time_limit_ms: int = 0
    memory_limit_bytes: int = 0
    instructions: int = 0
    """Of one run; 0 where it failed."""
    allocated_bytes: int = 0
    """By one run, garbage included."""
    kept_bytes: int = 0
    """Between runs, the script's own functions included."""
    log: list[str] = []
    """What the last run wrote with fila.log."""


def try_script(trial: Trial, limits: HookLimits, now_ns: Callable[[], int] = time.monotonic_ns) -> Outcome:
    """Run the script; what is wrong with it is part of the outcome."""
    hook = trial.hook or ("on_failure" if re.search(r"\bon_failure\b", trial.script) else "on_enqueue")
    outcome = Outcome(hook=hook, time_limit_ms=limits.timeout_ms, memory_limit_bytes=limits.memory_bytes)
    config = new_runtime_config()
    config.replace({key.encode(): value.encode() for key, value in trial.config.items()})
    try:
        subject = _subject(hook, trial, limits, config, now_ns)
        times_ns = []
        answer: Any = None
        for _ in range(max(1, min(trial.runs, RUNS_MAX))):
            began_ns = now_ns()
            answer = subject.ask()
            times_ns.append(now_ns() - began_ns)
            outcome.runs += 1
            if isinstance(answer, HookFailure):
                break
    except ScriptRefused as refusal:
        outcome.problem = str(refusal)
        return outcome
    times_ns.sort()
    outcome.fastest_us, outcome.slowest_us = times_ns[0] / 1000, times_ns[-1] / 1000
    outcome.median_us = times_ns[len(times_ns) // 2] / 1000
    notes = read_notes(subject.notes)
    outcome.log, outcome.ignored = notes.lines, sorted(notes.ignored)
    if isinstance(answer, HookFailure):
        outcome.problem = answer.text
        return outcome
    outcome.result = _shown(answer)
    outcome.kept_bytes = subject.sandbox.heap_bytes()
    _meter(outcome, _subject(hook, trial, _metered(limits), config, now_ns))
    return outcome


def _metered(limits: HookLimits) -> HookLimits:
    return replace(limits, look_every=1, timeout_ms=limits.timeout_ms * METERED_SLOWER)


def _meter(outcome: Outcome, subject: _Subject) -> None:
    subject.ask()  # what is made once is made now
    before = subject.sandbox.stop_collecting()
    answer = subject.ask()
    outcome.allocated_bytes = max(subject.sandbox.collect_again() - before, 0)
    if not isinstance(answer, HookFailure):
        outcome.instructions = subject.sandbox.instructions_used()


class _Subject(Protocol):
    """A script with the message it is tried on."""

    notes: bytes

    @property
    def sandbox(self) -> Sandbox: ...
    def ask(self) -> Routing | Retry | DeadLetter | HookFailure: ...


class _Router:
    def __init__(self, router: OnEnqueue, trial: Trial) -> None:
        self._router = router
        self._queue = trial.queue.encode()
        headers = [(name.encode(), value.encode()) for name, value in trial.headers.items()]
        self._packed = pack_messages([(headers, trial.payload_size)])
        self.notes = b""
        self.sandbox = router.sandbox

    def ask(self) -> Routing | HookFailure:
        answers = self._router.route(self._queue, 1, self._packed)
        self.notes = answers.notes
        if answers.failure is not None:
            return answers.failure
        routings, problem, _ = unpack_routings(answers.routings, 0, 1, KeyLimits())
        return HookFailure("error", problem) if problem is not None else routings[0]


class _Judge:
    def __init__(self, judge: OnFailure, trial: Trial) -> None:
        self._judge = judge
        self._failed = FailedMessage(
            queue=trial.queue.encode(),
            channel=b"default",
            headers=[(name.encode(), value.encode()) for name, value in trial.headers.items()],
            message_id=b"00000000-0000-7000-8000-000000000000",
            attempts=trial.attempts,
            error=trial.error.encode(),
            fairness_key=trial.fairness_key.encode(),
        )
        self.notes = b""
        self.sandbox = judge.sandbox

    def ask(self) -> Retry | DeadLetter | HookFailure:
        answer = self._judge.decide(self._failed)
        self.notes = self._judge.notes
        return answer


def _subject(
    hook: str, trial: Trial, limits: HookLimits, config: RuntimeConfig, now_ns: Callable[[], int]
) -> _Subject:
    script = trial.script.encode()
    if hook == "on_failure":
        return _Judge(OnFailure(script, limits=limits, config=config, now_ns=now_ns, seed=0), trial)
    return _Router(OnEnqueue(script, limits=limits, config=config, now_ns=now_ns, seed=0), trial)


def _shown(answer: Routing | Retry | DeadLetter) -> dict[str, Any]:
    if isinstance(answer, DeadLetter):
        return {"action": "dlq"}
    if isinstance(answer, Retry):
        return {"action": "retry"} | ({} if answer.delay_ms is None else {"delay_ms": answer.delay_ms})
    given: Mapping[str, Any] = answer._asdict()
    return {name: _text(value) for name, value in given.items() if value is not None}


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return [_text(each) for each in value] if isinstance(value, tuple) else value
