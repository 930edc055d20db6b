"""When schedules fire: cron lines over daylight saving, intervals, and what becomes of moments that are over."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from fila.v1 import schedule_pb2 as pb
from fila_server.errors import Invalid
from fila_server.operations.timetable import LATE_MS_MAX, MADE_UP_MAX, Timetable

BERLIN = "Europe/Berlin"
HOUR = 3_600_000
DAY = 24 * HOUR


def ms(text: str, zone: str = BERLIN) -> int:
    """A moment by a zone's clocks; where they show it twice, the first time."""
    at = datetime.fromisoformat(text)
    return int((at if at.tzinfo else at.replace(tzinfo=ZoneInfo(zone))).timestamp() * 1000)


def of(cron: str = "", zone: str = BERLIN, every_ms: int = 0, made: str = "2026-01-01") -> Timetable:
    settings = pb.ScheduleSettings(cron=cron, every_ms=every_ms, time_zone=zone if cron else "")
    return Timetable(settings, ms(made, "UTC"))


def after(timetable: Timetable, text: str, most: int) -> list[str]:
    """The moments after one, as UTC has them."""
    moments = timetable.coming(timetable.after(ms(text)), most)
    return [datetime.fromtimestamp(each / 1000, UTC).isoformat()[:16] for each in moments]


def test_a_cron_line_means_its_zones_clocks_in_winter_and_in_summer() -> None:
    working_days = of("0 9 * * 1-5")
    assert after(working_days, "2026-03-26", 3) == [
        "2026-03-26T08:00",
        "2026-03-27T08:00",
        "2026-03-30T07:00",
    ]


def test_a_moment_in_the_hour_that_is_skipped_comes_right_behind_it() -> None:
    assert after(of("30 2 * * *"), "2026-03-28T12:00", 2) == ["2026-03-29T01:00", "2026-03-30T00:30"]


def test_several_moments_in_the_hour_that_is_skipped_are_one() -> None:
    # 2:00, 2:30 and 3:00 are all 3:00 of that day.
    assert after(of("0,30 2,3 * * *"), "2026-03-28T12:00", 3) == [
        "2026-03-29T01:00", "2026-03-29T01:30", "2026-03-30T00:00",
    ]  # fmt: skip


def test_a_moment_in_the_hour_that_is_repeated_comes_once() -> None:
    assert after(of("30 2 * * *"), "2026-10-24T12:00", 2) == ["2026-10-25T00:30", "2026-10-26T01:30"]


def test_a_moment_in_the_hour_that_is_repeated_does_not_come_again_when_asked_between_the_two() -> None:
    between = "2026-10-25T01:10:00+00:00"  # 2:10 for the second time
    assert after(of("30 2 * * *"), between, 1) == ["2026-10-26T01:30"]


def test_where_hours_or_minutes_begin_with_a_star_real_time_counts_in_both() -> None:
    assert after(of("30 * * * *"), "2026-10-25T01:45", 3) == [
        "2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30",
    ]  # fmt: skip
    assert after(of("*/30 * * * *"), "2026-03-29T01:15", 3) == [
        "2026-03-29T00:30", "2026-03-29T01:00", "2026-03-29T01:30",
    ]  # fmt: skip


def test_an_interval_counts_from_when_the_schedule_was_made() -> None:
    five = of(every_ms=5 * 60_000, made="2026-01-01T00:01:30")
    assert after(five, "2026-01-01T00:00+00:00", 2) == ["2026-01-01T00:06", "2026-01-01T00:11"]
    assert five.after(ms("2026-01-01T00:06:30", "UTC")) == ms("2026-01-01T00:11:30", "UTC")


