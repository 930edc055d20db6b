"""Users that speak gRPC: they send and take one call after another, as a program without the SDK would."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import gevent
import grpc
from locust import User, task
from locust.env import Environment

from fila.v1 import service_pb2, service_pb2_grpc

from . import judgement, rows
from .options import options_of
from .queue import TENANT_HEADER, connect
from .schedule import Schedule

KIND = "grpc"
SENT_HEADER = "sent"
"""When a message was meant to be sent, in seconds of the wall clock: producers and consumers may be on two machines."""
ROLE_HEADER = "role"

_CALL_TIMEOUT_S = 30
_LEASE_WAIT_MS = 500


class GrpcUser(User):
    """A user with a connection of its own."""

    abstract = True

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.options = options_of(environment)
        self.channel = connect(self.host or "")
        self.service = service_pb2_grpc.FilaServiceStub(self.channel)

    def on_stop(self) -> None:
        self.channel.close()

    def timed(self, name: str, began: float, call: Callable[[], Any], *, count: int = 1) -> Any:
        """Make a call and report how long after `began` it was answered, for each of its `count` messages; a refusal
        is one failure of the report, and the answer None."""
        try:
            answer = call()
        except grpc.RpcError as error:
            rows.report(self.environment, KIND, name, time.time() - began, _readable(error))
            return None
        rows.report_many(self.environment, KIND, name, time.time() - began, count)
        return answer


def _readable(error: grpc.RpcError) -> Exception:
    """One text for each kind of refusal, or the report would have a line for each queue position in it."""
    return RuntimeError(f"{error.code().name}: {error.details()}"[:200])


class Producer(GrpcUser):
    """Enqueues one message a call, at --user-rate, for one tenant after another."""

    abstract = True

    role = "load"
    """Names its rows in the report, so that quiet and noisy tenants are told apart."""

    rate_per_s: float | None = None
    """Messages a second; None: --user-rate."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        rate = self.options.user_rate if self.rate_per_s is None else self.rate_per_s
        self._schedule = Schedule(rate / self.messages_a_call(), time.time(), random.random())
        self._payload = random.randbytes(self.options.payload)
        self._next_tenant = random.randrange(self.options.tenants)

    def messages_a_call(self) -> int:
        return 1

    def tenant(self) -> str:
        """The next message's fairness key."""
        self._next_tenant = (self._next_tenant + 1) % self.options.tenants
        return tenant_name(self._next_tenant)

    def headers(self, tenant: str, at: float) -> dict[str, str]:
        return {TENANT_HEADER: tenant, ROLE_HEADER: self.role, SENT_HEADER: repr(at)}

    def begin(self) -> float:
        """Wait until the next call is meant to begin; the moment it was meant to, which may be long past."""
        due = self._schedule.next(time.time())
        gevent.sleep(max(0.0, due - time.time()))
        return due

    @task
    def next_call(self) -> None:
        """Locust keeps the tasks of base classes, so what a subclass changes is not the task but this."""
        self.enqueue()

    def enqueue(self) -> None:
        """One message."""
        at, tenant = self.begin(), self.tenant()
        request = service_pb2.EnqueueRequest(
            queue=self.options.queue, headers=self.headers(tenant, at), payload=self._payload
        )
        call = lambda: self.service.Enqueue(request, timeout=_CALL_TIMEOUT_S)  # noqa: E731
        if self.timed(f"Enqueue ({self.role})", at, call) is not None:
            judgement.ACCOUNT.asked(time.time(), tenant)


def tenant_name(number: int) -> str:
    """One length for all, so that loads of few and of many tenants carry messages of the same size."""
    return f"t{number:07}"


class Consumer(GrpcUser):
    """Leases up to --batch messages, works on each, acks them together."""

    abstract = True

    batch: int | None = None
    """Most messages of a lease; None: --batch."""

    work_ms: float | None = None
    """How long it works on each message; None: --work-ms."""

    @task
    def consume(self) -> None:
        """One round."""
        most = self.batch or self.options.batch
        request = service_pb2.LeaseRequest(
            queue=self.options.queue, max_messages=most, wait_ms=_LEASE_WAIT_MS
        )
        try:
            messages = self.service.Lease(request, timeout=_CALL_TIMEOUT_S).messages
        except grpc.RpcError as error:
            # A lease's time is mostly waiting for messages, so only its failures are a row.
            rows.report(self.environment, KIND, "Lease", 0.0, _readable(error))
            gevent.sleep(0.1)
            return
        if not messages:
            return
        self._account(messages)
        work_ms = self.options.work_ms if self.work_ms is None else self.work_ms
        gevent.sleep(work_ms / 1000 * len(messages))
        items = [
            service_pb2.SettleItem(message_id=each.id, lease_id=each.metadata.lease_id) for each in messages
        ]
        acks = service_pb2.AckBatchRequest(queue=self.options.queue, items=items)
        call = lambda: self.service.AckBatch(acks, timeout=_CALL_TIMEOUT_S)  # noqa: E731
        answer = self.timed("AckBatch", time.time(), call, count=len(items))
        if answer is not None:
            for status in answer.results:
                if status.code:
                    rows.report(self.environment, KIND, "AckBatch", 0.0, RuntimeError(status.reason))

    def _account(self, messages: Any) -> None:
        now = time.time()
        for message in messages:
            headers = message.headers
            judgement.ACCOUNT.served(now, headers[TENANT_HEADER])
            if sent := headers.get(SENT_HEADER):
                name = f"enqueue to delivery ({headers[ROLE_HEADER]})"
                rows.report_many(self.environment, rows.WAIT, name, now - float(sent), 1)
            self.arrived(now, headers)

    def arrived(self, now: float, headers: Any) -> None:
        """For scenarios that count something else of each message."""
