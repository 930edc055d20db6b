"""The group that the broker is a node of: how each node is, who serves, and how another one is let serve.

A broker alone has no such page, and no menu leads to it.
"""

from __future__ import annotations

import asyncio
import time

from starlette.responses import Response

from fila.shell_words import command_line
from fila.v1 import cluster_pb2 as pb
from fila_console.cells import Cell, Row, State, cell, row
from fila_console.trouble import Trouble
from fila_console.upstream import GroupStatus, Upstream
from fila_console.visit import Undo, Visit
from fila_console.watches import Asked, Watch
from fila_console.wording import UNKNOWN, age, brief, count, counted

COLUMNS = ("Node", "State", ">>For", ">Behind", "Settings that differ", ">Clock", "Version", "Formats")
LOOK_S = 0.2
MOVE_S_MAX = 15.0
_OWNER, _STANDBY, _GONE = pb.NODE_ROLE_OWNER, pb.NODE_ROLE_STANDBY, pb.NODE_ROLE_GONE
_ROLES = {_OWNER: "serves", _STANDBY: "standby", pb.NODE_ROLE_HALTED: "halted", _GONE: "gone"}
_ALONE = Trouble(
    404, "This broker is alone", "It is no node of a group: cluster.name is empty in its settings."
)
_MOVE_COSTS = (
    "Calls wait less than a second. One that takes longer than a quarter of a second may lose its answer; "
    "an enqueue without a dedup key is then perhaps stored."
)


class Nodes(Asked):
    """What the nodes say, as it changes."""

    async def look(self, upstream: Upstream) -> State:
        """Ask the one that serves. Raises Trouble."""
        told = await upstream.group()
        state = State()
        state.texts = {"said": _said(told), "log": cell(_log_said(told.status))}
        now_ms = upstream.clock.now_s() * 1000
        state.tables["nodes"] = [_row(each, now_ms) for each in told.status.nodes]
        return state


def _said(told: GroupStatus) -> Cell:
    nodes, group = told.status.nodes, brief(told.status.group)
    if not nodes:
        raise _ALONE
    of = f"of {counted(len(nodes), 'node')}"
    if told.asked:
        return cell(f"No node of {group} serves: {told.asked} {of} said how it is itself.", tone="lost")
    synced = sum(each.in_sync for each in nodes)
    tone = "" if synced == len(nodes) else "late"
    return cell(f"{nodes[0].node} serves {group}; {synced} {of} in sync.", tone=tone)


def _log_said(told: pb.GetClusterStatusResponse) -> str:
    parts = [f"term {told.term}"]
    if told.short_terms:
        parts.append(f"{counted(told.short_terms, 'term')} in a row over within ten seconds")
    unconfirmed = counted(told.unconfirmed_records, "record")
    parts.append(f"{unconfirmed} ({count(told.unconfirmed_bytes)} bytes) not confirmed yet")
    parts.append(f"{counted(told.takeovers, 'takeover')} since it started")
    parts.append(f"{counted(told.skipped_records, 'record')} skipped")
    return ", ".join(parts)


def _row(node: pb.ClusterNode, now_ms: float) -> Row:
    name = node.node or node.peer_addr
    if not node.node:
        return row(name, [name, cell("● it has never answered", tone="lost"), *[UNKNOWN] * 6])
    since_ms = node.since.ToMilliseconds() if node.HasField("since") else 0
    differs = ", ".join(node.differing_settings)
    cells: list[Cell | str] = [
        cell(name, title=node.client_addr),
        _state(node),
        age(max(0.0, now_ms - since_ms)) if since_ms else UNKNOWN,
        count(node.behind_records),
        cell(differs, tone="late") if differs else UNKNOWN,
        f"{node.clock_offset_ms:+,} ms" if node.clock_offset_ms else "0 ms",
        node.version or UNKNOWN,
        f"{node.store_format}/{node.log_format}",
    ]
    return row(name, cells)


def _state(node: pb.ClusterNode) -> Cell:
    role = _ROLES.get(node.role, "does not say what it does")
    why = f": {brief(node.lacks)}" if node.lacks else ""
    if node.role == _OWNER:
        return cell(role + why, tone="late" if why else "")
    if node.role == _STANDBY and node.in_sync and not why:
        return cell("standby, in sync")
    return cell(f"{'▲' if node.role == _STANDBY else '●'} {role}{why or ', not in sync'}",
                tone="late" if node.role == _STANDBY else "lost")  # fmt: skip


def watch(visit: Visit) -> Watch:
    """The nodes of this broker's group, with this key."""
    return visit.watch(("group",), Nodes)