@pytest.mark.parametrize("cron", ["*/7 * * * *", "0 9 * * 1-5", "30 2 * * *", "0 0 29 2 *"])
def test_moments_are_the_same_whether_they_are_sought_forwards_or_backwards(cron: str) -> None:
    timetable = of(cron)
    begin = timetable.after(ms("2026-03-27"))
    forwards = timetable.coming(begin, 60)
    assert timetable.newest(begin, forwards[-1], 60) == forwards[::-1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "settings.cron must be given where settings.every_ms is not, or is 0"),
        (
            {"cron": "* * * * *", "every_ms": 1000},
            "settings.cron must be left out where settings.every_ms is given",
        ),
        ({"every_ms": 999}, "settings.every_ms must be 1000 (1 s) to 31622400000 (366 days), got 999"),
        ({"every_ms": 1000, "time_zone": "UTC"}, "settings.time_zone must be left out with every_ms"),
        (
            {"cron": "0 9 * * 1-5", "time_zone": "Europe/Atlantis"},
            'got "Europe/Atlantis"; give a name such as',
        ),
        (
            {"cron": "0 9 * * 1-5", "time_zone": "../zone"},
            "settings.time_zone must be a zone of the IANA database",
        ),
        ({"cron": "0 0 30 2 *"}, "settings.cron must have a day-of-month that is one, and that comes, got"),
        ({"cron": "0 0 */31 2 MON#5"}, "settings.cron must fire within 50 years"),
        (
            {"cron": "60 * * * *"},
            'settings.cron must have a minute that is one, and that comes, got "60',
        ),
        ({"cron": "@daily"}, "settings.cron must have 5 fields, got 1"),
        ({"cron": "0 0 0 * * *"}, "settings.cron must have 5 fields, got 6"),
        ({"cron": "0 " * 200}, "settings.cron must be at most 256 bytes"),
    ],
)
def test_what_never_fires_is_refused_with_its_field_and_the_next_step(
    settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(Invalid) as refused:
        Timetable(pb.ScheduleSettings(**settings), ms("2026-01-01"))
    assert words in refused.value.message


def test_a_moment_that_is_just_over_is_not_missed() -> None:
    daily = of("0 9 * * *")
    due = ms("2026-05-04T09:00")
    for rule in (pb.MISSED_RULE_ONE, pb.MISSED_RULE_ALL, pb.MISSED_RULE_SKIP, pb.MISSED_RULE_UNSPECIFIED):
        plan = daily.plan(due, due + LATE_MS_MAX, rule)
        assert (plan.moments, plan.missed, plan.next_ms) == ((due,), 0, due + DAY)


def test_of_what_is_missed_one_names_the_newest_all_names_each_and_skip_names_none() -> None:
    daily = of("0 9 * * *")
    due, now = ms("2026-05-01T09:00"), ms("2026-05-03T12:00")
    moments = (due, due + DAY, due + 2 * DAY)
    one, every, none = (
        daily.plan(due, now, rule)
        for rule in (pb.MISSED_RULE_UNSPECIFIED, pb.MISSED_RULE_ALL, pb.MISSED_RULE_SKIP)
    )
    assert (one.moments, one.missed) == (moments[-1:], 2)
    assert (every.moments, every.missed) == (moments, 0)
    assert (none.moments, none.missed) == ((), 3)
    assert {one.next_ms, every.next_ms, none.next_ms} == {due + 3 * DAY}


def test_at_most_a_hundred_of_one_outage_are_made_up_and_they_are_the_newest() -> None:
    often = of("* * * * *")
    due, now = ms("2026-05-01T00:00"), ms("2026-05-02T00:00")
    plan = often.plan(due, now, pb.MISSED_RULE_ALL)
    assert plan.moments == tuple(range(now - (MADE_UP_MAX - 1) * 60_000, now + 1, 60_000))


def test_a_moment_that_is_no_longer_in_the_zones_rules_fires_all_the_same() -> None:
    plan = of("0 9 * * *").plan(ms("2026-05-01T09:17"), ms("2026-05-01T09:18"), pb.MISSED_RULE_ONE)
    assert plan.moments == (ms("2026-05-01T09:17"),)
