"""A channel that is paused by name: nothing is delivered in it, its acks go on, and so do the other channels."""

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from fila_server.telemetry.snapshot import decode
from tests.core.driven_engine import DrivenEngine

CHANNELS = ["audit", "default"]


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    made.create_queue("q", channels=CHANNELS)
    yield made
    made.remove()


def pause(engine: DrivenEngine, *channels: str, **config: Any) -> None:
    settings = admin.QueueConfig(channels=CHANNELS, paused_channels=channels, **config)
    request = admin.UpdateQueueRequest(queue="q", config=settings)
    engine.call(commands.UPDATE_QUEUE, request, admin.UpdateQueueResponse)


def listed(engine: DrivenEngine) -> dict[str, bool]:
    answer = engine.call(
        commands.LIST_CHANNELS, admin.ListChannelsRequest(queue="q"), admin.ListChannelsResponse
    )
    return {each.name: each.paused for each in answer.channels}


def state_in(engine: DrivenEngine, channel: str) -> Any:
    request = admin.ExplainKeyRequest(queue="q", channel=channel, fairness_key="default")
    return engine.call(commands.EXPLAIN_KEY, request, admin.ExplainKeyResponse).state


def test_a_paused_channel_delivers_nothing_and_the_others_go_on(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"x")
    [held] = engine.lease("q", 1, "audit")
    pause(engine, "audit")
    engine.enqueue("q", b"y")

    assert engine.payloads("q", channel="audit") == []
    assert engine.payloads("q") == [b"x", b"y"]
    assert engine.ack("q", [held], "audit") == [0], "what was leased goes on"
    assert listed(engine) == {"audit": True, "default": False}
    assert state_in(engine, "audit") == admin.ExplainKeyResponse.STATE_PAUSED
    assert state_in(engine, "default") == admin.ExplainKeyResponse.STATE_LEASED


def test_who_waits_in_it_is_served_once_it_goes_on(engine: DrivenEngine) -> None:
    pause(engine, "audit")
    engine.enqueue("q", b"x")
    asked = service.LeaseRequest(queue="q", channel="audit", max_messages=1, wait_ms=60_000)
    waiting = engine.submit(commands.LEASE, asked)
    engine.others += engine.settle_down()
    pause(engine)

    engine.others += engine.settle_down()
    [message] = service.LeaseResponse.FromString(engine.answer_of(waiting)[1]).messages
    assert message.payload == b"x"


def test_a_pause_of_the_queue_and_one_of_its_channel_end_each_for_itself(engine: DrivenEngine) -> None:
    pause(engine, "audit", paused=True)
    engine.enqueue("q", b"x")
    assert engine.payloads("q") == []
    pause(engine, "audit")
    assert engine.payloads("q") == [b"x"]
    assert engine.payloads("q", channel="audit") == []
    pause(engine, paused=True)
    assert engine.payloads("q", channel="audit") == []
    assert listed(engine) == {"audit": True, "default": True}
    pause(engine)
    assert engine.payloads("q", channel="audit") == [b"x"]


def test_it_stays_paused_over_a_restart_and_when_it_is_made_anew(engine: DrivenEngine) -> None:
    pause(engine, "audit", "later")
    engine.enqueue("q", b"x")
    engine.kill()
    engine.reopen()
    assert engine.payloads("q", channel="audit") == []
    assert engine.payloads("q") == [b"x"]

    made = admin.CreateChannelRequest(queue="q", channel="later", oldest=True)
    engine.call(commands.CREATE_CHANNEL, made, admin.CreateChannelResponse)
    assert engine.payloads("q", channel="later") == []
    moved = admin.SeekChannelRequest(queue="q", channel="audit", offset=1)
    engine.call(commands.SEEK_CHANNEL, moved, admin.SeekChannelResponse)
    assert engine.payloads("q", channel="audit") == []


def test_it_troubles_by_its_own_name_and_nobody_has_to_consume_it(engine: DrivenEngine) -> None:
    pause(engine, "audit")
    assert not page(engine).paused, "nothing waits"
    engine.enqueue("q", b"x")

    found = page(engine)
    [row] = found.paused
    assert (row.queue, row.channel, row.fairness_key, row.ready, row.is_queue) == (
        b"q",
        b"audit",
        b"",
        1,
        False,
    )
    assert [row.channel for row in found.unserved] == [b"default"]
    token = engine.submit(commands.METRICS)
    engine.others += engine.settle_down()
    [queue] = [each for each in decode(engine.answer_of(token)[1]).queues if each.name == b"q"]
    assert queue.is_paused == 0
    assert {each.name: each.is_paused for each in queue.channels} == {b"audit": 1, b"default": 0}


def page(engine: DrivenEngine) -> Any:
    return engine.call(commands.TROUBLES_PAGE, seam_frames.TroublesPage(), seam_frames.TroublesFound)


def test_some_queues_are_listed_by_their_names(engine: DrivenEngine) -> None:
    for name in ("a", "b"):
        engine.create_queue(name)
    asked = seam_frames.QueuesAsked(names=[b"b", b"none", b"q"])
    found = engine.call(commands.LIST_QUEUES, asked, admin.ListQueuesResponse)

    assert [each.name for each in found.queues] == ["b", "q"]
    whole = engine.call(commands.LIST_QUEUES, b"", admin.ListQueuesResponse)
    assert {each.name for each in whole.queues} >= {"a", "b", "q"}
