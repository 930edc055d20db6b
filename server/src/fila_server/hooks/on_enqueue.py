"""Which fairness key, weight, cost and throttle keys a message gets, by its queue's script.

One crossing into Lua carries many messages as flat arguments and returns flat values
(on_enqueue.lua says in which order). Measured (bench/hooks.py): 2.7 us a message in a batch
of 32, where a crossing for each takes 4.5; larger batches gain nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from fila_server.hooks.sandbox import HookFailure, HookLimits, RuntimeConfig, Sandbox

Headers = Sequence[tuple[bytes, bytes]]

MESSAGES_A_CROSSING_MAX = 32
"""Beyond this a crossing gets no cheaper per message, only longer."""

_CROSSING_ROOM_BYTES_MAX = 96 * 1024
"""Fewer messages when they carry many or long headers, so that arguments fit beside the script's memory."""

_ARGUMENT_ROOM_BYTES = 128

_HEADER_COUNT = 4
"""Values before the first message's in what a crossing returns."""


class Routing(NamedTuple):
    """What the script decided; None leaves a field to the declarative policy."""

    fairness_key: bytes | None = None
    weight: int | None = None
    cost: float | None = None
    throttle_keys: tuple[bytes, ...] | None = None


class Answers(NamedTuple):
    """The outcome of a crossing: routings of its first messages, then perhaps why the next one failed.

    Without a failure there may still be fewer routings than messages, when time was up.
    """

    routings: list[Routing]
    failure: HookFailure | None
    clamped_weight_count: int


class Batch:
    """Messages of one queue on their way into Lua, as flat arguments."""

    __slots__ = ("arguments", "bytes", "count")

    def __init__(self) -> None:
        self.arguments: list[Any] = []
        self.bytes = 0
        self.count = 0

    def add(self, headers: Headers, payload_size: int) -> None:
        arguments = self.arguments
        arguments.append(payload_size)
        arguments.append(len(headers))
        size = 0
        for name, value in headers:
            arguments.append(name)
            arguments.append(value)
            size += len(name) + len(value)
        self.bytes += size
        self.count += 1

    @property
    def has_room(self) -> bool:
        return (
            self.count < MESSAGES_A_CROSSING_MAX
            and self.bytes + _ARGUMENT_ROOM_BYTES * len(self.arguments) < _CROSSING_ROOM_BYTES_MAX
        )


class OnEnqueue:
    """One queue's `on_enqueue` script, compiled. Raises ScriptRefused when it cannot be."""

    def __init__(
        self,
        script: bytes,
        *,
        limits: HookLimits,
        config: RuntimeConfig,
        now_ns: Callable[[], int],
        seed: int,
    ) -> None:
        self._limits = limits
        self._sandbox = Sandbox(script, "on_enqueue", limits=limits, config=config, now_ns=now_ns, seed=seed)

    def route(self, headers: Headers, payload_size: int, queue: bytes) -> Routing | HookFailure:
        """Route one message."""
        batch = Batch()
        batch.add(headers, payload_size)
        answers = self.route_batch(batch, queue)
        return answers.failure or answers.routings[0]

    def route_batch(self, batch: Batch, queue: bytes) -> Answers:
        """Route messages in order until one fails or the time for one crossing is used."""
        results = self._sandbox.call([queue, batch.count, *batch.arguments], batch.bytes + len(queue))
        if isinstance(results, HookFailure):
            return Answers([], results, 0)
        answered, clamped_weight_count, kind, text = results[:_HEADER_COUNT]
        at = _HEADER_COUNT
        routings: list[Routing] = []
        for _ in range(answered):
            fairness_key, weight, cost, key_count = results[at : at + 4]
            at += 4
            throttle_keys = None
            if key_count >= 0:
                throttle_keys = results[at : at + key_count]
                at += key_count
            problem = _problem_of(fairness_key, throttle_keys, self._limits)
            if problem is not None:
                return Answers(routings, HookFailure("error", problem), clamped_weight_count)
            routings.append(
                Routing(
                    None if fairness_key is False else fairness_key,
                    None if weight is False else weight,
                    None if cost is False else cost,
                    throttle_keys,
                )
            )
        failure = self._sandbox.failure(kind, text) if kind else None
        return Answers(routings, failure, clamped_weight_count)


def _problem_of(
    fairness_key: bytes | Literal[False], throttle_keys: tuple[bytes, ...] | None, limits: HookLimits
) -> str | None:
    """Why the core could not take these keys; what Lua checked already is what no setting can raise."""
    if fairness_key and len(fairness_key) > limits.fairness_key_bytes:
        return f"fairness_key must be at most {limits.fairness_key_bytes} bytes, got {len(fairness_key)}"
    if throttle_keys and len(throttle_keys) > limits.throttle_keys:
        return f"throttle_keys must be at most {limits.throttle_keys}, got {len(throttle_keys)}"
    for key in throttle_keys or ():
        if len(key) > limits.throttle_key_bytes:
            return f"throttle_keys must be at most {limits.throttle_key_bytes} bytes each, got {len(key)}"
        if not _is_text(key):
            return "throttle_keys must be valid UTF-8"
    return None if not fairness_key or _is_text(fairness_key) else "fairness_key must be valid UTF-8"


def _is_text(key: bytes) -> bool:
    """Whether it can travel as a string: Lua's are any bytes, and one such key would spoil every answer."""
    if key.isascii():
        return True
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True
