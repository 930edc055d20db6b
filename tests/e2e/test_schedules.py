"""Schedules on a real server: they fire, and the audit says who changed them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from fila import Backoff, FilaClient
from fila.v1 import auth_pb2, auth_pb2_grpc
from tests.e2e.conftest import RunningServer

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]

ACTS = ["CreateSchedule", "UpdateSchedule", "PauseSchedule", "PauseSchedule", "DeleteSchedule"]


@pytest.fixture
async def client(server: RunningServer) -> AsyncIterator[FilaClient]:
    backoff = Backoff(base_s=0.01, cap_s=0.1, randomness=random.Random(1))
    async with FilaClient.connect(server.addresses["grpc"], backoff=backoff, call_timeout_s=30) as client:
        yield client


def audited(server: RunningServer, queue: str) -> list[auth_pb2.AuditRecord]:
    """Acts on schedules of a queue, oldest first."""
    audit = auth_pb2_grpc.FilaAuthStub(server.channel())
    records = audit.ListAudit(auth_pb2.ListAuditRequest(limit=100)).records
    found = [record for record in records if record.queue == queue and record.act.endswith("Schedule")]
    return sorted(found, key=lambda record: record.number)


async def test_a_schedule_fires_for_one_moment_after_another(client: FilaClient, queue: str) -> None:
    await client.create_schedule(queue, "ping", every_ms=1_000, payload=b"go", headers={"tenant": "acme"})
    moments: list[str] = []
    while len(moments) < 2:
        for message in await client.lease(queue, wait_ms=20_000):
            moments.append(message.headers["fila-schedule-moment"])
            assert (message.payload, message.headers["tenant"]) == (b"go", "acme")
            await message.ack()

    assert len(set(moments)) == len(moments)
    assert sorted(moments) == moments


async def test_each_change_of_a_schedule_is_in_the_audit_and_its_payload_is_not(
    client: FilaClient, queue: str, server: RunningServer
) -> None:
    secret = b"do not show this"
    await client.create_schedule(queue, "daily", cron="0 9 * * *", payload=secret)
    await client.update_schedule(
        queue, "daily", cron="0 8 * * *", payload=secret, headers={"token": "hidden"}
    )
    await client.pause_schedule(queue, "daily")
    await client.pause_schedule(queue, "daily", paused=False)
    await client.list_schedules(queue)
    await client.delete_schedule(queue, "daily")

    records = audited(server, queue)
    assert [record.act for record in records] == ACTS
    assert {record.details["schedule"] for record in records} == {"daily"}
    assert "cron=0 9 * * *" in records[0].details["settings"]
    assert [record.details.get("paused", "") for record in records[2:4]] == ["true", ""]
    told = str(records)
    assert secret.decode() not in told
    assert "hidden" not in told


async def test_a_change_that_was_refused_is_not_in_the_audit(
    client: FilaClient, queue: str, server: RunningServer
) -> None:
    refused = [
        client.create_schedule(queue, "never", cron="0 0 30 2 *"),
        client.pause_schedule(queue, "nobody-made-it"),
        client.delete_schedule(queue, "nobody-made-it"),
    ]
    answers = await asyncio.gather(*refused, return_exceptions=True)

    assert all(isinstance(answer, Exception) for answer in answers)
    assert audited(server, queue) == []
