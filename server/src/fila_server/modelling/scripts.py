"""Scripts in a model: the ones that the policy names, and `on_failure` as it was, in the real sandbox."""

from __future__ import annotations

import time
from typing import TypeVar

from fila.v1 import admin_pb2, service_pb2
from fila_server.core.protocol import commands, seam_frames
from fila_server.core.requests.parsed_frame import ParsedFrame
from fila_server.hooks.on_enqueue import CROSSING_BYTES_MAX, MESSAGES_A_CROSSING_MAX, OnEnqueue
from fila_server.hooks.on_failure import DeadLetter, FailedMessage, OnFailure, Retry
from fila_server.hooks.sandbox import HookLimits, ScriptRefused, new_runtime_config
from fila_server.modelling.policy import Policy, PolicyRefused

Script = TypeVar("Script", OnEnqueue, OnFailure)

LIMITS = HookLimits(timeout_ms=1_000)
"""Generous: a model on a busy machine must not differ for the machine's sake."""


class Scripts:
    """What scripts decide. A script that fails leaves its message to the declarative policy, and is counted."""

    def __init__(self, policy: Policy, headers: str, seed: int) -> None:
        self._policy = policy
        self._headers = headers
        self._seed = seed
        self._config = new_runtime_config()
        self._on_enqueue: dict[bytes, OnEnqueue | None] = {}
        """Of queues whose script the policy names; None: it takes the script away."""
        self._fairness_headers: dict[bytes, bytes] = {}
        self._on_failure: dict[bytes, tuple[str, OnFailure]] = {}
        self.routes = any(policy.sets(queue, "on_enqueue_script") for queue in policy.queues)
        """Whether messages are routed anew; else as hooks decided when it was recorded."""
        self.failures = 0

    def config_is(self, config_key: str, value: str) -> None:
        """Scripts see it from now on."""
        self._config.set(config_key.encode(), value.encode() or None)

    def queue_is(self, queue: str, config: admin_pb2.QueueConfig) -> None:
        """Take over a queue's scripts. Raises PolicyRefused where one cannot be run on this recording."""
        name = queue.encode()
        if self._policy.sets(queue, "on_enqueue_script"):
            script = config.on_enqueue_script
            self._on_enqueue[name] = self._compiled(OnEnqueue, queue, script) if script else None
            self._fairness_headers[name] = config.fairness_key_header.encode()
        known = self._on_failure.get(name)
        if not config.on_failure_script:
            self._on_failure.pop(name, None)
        elif known is None or known[0] != config.on_failure_script:
            compiled = self._compiled(OnFailure, queue, config.on_failure_script)
            self._on_failure[name] = (config.on_failure_script, compiled)

    def _compiled(self, kind: type[Script], queue: str, script: str) -> Script:
        if self._headers != "all":
            raise PolicyRefused(
                f"a script of queue {queue} would run in the model, and scripts read headers, which this recording has "
                f'not: it was made with history.headers = "{self._headers}"; record with "all"'
            )
        try:
            return kind(
                script.encode(),
                limits=LIMITS,
                config=self._config,
                now_ns=time.monotonic_ns,
                seed=self._seed,
            )
        except ScriptRefused as refused:
            raise PolicyRefused(f"queues.{queue}: the script was refused: {refused}") from None

    # --- on_enqueue ---------------------------------------------------------------------------

    def concerns(self, kind: int, request: bytes) -> bool:
        """Return whether a message of this request is for a queue whose script the policy names."""
        if kind == commands.ENQUEUE:
            return service_pb2.EnqueueRequest.FromString(request).queue.encode() in self._on_enqueue
        if kind == commands.ENQUEUE_STREAM:
            batch = service_pb2.EnqueueStreamRequest.FromString(request).batch
        else:
            asked = seam_frames.Firing.FromString(request).batch if kind == commands.FIRE else request
            batch = service_pb2.EnqueueBatchRequest.FromString(asked)
        return any((message.queue or batch.queue).encode() in self._on_enqueue for message in batch.messages)

    def route(self, parsed: ParsedFrame) -> None:
        """Ask the scripts about each message, queue by queue."""
        indices = parsed.unrefused()
        for queue in parsed.queues():
            hook = self._on_enqueue.get(queue)
            if hook is not None:
                self._route(parsed, hook, queue, [i for i in indices if parsed.queue(i) == queue])

    def _route(self, parsed: ParsedFrame, hook: OnEnqueue, queue: bytes, indices: list[int]) -> None:
        at = 0
        while at < len(indices):
            count, packed = parsed.pack(
                indices, at, MESSAGES_A_CROSSING_MAX, CROSSING_BYTES_MAX, self._fairness_headers[queue]
            )
            answers = hook.route(queue, count, packed)
            taken, problem, _ = parsed.route(indices, at, answers.answered, answers.routings, 0)
            at += taken
            if problem is not None or answers.failure is not None:
                self.failures += 1
                at += 1

    # --- on_failure ---------------------------------------------------------------------------

    def decision(self, event: bytes) -> bytes:
        """Return what becomes of a failed message, as the core is told."""
        reported = seam_frames.FailureEvent.FromString(event)
        known = self._on_failure.get(reported.queue)
        if known is None:
            return _decision(seam_frames.BY_POLICY)
        decided = known[1].decide(
            FailedMessage(
                queue=reported.queue,
                channel=reported.channel,
                headers=[(header.name, header.value) for header in reported.headers],
                message_id=reported.message_id,
                attempts=reported.attempts,
                error=reported.error,
                fairness_key=reported.fairness_key,
            )
        )
        if isinstance(decided, DeadLetter):
            return _decision(seam_frames.DEAD_LETTER)
        if isinstance(decided, Retry):
            return _decision(seam_frames.RETRY, decided.delay_ms)
        self.failures += 1
        return _decision(seam_frames.BY_POLICY)


def _decision(action: int, delay_ms: int | None = None) -> bytes:
    decided = seam_frames.Decision(action=action)
    if delay_ms is not None:
        decided.delay_ms = delay_ms
    said: bytes = decided.SerializeToString()
    return said
