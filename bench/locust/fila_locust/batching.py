"""Users that send and take many messages a call, so that a few processes reach the broker's limits and not their own.

Requests are put together from bytes made beforehand: a message object costs Python more than the broker spends on the
message. Only the first message of a frame says when it was meant to be sent, so waiting times are a sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from locust.env import Environment

from fila.v1 import service_pb2

from . import judgement
from .grpc_users import SENT_HEADER, Consumer, Producer
from .options import options_of

_ENQUEUE_BATCH = "/fila.v1.FilaService/EnqueueBatch"
_CALL_TIMEOUT_S = 30
_FRAMES_KEPT = 64


class BatchProducer(Producer):
    """Enqueues --batch messages a call; --user-rate still counts messages."""

    abstract = True
    role = "batch"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._call: Callable[..., bytes] = self.channel.unary_unary(_ENQUEUE_BATCH)
        self._frames = [self._frame() for _ in range(min(_FRAMES_KEPT, self.options.tenants))]
        self._turn = 0

    def messages_a_call(self) -> int:
        return int(options_of(self.environment).batch)

    def _frame(self) -> tuple[bytes, list[str]]:
        """Everything of a request but its first message, and the tenants of all of them."""
        tenants = [self.tenant() for _ in range(self.messages_a_call())]
        request = service_pb2.EnqueueBatchRequest(queue=self.options.queue)
        for tenant in tenants[1:]:
            headers = self.headers(tenant, 0)
            del headers[SENT_HEADER]
            request.messages.add(headers=headers, payload=self._payload)
        return request.SerializeToString(), tenants

    def enqueue(self) -> None:
        """One frame."""
        at = self.begin()
        self._turn = (self._turn + 1) % len(self._frames)
        rest, tenants = self._frames[self._turn]
        stamped = service_pb2.EnqueueBatchRequest()
        stamped.messages.add(headers=self.headers(tenants[0], at), payload=self._payload)
        # A message's bytes behind another's are one message with the repeated fields of both.
        body = stamped.SerializeToString() + rest
        call = lambda: self._call(body, timeout=_CALL_TIMEOUT_S)  # noqa: E731
        answer = self.timed(f"EnqueueBatch ({self.role})", at, call, count=len(tenants))
        if answer is None:
            return
        refused = 0
        for result in service_pb2.EnqueueBatchResponse.FromString(answer).results:
            if result.error.code:
                refused += 1
                self.refused(result.error.reason)
        if not refused:
            now = time.time()
            for tenant in tenants:
                judgement.ACCOUNT.asked(now, tenant)

    def refused(self, reason: str) -> None:
        """One message of a frame was not stored."""
        self.environment.stats.log_error("grpc", f"EnqueueBatch ({self.role})", reason)


class BatchConsumer(Consumer):
    """A consumer that takes --batch messages a call and does no work on them."""

    abstract = True
    work_ms = 0.0
