"""`fila channel pause` and `resume`."""

from __future__ import annotations

import pytest
from grpc import StatusCode

from fila.v1 import admin_pb2, events_pb2
from tests.cli.fake_broker import FakeBroker, Refusal


def test_why_a_channel_is_paused_cannot_steer_the_terminal_that_lists_it(fila, broker: FakeBroker):
    pause = events_pb2.Pause(by="an\x1b[2Jna", comment="it\x1b]0;owned\x07\nsms: going on \u202eon")
    broker.answers["ListChannels"] = admin_pb2.ListChannelsResponse(
        channels=[admin_pb2.ChannelInfo(name="audit", paused=True, pause=pause)]
    )

    *_, said = fila("channel", "list", "orders").out.splitlines()

    assert said == r"audit: paused by an\x1b[2Jna: it\x1b]0;owned\x07\x0asms: going on \u202eon"


def with_channels(broker: FakeBroker, *names: str, paused: tuple[str, ...] = ()) -> None:
    """Orders has these channels, and the setting names those that are paused."""
    broker.answers["ListChannels"] = admin_pb2.ListChannelsResponse(
        channels=[admin_pb2.ChannelInfo(name=name) for name in names]
    )
    broker.answers["GetQueue"] = admin_pb2.GetQueueResponse(
        config=admin_pb2.QueueConfig(paused_channels=paused), version=7
    )


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_a_channel_that_there_is_not_is_neither_paused_nor_resumed(fila, broker: FakeBroker, command: str):
    with_channels(broker, "default", paused=("default",))

    ran = fila("channel", command, "orders", "adit")

    assert (ran.code, ran.out) == (1, "")
    assert 'queue "orders" has no channel "adit"; \'fila channel list orders\' shows its channels' in ran.err
    assert "UpdateQueue" not in [name for name, _ in broker.asked]


def others_win(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch, times: float) -> list[float]:
    """Somebody else changes the queue first, so many times; how long each wait was."""
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) >= times:
            del broker.answers["UpdateQueue"]

    monkeypatch.setattr("fila_cli.commands.channel.sleep", wait)
    text = "expected_version: the queue has version 8 of its settings by now, not 7"
    broker.answers["UpdateQueue"] = Refusal(StatusCode.ABORTED, text, "VERSION_STALE")
    return waits


def test_a_pause_that_others_were_faster_than_is_tried_again_after_growing_waits(
    fila, broker: FakeBroker, monkeypatch
):
    with_channels(broker, "audit", "default")
    waits = others_win(broker, monkeypatch, times=12)

    assert fila("channel", "pause", "orders", "audit").out == "channel audit of orders is paused\n"
    assert len(waits) == 12
    assert waits[0] < 0.05 < 0.2 < waits[-1] < 1
    tries = [request.expected_version for name, request in broker.asked if name == "UpdateQueue"]
    assert tries == [7] * 13


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_who_always_comes_second_is_told_so_in_words_of_the_command(
    fila, broker: FakeBroker, monkeypatch, command: str
):
    with_channels(broker, "audit", paused=("audit",) if command == "resume" else ())
    waits = others_win(broker, monkeypatch, times=1000)

    ran = fila("channel", command, "orders", "audit")

    assert (ran.code, ran.out, "version" in ran.err) == (1, "", False)
    assert 'others changed queue "orders" at each try for 5 s, and channel audit stays as it was' in ran.err
    assert 5 <= sum(waits) < 6


def test_a_name_that_is_paused_is_resumed_though_its_channel_was_deleted(fila, broker: FakeBroker):
    with_channels(broker, "default", paused=("default", "gone"))

    assert fila("channel", "resume", "orders", "gone").out == "channel gone of orders goes on\n"
    assert list(broker.request("UpdateQueue").config.paused_channels) == ["default"]
