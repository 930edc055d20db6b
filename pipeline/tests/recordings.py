"""Recordings of a real broker at work."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from broker_process import BrokerProcess

from fila.v1 import admin_pb2, service_pb2
from fila_pipeline import schema

ROOT = Path(__file__).resolve().parents[2]
CLOSED_S_MAX = 120.0


def closed_recording(
    folder: Path, work: Callable[[BrokerProcess, Path], Any], *, roll_ms: int = 5000
) -> tuple[Path, Any]:
    """Record work; returns the history and what the work gave."""
    directory = folder / "history"
    broker = BrokerProcess(ROOT, folder)
    broker.start(
        FILA_HISTORY__ENABLED="true",
        FILA_HISTORY__DIR=str(directory),
        FILA_HISTORY__ROLL_MS=str(roll_ms),
    )
    try:
        gave = work(broker, directory)
        _wait_until_closed(broker, directory)
        broker.stop()
    finally:
        broker.kill()
    return directory, gave


def _wait_until_closed(broker: BrokerProcess, directory: Path) -> None:
    """A stop gives the history's thread eight seconds at most, and it has the lowest priority: too few on a busy
    machine."""
    done = time.time() - 0.001  # the broker's clock has milliseconds
    broker.admin.SetConfig(admin_pb2.SetConfigRequest(key="all.done", value="yes"))
    deadline = time.monotonic() + CLOSED_S_MAX
    while time.monotonic() < deadline:
        listed = [json.loads(path.read_text()) for path in (directory / schema.LIST).glob("[!_]*.json")]
        if any(
            datetime.fromisoformat(entry["last_at"]).timestamp() >= done
            for entry in listed
            if entry.get("table") == schema.INPUTS
        ):
            return
        time.sleep(0.05)
    raise AssertionError(f"what was done is in no closed file after {CLOSED_S_MAX:g} s")


def some_work(broker: BrokerProcess) -> Any:
    """A flood beside two quiet tenants, a provider with a tight limit, some failures; the broker's own books."""
    config = admin_pb2.QueueConfig(
        fairness_key_header="tenant",
        throttle_key_headers=["provider"],
        weights={"acme": 3},
        max_attempts=2,
        visibility_timeout_ms=600_000,  # no lease ends while a busy machine records
    )
    broker.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders", config=config))
    broker.admin.SetConfig(admin_pb2.SetConfigRequest(key="throttle.openai", value="50,5"))
    tenants = ["acme"] * 100 + ["flood"] * 900 + ["hooli"] * 60
    messages = [
        service_pb2.EnqueueMessage(
            queue="orders",
            headers={"tenant": name} | ({"provider": "openai"} if name == "hooli" else {}),
            payload=b"p" * 200,
        )
        for name in tenants
    ]
    for at in range(0, len(messages), 100):
        broker.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(messages=messages[at : at + 100]))
    for turn in range(40):
        answered = broker.service.Lease(service_pb2.LeaseRequest(queue="orders", max_messages=25))
        items = [
            service_pb2.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id) for m in answered.messages
        ]
        if turn % 10 == 3:
            time.sleep(0.005)  # what is held for 0 ms is as fast at any speed
            broker.service.NackBatch(service_pb2.NackBatchRequest(queue="orders", items=items[:5]))
            items = items[5:]
        broker.service.AckBatch(service_pb2.AckBatchRequest(queue="orders", items=items))
        time.sleep(0.01)
    untouched = broker.service.Lease(service_pb2.LeaseRequest(queue="orders", max_messages=12)).messages
    broker.service.NackBatch(
        service_pb2.NackBatchRequest(
            queue="orders",
            items=[
                service_pb2.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id, release=True)
                for m in untouched[:7]
            ],
        )
    )
    return broker.stats("orders")


def skewed_work(broker: BrokerProcess) -> None:
    """Two tenants with a backlog all the time, of whom an operator gave one five times the weight."""
    config = admin_pb2.QueueConfig(fairness_key_header="tenant")
    broker.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders", config=config))
    broker.admin.SetKeyPolicy(admin_pb2.SetKeyPolicyRequest(queue="orders", fairness_key="acme", weight=5))
    messages = [
        service_pb2.EnqueueMessage(queue="orders", headers={"tenant": name}, payload=b"p")
        for name in ["acme", "globex"] * 500
    ]
    broker.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(messages=messages))
    for _ in range(40):
        leased = broker.service.Lease(service_pb2.LeaseRequest(queue="orders", max_messages=10)).messages
        items = [service_pb2.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id) for m in leased]
        broker.service.AckBatch(service_pb2.AckBatchRequest(queue="orders", items=items))
        time.sleep(0.01)


def more_work(broker: BrokerProcess) -> None:
    for tenant in ("acme", "hooli", "acme"):
        message = service_pb2.EnqueueMessage(queue="orders", headers={"tenant": tenant}, payload=b"p" * 200)
        broker.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(messages=[message] * 50))
        answered = broker.service.Lease(service_pb2.LeaseRequest(queue="orders", max_messages=25))
        items = [
            service_pb2.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id) for m in answered.messages
        ]
        broker.service.AckBatch(service_pb2.AckBatchRequest(queue="orders", items=items))
