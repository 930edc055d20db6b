"""Commands that go on while a broker restarts, and what streams print: one line when nobody answers, one when somebody
does again, one of json an answer; and what a screen that goes on keeps of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from grpc import StatusCode

from fila.v1 import admin_pb2, events_pb2, operation_pb2, watch_pb2
from tests.cli.fake_broker import FakeBroker, Refusal

AWAY = Refusal(StatusCode.UNAVAILABLE, "nobody listens")
GOING_ON = [
    ("events --follow", "WatchEvents", [events_pb2.WatchEventsResponse(next_position=7)]),
    ("watch orders", "WatchStats", [watch_pb2.WatchStatsResponse(full=True)]),
    ("log orders --follow", "ReadLog", [admin_pb2.ReadLogResponse(next_offset=7)]),
    ("status --watch", "GetStatus", events_pb2.GetStatusResponse()),
]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], Any]]:
    """What happens in the command's pauses, one after the other; behind the last comes Ctrl-C."""
    left: list[Callable[[], Any]] = []

    def pause(_: float) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    monkeypatch.setattr("time.sleep", pause)
    return left


@pytest.mark.parametrize(("line", "method", "answer"), GOING_ON, ids=[line for line, *_ in GOING_ON])
def test_an_outage_is_told_once_and_so_is_its_end(
    fila, broker: FakeBroker, pauses: list[Callable[[], Any]], line: str, method: str, answer: Any
):
    def from_now_on(given: Any) -> Callable[[], None]:
        return lambda: broker.answers.update({method: given})

    broker.answers[method] = answer
    pauses += [from_now_on(AWAY), int, int, from_now_on(answer), int]

    ran = fila(*line.split())

    assert ran.code == 0
    assert ran.err.splitlines() == [
        f"fila: no answer from {broker.address}, trying again",
        "fila: the broker is back",
    ]


@pytest.mark.parametrize("line", ["events --follow", "watch orders"])
def test_a_broker_that_was_never_there_is_no_outage(fila, broker: FakeBroker, line: str):
    broker.answers |= {"WatchEvents": AWAY, "WatchStats": AWAY}

    assert fila(*line.split()).code == 1


@pytest.mark.parametrize(
    ("line", "method", "answers"),
    [
        ("watch orders", "WatchStats", [watch_pb2.WatchStatsResponse(sequence=at) for at in (1, 2)]),
        (
            "operation watch orders.dlq 1-a",
            "WatchOperation",
            [operation_pb2.WatchOperationResponse(operation={"done": at}) for at in (1, 2)],
        ),
    ],
)
def test_a_streams_answers_are_a_line_of_json_each(
    fila, broker: FakeBroker, pauses: list[Callable[[], Any]], line: str, method: str, answers: list[Any]
):
    broker.answers[method] = answers

    lines = fila(*line.split(), "-o", "json").out.splitlines()

    assert len([json.loads(each) for each in lines]) == 2
    assert not pauses


def watched(*keys: str, leading: str, full: bool = False) -> watch_pb2.WatchStatsResponse:
    """What is told of a queue of which those keys are new or changed, each with a message that waits."""
    told = watch_pb2.WatchStatsResponse(full=full)
    channel = told.channels.add(leading=leading.split())
    channel.state.queue, channel.state.channel = "orders", "default"
    for key in keys:
        channel.keys.add(fairness_key=key, ready=1)
    return told


def shown_last(out: str) -> list[str]:
    """The keys of the last table, in its order."""
    return [line.split()[0] for line in out.rsplit("KEY ", maxsplit=1)[-1].splitlines()[1:] if line]


@pytest.mark.parametrize(
    ("named", "messages", "shown"),
    [
        ((), [watched("a", "b", leading="a b", full=True), watched(leading="b")], ["b"]),
        (("a",), [watched("a", "b", leading="a b", full=True), watched(leading="b")], ["b", "a"]),
        ((), [watched("a", leading="a", full=True), watched(leading=""), watched("a", leading="a")], ["a"]),
        # As a tenant's key is told: of its own key, which it need not name, and nobody leads.
        ((), [watched("acme", leading="", full=True), watched(leading="")], ["acme"]),
    ],
    ids=["no longer leads", "was named", "leads again", "a tenant's own"],
)
def test_a_key_that_neither_leads_nor_was_named_is_on_the_screen_no_more(
    fila,
    broker: FakeBroker,
    pauses: list[Callable[[], Any]],
    named: tuple[str, ...],
    messages: list[watch_pb2.WatchStatsResponse],
    shown: list[str],
):
    broker.answers["WatchStats"] = messages

    out = fila("watch", "orders", *(word for key in named for word in ("--key", key))).out

    assert not pauses
    assert shown_last(out) == shown


def test_a_channel_made_anew_under_its_name_has_no_keys_of_the_one_before(
    fila, broker: FakeBroker, pauses: list[Callable[[], Any]]
):
    gone = watch_pb2.WatchStatsResponse()
    gone.gone.add(queue="orders", channel="default")
    broker.answers["WatchStats"] = [
        watched("a", leading="a", full=True), gone, watched("b", leading="b"),
    ]  # fmt: skip

    out = fila("watch", "orders", "--key", "a").out

    assert not pauses
    assert shown_last(out) == ["b"]
