"""`fila cluster`: the nodes of a group, as the one that serves knows them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from fila_cli.colors import Meaning, Meant
from fila_cli.output import Cell, counted, table
from fila_cli.session import Command, Group, Session
from fila_cli.values import age_text
from fila_cli.watching import show_or_watch, watch_option

if TYPE_CHECKING:
    from fila.v1.cluster_pb2 import ClusterNode, GetClusterStatusResponse

_HEADINGS = ("NODE", "ROLE", "FOR", "BEHIND", "SYNC", "CLOCK", "VERSION", "FORMATS", "DIFFERS", "LACKS")
_MEANINGS = {"owner": Meaning.GOOD, "halted": Meaning.TROUBLE, "gone": Meaning.TROUBLE}


@click.group(
    cls=Group,
    examples="""
    fila cluster status
    """,
)
def cluster() -> None:
    """The group of brokers that hold the same messages."""


@cluster.command(
    cls=Command,
    examples="""
    fila cluster status
    fila cluster status --watch
    fila cluster status -o json
    """,
)
@watch_option
@click.pass_obj
def status(session: Session, watch_ms: int | None) -> None:
    """Say how each node of the group is, the one that serves first.

    FOR is how long it has its role, or has not answered. BEHIND counts records of the log, CLOCK is in
    milliseconds, FORMATS are of copy and log. DIFFERS names settings that are other ones than the owner's,
    and LACKS says why a node would not take over.
    """
    from fila.v1 import cluster_pb2

    def look() -> tuple[GetClusterStatusResponse, str]:
        request = cluster_pb2.GetClusterStatusRequest()
        told = session.admin.GetClusterStatus(request, timeout=session.timeout_s)
        return told, _text(told)

    show_or_watch(session, watch_ms, look)


def _text(told: GetClusterStatusResponse) -> str:
    if not told.group:
        return "the broker is alone: its cluster.name is empty"
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    rows = table(
        _HEADINGS,
        [_row(each, now_ms) for each in told.nodes],
        spare=("FORMATS", "VERSION", "CLOCK"),
        cut=("DIFFERS", "LACKS"),
    )
    synced = sum(each.in_sync for each in told.nodes)
    return f"{rows}\ngroup {told.group}, term {told.term}: {synced} of {counted(len(told.nodes), 'node')} in sync"


def _row(each: ClusterNode, now_ms: int) -> tuple[Cell, ...]:
    from fila.v1 import cluster_pb2

    role = cluster_pb2.NodeRole.Name(each.role).removeprefix("NODE_ROLE_").lower()
    role = "?" if role == "unspecified" else role
    shown = Meant(role, _MEANINGS[role]) if role in _MEANINGS else role
    if not each.node:
        return each.peer_addr, shown, "-", "-", "no", "-", "-", "-", "-", "it has never answered"
    since_ms = each.since.ToMilliseconds() if each.HasField("since") else 0
    return (
        each.node,
        shown,
        age_text(max(0, now_ms - since_ms)) if since_ms else "-",
        each.behind_records,
        "yes" if each.in_sync else Meant("no", Meaning.TROUBLE),
        each.clock_offset_ms,
        each.version or "-",
        f"{each.store_format}/{each.log_format}",
        ", ".join(each.differing_settings) or "-",
        each.lacks or "-",
    )
