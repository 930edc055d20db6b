"""A key in order on a real server, as consumers and operators see it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fila import Backoff, FilaClient
from fila.v1 import auth_pb2, auth_pb2_grpc
from tests.e2e.conftest import RunningServer

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]

STRICT: dict[str, Any] = {"fairness_key_header": "k", "key_order": "strict", "retry": "fixed:100ms"}


@pytest.fixture
async def client(server: RunningServer) -> AsyncIterator[FilaClient]:
    backoff = Backoff(base_s=0.01, cap_s=0.1, randomness=random.Random(1))
    async with FilaClient.connect(server.addresses["grpc"], backoff=backoff, call_timeout_s=30) as client:
        yield client


async def test_a_consumer_sees_a_failed_message_again_before_those_behind_it(
    client: FilaClient, queue: str
) -> None:
    await client.update_queue(queue, **STRICT)
    await client.enqueue_many(queue, [b"%d" % i for i in range(6)])

    seen = []
    async for message in client.consume(queue):
        seen.append(int(message.payload))
        fails = message.payload == b"1" and message.attempt_count == 0
        await (message.nack("busy") if fails else message.ack())
        if len(seen) == 7:
            break

    assert seen == [0, 1, 1, 2, 3, 4, 5]
    stats = await client.get_stats(queue)
    assert (stats.depth, stats.in_flight) == (0, 0)


async def test_an_operator_sees_what_a_key_waits_for_and_skips_it(
    client: FilaClient, queue: str, server: RunningServer
) -> None:
    await client.update_queue(queue, **STRICT)
    first = await client.enqueue(queue, b"0", {"k": "acme"})
    second = await client.enqueue(queue, b"1", {"k": "acme"})
    await client.lease(queue)

    told = await client.explain_key(queue, "acme")
    skipped = await client.skip_message(queue, "acme", message_id=first)

    assert told.waits_for is not None
    assert (told.state, told.waits_for.message_id) == ("in_order", first)
    assert skipped.message_id == first
    assert [message.id for message in await client.lease(queue, wait_ms=20_000)] == [second]
    [dead] = await client.peek(f"{queue}.dlq")
    assert dead.dead_letter is not None
    assert dead.dead_letter.reason == "skipped"
    events = [event async for event in client.watch_events(queue=queue, kinds=["key"])]
    assert [event.kind for event in events] == ["key.message_skipped"]
    audit = auth_pb2_grpc.FilaAuthStub(server.channel())
    record = audit.ListAudit(auth_pb2.ListAuditRequest(limit=1)).records[0]
    assert (record.act, record.queue) == ("SkipMessage", queue)
