"""`fila cluster`: the nodes of a group, as the one that serves knows them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import TYPE_CHECKING

import click

from fila_cli.colors import Meaning, Meant
from fila_cli.output import Cell, counted, table
from fila_cli.session import Command, Group, Session
from fila_cli.values import age_text
from fila_cli.watching import show_or_watch, watch_option

if TYPE_CHECKING:
    from fila.v1.cluster_pb2 import ClusterNode, GetClusterStatusResponse

LOOK_S = 0.1
MOVE_S_MAX = 30.0
_HEADINGS = ("NODE", "ROLE", "FOR", "BEHIND", "SYNC", "CLOCK", "VERSION", "FORMATS", "DIFFERS", "LACKS")
_MEANINGS = {"owner": Meaning.GOOD, "halted": Meaning.TROUBLE, "gone": Meaning.TROUBLE}


@click.group(
    cls=Group,
    examples="""
    fila cluster status
    fila cluster move
    fila cluster remove fila-3
    fila cluster upgrade
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
    """Say how each node of the group is, the one that serves first. Where none does, each that answers says how
    it is itself.

    FOR is how long it has its role, or has not answered. BEHIND counts records of the log, CLOCK is in
    milliseconds, FORMATS are of copy and log. DIFFERS names settings that are other ones than the owner's,
    and LACKS says why a node would not take over.
    """

    def look() -> tuple[GetClusterStatusResponse, str]:
        told, own = _asked(session)
        return told, _text(told, own)

    show_or_watch(session, watch_ms, look)


@cluster.command(
    cls=Command,
    examples="""
    fila cluster move
    fila cluster move fila-2
    """,
)
@click.argument("node", default="")
@click.pass_obj
def move(session: Session, node: str) -> None:
    """Let another node serve: NODE, or the standby that has read most.

    The owner takes nothing more, finishes what is in hand, and the other node takes over at once. Refused where
    that one could not. The command waits until it serves.
    """
    from fila.v1 import cluster_pb2

    moved = session.admin.MoveOwner(cluster_pb2.MoveOwnerRequest(node=node), timeout=session.timeout_s)
    told = _taken_over(session, moved.node, moved.term)
    session.show(told, f"{moved.node} serves, since term {told.term}")


def _taken_over(session: Session, node: str, term: int) -> GetClusterStatusResponse:
    """How the group is once another term than that one is there; fails where it is not that node's."""
    import grpc

    from fila.v1 import cluster_pb2

    ends_s = monotonic() + MOVE_S_MAX
    owner = ""
    while not owner:
        if monotonic() > ends_s:
            raise click.ClickException(f"{node} was told to take over, and does not serve: look at its log")
        sleep(LOOK_S)
        with suppress(grpc.RpcError):
            told, _ = _asked(session)  # perhaps by the node that served before, and knows who does
            owners = [each.node for each in told.nodes if each.role == cluster_pb2.NODE_ROLE_OWNER]
            owner = owners[0] if owners and told.term != term else ""
    if owner != node:
        raise click.ClickException(
            f"{node} was told to take over, and {owner} did: look at the log of {node}"
        )
    return told


@cluster.command(
    cls=Command,
    examples="""
    fila cluster remove fila-3
    fila cluster remove fila-3:5556
    """,
)
@click.argument("node")
@click.pass_obj
def remove(session: Session, node: str) -> None:
    """Count a node no more that is gone for good: NODE, or its peer address where its name is not known.

    Alerts, `fila cluster status` and nodes that look for a copy forget it, until it answers again. Refused for the
    node that serves, and for one that answers.
    """
    from fila.v1 import cluster_pb2

    request = cluster_pb2.RemoveNodeRequest(node=node)
    removed = session.admin.RemoveNode(request, timeout=session.timeout_s)
    session.show(removed, f"{removed.node or removed.peer_addr} does not count any more, until it answers")


@cluster.command(cls=Command, examples="fila cluster upgrade")
@click.pass_obj
def upgrade(session: Session) -> None:
    """Let the group write the newest format that its nodes read, once all of them run the newer version.

    Until then it writes the format that it wrote, so nodes may be given the older version back. Refused, with the
    node's name, while one reads less or does not answer. The owner hands over, as in `fila cluster move`, and the
    node that takes over writes the newer format. Nodes of the older version then read no further.
    """
    from fila.v1 import cluster_pb2

    raised = session.admin.UpgradeGroup(cluster_pb2.UpgradeGroupRequest(), timeout=session.timeout_s)
    if not raised.is_raised:
        session.show(
            raised, f"the group writes format {raised.format} of the log, the newest that its nodes read"
        )
        return
    told = _taken_over(session, raised.node, raised.term)
    if told.written_format != raised.format:
        raise click.ClickException(
            f"{raised.node} serves, and writes format {told.written_format} as before: run the command again"
        )
    session.show(
        raised,
        f"the group writes format {raised.format} of the log; {raised.node} serves, since term {told.term}",
    )


def _asked(session: Session) -> tuple[GetClusterStatusResponse, int]:
    """What the node says that serves, and 0; or what each one says of itself, and how many did."""
    import grpc

    from fila.each_node import joined
    from fila.v1 import cluster_pb2

    request = cluster_pb2.GetClusterStatusRequest()
    answers: list[GetClusterStatusResponse] = []
    for node in session.each_node():
        try:
            told = node.GetClusterStatus(request, timeout=session.timeout_s)
        except grpc.RpcError:
            continue
        if not told.nodes or told.nodes[0].role == cluster_pb2.NODE_ROLE_OWNER:
            return told, 0
        answers.append(told)
    if not answers:  # the refusals named the owner, or why nobody may ask
        return session.admin.GetClusterStatus(request, timeout=session.timeout_s), 0
    return joined(answers), len(answers)


def _text(told: GetClusterStatusResponse, own: int) -> str:
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
    if own:
        nodes = counted(len(told.nodes), "node")
        return f"{rows}\ngroup {told.group}, where no node serves: {own} of {nodes} said how it is itself"
    nodes = counted(len(told.nodes), "node")
    return f"{rows}\ngroup {told.group}, term {told.term}: {synced} of {nodes} in sync{_may_upgrade(told)}"


def _may_upgrade(told: GetClusterStatusResponse) -> str:
    """That `upgrade` would do something, or what it waits for; empty: all is written that nodes read."""
    reads = {each.log_format for each in told.nodes if each.node}
    if not told.written_format or max(reads, default=0) <= told.written_format:
        return ""
    said = f"\nit writes format {told.written_format} of the log. "
    if min(reads) == max(reads):
        return f"{said}All nodes read format {max(reads)}: `fila cluster upgrade` lets it write that"
    return f"{said}Some nodes read format {max(reads)}: `fila cluster upgrade` once all do"


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
