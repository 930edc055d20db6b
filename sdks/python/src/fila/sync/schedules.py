"""Schedules, without `await`; told in `fila.schedules`."""

from __future__ import annotations

from typing import Unpack

from fila.schedules import Schedule, ScheduleOptions, SchedulePage
from fila.sync.dead_letters import DeadLetterCalls


class ScheduleCalls(DeadLetterCalls):
    """The calls of FilaAdmin about schedules."""

    def create_schedule(self, queue: str, schedule: str, **settings: Unpack[ScheduleOptions]) -> Schedule:
        """Make a schedule of a queue. Raises QueueNotFound, Exists, Invalid (a cron line that never fires, too)."""
        return self._run(self._client.create_schedule(queue, schedule, **settings))

    def update_schedule(self, queue: str, schedule: str, **settings: Unpack[ScheduleOptions]) -> Schedule:
        """Give a schedule these settings, all others their defaults. Raises QueueNotFound, NotFound, Invalid."""
        return self._run(self._client.update_schedule(queue, schedule, **settings))

    def pause_schedule(
        self, queue: str, schedule: str, *, paused: bool = True, comment: str = ""
    ) -> Schedule:
        """Pause a schedule, `comment` says why, or with `paused=False` let it go on with the first moment that comes.
        Raises QueueNotFound, NotFound."""
        return self._run(self._client.pause_schedule(queue, schedule, paused=paused, comment=comment))

    def delete_schedule(self, queue: str, schedule: str) -> None:
        """Delete a schedule; what it has enqueued stays. Raises QueueNotFound, NotFound."""
        self._run(self._client.delete_schedule(queue, schedule))

    def get_schedule(self, queue: str, schedule: str) -> Schedule:
        """Return how a schedule stands, with its next five moments. Raises QueueNotFound, NotFound."""
        return self._run(self._client.get_schedule(queue, schedule))

    def list_schedules(self, queue: str = "", *, page_size: int = 0, page_token: str = "") -> SchedulePage:
        """Return schedules with their next five moments, of one queue or of all: 100, or up to 1,000, and with
        `page_token` those behind an earlier page."""
        return self._run(self._client.list_schedules(queue, page_size=page_size, page_token=page_token))
