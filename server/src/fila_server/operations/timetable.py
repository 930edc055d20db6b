"""When a schedule fires: its moments, and which of them are still to be made up. Knows no clock: every time is given.

A cron line's moments come from cronsim, which does as Debian's cron does where daylight saving changes the clocks: a
moment in the hour that is skipped comes right behind it, and one in the hour that is repeated comes once, unless
minute or hour begin with a star: then real time counts. All times are milliseconds since 1970.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from fila.v1 import schedule_pb2 as pb
from fila_server.errors import Invalid

EVERY_MS_MIN, EVERY_MS_MAX = 1_000, 366 * 24 * 3600 * 1000
MADE_UP_MAX = 100
"""Moments of one outage that are made up, and that are counted as missed."""
LATE_MS_MAX = 60_000
"""A moment that is over for longer is missed, even if none has come since."""
CRON_FIELDS = 5
CRON_BYTES_MAX = 256
_FORM = 'give five fields: minute, hour, day of month, month, day of week, such as "0 9 * * 1-5"'
_YEAR_MS = 366 * 24 * 3600 * 1000
_LAST_MS = int(datetime(9900, 1, 1, tzinfo=UTC).timestamp() * 1000)
"""Beyond it there are no moments: Python's calendar ends shortly after."""


@dataclass(frozen=True)
class Plan:
    """What to do with a schedule that is due."""

    moments: tuple[int, ...]
    """A message for each, oldest first."""
    next_ms: int
    """When it is due then; 0 = never again."""
    missed: int
    """Moments that get no message."""


class Timetable:
    """The moments of one schedule."""

    def __init__(self, settings: pb.ScheduleSettings, created_ms: int) -> None:
        """Raises Invalid, which names the field."""
        self._cron = settings.cron
        self._every_ms = settings.every_ms
        self._created_ms = created_ms
        self._zone = _zone(settings.time_zone)
        if not self._cron and not self._every_ms:
            raise Invalid("settings.cron", "must be given where settings.every_ms is not, or is 0")
        if self._cron and self._every_ms:
            raise Invalid("settings.cron", "must be left out where settings.every_ms is given")
        if self._every_ms and not EVERY_MS_MIN <= self._every_ms <= EVERY_MS_MAX:
            raise Invalid(
                "settings.every_ms",
                f"must be {EVERY_MS_MIN} (1 s) to {EVERY_MS_MAX} (366 days), got {self._every_ms}",
            )
        if self._every_ms and settings.time_zone:
            raise Invalid(
                "settings.time_zone", "must be left out with every_ms: an interval is the same in every zone"
            )
        if self._cron:
            self._check_cron(created_ms)

    def after(self, at_ms: int) -> int:
        """The first moment after this one; 0 = there is none."""
        if self._every_ms:
            passed = max(0, (at_ms - self._created_ms) // self._every_ms)
            return min(self._created_ms + (passed + 1) * self._every_ms, _LAST_MS)
        return next((each for each in self._ticks(at_ms, reverse=False) if each > at_ms), 0)

    def coming(self, from_ms: int, most: int) -> list[int]:
        """The moments from this one on, which is one of them; 0 = none."""
        found: list[int] = []
        while from_ms and len(found) < most:
            found.append(from_ms)
            from_ms = self.after(from_ms)
        return found

    def newest(self, from_ms: int, until_ms: int, most: int) -> list[int]:
        """Of the moments from one to the other, both counted, the newest ones; newest first."""
        if self._every_ms:
            last = (until_ms - self._created_ms) // self._every_ms
            moments = (self._created_ms + each * self._every_ms for each in range(last, 0, -1))
        else:
            moments = (each for each in self._ticks(until_ms + 1, reverse=True) if each <= until_ms)
        found: list[int] = []
        for moment in moments:
            if moment < from_ms or len(found) == most:
                break
            if not found or moment < found[-1]:
                found.append(moment)
        return found

    def plan(self, due_ms: int, now_ms: int, rule: pb.MissedRule) -> Plan:
        """For a schedule that was due at `due_ms`, which is over."""
        # It was due then, whatever the zone's rules have become since.
        over = self.newest(due_ms, now_ms, MADE_UP_MAX + 1) or [due_ms]
        most = MADE_UP_MAX if rule == pb.MISSED_RULE_ALL else 1
        if rule == pb.MISSED_RULE_SKIP and now_ms - over[0] > LATE_MS_MAX:
            most = 0
        moments = tuple(reversed(over[:most]))
        return Plan(moments, self.after(max(now_ms, over[0])), min(MADE_UP_MAX, len(over) - len(moments)))

    def _ticks(self, at_ms: int, *, reverse: bool) -> Iterator[int]:
        if not 0 <= at_ms < _LAST_MS:
            return
        begin = datetime.fromtimestamp(at_ms / 1000, self._zone)
        for each in CronSim(self._cron, begin, reverse=reverse):
            yield round(each.timestamp() * 1000)

    def _check_cron(self, now_ms: int) -> None:
        field, line = "settings.cron", self._cron
        if len(line.encode()) > CRON_BYTES_MAX:
            raise Invalid(field, f"must be at most {CRON_BYTES_MAX} bytes")
        if len(line.split()) != CRON_FIELDS:
            raise Invalid(field, f'must have 5 fields, got {len(line.split())}: "{line}"; {_FORM}')
        try:
            begin = datetime.fromtimestamp(max(now_ms, 0) / 1000, self._zone)
            comes = next(iter(CronSim(line, begin)), None)
        except CronSimError as error:
            what = str(error).removeprefix("Bad ")
            raise Invalid(
                field, f'must have a {what} that is one, and that comes, got "{line}"; {_FORM}'
            ) from None
        if comes is None:
            raise Invalid(field, f'must fire within 50 years, got "{line}"; change its days or months')


def _zone(name: str) -> zoneinfo.ZoneInfo:
    if not name:
        return zoneinfo.ZoneInfo("UTC")
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid(
            "settings.time_zone",
            f'must be a zone of the IANA database, got "{name[:64]}"; give a name such as "Europe/Berlin" or "UTC"',
        ) from None
