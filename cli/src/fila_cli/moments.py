"""A moment as people write it: `09:00`, `tomorrow 09:00`, `2026-11-25 09:00 Europe/Berlin`."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as time_of_day

_DAY_AND_TIME = re.compile(
    r"(?:(?P<day>today|tomorrow|\d{4}-\d\d-\d\d)[T ])?(?P<hour>\d\d?)(?P<rest>:\d\d(?::\d\d)?)"
    r"(?P<offset> ?Z| ?[+-]\d\d:\d\d)?(?: (?P<zone>[A-Za-z][\w+/-]*))?"
)


class NoMoment(ValueError):
    """A text that is no moment; the error says how to write one."""


def moment_of(text: str, now: datetime, *, is_ahead: bool = False) -> datetime:
    """Return the moment that a text names, in UTC.

    A time without a zone is this machine's. A time without a day is today's, or with `is_ahead` the next one after
    `now`. An hour that comes twice, because the clocks go back, means the first.

    Raises NoMoment: the text is no moment, its zone is not known, or the clocks skip that time.
    """
    written = _DAY_AND_TIME.fullmatch(text)
    try:
        if written is None:
            return datetime.fromisoformat(text).astimezone(UTC)
        zone = _zone(written["zone"], written["offset"])
        time = time_of_day.fromisoformat(f"{written['hour']:0>2}{written['rest']}")
        today = now.astimezone(zone).date()
        day = {None: today, "today": today, "tomorrow": today + timedelta(days=1)}.get(written["day"])
        moment = _at(day or date.fromisoformat(written["day"]), time, zone, text)
        if written["day"] is None and is_ahead and moment <= now:
            moment = _at(today + timedelta(days=1), time, zone, text)
    except NoMoment:
        raise
    except (ValueError, OverflowError):
        raise NoMoment(
            f"{text!r} is no time; write it like 14:00, 'tomorrow 14:00', '2026-11-20 14:00 Europe/Berlin', "
            "2026-11-20T14:00:00Z, -10m or +10m"
        ) from None
    return moment


def shown(moment: datetime) -> str:
    """Return the moment by this machine's clock, with its distance from UTC."""
    return moment.astimezone().isoformat(" ", "seconds")


def _zone(name: str | None, offset: str | None) -> tzinfo | None:
    if offset is not None:
        if name is not None:
            raise ValueError("two zones")
        return time_of_day.fromisoformat(f"00:00{offset.strip()}").tzinfo
    if name is None:
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise NoMoment(
            f"this machine knows no time zone {name!r}; write one like Europe/Berlin, UTC or +01:00"
        ) from None


def _at(day: date, time: time_of_day, zone: tzinfo | None, text: str) -> datetime:
    there = datetime.combine(day, time)
    moment = (there.astimezone() if zone is None else there.replace(tzinfo=zone)).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) != there:
        raise NoMoment(f"{text!r} never comes: the clocks skip it when they go forward; write a later time")
    return moment
