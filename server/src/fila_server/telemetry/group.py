"""A group as one of its nodes sees it: what operators ask for, and what its metrics are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

OWNER = "owner"
STANDBY = "standby"
HALTED = "halted"
GONE = "gone"
"""It answers no probe. A node's own role is never this one."""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One node, as it told the one that is asked."""

    peer_addr: str
    node: str = ""
    """Its name; empty: it has never answered, and nothing else is known of it."""
    number: int = 0
    role: str = GONE
    since_ms: int = 0
    """When it took that role, or answered last; 0: it does not say."""
    position: int = -1
    """Of the last record of the log that it has read."""
    behind: int = 0
    """So many records were read by the node that has read most."""
    lacks: str = ""
    """Why it could not take over at once; empty: it serves, or could."""
    version: str = ""
    store_format: int = 0
    log_format: int = 0
    clock_ms: int = 0
    """Its clock, less that of the node that is asked."""
    differing: tuple[str, ...] = ()
    """Settings in which it differs from the node that is asked."""
    client_addr: str = ""
    redis_addr: str = ""

    @property
    def is_synced(self) -> bool:
        """It has all that was answered, and serves or could at once."""
        return self.role in (OWNER, STANDBY) and not self.lacks


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """What the node that is asked, which is the first one, knows of its group."""

    group: str
    nodes: tuple[NodeStatus, ...]
    term: int = -1
    """Where the takeover of the present term is in the log; -1: there was none yet."""
    short_terms: int = 0
    """So many terms in a row were over within 10 s."""
    log_age_ms: int = 0
    """Since the time in the last record that counts, by this node's clock."""
    unconfirmed: tuple[int, int] = (0, 0)
    """Records that an owner has appended, and the log has not confirmed; and their bytes."""
    takeovers: int = 0
    """Seen by this node since its start, while it was in sync."""
    skipped: int = 0
    """Records that did not count, of those that this node has read since its start."""
    written_format: int = 0
    """What the group writes, as far as this node has read the log; 0: it does not know."""

    @property
    def own(self) -> NodeStatus:
        """The node that is asked."""
        return self.nodes[0]

    @property
    def owner(self) -> NodeStatus | None:
        """The node that serves; None: none is known."""
        return next((node for node in self.nodes if node.role == OWNER), None)

    @property
    def clock_ms(self) -> int:
        """The clock of the node that is asked, less that of most others that answer."""
        offs = sorted(-node.clock_ms for node in self.nodes[1:] if node.role != GONE)
        return offs[len(offs) // 2] if offs else 0

    @property
    def synced(self) -> int:
        """How many nodes have all that was answered."""
        return sum(node.is_synced for node in self.nodes)


GroupReader = Callable[[], GroupStatus]


class Handover(Protocol):
    """A standby that is ready to take over."""

    node: str
    client_addr: str
    """Where clients reach it; empty where it does not say."""

    def prepare(self) -> None:
        """This node is about to take nothing more: who comes to the other one waits there. Blocks until it does so."""
        ...

    def tell(self) -> None:
        """It is to."""
        ...

    def close(self) -> None:
        """It is not to, if it was not told."""
        ...


class NodeCommands(Protocol):
    """What the node that serves does at an operator's word."""

    @property
    def why(self) -> str:
        """For what it bade, when it took over."""
        ...

    @property
    def handover(self) -> Handover | None:
        """To whom it is to hand over, as soon as it takes nothing more; None: to nobody."""
        ...

    def offer(self, node: NodeStatus, log_format: int = 0) -> Handover:
        """Ask a standby whether it would take over, and write that format; blocks. A node that is alone may name
        itself. Raises errors.Conflict."""
        ...

    def at_handover(self, stop_serving: Callable[[], object]) -> None:
        """What makes the node stop to serve."""
        ...

    def hand_over(self, handover: Handover) -> None:
        """Stop to serve, and let that standby take over."""
        ...

    def remove(self, node: NodeStatus) -> None:
        """Count that node no more, until it answers again."""
        ...
