"""A script on trial: run in the very sandbox, on a message that somebody made up, without a broker.

What it answers is read as the broker would read it. Fields the broker does not know are ignored there without a word,
so a second run in the same sandbox, of the script with a check behind it, names them here.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fila_server.hooks.on_enqueue import OnEnqueue
from fila_server.hooks.on_failure import DeadLetter, FailedMessage, OnFailure, Retry
from fila_server.hooks.packed import KeyLimits, Routing, pack_messages, unpack_routings
from fila_server.hooks.sandbox import (
    HookFailure,
    HookLimits,
    RuntimeConfig,
    ScriptRefused,
    new_runtime_config,
)

RUNS_MAX = 100_000
_KNOWN = {
    "on_enqueue": ("fairness_key", "weight", "cost", "throttle_keys"),
    "on_failure": ("action", "delay_ms"),
}
_MARK = "fields nobody reads: "


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


def try_script(trial: Trial, limits: HookLimits, now_ns: Callable[[], int] = time.monotonic_ns) -> Outcome:
    """Run the script; what is wrong with it is part of the outcome."""
    hook = trial.hook or ("on_failure" if re.search(r"\bon_failure\b", trial.script) else "on_enqueue")
    outcome = Outcome(hook=hook, time_limit_ms=limits.timeout_ms, memory_limit_bytes=limits.memory_bytes)
    config = new_runtime_config()
    config.replace({key.encode(): value.encode() for key, value in trial.config.items()})
    try:
        ask = _asking(hook, trial, trial.script, limits, config, now_ns)
        times_ns = []
        answer: Any = None
        for _ in range(max(1, min(trial.runs, RUNS_MAX))):
            began_ns = now_ns()
            answer = ask()
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
    if isinstance(answer, HookFailure):
        outcome.problem = answer.text
        return outcome
    outcome.result = _shown(answer)
    outcome.ignored = _ignored(hook, trial, limits, config, now_ns)
    return outcome


def _asking(
    hook: str, trial: Trial, script: str, limits: HookLimits, config: RuntimeConfig, now_ns: Callable[[], int]
) -> Callable[[], Routing | Retry | DeadLetter | HookFailure]:
    headers = [(name.encode(), value.encode()) for name, value in trial.headers.items()]
    if hook == "on_failure":
        judge = OnFailure(script.encode(), limits=limits, config=config, now_ns=now_ns, seed=0)
        failed = FailedMessage(
            queue=trial.queue.encode(),
            channel=b"default",
            headers=headers,
            message_id=b"00000000-0000-7000-8000-000000000000",
            attempts=trial.attempts,
            error=trial.error.encode(),
            fairness_key=trial.fairness_key.encode(),
        )
        return lambda: judge.decide(failed)
    router = OnEnqueue(script.encode(), limits=limits, config=config, now_ns=now_ns, seed=0)
    packed = pack_messages([(headers, trial.payload_size)])

    def route() -> Routing | HookFailure:
        answers = router.route(trial.queue.encode(), 1, packed)
        if answers.failure is not None:
            return answers.failure
        routings, problem, _ = unpack_routings(answers.routings, 0, 1, KeyLimits())
        return HookFailure("error", problem) if problem is not None else routings[0]

    return route


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


def _ignored(
    hook: str, trial: Trial, limits: HookLimits, config: RuntimeConfig, now_ns: Callable[[], int]
) -> list[str]:
    known = ", ".join(f"{name} = true" for name in _KNOWN[hook])
    check = (
        f"\ndo local ask, known = {hook}, {{ {known} }}\nfunction {hook}(message)\n"
        "local answer, unknown = ask(message), {}\n"
        "if type(answer) == 'table' then for name in pairs(answer) do\n"
        "if not known[name] then unknown[#unknown + 1] = tostring(name) end end end\n"
        f"if #unknown > 0 then error('{_MARK}' .. table.concat(unknown, ', '), 0) end\n"
        "return answer end end\n"
    )
    try:
        answer = _asking(hook, trial, trial.script + check, limits, config, now_ns)()
    except (ScriptRefused, struct.error):
        return []  # a script that ends with a return of its own can have nothing behind it
    if not isinstance(answer, HookFailure) or _MARK not in answer.text:
        return []
    return sorted(answer.text.partition(_MARK)[2].split(", "))
