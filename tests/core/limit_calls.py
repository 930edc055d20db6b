"""Limits of a driven engine: set, listed, and messages that name their throttle keys."""

from __future__ import annotations

from typing import Any

from fila.v1 import limit_pb2 as pb
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine

DAY_MS = 24 * 3600 * 1000
COST, MESSAGES = pb.Limit.UNIT_COST, pb.Limit.UNIT_MESSAGES


def limited_engine() -> DrivenEngine:
    """Two queues whose messages name throttle keys in the headers t and u."""
    made = DrivenEngine()
    for queue in ("q", "r"):
        made.create_queue(
            queue,
            fairness_key_header="k",
            cost_header="c",
            throttle_key_headers=["t", "u"],
            visibility_timeout_ms=3_600_000,
        )
    return made


def rate(per_second: float, burst: float = 1, unit: pb.Limit.Unit = MESSAGES) -> pb.Rate:
    return pb.Rate(per_second=per_second, burst=burst, unit=unit)


def budget(
    amount: float, period_ms: int = DAY_MS, anchor_ms: int = 0, unit: pb.Limit.Unit = MESSAGES
) -> pb.Budget:
    return pb.Budget(amount=amount, period_ms=period_ms, anchor_ms=anchor_ms, unit=unit)


def put(engine: DrivenEngine, name: str, **terms: Any) -> pb.Limit:
    request = pb.SetLimitRequest(limit=pb.Limit(name=name, **terms))
    return engine.call(commands.SET_LIMIT, request, pb.SetLimitResponse).limit


def delete(engine: DrivenEngine, name: str) -> None:
    engine.call(commands.DELETE_LIMIT, pb.DeleteLimitRequest(limit_name=name), pb.DeleteLimitResponse)


def listed(engine: DrivenEngine, **asked: Any) -> list[pb.LimitState]:
    return list(
        engine.call(commands.LIST_LIMITS, pb.ListLimitsRequest(**asked), pb.ListLimitsResponse).limits
    )


def state(engine: DrivenEngine, key: str) -> pb.LimitState:
    (found,) = listed(engine, throttle_key=key)
    return found


def send(
    engine: DrivenEngine, count: int, key: str = "b", queue: str = "q", cost: float = 1, **headers: str
) -> None:
    sent = service.EnqueueBatchRequest()
    for _ in range(count):
        sent.messages.add(queue=queue, headers={"k": "x", "t": key, "c": str(cost)} | headers)
    engine.call(commands.ENQUEUE_BATCH, sent, service.EnqueueBatchResponse)


def restart(engine: DrivenEngine) -> None:
    engine.kill()
    engine.reopen()


def went(engine: DrivenEngine, queue: str = "q") -> int:
    return len(engine.lease(queue, most=1000))