async def page(visit: Visit) -> Response:
    """All nodes; for admins."""
    state = await watch(visit).current()
    nodes = (await visit.upstream.group()).status.nodes
    return visit.page(
        "group.html",
        here="group",
        state=state,
        live=visit.url("live", "group"),
        columns=COLUMNS,
        standbys=[each.node for each in nodes[1:] if each.node],
        gone=[each.node or each.peer_addr for each in nodes[1:] if each.role == _GONE or not each.node],
        locked=await visit.locked("admin"),
    )


# What an operator does.


def _named(told: GroupStatus, name: str) -> pb.ClusterNode | None:
    return next((each for each in told.status.nodes if name in (each.node, each.peer_addr)), None)


def _unfit(node: pb.ClusterNode) -> str:
    """Why it could not take over; empty where it can."""
    if node.role == _OWNER:
        return "it serves already"
    if not node.node:
        return "it has never answered"
    if node.role == _GONE:
        return "it answers no probe"
    return "" if node.in_sync else node.lacks or f"it is {_ROLES.get(node.role, 'not known')}"


def _successor(told: GroupStatus, name: str) -> tuple[pb.ClusterNode | None, str]:
    """Who would take over, or None and why nobody would."""
    if name:
        node = _named(told, name)
        why = _unfit(node) if node is not None else "the group has no such node"
        return (None, f"{brief(name)} cannot take over: {why}.") if why else (node, "")
    others = told.status.nodes[1:]
    fit = [each for each in others if not _unfit(each)]
    if fit:
        return max(fit, key=lambda each: each.position), ""
    reasons = "; ".join(f"{each.node or each.peer_addr}: {_unfit(each)}" for each in others)
    return None, f"No standby can take over. {brief(reasons) or 'The group has no other node'}."


async def preview(visit: Visit) -> Response:
    """What a move, or a removal, would do now, and its line for a shell."""
    told, name = await visit.upstream.group(), visit.query("node")
    if visit.query("act") == "remove":
        node = _named(told, name)
        if node is None or (node.node and node.role != _GONE):
            role = "is no node of the group" if node is None else f"answers: it {_says(node)}"
            return visit.done(f"{brief(name)} {role}. Only a node that is gone can be removed.", tone="late")
        text = f"Alerts, and nodes that look for a copy, count {brief(name)} no more, until it answers again."
        return visit.page("lined.html", text=text, line=command_line("fila cluster remove", name))
    chosen, why = _successor(told, name)
    if chosen is None:
        return visit.done(f"{why} Nothing would happen.", tone="late")
    has_read = f"has read all but {counted(chosen.behind_records, 'record')}"
    text = (
        f"{told.status.nodes[0].node} finishes what is in hand and stops; {chosen.node} "
        f"{has_read if chosen.behind_records else 'has read all'} and takes over. {_MOVE_COSTS}"
    )
    return visit.page("lined.html", text=text, line=_move_line(name))


def _says(node: pb.ClusterNode) -> str:
    return "serves" if node.role == _OWNER else f"is {_ROLES.get(node.role, 'there')}"


def _move_line(name: str) -> str:
    return command_line("fila cluster move", *([name] if name else []))


async def move(visit: Visit) -> Response:
    """Let another node serve, and wait until it does."""
    name = visit.field("node")
    before = (await visit.upstream.group()).status.nodes
    moved = await visit.upstream.move_owner(name)
    ends_s = time.monotonic() + MOVE_S_MAX
    owner = ""
    while not owner and time.monotonic() < ends_s:
        await asyncio.sleep(LOOK_S)
        owner = await _owner_after(visit, moved.term)
    line = _move_line(name)
    if owner != moved.node:
        did = f"{owner} did" if owner else "does not serve yet"
        text = f"{moved.node} was told to take over, and {did}: look at the log of {moved.node}."
        return visit.changed(text, line=line, tone="late")
    undo = Undo(visit.url("group", "move"), f"move back to {before[0].node}", [("node", before[0].node)])
    return visit.changed(f"{owner} serves.", line=line, undo=undo if before else None)


async def _owner_after(visit: Visit, term: int) -> str:
    """Who serves since that term is over; empty while nobody says so."""
    try:
        told = (await visit.upstream.group()).status
    except Trouble:  # it is between two owners
        return ""
    owners = [each.node for each in told.nodes if each.role == _OWNER]
    return owners[0] if owners and told.term != term else ""


async def remove(visit: Visit) -> Response:
    """Count a node no more that is gone for good."""
    name = visit.field("node")
    if visit.field("sure") != "yes":
        raise Trouble(400, "Nothing was removed", "Tick the box beside the button.")
    removed = await visit.upstream.remove_node(name)
    text = f"{brief(removed.node or removed.peer_addr)} does not count any more, until it answers."
    return visit.changed(text, line=command_line("fila cluster remove", name))
