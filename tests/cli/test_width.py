"""What a narrow terminal is shown, and that a program is shown all."""

from __future__ import annotations

import io

import pytest

from fila.v1 import admin_pb2, events_pb2
from fila_cli import output
from tests.cli.fake_broker import FakeBroker


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal_of(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_narrow_terminal_is_spared_the_columns_that_matter_least(monkeypatch):
    headings, row = ("KEY", "WEIGHT", "SINCE", "CAUSE"), ("acme", 3, "14:01:25", "paused")

    def shown(columns: int) -> list[str]:
        on_a_terminal_of(columns, monkeypatch)
        return output.table(headings, [row], ("WEIGHT", "SINCE")).splitlines()[0].split()

    assert shown(30) == ["KEY", "WEIGHT", "SINCE", "CAUSE"]
    assert shown(29) == ["KEY", "SINCE", "CAUSE"]
    assert shown(21) == ["KEY", "CAUSE"]
    assert shown(5) == ["KEY", "CAUSE"], "the rest is what the table is for"


def test_a_program_gets_every_column_and_every_value_on_its_line(monkeypatch):
    monkeypatch.setattr("sys.stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", "10")

    assert output.table(("KEY", "WEIGHT"), [("acme", 3)], ("WEIGHT",)).splitlines()[0] == "KEY   WEIGHT"
    assert output.facts([("waits because", "of one thing and another")]).count("\n") == 0


def test_names_are_shortened_where_leaving_columns_out_does_not_do(monkeypatch):
    headings = ("QUEUE", "KEY", "ID", "CAUSE")
    rows = [("orders-of-the-whole-of-europe", "umbrella-corporation", "01a204da-6b83", "paused")]

    on_a_terminal_of(50, monkeypatch)
    assert output.table(headings, rows, ("CAUSE",), ("QUEUE", "KEY")).splitlines() == [
        "QUEUE             KEY                ID",
        "orders-of-the...  umbrella-corpo...  01a204da-6b83",
    ]
    on_a_terminal_of(10, monkeypatch)
    assert output.table(headings, rows, ("CAUSE",), ("QUEUE", "KEY")).splitlines()[1] == (
        "order...  umbre...  01a204da-6b83"
    ), "never beyond recognition, and what is copied from the screen never"


def test_a_dash_stands_among_numbers_as_one():
    assert output.table(("CAP", "KEY"), [("-", "-"), (12, "acme")]) == "CAP  KEY\n  -  -\n 12  acme"


def test_a_key_that_waits_in_two_channels_is_told_with_its_channel(fila, broker: FakeBroker, monkeypatch):
    broker.answers["ListLate"] = events_pb2.ListLateResponse(
        keys=[
            events_pb2.LateKey(queue="orders", channel=channel, fairness_key="acme" * 5)
            for channel in ("default", "audit")
        ]
    )
    monkeypatch.setattr(output, "columns", lambda: 60)

    assert "CHANNEL" in fila("late").out


def test_ideographs_take_two_columns_and_accents_of_their_own_none():
    rows = [("東京電力", 1), ("cafe\u0301", 22), ("acme", 333)]

    assert output.table(("KEY", "PENDING", "CAUSE"), [(*row, "paused") for row in rows]).splitlines() == [
        "KEY       PENDING  CAUSE",
        "東京電力        1  paused",
        "cafe\u0301           22  paused",
        "acme          333  paused",
    ]


def test_a_long_value_goes_on_in_its_own_column(monkeypatch):
    on_a_terminal_of(40, monkeypatch)

    assert output.facts([("waits because", "paused by an operator; resume it"), ("pending", 3)]) == (
        "waits because  paused by an operator;\n               resume it\npending        3"
    )


@pytest.mark.parametrize("words", ["late", "consumer list orders", "key list orders"])
def test_columns_to_spare_are_columns_of_their_table(fila, broker: FakeBroker, monkeypatch, words):
    broker.answers["ListLate"] = events_pb2.ListLateResponse(
        keys=[events_pb2.LateKey(fairness_key="acme" * 5)]
    )
    broker.answers["ListConsumers"] = admin_pb2.ListConsumersResponse(
        consumers=[admin_pb2.ConsumerInfo(peer="ipv4:10.0.0.1:40000" * 3)]
    )
    broker.answers["ListKeyPolicies"] = events_pb2.ListKeyPoliciesResponse(
        policies=[events_pb2.KeyPolicy(fairness_key="acme" * 5)]
    )
    monkeypatch.setattr(output, "columns", lambda: 60)

    assert all(len(line) <= 60 for line in fila(*words.split()).out.splitlines())


def test_an_event_goes_on_below_on_a_narrow_terminal(fila, broker: FakeBroker, monkeypatch):
    event = events_pb2.Event(kind="queue.created", count=1, queue="orders", peer="ipv4:10.0.0.7:59216")
    broker.answers["WatchEvents"] = lambda _: iter([events_pb2.WatchEventsResponse(events=[event])])
    monkeypatch.setattr("fila_cli.commands.events.columns", lambda: 60)

    assert fila("events").out == (
        "1970-01-01T00:00:00.000Z  queue.created\n    queue=orders by=ipv4:10.0.0.7:59216\n"
    )


def test_a_paused_key_is_due_nothing(fila, broker: FakeBroker):
    broker.answers["ExplainKey"] = admin_pb2.ExplainKeyResponse(
        state=admin_pb2.ExplainKeyResponse.STATE_PAUSED,
        pending=5,
        due_share=1.0,
        consumers=events_pb2.ChannelConsumers(),
    )

    assert "0.0% of the last hour, due nothing while it is paused" in fila("explain", "orders", "acme").out
