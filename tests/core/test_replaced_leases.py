"""What replaces others waits for the lease of the oldest of them, whatever becomes of those between."""

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.core.test_replaced import REPLACE, State, cancel, create, drained, found, got, over_a_kill, put
from tests.native.coreprobe import wrong_ages


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine()
    create(driven, "q")
    yield driven
    driven.remove()


@pytest.mark.parametrize("how", ["cancelled", "over"])
@pytest.mark.parametrize("killed", [False, True])
def test_it_waits_for_the_lease_although_the_one_between_ends_before_it_is_visible(
    killed: bool, how: str, engine: DrivenEngine
) -> None:
    """The newest names the message between, which waits for the lease and is gone when the newest is visible."""
    put(engine, "old", "d")
    leased = engine.lease("q")
    lives: dict[str, Any] = {"ttl_ms": 1000} if how == "over" else {}
    between = put(engine, "between", "d", **lives)
    request = service.EnqueueRequest(queue="q", payload=b"newest", headers={"k": "k"})
    request.options.CopyFrom(service.EnqueueOptions(dedup_key="d", on_duplicate=REPLACE))
    engine.submit(commands.ENQUEUE, request)
    engine.run_pass()
    if how == "over":
        engine.advance(1001)
    else:
        ids = service.CancelMessagesRequest(queue="q", message_ids=[between])
        engine.submit(commands.CANCEL_MESSAGES, ids)
    engine.run_pass()
    if killed:  # both are stored, and neither is visible
        engine.commit()
        over_a_kill(engine)
    engine.others += engine.settle_down()

    assert found(engine, between).state == State.STATE_NOT_KNOWN
    assert got(engine) == [], "the oldest is leased still"
    engine.nack("q", leased)
    assert drained(engine) == ["newest"]
    engine.sleep(10_000, 1000)
    assert drained(engine) == [], "the oldest has given way"


@pytest.mark.parametrize("killed", [False, True])
def test_it_waits_for_a_lease_that_began_as_the_one_between_was_on_its_way(
    killed: bool, engine: DrivenEngine
) -> None:
    put(engine, "old", "d")
    request = service.EnqueueRequest(queue="q", payload=b"between", headers={"k": "k"})
    request.options.CopyFrom(service.EnqueueOptions(dedup_key="d", on_duplicate=REPLACE))
    engine.submit(commands.ENQUEUE, request)
    leased = engine.lease("q")
    assert [message.payload for message in leased] == [b"old"]
    cancel(engine, keys=["d"])
    if killed:
        over_a_kill(engine)
    put(engine, "newest", "d")

    assert got(engine) == [], "the oldest is leased still"
    engine.nack("q", leased)
    assert drained(engine) == ["newest"]
    engine.sleep(10_000, 1000)
    assert drained(engine) == [], "the oldest has given way"


def test_after_a_seek_it_waits_for_the_newest_of_two_that_are_leased(engine: DrivenEngine) -> None:
    create(engine, "kept", retention={"soft_period_ms": 3_600_000})
    for payload in ("old", "new"):
        put(engine, payload, "d", queue="kept")
    request = admin.SeekChannelRequest(queue="kept", offset=1)
    engine.call(commands.SEEK_CHANNEL, request, admin.SeekChannelResponse)
    old, new = engine.lease("kept")
    put(engine, "newest", "d", queue="kept")

    assert got(engine, "kept") == []
    engine.ack("kept", [old])
    assert got(engine, "kept") == []
    engine.ack("kept", [new])
    assert drained(engine, "kept") == ["newest"]
    assert wrong_ages(engine.core) == []
