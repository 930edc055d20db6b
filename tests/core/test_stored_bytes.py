"""How many bytes are stored under a fairness key, over all queues: what a tenant's quota goes by."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    for name in ("a", "b"):
        made.create_queue(name, fairness_key_header="k", max_attempts=1)
    yield made
    made.remove()


def counted(engine: DrivenEngine, *keys: str) -> list[int]:
    counts = [0] * len(keys)
    page = seam_frames.StoredPage(keys=[key.encode() for key in keys])
    while True:
        told = engine.call(commands.STORED_BYTES, page, seam_frames.StoredBytes)
        counts = [count + more for count, more in zip(counts, told.stored, strict=True)]
        page.cursor = told.cursor
        if not page.cursor:
            return counts


def batch(engine: DrivenEngine, queue: str, *keys: str) -> None:
    """One frame, of a kilobyte a key."""
    request = service.EnqueueBatchRequest(queue=queue)
    for key in keys:
        request.messages.add(headers={"k": key}, payload=b"x" * 1000)
    engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)


def test_bytes_are_counted_by_key_over_all_queues_and_dead_letters_are_some(engine: DrivenEngine) -> None:
    assert counted(engine, "acme", "glob") == [0, 0]
    batch(engine, "a", "acme", "acme", "glob")
    batch(engine, "b", "acme")
    acme, glob, nobody = counted(engine, "acme", "glob", "nobody")

    assert (acme, nobody) == (3 * glob, 0)
    assert 1000 < glob < 1100, "payload and headers"
    leased = [each for each in engine.lease("a") if each.metadata.fairness_key == "acme"]
    engine.nack("a", leased[:1])
    assert engine.stats("a.dlq").depth == 1
    moved, _ = counted(engine, "acme", "glob")
    assert 4 * glob < moved < 4 * glob + 100, "in its frame, with the others, and in the dead-letter queue"


def test_a_message_counts_until_its_frame_is_gone(engine: DrivenEngine) -> None:
    batch(engine, "a", "acme", "glob")
    batch(engine, "a", "acme")
    acme, one = counted(engine, "acme", "glob")
    leased = {each.metadata.offset: each for each in engine.lease("a")}

    engine.ack("a", [leased[1]])
    assert counted(engine, "acme", "glob") == [acme, one], "its frame is there for its neighbour's sake"
    engine.ack("a", [leased[2]])
    assert counted(engine, "acme", "glob") == [acme - one, 0]
    engine.ack("a", [leased[3]])
    assert counted(engine, "acme", "glob") == [0, 0]


def test_a_purge_and_the_end_of_a_queue_give_the_bytes_back(engine: DrivenEngine) -> None:
    batch(engine, "a", *["acme"] * 50)
    batch(engine, "b", *["acme"] * 50)
    (both,) = counted(engine, "acme")
    engine.call(commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue="a"), admin.PurgeQueueResponse)
    assert counted(engine, "acme") == [both // 2]
    engine.call(
        commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="b", force=True), admin.DeleteQueueResponse
    )
    engine.sleep(100)
    assert counted(engine, "acme") == [0]


@pytest.mark.parametrize("seed", range(5))
def test_a_start_counts_what_was_counted_before(engine: DrivenEngine, seed: int) -> None:
    dice = random.Random(seed)
    keys = ["acme", "glob", "initech", "hooli"]
    for _ in range(30):
        queue = dice.choice("ab")
        batch(engine, queue, *(dice.choice(keys) for _ in range(dice.randint(1, 5))))
        leased = engine.lease(queue, dice.randint(0, 4)) if dice.random() < 0.6 else []
        dice.shuffle(leased)
        half = len(leased) // 2
        engine.ack(queue, leased[:half])
        engine.nack(queue, leased[half:])
    engine.sleep(1000)
    before = counted(engine, *keys)
    (engine.kill if seed % 2 else engine.stop)()
    engine.reopen()

    assert counted(engine, *keys) == before
    for name in ("a", "b", "a.dlq", "b.dlq"):
        engine.call(commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue=name), admin.PurgeQueueResponse)
    engine.sleep(200_000)
    assert counted(engine, *keys) == [0] * 4


def test_many_queues_are_counted_in_parts(engine: DrivenEngine) -> None:
    for number in range(300):
        engine.create_queue(f"q{number}", fairness_key_header="k")
        batch(engine, f"q{number}", "acme")
    page = seam_frames.StoredPage(keys=[b"acme"])
    first = engine.call(commands.STORED_BYTES, page, seam_frames.StoredBytes)
    (whole,) = counted(engine, "acme")
    batch(engine, "a", "glob")
    (one,) = counted(engine, "glob")

    assert first.cursor, "there are twice as many queues, with their dead letters"
    assert whole == 300 * one
