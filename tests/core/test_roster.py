"""Who consumes, and what lies with whom; and the message that everybody gives back."""

from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine
from tests.core.driven_session import DrivenSession


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine()
    driven.create_queue("q")
    yield driven
    driven.remove()


def consumers(engine: DrivenEngine, channel: str = "") -> list[admin.ConsumerInfo]:
    request = admin.ListConsumersRequest(queue="q", channel=channel)
    return list(engine.call(commands.LIST_CONSUMERS, request, admin.ListConsumersResponse).consumers)


def test_a_consumer_is_listed_with_what_it_holds(engine: DrivenEngine) -> None:
    for _ in range(5):
        engine.enqueue("q")
    session = DrivenSession(engine, name="worker-1")
    session.begin(0, 1)
    session.say(alive={"sequence": 1, "handling_time_us": 2_500})
    session.say(window={"size": 4, "give_back": session.lease_ids(4)})

    [row] = consumers(engine)

    assert row.consumer_id == session.opened.consumer_id
    assert (row.name, row.channel, row.tracks_begun, row.away) == ("worker-1", "default", True, False)
    assert (row.held, row.begun, row.returned_total, row.window) == (4, 2, 1, 4)
    assert row.handling_time_us == 2_500
    assert row.connected_at.ToMilliseconds() == engine.wall_ms


def test_the_peer_is_what_the_edge_says_and_not_what_the_client_does(engine: DrivenEngine) -> None:
    opening = service.ConsumeSessionRequest(open={"queue": "q"}).SerializeToString()
    engine.submit(commands.SESSION_OPEN, opening + b"\x7a\x03lie" + b"\x7a\x05ipv4:")
    engine.others += engine.settle_down()

    [row] = consumers(engine)

    assert row.peer == "ipv4:"


def test_consumers_are_listed_oldest_first_those_that_are_away_too_and_pulls_never(
    engine: DrivenEngine,
) -> None:
    engine.enqueue("q")
    away, here = DrivenSession(engine), DrivenSession(engine)
    away.breaks()
    engine.submit(commands.LEASE, service.LeaseRequest(queue="q", wait_ms=9_000))
    engine.others += engine.settle_down()

    rows = consumers(engine)

    assert [row.consumer_id for row in rows] == [away.opened.consumer_id, here.opened.consumer_id]
    assert [row.away for row in rows] == [True, False]


def test_only_one_channels_consumers_are_listed_where_one_is_named(engine: DrivenEngine) -> None:
    made = admin.CreateChannelRequest(queue="q", channel="other")
    engine.call(commands.CREATE_CHANNEL, made, admin.CreateChannelResponse)
    DrivenSession(engine)
    other = DrivenSession(engine, channel="other")

    assert [row.consumer_id for row in consumers(engine, "other")] == [other.opened.consumer_id]
    assert len(consumers(engine)) == 2


def test_a_message_that_keeps_returning_is_named_once_and_explained(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"fine")
    offset = engine.enqueue("q", b"poison")
    session = DrivenSession(engine, max_in_flight=2)
    for _ in range(10):
        poison = [m.metadata.lease_id for m in session.messages if m.payload == b"poison"][-1]
        session.say(window={"size": 1, "give_back": [poison]})
        told = [payload for _, kind, _, payload in engine.others if kind == commands.NOTICE]
        session.say(window={"size": 2})
    poison = [m.metadata.lease_id for m in session.messages if m.payload == b"poison"][-1]
    session.say(window={"size": 1, "give_back": [poison]})

    asked = admin.ExplainKeyRequest(queue="q", fairness_key="default")
    explained = engine.call(commands.EXPLAIN_KEY, asked, admin.ExplainKeyResponse)

    [notice] = [seam_frames.Notice.FromString(payload) for payload in told]
    assert (notice.what, notice.queue, notice.channel, notice.number) == (4, b"q", b"default", offset)
    assert (explained.returning_offset, explained.returning_count) == (offset, 11)
