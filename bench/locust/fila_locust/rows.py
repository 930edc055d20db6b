"""Rows of locust's report: one request, or a frame that carried many messages."""

from __future__ import annotations

from locust.env import Environment
from locust.stats import StatsEntry, bucket_response_time

WAIT = "wait"
"""The type of rows that say how long messages took from the moment they were meant to be sent to their delivery."""


def report(
    environment: Environment, kind: str, name: str, seconds: float, failure: BaseException | None = None
) -> None:
    """One request of this kind (grpc, redis, wait) that took so long; a failure counts as one of locust's."""
    environment.events.request.fire(  # type: ignore[no-untyped-call]
        request_type=kind,
        name=name,
        response_time=seconds * 1000,
        response_length=0,
        exception=failure,
        context={},
    )


def report_many(environment: Environment, kind: str, name: str, seconds: float, count: int) -> None:
    """So many messages that were answered together: the row counts messages, so its rate is one of messages.

    Locust's own event would take 2 us for each, which at 100,000 a second is a fifth of the process."""
    if count <= 0:
        return
    stats = environment.stats
    for entry in (stats.total, stats.get(name, kind)):
        _log_many(entry, seconds * 1000, count)


def _log_many(entry: StatsEntry, milliseconds: float, count: int) -> None:
    entry.log(milliseconds, 0)  # type: ignore[arg-type]  # locust's own event hands floats over, too
    more = count - 1
    assert entry.last_request_timestamp is not None, "log() has just set it"
    entry.num_requests += more
    entry.total_response_time += milliseconds * more  # type: ignore[assignment]
    entry.response_times[bucket_response_time(milliseconds)] += more
    entry.num_reqs_per_sec[int(entry.last_request_timestamp)] += more
