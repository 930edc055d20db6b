"""A planned move: the owner hands over to a standby, over a connection of its own (peers.py).

    owner       its number, while it still serves
    standby     that it is ready: it has loaded what it needs to serve. Or why it would not take over
    owner       an empty line: it is about to take nothing more, and sends clients to the standby
    standby     an empty line: clients that come wait until it serves
    owner       an empty line: it takes nothing more, and what it answered is in the log
    standby     bids at once (watching.Handed)

Where this breaks off nothing is lost: a standby that is told nothing goes on, and an owner that has stopped begins
anew, so that somebody bids by the rules of any other day.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

import msgspec

from fila_server import errors
from fila_server.cluster.peers import CONNECTS_S_MAX, Lines, Stranger, Trust, connected
from fila_server.cluster.watching import Handed
from fila_server.config.cluster import Cluster
from fila_server.config.kinds import Address
from fila_server.telemetry.group import Handover, NodeStatus

MOVE = "move"
"""What such a connection asks for."""
READY_S_MAX = 5.0
"""For so long the standby may load."""
RESTS_S = 0.35
"""So long an owner that has handed over leaves the CPU to the other node, which may be on its machine. Half a second
after its last record it would append one more, which counts for nobody, and which the next owner has to read back."""
STOPS_S_MAX = 10.0
"""For so long the owner may finish what is in hand."""
PREPARED_S_MAX = 0.5
"""So long an owner that still serves waits until the standby has its clients wait."""


class Offer(msgspec.Struct):
    """What the owner says first."""

    owner: int
    format: int = 0
    """The next owner is to write this one; 0: what is written."""


class Ready(msgspec.Struct):
    """What the standby says to it; empty: it takes over as soon as it is told."""

    why: str = ""


class Taker:
    """The standby's side."""

    def __init__(
        self,
        lacks: Callable[[int], str],
        load: Callable[[], object],
        hold: Callable[[], object],
        hear: Callable[[Handed], None],
    ) -> None:
        """`lacks` says why this node would not take over from that owner; `hold` makes clients wait."""
        self._lacks, self._load, self._hold, self._hear = lacks, load, hold, hear
        self.format = 0
        """What the owner said last that the next one is to write."""

    def take(self, lines: Lines, _node: str) -> None:
        """From the owner at the other end. Raises OSError where the connection ends."""
        lines.connection.settimeout(STOPS_S_MAX)
        offered = msgspec.json.decode(lines.read(), type=Offer)
        owner, self.format = offered.owner, offered.format
        why = self._lacks(owner)
        if not why:
            self._load()
        lines.write(Ready(why))
        if not why and lines.read() == b"":
            self._hold()
            lines.write(None)
            if lines.read() == b"":
                self._hear(Handed(owner))


class Successor:
    """The owner's side, to a standby that is ready."""

    def __init__(self, node: str, lines: Lines, client_addr: str = "") -> None:
        self.node, self.client_addr, self._lines = node, client_addr, lines

    def prepare(self) -> None:
        """This node is about to take nothing more: who comes to the other one waits there. Blocks until it does so."""
        with contextlib.suppress(OSError):
            self._lines.connection.settimeout(PREPARED_S_MAX)
            self._lines.write(None)
            self._lines.read()

    def tell(self) -> None:
        """It is to take over now."""
        with contextlib.suppress(OSError):
            self._lines.write(None)

    def close(self) -> None:
        """It is not to, if it was not told."""
        self._lines.connection.close()


class Again:
    """In the place of a successor: a node that is alone serves again, once it has begun anew."""

    def __init__(self, node: str, client_addr: str, want: Callable[[], None]) -> None:
        """`want` notes what it is to do then."""
        self.node, self.client_addr, self._want = node, client_addr, want

    def prepare(self) -> None:
        """Who comes meanwhile is refused, and tries again."""

    def tell(self) -> None:
        """The process is about to begin anew."""
        with contextlib.suppress(OSError):  # then nothing is raised, and the command says so
            self._want()

    def close(self) -> None:
        """It goes on as it is."""


class Mover:
    """What a node that serves does at an operator's word."""

    def __init__(
        self,
        cluster: Cluster,
        trust: Trust,
        owner: int,
        remove: Callable[[str, str], None],
        want_format: Callable[[int], None],
    ) -> None:
        """`remove` takes the name and the peer address of a node that is gone for good; `want_format` what a node that
        is alone writes once it serves again."""
        self._cluster, self._trust, self._owner, self._remove = cluster, trust, owner, remove
        self._want_format = want_format
        self._stop_serving: Callable[[], object] = lambda: None
        self.why = ""
        """For what the node bade."""
        self.handover: Handover | None = None
        """To whom it is to hand over, as soon as it takes nothing more; None: to nobody."""

    def offer(self, node: NodeStatus, log_format: int = 0) -> Handover:
        """Ask a standby whether it would take over, and write that format; blocks. Raises errors.Conflict."""
        if node.number == self._owner:
            return Again(node.node, node.client_addr, partial(self._want_format, log_format))
        return offer(node, self._cluster, self._trust, self._owner, log_format)

    def at_handover(self, stop_serving: Callable[[], object]) -> None:
        """What makes the node stop to serve."""
        self._stop_serving = stop_serving

    def remove(self, node: NodeStatus) -> None:
        """Nobody counts it until it answers again."""
        self._remove(node.node, node.peer_addr)

    def hand_over(self, handover: Handover) -> None:
        """Stop to serve, and let that standby take over."""
        self.handover = handover
        self._stop_serving()


def offer(node: NodeStatus, cluster: Cluster, trust: Trust, owner: int, log_format: int = 0) -> Handover:
    """Ask that standby whether it would take over. Raises errors.Conflict with what it lacks."""
    name, address = node.node, Address(node.peer_addr)
    try:
        lines = connected(address, cluster, trust, MOVE, CONNECTS_S_MAX)
    except (OSError, Stranger, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise errors.Conflict(f"{name} does not answer at {address}: {error}") from None
    try:
        lines.connection.settimeout(READY_S_MAX)
        lines.write(Offer(owner, log_format))
        said = msgspec.json.decode(lines.read(), type=Ready)
        if said.why:
            raise errors.Conflict(f"{name} would not take over: {said.why}")
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        lines.connection.close()
        raise errors.Conflict(
            f"{name} did not say that it is ready: {str(error) or 'it broke off'}"
        ) from None
    except errors.Conflict:
        lines.connection.close()
        raise
    return Successor(name, lines, node.client_addr)
