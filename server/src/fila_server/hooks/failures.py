"""Failed messages on their way to `on_failure`, and the decisions on their way back.

    core ──EVENT──► take ──► waiting ──► decide_failure, a slice at a time ──► DECIDE ──► core

The core counts a message as in flight until it is told what becomes of it, and answers its
Nack only then, so every event gets a decision: of the script, or "by policy" when the script
fails, is gone, or its circuit is open. Thousands may come at once (a worker died holding
them), so the loop gets its turn in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import structlog

from fila_server.core.protocol import seam_frames
from fila_server.hooks.on_failure import DeadLetter, FailedMessage, Retry
from fila_server.hooks.stage import HookStage

log = structlog.get_logger("fila_server.hooks")

SLICE_NS = 2_500_000
"""After this long in one turn of the loop the desk lets the other work run."""

_BY_POLICY: bytes = seam_frames.Decision(action=seam_frames.BY_POLICY).SerializeToString()
_DEAD_LETTER: bytes = seam_frames.Decision(action=seam_frames.DEAD_LETTER).SerializeToString()
_RETRY: bytes = seam_frames.Decision(action=seam_frames.RETRY).SerializeToString()


class FailureJudge:
    """Belongs to the loop's thread. Events that come before start() wait for the scripts to be loaded."""

    def __init__(
        self,
        stage: HookStage,
        post_decision: Callable[[int, bytes], None],
        *,
        now_ns: Callable[[], int],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._stage = stage
        self._post_decision = post_decision
        self._now_ns = now_ns
        self._call_soon = call_soon
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._is_started = False
        self._is_scheduled = False

    def start(self) -> None:
        """Every queue's script is known now."""
        self._is_started = True
        self._schedule()

    def take(self, number: int, payload: bytes) -> None:
        """Accept one failure event of the core."""
        self._waiting.append((number, payload))
        self._schedule()

    def _schedule(self) -> None:
        if self._is_started and self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._work)

    def _work(self) -> None:
        self._is_scheduled = False
        ends_ns = self._now_ns() + SLICE_NS
        while self._waiting:
            number, payload = self._waiting.popleft()
            self._post_decision(number, self._decide(payload))
            if self._now_ns() > ends_ns:
                break
        self._schedule()

    def _decide(self, payload: bytes) -> bytes:
        try:
            decision = self._stage.decide_failure(_failed(payload))
        except Exception:
            # Our mistake, but the message must not stay in flight for ever because of it.
            log.exception("hook.decision_failed")
            return _BY_POLICY
        if isinstance(decision, DeadLetter):
            return _DEAD_LETTER
        if not isinstance(decision, Retry):
            return _BY_POLICY
        if decision.delay_ms is None:
            return _RETRY
        retry: bytes = seam_frames.Decision(
            action=seam_frames.RETRY, delay_ms=decision.delay_ms
        ).SerializeToString()
        return retry


def _failed(payload: bytes) -> FailedMessage:
    event = seam_frames.FailureEvent.FromString(payload)
    return FailedMessage(
        queue=event.queue,
        channel=event.channel,
        headers=[(header.name, header.value) for header in event.headers],
        message_id=event.message_id,
        attempts=event.attempts,
        error=event.error,
        fairness_key=event.fairness_key,
    )
