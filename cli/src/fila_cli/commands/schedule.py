"""`fila schedule`: messages that the broker enqueues by itself, by a cron line or at an interval."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fila_cli.arguments import complete_queue, reason_option, yes_option
from fila_cli.declared_schedules import duration_or_cron, rule_called, rule_of
from fila_cli.explanation import paused_text
from fila_cli.moments import shown
from fila_cli.output import Cell, facts, printable, table
from fila_cli.session import Group, Session, confirm
from fila_cli.values import DURATION, PAIR, PAYLOAD

if TYPE_CHECKING:
    from fila.v1.schedule_pb2 import Schedule, ScheduleSettings

_RULES = ("one", "all", "skip")
_PAGE = 1_000

_name_argument = click.argument("schedule", metavar="NAME")
_queue_option = click.option(
    "-q", "--queue", required=True, shell_complete=complete_queue, help="The queue its messages go to"
)


def _payload(context: click.Context, option: click.Parameter, payload: bytes | None) -> bytes | None:
    """What comes from stdin, where `-` was given: that is not the same as nothing."""
    is_given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    return sys.stdin.buffer.read() if payload is None and is_given else payload


def _settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.option(
                "--cron",
                metavar="LINE",
                help="Minute, hour, day of month, month and day of week: '0 9 * * 1-5'",
            ),
            click.option("--every", "every_ms", type=DURATION, help="Or at this interval, at least 1s"),
            click.option(
                "--tz",
                "time_zone",
                metavar="ZONE",
                help="Whose clocks --cron means, as Europe/Berlin [default: UTC]",
            ),
            click.option(
                "--payload",
                type=PAYLOAD,
                callback=_payload,
                metavar="TEXT|@FILE|-",
                help="What each message carries; - reads stdin",
            ),
            click.option(
                "-H", "--header", "headers", type=PAIR, multiple=True, help="A header; repeat for more"
            ),
            click.option("--ttl", "ttl_ms", type=DURATION, help="Dropped when nobody has leased it by then"),
            click.option(
                "--missed",
                type=click.Choice(_RULES),
                help="Moments at which the broker could not fire: one message for all, one for each (at most 100), "
                "or none [default: one]",
            ),
        )
    ):
        command = option(command)
    return command


@click.group(
    cls=Group,
    examples="""
    fila schedule create daily --queue reports --cron '0 9 * * 1-5' --tz Europe/Berlin --payload '{}'
    fila schedule create ping --queue health --every 5m
    fila schedule list
    fila schedule pause daily --queue reports
    """,
)
def schedule() -> None:
    """Messages that the broker enqueues by itself: create, change, list, pause, delete."""


@schedule.command(
    examples="""
    fila schedule create daily --queue reports --cron '0 9 * * 1-5' --tz Europe/Berlin --payload '{}'
    fila schedule create ping --queue health --every 5m --header tenant=acme --missed skip
    """
)
@_name_argument
@_queue_option
@_settings_options
@click.option("--paused", is_flag=True, help="It does not fire before 'fila schedule resume'")
@click.pass_obj
def create(session: Session, /, schedule: str, queue: str, *, paused: bool, **given: Any) -> None:
    """Make a schedule of a queue. One firing is one message, over restarts of the broker too."""
    from fila.v1 import schedule_pb2

    if given["cron"] is None and given["every_ms"] is None:
        raise click.UsageError("give --cron '0 9 * * 1-5' or --every 5m")
    settings = schedule_pb2.ScheduleSettings(paused=paused)
    _take(settings, given)
    request = schedule_pb2.CreateScheduleRequest(queue=queue, schedule=schedule, settings=settings)
    answer = session.admin.CreateSchedule(request, timeout=session.timeout_s)
    session.show(answer, f"schedule {schedule} of {queue} created, {_next_of(answer.schedule)}")


@schedule.command(
    examples="""
    fila schedule update daily --queue reports --cron '30 8 * * 1-5'
    fila schedule update daily --queue reports --payload @report.json
    """
)
@_name_argument
@_queue_option
@_settings_options
@click.pass_obj
def update(session: Session, /, schedule: str, queue: str, **given: Any) -> None:
    """Change what is given of a schedule; --header replaces all headers."""
    from fila.v1 import schedule_pb2

    settings = _find(session, queue, schedule).settings
    _take(settings, given)
    request = schedule_pb2.UpdateScheduleRequest(queue=queue, schedule=schedule, settings=settings)
    answer = session.admin.UpdateSchedule(request, timeout=session.timeout_s)
    session.show(answer, f"schedule {schedule} of {queue} changed, {_next_of(answer.schedule)}")


@schedule.command(
    name="list",
    examples="""
    fila schedule list
    fila schedule list --queue reports -o json
    """,
)
@click.option("-q", "--queue", default="", shell_complete=complete_queue, help="Only of this queue")
@click.pass_obj
def list_(session: Session, queue: str) -> None:
    """List schedules, and when each fires next."""
    from fila.v1 import schedule_pb2

    answer = schedule_pb2.ListSchedulesResponse(schedules=listed_schedules(session, queue))
    rows: list[tuple[Cell, ...]] = [
        (
            each.schedule,
            each.queue,
            duration_or_cron(each.settings),
            "paused" if each.settings.paused else _moment(each.next_at[0]) if each.next_at else "never",
            each.fired,
            each.missed,
            printable(each.error),
        )
        for each in answer.schedules
    ]
    headings = ("NAME", "QUEUE", "WHEN", "NEXT", "FIRED", "MISSED", "ERROR")
    session.show(answer, table(headings, rows) if rows else "", empty="no schedules")


@schedule.command(examples="fila schedule show daily --queue reports")
@_name_argument
@_queue_option
@click.pass_obj
def show(session: Session, schedule: str, queue: str) -> None:
    """Show one schedule, with its next five moments."""
    found = _find(session, queue, schedule)
    settings = found.settings
    told: list[tuple[str, Cell]] = [
        ("name", found.schedule),
        ("queue", found.queue),
        ("when", duration_or_cron(settings)),
        ("missed moments", rule_of(settings)),
        ("payload", f"{len(settings.payload)} bytes"),
        *((f"header {name}", printable(value)) for name, value in sorted(settings.headers.items())),
        ("fired", found.fired),
        ("missed", found.missed),
    ]
    if found.HasField("last_at"):
        told.append(("last", _moment(found.last_at)))
    if found.error:
        told.append(("error", printable(found.error)))
    if settings.paused:
        since = f" {paused_text(found.pause)}" if found.HasField("pause") else ""
        told.append(("next", f"paused{since}"))
    told += [("next" if not at else "", _moment(each)) for at, each in enumerate(found.next_at)]
    session.show(found, facts(told))


@schedule.command(
    examples="""
    fila schedule pause daily --queue reports
    fila schedule pause daily --queue reports --reason "nobody reads it in August"
    """
)
@_name_argument
@_queue_option
@reason_option
@click.pass_obj
def pause(session: Session, schedule: str, queue: str, reason: str) -> None:
    """Let a schedule rest. Moments that pass meanwhile are not missed."""
    _pause(session, queue, schedule, reason, paused=True)


@schedule.command(examples="fila schedule resume daily --queue reports")
@_name_argument
@_queue_option
@click.pass_obj
def resume(session: Session, schedule: str, queue: str) -> None:
    """Let a schedule go on, with the first moment that comes."""
    _pause(session, queue, schedule, paused=False)


@schedule.command(
    examples="""
    fila schedule delete daily --queue reports
    fila schedule delete daily --queue reports --yes
    """
)
@_name_argument
@_queue_option
@yes_option
@click.pass_obj
def delete(session: Session, schedule: str, queue: str, *, yes: bool) -> None:
    """Delete a schedule; messages that it has enqueued stay."""
    from fila.v1 import schedule_pb2

    confirm(f"Delete schedule {schedule} of {queue}?", yes=yes)
    request = schedule_pb2.DeleteScheduleRequest(queue=queue, schedule=schedule)
    answer = session.admin.DeleteSchedule(request, timeout=session.timeout_s)
    session.show(answer, f"schedule {schedule} of {queue} deleted")


def _pause(session: Session, queue: str, schedule: str, reason: str = "", *, paused: bool) -> None:
    from fila.v1 import schedule_pb2

    request = schedule_pb2.PauseScheduleRequest(queue=queue, schedule=schedule, paused=paused, comment=reason)
    answer = session.admin.PauseSchedule(request, timeout=session.timeout_s)
    state = "paused" if paused else f"goes on, {_next_of(answer.schedule)}"
    session.show(answer, f"schedule {schedule} of {queue} {state}")


def _take(settings: ScheduleSettings, given: dict[str, Any]) -> None:
    """Put in what was given; a cron line and an interval take each other's place."""
    if given["cron"] is not None and given["every_ms"] is not None:
        raise click.UsageError("--cron and --every say the same thing; give one")
    if given["every_ms"] == 0:
        raise click.UsageError("--every must be at least 1s")
    if given["cron"] == "":
        raise click.UsageError("--cron is empty; give five fields, such as '0 9 * * 1-5'")
    if given["cron"] is not None:
        settings.cron, settings.every_ms = given["cron"], 0
    if given["every_ms"] is not None:
        settings.every_ms, settings.cron, settings.time_zone = given["every_ms"], "", ""
    for name in ("time_zone", "payload", "ttl_ms"):
        if given[name] is not None:
            setattr(settings, name, given[name])
    if given["headers"]:
        settings.headers.clear()
        settings.headers.update(dict(given["headers"]))
    if given["missed"]:
        settings.missed = rule_called(given["missed"])


def listed_schedules(session: Session, queue: str) -> list[Schedule]:
    """All of a queue, or of all."""
    from fila.v1 import schedule_pb2

    found: list[Schedule] = []
    token = ""
    while True:
        request = schedule_pb2.ListSchedulesRequest(queue=queue, page_size=_PAGE, page_token=token)
        answer = session.admin.ListSchedules(request, timeout=session.timeout_s)
        found += answer.schedules
        token = answer.next_page_token
        if not token:
            return found


def _find(session: Session, queue: str, schedule: str) -> Schedule:
    from fila.v1 import schedule_pb2

    request = schedule_pb2.GetScheduleRequest(queue=queue, schedule=schedule)
    return session.admin.GetSchedule(request, timeout=session.timeout_s).schedule


def _next_of(schedule: Schedule) -> str:
    return f"next {_moment(schedule.next_at[0])}" if schedule.next_at else "paused"


def _moment(at: Any) -> str:
    from datetime import UTC

    return shown(at.ToDatetime(UTC))
