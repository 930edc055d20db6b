"""A group whose log lost its end goes on with the copy of one node, which an operator chooses.

    command     asks each node what it holds (peers.Report), and judges the choice
    command     the number of the new incarnation, to the node that is chosen, over a connection of its own
    node        goes on at the log's end, and bids for that incarnation. Then it says that it owns, or why not

Every other copy halts at that takeover, unless it stands where the chosen one stood, and takes a copy.
"""

from __future__ import annotations

import queue
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from fila_server import errors
from fila_server.cluster.peers import CONNECTS_S_MAX, Lines, Stranger, Trust, connected
from fila_server.cluster.reports import Report
from fila_server.config.cluster import Cluster
from fila_server.config.kinds import Address
from fila_server.core.log.kafka import LogRefused
from fila_server.core.runtime.store_copy import BIDS, OWNS, StoreCopy
from fila_server.telemetry.group import HALTED

RESEED = "reseed"
"""What a connection asks for on which it is told."""
OPERATOR = "an operator"
"""The asking operator's name; no node has it."""
ANSWER_S_MAX = 30.0
OWNS_S_MAX = 10.0
FOLLOW_MS = 50


class HasEnds(Protocol):
    """As much of a log as tells where it ends."""

    def ends(self, wait_ms: int = ...) -> tuple[int, int]:
        """The offset of the first record there is, and of the next that comes. Raises LogRefused."""
        ...


class Order(msgspec.Struct):
    """What the command says."""

    incarnation: int


class Done(msgspec.Struct):
    """What the node says; empty: it owns."""

    why: str = ""


class Reseeder:
    """The node's side. The thread that follows carries out what another one has heard."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()

    def take(self, lines: Lines, _node: str) -> None:
        """From the command at the other end. Raises OSError where the connection ends."""
        self._asked.put(msgspec.json.decode(lines.read(), type=Order).incarnation)
        try:
            why = self._done.get(timeout=ANSWER_S_MAX)
        except queue.Empty:
            why = "it serves, or takes a copy from another node"
        lines.write(Done(why))

    @property
    def is_asked(self) -> bool:
        """Somebody has told this node to."""
        return not self._asked.empty()

    def carry_out(self, copy: StoreCopy, log: HasEnds, log_format: int) -> str:
        """What came of it; empty: the copy owns. Otherwise it is of no use any more. `log_format` is what it writes."""
        incarnation = self._asked.get()
        why = _bid(copy, log, incarnation, log_format)
        self._done.put(why)
        return why


def _bid(copy: StoreCopy, log: HasEnds, incarnation: int, log_format: int) -> str:
    try:
        end = log.ends()[1]
    except LogRefused as refused:
        return f"the log does not answer: {refused}"
    copy.sync()
    copy.rebase(end)
    nonce, wall_ms = secrets.randbits(64), time.time_ns() // 1_000_000
    if not copy.bid(nonce, wall_ms, log_format=log_format, incarnation=incarnation):
        return "the log takes nothing just now"
    ends_s = time.monotonic() + OWNS_S_MAX
    while copy.state == BIDS and time.monotonic() < ends_s:
        copy.follow(FOLLOW_MS)
    return "" if copy.state == OWNS else copy.why or "its takeover did not count"


# --- the command -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """What a node has, as it says."""

    address: Address
    report: Report | None
    """None: it does not answer."""

    @property
    def name(self) -> str:
        """For people."""
        return self.report.name if self.report else str(self.address)


def look(cluster: Cluster, trust: Trust) -> list[Held]:
    """Ask each node of the settings what it holds."""
    return [Held(address, _report(address, cluster, trust)) for address in cluster.peers.each]


def _report(address: Address, cluster: Cluster, trust: Trust) -> Report | None:
    try:
        lines = connected(address, msgspec.structs.replace(cluster, node=OPERATOR), trust)
        with lines.connection:
            lines.write(None)
            return msgspec.json.decode(lines.read(), type=Report)
    except (OSError, Stranger, msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def judged(held: Sequence[Held], chosen: str) -> tuple[Held, list[str]]:
    """The node of that name, and why it should not be the one. Raises StartError where it cannot be."""
    named = [each for each in held if each.report and each.report.name == chosen]
    if not named:
        known = ", ".join(each.name for each in held if each.report) or "none"
        raise errors.StartError(f"no node that answers is named {chosen}; those that do: {known}")
    [one] = named
    assert one.report is not None
    if one.report.position < 0:
        raise errors.StartError(f"{chosen} has no copy")
    if one.report.owns:
        raise errors.StartError(f"{chosen} serves the group: there is nothing to reseed")
    doubts = []
    for each in held:
        report = each.report
        if report is None:
            doubts.append(f"{each.name} does not answer, and may hold more")
        elif report.owns:
            doubts.append(f"{each.name} serves the group: what it holds alone would be gone")
        elif _rank(report) > _rank(one.report):
            doubts.append(f"{each.name} holds more: up to offset {report.position}")
    if not any(each.report and each.report.role == HALTED for each in held):
        doubts.append("no node is halted: one of them takes over by itself")
    return one, doubts


def _rank(report: Report) -> tuple[int, int]:
    return report.incarnation, report.position


def order(one: Held, cluster: Cluster, trust: Trust, incarnation: int) -> None:
    """Tell the node to. Raises StartError with what it says."""
    try:
        lines = connected(
            one.address, msgspec.structs.replace(cluster, node=OPERATOR), trust, RESEED, CONNECTS_S_MAX
        )
        with lines.connection:
            lines.connection.settimeout(ANSWER_S_MAX + OWNS_S_MAX)
            lines.write(Order(incarnation))
            why = msgspec.json.decode(lines.read(), type=Done).why
    except (OSError, Stranger, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise errors.StartError(f"{one.name} did not answer: {error}; look at its log") from None
    if why:
        raise errors.StartError(f"{one.name} does not own: {why}")
