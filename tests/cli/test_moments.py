"""Moments as people write them, and as they are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from fila.v1 import admin_pb2, messages_pb2, service_pb2
from fila_cli.moments import NoMoment, moment_of
from tests.cli.fake_broker import FakeBroker

NOW = datetime(2026, 11, 24, 15, 30, tzinfo=UTC)  # 16:30 in Berlin
BERLIN = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-25 09:00 Europe/Berlin", datetime(2026, 11, 25, 9, 0, tzinfo=BERLIN)),
        ("2026-11-25T09:00:30Z", datetime(2026, 11, 25, 9, 0, 30, tzinfo=UTC)),
        ("2026-11-25 09:00+01:00", datetime(2026, 11, 25, 9, 0, tzinfo=BERLIN)),
        ("2026-11-25 9:00 UTC", datetime(2026, 11, 25, 9, 0, tzinfo=UTC)),
        ("tomorrow 09:00 Europe/Berlin", datetime(2026, 11, 25, 9, 0, tzinfo=BERLIN)),
        ("today 09:00 Europe/Berlin", datetime(2026, 11, 24, 9, 0, tzinfo=BERLIN)),
        ("16:00 Europe/Berlin", datetime(2026, 11, 24, 16, 0, tzinfo=BERLIN)),
        # It is the 25th there already.
        ("tomorrow 09:00 Pacific/Auckland", datetime(2026, 11, 25, 20, 0, tzinfo=UTC)),
        ("2026-11-25T09:00:00.5Z", datetime(2026, 11, 25, 9, 0, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_a_moment_has_a_day_a_time_and_a_zone(text, moment):
    assert moment_of(text, NOW) == moment


def test_a_time_without_a_day_is_the_next_one_where_something_is_to_come():
    assert moment_of("16:00 Europe/Berlin", NOW, is_ahead=True) == datetime(
        2026, 11, 25, 16, 0, tzinfo=BERLIN
    )
    assert moment_of("17:00 Europe/Berlin", NOW, is_ahead=True) == datetime(
        2026, 11, 24, 17, 0, tzinfo=BERLIN
    )
    assert moment_of("today 16:00 Europe/Berlin", NOW, is_ahead=True) < NOW


def test_a_time_that_the_clocks_skip_never_comes():
    with pytest.raises(NoMoment, match="never comes: the clocks skip it"):
        moment_of("2026-03-29 02:30 Europe/Berlin", NOW)
    assert moment_of("2026-03-29 03:30 Europe/Berlin", NOW) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


def test_of_an_hour_that_comes_twice_the_first_is_meant():
    assert moment_of("2026-10-25 02:30 Europe/Berlin", NOW) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nine",
        "25:00",
        "9",
        "tomorrow",
        "2026-02-30 09:00",
        "09:00 +01:00 UTC",
        "9999-12-31 23:59 Etc/GMT+12",
        "9:00\n",
    ],
)
def test_what_is_no_moment_is_answered_by_examples(text):
    with pytest.raises(NoMoment, match="is no time; write it like 14:00, 'tomorrow 14:00'"):
        moment_of(text, NOW)


@pytest.mark.parametrize("zone", ["Europe/Berlim", "../../etc/passwd", "Europe"])
def test_a_zone_that_is_not_known_is_named(zone):
    with pytest.raises(NoMoment, match=r"no time zone '.*'; write one like Europe/Berlin|is no time"):
        moment_of(f"09:00 {zone}", NOW)


def test_enqueue_says_when_its_message_is_due(fila, broker: FakeBroker):
    broker.answers["Enqueue"] = service_pb2.EnqueueResponse(message_id="0198", offset=7)

    ran = fila("enqueue", "orders", "hello", "--at", "2099-01-02 09:00Z")

    due = broker.request("Enqueue").options.deliver_at.ToDatetime(UTC)
    assert due == datetime(2099, 1, 2, 9, 0, tzinfo=UTC)
    assert ran == (0, f"0198 at offset 7, due {due.astimezone().isoformat(' ', 'seconds')}\n", "")


def test_peek_shows_when_a_delayed_message_is_due_and_that_another_is_ready(fila, broker: FakeBroker):
    ready, delayed = messages_pb2.Message(id="a"), messages_pb2.Message(id="b")
    due = datetime(2099, 1, 2, 9, 0, tzinfo=UTC)
    delayed.timestamps.due_at.FromDatetime(due)
    broker.answers["PeekMessages"] = admin_pb2.PeekMessagesResponse(messages=[ready, delayed])

    _, out, _ = fila("queue", "peek", "orders")

    lines = out.splitlines()
    assert "DUE" in lines[0]
    assert " now" in lines[1]
    assert due.astimezone().isoformat(" ", "seconds") in lines[2]


def test_peek_has_no_column_of_due_times_where_nothing_is_delayed(fila, broker: FakeBroker):
    broker.answers["PeekMessages"] = admin_pb2.PeekMessagesResponse(messages=[messages_pb2.Message(id="a")])

    assert "DUE" not in fila("queue", "peek", "orders")[1]
