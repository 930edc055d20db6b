"""Numbers of a queue with many keys: found part after part, the same as by one look, while the table changes too."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import events_pb2 as events
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations.keys import key_policies
from fila_server.operations.statistics import Statistics
from tests.core.driven_engine import DrivenEngine

KEYS = 20_000
CELLS_PER_PAGE = 8_192
BATCH = 5_000


@pytest.fixture(scope="module")
def engine() -> Iterator[DrivenEngine]:
    """20,000 keys; every 1,000th has two more messages, three wait for a bucket, some are leased."""
    made = DrivenEngine()
    made.create_queue("q", fairness_key_header="k", throttle_key_headers=["t"])
    made.set_config("throttle.slow", "0.001,1")
    enqueue(made, [{"k": f"slow{key}", "t": "slow"} for key in range(4)])
    assert len(made.lease("q", 100)) == 1, "its bucket has one token"
    enqueue(made, [{"k": f"leased{key}"} for key in range(100)])
    assert len(made.lease("q", 100)) == 100
    made.advance(500)
    enqueue(made, [{"k": f"key{key}"} for key in range(KEYS)])
    enqueue(made, [{"k": f"key{key}"} for key in range(0, KEYS, 1_000) for _ in range(2)])
    yield made
    made.remove()


def enqueue(engine: DrivenEngine, headers: list[dict[str, str]]) -> None:
    for at in range(0, len(headers), BATCH):
        request = service.EnqueueBatchRequest(
            queue="q",
            messages=[
                service.EnqueueMessage(payload=b"x", headers=each) for each in headers[at : at + BATCH]
            ],
        )
        engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)


class Asked:
    """Broker.call, that counts."""

    def __init__(self, engine: DrivenEngine) -> None:
        self.engine = engine
        self.kinds: list[int] = []

    async def call(self, kind: int, frame: bytes) -> bytes:
        self.kinds.append(kind)
        token = self.engine.submit(kind, frame)
        self.engine.others += self.engine.settle_down()
        status, payload = self.engine.answer_of(token)
        assert status == 0
        return payload


def stats(engine: DrivenEngine, **asked: Any) -> tuple[admin.GetStatsResponse, list[int]]:
    broker = Asked(engine)
    return told(broker.call, **asked), broker.kinds


def told(call: Any, **asked: Any) -> admin.GetStatsResponse:
    there: Any = SimpleNamespace(call=call)
    reply = asyncio.run(Statistics(there).of(admin.GetStatsRequest(queue="q", **asked)))
    return admin.GetStatsResponse.FromString(reply)


def test_a_large_table_is_never_walked_in_one_command(engine: DrivenEngine) -> None:
    whole, kinds = stats(engine, max_keys=30)

    assert whole.active_fairness_keys == KEYS + 3
    assert kinds[0] == commands.GET_STATS
    assert len(kinds) - 1 >= KEYS // CELLS_PER_PAGE
    assert set(kinds[1:]) == {commands.STATS_PAGE}
    page = seam_frames.StatsPage(queue=b"q", most=100_000)
    part = engine.call(commands.STATS_PAGE, page, seam_frames.StatsPart)
    assert 0 < len(part.keys) <= CELLS_PER_PAGE
    alone = engine.call(commands.GET_STATS, admin.GetStatsRequest(queue="q"), admin.GetStatsResponse)
    assert not alone.per_key_stats


def test_its_parts_make_the_whole(engine: DrivenEngine) -> None:
    whole, _ = stats(engine, max_keys=30)

    assert (whole.depth, whole.in_flight, whole.oldest_age_ms) == (KEYS + 2 * 20 + 3, 101, 500)
    largest = {key.key: key.pending_count for key in whole.per_key_stats}
    assert len(largest) == 30
    assert {key for key, pending in largest.items() if pending == 3} == {
        f"key{key}" for key in range(0, KEYS, 1_000)
    }
    assert sorted(largest.values()) == [1] * 10 + [3] * 20
    assert [(bucket.key, bucket.waiting) for bucket in whole.per_throttle_stats] == [("slow", 3)]
    assert not seam_frames.StatsLeft.FromString(whole.SerializeToString()).keys_left


def test_a_table_that_grows_in_between_is_counted_once(engine: DrivenEngine) -> None:
    broker = Asked(engine)
    grown = False

    async def call(kind: int, frame: bytes) -> bytes:
        nonlocal grown
        reply = await broker.call(kind, frame)
        if kind == commands.STATS_PAGE and not grown:
            grown = True
            enqueue(engine, [{"k": f"new{key}"} for key in range(2 * KEYS)])
        return reply

    whole = told(call, max_keys=10)

    assert whole.active_fairness_keys == 3 * KEYS + 3
    assert [bucket.waiting for bucket in whole.per_throttle_stats] == [3]


def test_what_was_set_for_single_keys_is_found_part_after_part(engine: DrivenEngine) -> None:
    for key in range(0, KEYS, 2_000):
        request = admin.SetKeyPolicyRequest(queue="q", fairness_key=f"key{key}", weight=7)
        engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)
    broker = Asked(engine)
    there: Any = SimpleNamespace(call=broker.call)

    listed = asyncio.run(key_policies(there, events.ListKeyPoliciesRequest(queue="q")))
    one = asyncio.run(key_policies(there, events.ListKeyPoliciesRequest(queue="q", fairness_key="key2000")))

    assert [policy.fairness_key for policy in listed.policies] == sorted(
        f"key{key}" for key in range(0, KEYS, 2_000)
    )
    assert [(policy.fairness_key, policy.weight) for policy in one.policies] == [("key2000", 7)]
    behind = events.ListKeyPoliciesRequest(queue="q", after=listed.policies[2].fairness_key)
    assert asyncio.run(key_policies(there, behind)).policies == listed.policies[3:]
    assert len(broker.kinds) - 1 >= KEYS // CELLS_PER_PAGE


def test_a_queue_with_few_keys_tells_of_all_its_buckets() -> None:
    engine = DrivenEngine()
    engine.create_queue("q", fairness_key_header="k", throttle_key_headers=["t"])
    for bucket in range(50):
        engine.set_config(f"throttle.b{bucket}", "1,1")
    enqueue(engine, [{"k": "one", "t": f"b{bucket}"} for bucket in range(50) for _ in range(2)])
    assert len(engine.lease("q", 200)) == 50, "each bucket has one token"

    whole, _ = stats(engine)

    assert {bucket.key: bucket.waiting for bucket in whole.per_throttle_stats} == {
        f"b{bucket}": 1 for bucket in range(50)
    }
    engine.remove()


def test_of_a_channel_alone_its_keys_that_wait_longest_are_told() -> None:
    engine = DrivenEngine()
    engine.create_queue("q", fairness_key_header="k", channels=["default", "audit"])
    enqueue(engine, [{"k": f"key{key}"} for key in range(30)])
    engine.advance(1_000)
    engine.ack("q", engine.lease("q", 100))

    def late(channel: bytes) -> tuple[set[str], list[bytes]]:
        page = seam_frames.WaitingLongestPage(queue=b"q", most=100, channel=channel)
        part = engine.call(commands.WAITING_LONGEST_PAGE, page, seam_frames.WaitingLongestKeys)
        return {events.LateKey.FromString(row).channel for row in part.keys}, [
            each.channel for each in part.waiting
        ]

    assert late(b"audit") == late(b"") == ({"audit"}, [b"audit"])
    assert late(b"default") == late(b"unknown") == (set(), [])
    engine.remove()
