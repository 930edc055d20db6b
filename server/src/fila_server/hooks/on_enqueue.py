"""Which fairness key, weight, cost and throttle keys a message gets, by its queue's script.

One crossing into Lua carries many messages, packed, and returns their routings, packed: what the
frame gives and takes (core/requests/parsed_frame.pyx has the layout). Python sees neither headers nor keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fila_server.hooks.sandbox import HookFailure, HookLimits, RuntimeConfig, Sandbox

MESSAGES_A_CROSSING_MAX = 64
"""Beyond this a crossing gets no cheaper per message, only longer."""

CROSSING_BYTES_MAX = 64 * 1024
"""Of packed messages, after which no other joins, so that they fit beside the script's memory."""


class Answers(NamedTuple):
    """The outcome of a crossing: routings of its first messages, then perhaps why the next one failed.

    Without a failure there may still be fewer routings than messages, when time was up.
    """

    answered: int
    routings: bytes
    failure: HookFailure | None
    clamped_weight_count: int
    notes: bytes = b""
    """What the script had to tell besides, see notes.py; empty when nothing."""


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
        self._sandbox = Sandbox(script, "on_enqueue", limits=limits, config=config, now_ns=now_ns, seed=seed)

    def route(self, queue: bytes, count: int, messages: bytes) -> Answers:
        """Route `count` messages in order until one fails or the time for one crossing is used."""
        # Lua holds the messages twice: packed, and the strings it takes out of them.
        results = self._sandbox.call([queue, count, messages], len(queue) + 2 * len(messages))
        if isinstance(results, HookFailure):
            return Answers(0, b"", results, 0)
        answered, clamped_weight_count, kind, text, routings, notes = results
        failure = self._sandbox.failure(kind, text) if kind else None
        return Answers(answered, routings, failure, clamped_weight_count, notes or b"")

    @property
    def sandbox(self) -> Sandbox:
        """Where it runs."""
        return self._sandbox
