"""`fila status`: is the broker well, and what is it?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from fila_cli.colors import Meaning, Meant
from fila_cli.output import Cell, counted, facts
from fila_cli.session import Command, Session
from fila_cli.troubles import above, told
from fila_cli.values import age_text, rough_size_text
from fila_cli.watching import show_or_watch, watch_option

if TYPE_CHECKING:
    from fila.v1.events_pb2 import GetStatusResponse

_DISK = {
    "DISK_LEVEL_OK": Meant("roomy", Meaning.GOOD),
    "DISK_LEVEL_FLOOR": Meant("low: enqueues are refused, acks and deliveries go on", Meaning.TROUBLE),
    "DISK_LEVEL_FULL": Meant("critical: every write is refused", Meaning.TROUBLE),
}


@click.command(
    cls=Command,
    examples="""
    fila status
    fila status --watch
    fila status -o json
    """,
)
@watch_option
@click.pass_obj
def status(session: Session, watch_ms: int | None) -> None:
    """Say what is wrong, which broker this is and how it is: version, uptime, disk, connections, damage."""
    from fila.v1 import events_pb2

    def look() -> tuple[GetStatusResponse, str]:
        answer = session.admin.GetStatus(events_pb2.GetStatusRequest(), timeout=session.timeout_s)
        return answer, above(told(answer), facts(_facts(session.address, answer)))

    show_or_watch(session, watch_ms, look)


def _facts(address: str, answer: GetStatusResponse) -> list[tuple[str, Cell]]:
    from fila.v1 import events_pb2

    up_ms = int((datetime.now(UTC) - answer.started_at.ToDatetime(UTC)).total_seconds() * 1000)
    level = events_pb2.DiskLevel.Name(answer.disk_level)
    damage = f"{counted(answer.lost_ranges, 'range')}, {counted(answer.lost_messages, 'message')}"
    listed: list[tuple[str, Cell]] = [
        ("broker", address),
        ("version", f"{answer.version} (commit {answer.commit})"),
        ("state", Meant("stopping", Meaning.HELD) if answer.draining else Meant("serving", Meaning.GOOD)),
        ("up for", f"{age_text(max(0, up_ms))}, since {answer.started_at.ToJsonString()}"),
    ]
    disk = _DISK.get(level, level)
    if not answer.data_dir:  # every broker has one, and tells it to admins: what is 0 here is not known
        return [*listed, ("disk", disk), ("all else", "told to admins alone")]
    return [
        *listed,
        ("data directory", answer.data_dir),
        ("disk", disk),
        ("free", rough_size_text(answer.disk_free_bytes)),
        ("processor time", f"{age_text(answer.cpu_ms)} on {counted(answer.cpus, 'processor')}"),
        ("memory", f"{rough_size_text(answer.memory_bytes)} of {rough_size_text(answer.memory_bytes_max)}"),
        ("queues", answer.queues),
        ("consumers", answer.consumers),
        ("leases", answer.leases),
        ("calls that wait", answer.outstanding_calls),
        ("epochs", f"{answer.epochs}, {counted(answer.syncs, 'sync')}"),
        ("lost to damage", Meant(damage, Meaning.TROUBLE) if answer.lost_ranges else "nothing"),
    ]
