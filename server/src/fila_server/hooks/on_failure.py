"""What becomes of a message that failed, by its queue's script: another try, or the dead-letter queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fila_server.hooks.sandbox import HookFailure, HookLimits, RuntimeConfig, Sandbox

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again after `delay_ms`; None leaves the delay to the declarative retry."""

    delay_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Give up: move it to the dead-letter queue."""


class FailedMessage(NamedTuple):
    """What the script is told."""

    queue: bytes
    channel: bytes
    headers: Headers
    message_id: bytes
    attempts: int
    """1 at the first failure."""
    error: bytes
    fairness_key: bytes


class OnFailure:
    """One queue's `on_failure` script, compiled. Raises ScriptRefused when it cannot be."""

    def __init__(
        self,
        script: bytes,
        *,
        limits: HookLimits,
        config: RuntimeConfig,
        now_ns: Callable[[], int],
        seed: int,
    ) -> None:
        self._sandbox = Sandbox(script, "on_failure", limits=limits, config=config, now_ns=now_ns, seed=seed)
        self.notes = b""
        """What the last decision had to tell besides, see notes.py; empty when nothing."""

    @property
    def sandbox(self) -> Sandbox:
        """Where it runs."""
        return self._sandbox

    def decide(self, failed: FailedMessage) -> Retry | DeadLetter | HookFailure:
        texts = (failed.queue, failed.channel, failed.message_id, failed.error, failed.fairness_key)
        arguments: list[Any] = [*texts[:3], failed.attempts, *texts[3:]]
        size = sum(map(len, texts))
        for name, value in failed.headers:
            arguments.append(name)
            arguments.append(value)
            size += len(name) + len(value)
        results = self._sandbox.call(arguments, size)
        self.notes = b""
        if isinstance(results, HookFailure):
            return results
        kind, text, action, delay_ms, notes = results
        self.notes = notes or b""
        if kind:
            return self._sandbox.failure(kind, text)
        if action == b"dlq":
            return DeadLetter()
        return Retry(None if delay_ms is False else delay_ms)
