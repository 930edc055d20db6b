"""Schedules as methods of a client: messages that the broker enqueues by itself, by a cron line or at an interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack

from fila import methods
from fila.answers import answer
from fila.arguments import make
from fila.connection import Connection
from fila.explanation import Pause
from fila.v1 import schedule_pb2 as wire


class ScheduleOptions(TypedDict, total=False):
    """When a schedule fires, and what it enqueues; give exactly one of `cron` and `every_ms`."""

    cron: str
    """Five fields: minute, hour, day of month, month, day of week."""
    every_ms: int
    """At least 1,000; counted from when the schedule was made."""
    time_zone: str
    """Whose clocks `cron` means, such as `Europe/Berlin`; UTC where it is left out."""
    payload: bytes
    headers: Mapping[str, str]
    ttl_ms: int
    missed: Literal["one", "all", "skip"]
    """What becomes of moments at which the broker could not fire: one message for all, the default; one for each, at
    most 100; none."""
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSettings:
    """A schedule's settings; `fila.schedules.ScheduleOptions` explains each."""

    cron: str = ""
    every_ms: int = 0
    time_zone: str = ""
    payload: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    ttl_ms: int = 0
    missed: str = ""
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One schedule, and how it stands."""

    queue: str
    schedule: str
    settings: ScheduleSettings
    created_at: datetime | None = None
    next_at: list[datetime] = field(default_factory=list)
    """The next moments, at most five; none while it is paused."""
    last_at: datetime | None = None
    """The moment of its last message."""
    fired: int = 0
    missed: int = 0
    error: str = ""
    """Why it could not fire just now; it is tried again."""
    pause: Pause | None = None
    """Where it is paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePage:
    """Schedules by queue, then by name."""

    schedules: list[Schedule]
    next_page_token: str = ""
    """Given where there are more."""


_MISSED = {
    "one": wire.MISSED_RULE_ONE,
    "all": wire.MISSED_RULE_ALL,
    "skip": wire.MISSED_RULE_SKIP,
}


class ScheduleCalls:
    """The calls of FilaAdmin about schedules."""

    _connection: Connection

    async def create_schedule(
        self, queue: str, schedule: str, **settings: Unpack[ScheduleOptions]
    ) -> Schedule:
        """Make a schedule of a queue. Raises QueueNotFound, Exists, Invalid (a cron line that never fires, too)."""
        request = make(
            wire.CreateScheduleRequest, queue=queue, schedule=schedule, settings=_encoded(settings)
        )
        told = await self._connection.call(methods.CREATE_SCHEDULE, request, {"queue": queue})
        return answer(Schedule, told.schedule)

    async def update_schedule(
        self, queue: str, schedule: str, **settings: Unpack[ScheduleOptions]
    ) -> Schedule:
        """Give a schedule these settings, all others their defaults. Raises QueueNotFound, NotFound, Invalid."""
        request = make(
            wire.UpdateScheduleRequest, queue=queue, schedule=schedule, settings=_encoded(settings)
        )
        told = await self._connection.call(methods.UPDATE_SCHEDULE, request, {"queue": queue})
        return answer(Schedule, told.schedule)

    async def pause_schedule(
        self, queue: str, schedule: str, *, paused: bool = True, comment: str = ""
    ) -> Schedule:
        """Pause a schedule, `comment` says why, or with `paused=False` let it go on with the first moment that comes.
        Raises QueueNotFound, NotFound."""
        request = make(
            wire.PauseScheduleRequest, queue=queue, schedule=schedule, paused=paused, comment=comment
        )
        told = await self._connection.call(methods.PAUSE_SCHEDULE, request, {"queue": queue})
        return answer(Schedule, told.schedule)

    async def delete_schedule(self, queue: str, schedule: str) -> None:
        """Delete a schedule; what it has enqueued stays. Raises QueueNotFound, NotFound."""
        request = make(wire.DeleteScheduleRequest, queue=queue, schedule=schedule)
        await self._connection.call(methods.DELETE_SCHEDULE, request, {"queue": queue})

    async def get_schedule(self, queue: str, schedule: str) -> Schedule:
        """Return how a schedule stands, with its next five moments. Raises QueueNotFound, NotFound."""
        request = make(wire.GetScheduleRequest, queue=queue, schedule=schedule)
        told = await self._connection.call(methods.GET_SCHEDULE, request, {"queue": queue})
        return answer(Schedule, told.schedule)

    async def list_schedules(
        self, queue: str = "", *, page_size: int = 0, page_token: str = ""
    ) -> SchedulePage:
        """Return schedules with their next five moments, of one queue or of all: 100, or up to 1,000, and with
        `page_token` those behind an earlier page."""
        request = make(wire.ListSchedulesRequest, queue=queue, page_size=page_size, page_token=page_token)
        told = await self._connection.call(methods.LIST_SCHEDULES, request, {"queue": queue})
        return answer(SchedulePage, told)


def _encoded(settings: ScheduleOptions) -> wire.ScheduleSettings:
    fields: dict[str, Any] = dict(settings)
    rule = fields.pop("missed", "one")
    if rule not in _MISSED:
        raise ValueError(f"missed must be one, all or skip, got {rule!r}")
    return make(wire.ScheduleSettings, missed=_MISSED[rule], **fields)
