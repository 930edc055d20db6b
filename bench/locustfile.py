"""Scenario load: tenants of different habits and consumers of bounded speed, with locust's reports.

    fila queue create orders --fairness-header tenant --weight acme=3
    locust -f bench/locustfile.py --headless -H localhost:5555 --html report.html --csv report --csv-full-history

For people who want to see a scenario, its graphs and its percentiles. It is not for peak
throughput: every call here is a Python gRPC call of its own (`bench/run.py` measures peaks).
The shape below lets a noisy tenant come and go while a quiet one carries on.
"""

from __future__ import annotations

# Before any channel exists, or gevent and gRPC wait for each other for ever.
import grpc.experimental.gevent as grpc_gevent  # isort: skip

grpc_gevent.init_gevent()

import random  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any, ClassVar  # noqa: E402

import gevent  # type: ignore[import-untyped]  # noqa: E402
import grpc  # noqa: E402
from locust import LoadTestShape, User, constant_throughput, task  # noqa: E402

from fila.v1 import service_pb2, service_pb2_grpc  # noqa: E402

QUEUE = "orders"
_WORK_S = 0.005
_LEASE_WAIT_MS = 1_000


class _Client(User):
    """A user with a stub of its own, whose every call is reported under its RPC's name."""

    abstract = True

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        target = (self.host or "localhost:5555").removeprefix("http://")
        self._channel = grpc.insecure_channel(target)
        self.service = service_pb2_grpc.FilaServiceStub(self._channel)

    def on_stop(self) -> None:
        self._channel.close()

    def timed(self, name: str, call: Callable[[], Any]) -> Any:
        """Make a call and report how long it took; a refusal is reported and not raised."""
        began = time.perf_counter()
        answer, failure = None, None
        try:
            answer = call()
        except grpc.RpcError as error:
            failure = error
        self.environment.events.request.fire(
            request_type="grpc",
            name=name,
            response_time=(time.perf_counter() - began) * 1000,
            response_length=0 if answer is None else answer.ByteSize(),
            exception=failure,
            context={},
        )
        return answer


class _Tenant(_Client):
    abstract = True
    tenant = ""

    @task
    def enqueue(self) -> None:
        """One message of 200 B to 4 KB."""
        request = service_pb2.EnqueueRequest(
            queue=QUEUE,
            headers={"tenant": self.tenant, "sent": repr(time.time())},
            payload=random.randbytes(random.randint(200, 4_000)),
        )
        self.timed(f"Enqueue ({self.tenant})", lambda: self.service.Enqueue(request, timeout=10))


class QuietTenant(_Tenant):
    """Five messages a second, whatever others do."""

    tenant = "acme"
    wait_time = constant_throughput(5)
    weight = 1


class NoisyTenant(_Tenant):
    """As many as it gets through."""

    tenant = "globex"
    wait_time = constant_throughput(100)
    weight = 4


class Consumer(_Client):
    """Leases ten at a time, works on each, acks them; reports each tenant's wait as a request of its own."""

    fixed_count = 2

    @task
    def consume(self) -> None:
        """One round."""
        request = service_pb2.LeaseRequest(queue=QUEUE, max_messages=10, wait_ms=_LEASE_WAIT_MS)
        leased = self.timed("Lease", lambda: self.service.Lease(request, timeout=10))
        if leased is None or not leased.messages:
            return
        items = []
        for message in leased.messages:
            self._report_wait(message.headers["tenant"], float(message.headers["sent"]))
            gevent.sleep(_WORK_S)
            items.append(service_pb2.SettleItem(message_id=message.id, lease_id=message.metadata.lease_id))
        acks = service_pb2.AckBatchRequest(queue=QUEUE, items=items)
        self.timed("AckBatch", lambda: self.service.AckBatch(acks, timeout=10))

    def _report_wait(self, tenant: str, sent_s: float) -> None:
        self.environment.events.request.fire(
            request_type="wait",
            name=f"enqueue to delivery ({tenant})",
            response_time=(time.time() - sent_s) * 1000,
            response_length=0,
            exception=None,
            context={},
        )


class ComeAndGo(LoadTestShape):
    """The quiet tenant alone, then beside the noisy one, then alone again; --run-time stretches it (90 s)."""

    _WITHOUT: ClassVar[list[type[User]]] = [QuietTenant, Consumer]
    _WITH: ClassVar[list[type[User]]] = [QuietTenant, NoisyTenant, Consumer]
    # (until this part of the run, users, users started a second, who)
    _STAGES: ClassVar = ((0.25, 4, 4, _WITHOUT), (0.65, 16, 8, _WITH), (1.0, 4, 8, _WITHOUT))

    def tick(self) -> tuple[int, float, list[type[User]]] | None:
        """The stage that is on now; None ends the run."""
        assert self.runner is not None, "locust asks for a tick once it runs"
        options = self.runner.environment.parsed_options
        run_time = (options.run_time if options is not None else None) or 90
        part = self.get_run_time() / run_time  # type: ignore[no-untyped-call]
        for until, users, spawn_rate, who in self._STAGES:
            if part < until:
                return users, spawn_rate, who
        return None
