"""Ids rise over restarts, whatever the wall clock does, and none appears twice (docs/durability.md)."""

from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.native.storeprobe import StoreProbe

META = 0


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    engine = DrivenEngine()
    yield engine
    engine.remove()


def id_of(engine: DrivenEngine, queue: str) -> str:
    request = service.EnqueueRequest(queue=queue, payload=b"x")
    return engine.call(commands.ENQUEUE, request, service.EnqueueResponse).message_id


def ids_stored(engine: DrivenEngine, queue: str) -> list[str]:
    peek = admin.PeekMessagesRequest(queue=queue, max_messages=1000)
    return [m.id for m in engine.call(commands.PEEK_MESSAGES, peek, admin.PeekMessagesResponse).messages]


@pytest.mark.parametrize("how", ["kill", "power"])
def test_an_id_is_above_all_that_are_stored_though_the_clock_was_set_back(
    engine: DrivenEngine, how: str
) -> None:
    engine.create_queue("q")
    before = []
    for _ in range(5):
        engine.advance(100)
        before.append(id_of(engine, "q"))

    engine.cut_power() if how == "power" else engine.kill()
    engine.reopen(-60_000)

    assert id_of(engine, "q") > max(before)


def test_no_id_is_given_out_twice_though_a_power_cut_lost_it_and_its_time_comes_again(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q", durability=admin.DURABILITY_OS)
    engine.create_queue("safe")
    kept = id_of(engine, "safe")
    lost = []
    for _ in range(20):
        engine.advance(1)
        token = engine.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"x"))
        engine.run_pass()  # under `os` this answers, and nothing is synced
        engine.others = engine.core.drain()
        lost.append(service.EnqueueResponse.FromString(engine.answer_of(token)[1]).message_id)
    engine.cut_power()
    engine.seed = 8  # the server takes it from the system at each start
    engine.reopen(-20)
    assert (ids_stored(engine, "safe"), ids_stored(engine, "q")) == ([kept], [])

    new = []
    for _ in range(20):
        engine.advance(1)
        new.append(id_of(engine, "q"))

    assert [each[:18] for each in new] == [each[:18] for each in lost]  # the random bits are all that differs
    assert set(new).isdisjoint(lost)
    assert min(new) > kept


def test_damage_that_takes_the_record_of_the_newest_id_leaves_new_ids_above_the_stored_ones(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q")
    engine.create_queue("moved", max_attempts=1)
    id_of(engine, "q")
    engine.advance(1000)
    id_of(engine, "moved")
    engine.nack("moved", engine.lease("moved"))
    stored = ids_stored(engine, "q") + ids_stored(engine, "moved.dlq")
    assert len(stored) == 2
    engine.stop()
    probe = StoreProbe(str(engine.directory))
    probe.write([(META, b"id", None)])
    probe.close()

    engine.reopen(-60_000)

    assert id_of(engine, "q") > max(stored)
