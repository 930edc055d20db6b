"""Who serves: when a standby asks for its turn. A machine of times and events; it reads no clock, no log and no socket.

    Read        the log answered: how far this node is in it, and whose term it is
    Heard       another node answered a probe, and told of itself
    Missed      another node did not
    Hindered    this node's copy may not serve, or may again
    Bidden      this node appended a takeover
    Handed      the owner has stopped, and this node is to take over

A standby bids at once where its owner hands over to it, as long as it may serve. Else it bids for one of three causes:

    the owner answers no probe, and the log stands still         three probes, one if the connection is refused; 1 s
    the log stands still, though it can be read                  10 s
    the log goes on, and no node hears of its owner              10 s; it may be cut off from its clients, too

Standbys bid in the order of how far they are, APART_MS apart, and none of them twice a minute while another node lives.
Once three terms in a row have ended within 10 s, bids wait: 1 minute, then 2, up to 10. A false alarm costs a takeover,
and never a message: which bid counts is decided by the log alone (core/log/reading.pxd).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

PROBE_MS = 300
"""So often a node asks each other one how it is."""
PROBES_MAX = 3
"""So many in a row without an answer, and the node counts as gone."""
STILL_MS = 1_000
STILL_LONG_MS = 10_000
"""An owner appends something every half second."""
UNHEARD_MS = 10_000
APART_MS = 300
AGAIN_MS = 60_000
AGAIN_ALONE_MS = 2_000
FRESH_MS = 3_000
"""For so long it counts that the log, or a node, has answered."""
SHORT_TERMS_MAX = 2
"""More of them in a row, and bids wait."""
WAIT_MS = 60_000
WAITS_MAX = 10


@dataclass(frozen=True)
class Read:
    """The log answered, and this is what is known of it."""

    position: int
    """Of the last record that was read."""
    is_end: bool
    """Nothing lies behind it."""
    owner: int | None
    """The node whose term it is; None: there was no term yet."""
    short_terms: int = 0
    """So many terms in a row, this one with them, have lasted less than 10 s by the times of their own records."""
    ahead_ms: int = 0
    """The last record's time, less this node's."""


@dataclass(frozen=True)
class Heard:
    """What another node says of itself."""

    node: int
    position: int
    may_bid: bool
    clock_ms: int = 0
    """This node's clock, less the other's."""
    owner_heard_ms: int | None = None
    """So long before the probe was sent it heard of the owner; None: it knows of none."""
    synced: int = -1
    """Of the last record that is on its disk for certain; -1: none, or it does not say."""


@dataclass(frozen=True)
class Missed:
    """A probe without an answer."""

    node: int
    is_refused: bool = False
    """Its machine answered, and the node does not listen."""


@dataclass(frozen=True)
class Hindered:
    """Why this node's copy may not serve, such as damage or a form that it does not know; empty: it may."""

    why: str


@dataclass(frozen=True)
class Bidden:
    """This node appended a takeover."""


@dataclass(frozen=True)
class Handed:
    """This owner has stopped, and asked this node to take over."""

    owner: int


Event = Read | Heard | Missed | Hindered | Bidden | Handed


@dataclass(frozen=True)
class Decision:
    """What a node does now, and why."""

    bids: bool
    why: str
    """Why it bids, or what keeps it from bidding; empty: there is no cause to."""
    is_alarm: bool = False
    """An operator is to look."""
    is_moved: bool = False
    """The owner handed over."""


@dataclass
class _Other:
    """What is known of another node."""

    heard: Heard | None = None
    heard_ms: int = 0
    missed: int = 0
    gone_ms: int | None = None
    """Since when it counts as gone."""

    def lives(self, now_ms: int) -> bool:
        return self.heard is not None and now_ms - self.heard_ms <= FRESH_MS


class Watch:
    """One node's view of its group."""

    def __init__(self, node: int, clock_skew_max_ms: int) -> None:
        self.node, self.clock_skew_max_ms = node, clock_skew_max_ms
        self.hindered = ""
        self._others: dict[int, _Other] = {}
        self._read: Read | None = None
        self._read_ms = self._moved_ms = self._owner_heard_ms = 0
        self._end_ms: int | None = None
        self._bid_ms: int | None = None
        self._handed_ms, self._handed_by = 0, -1

    def take(self, now_ms: int, event: Event) -> None:
        """Something happened. Times never go back."""
        match event:
            case Read():
                self._take_read(now_ms, event)
            case Heard():
                self._take_heard(now_ms, event)
            case Missed():
                other = self._others.setdefault(event.node, _Other())
                other.missed += 1
                if other.gone_ms is None and (event.is_refused or other.missed >= PROBES_MAX):
                    other.gone_ms = now_ms
            case Hindered():
                self.hindered = event.why
            case Bidden():
                self._bid_ms = now_ms
            case Handed():
                self._handed_ms, self._handed_by = now_ms, event.owner

    def _take_read(self, now_ms: int, event: Read) -> None:
        before = self._read
        if before is None or before.owner != event.owner:
            self._owner_heard_ms = now_ms
        if before is None or event.position > before.position:
            self._moved_ms = now_ms
        self._read, self._read_ms = event, now_ms
        if event.is_end:
            self._end_ms = now_ms

    def _take_heard(self, now_ms: int, event: Heard) -> None:
        self._others[event.node] = _Other(event, now_ms)
        owner = self._read.owner if self._read else None
        if event.node == owner:
            self._owner_heard_ms = now_ms
        elif event.owner_heard_ms is not None:
            self._owner_heard_ms = max(self._owner_heard_ms, now_ms - event.owner_heard_ms)

    def is_gone(self, node: int) -> bool:
        """Whether the other node has stopped to answer probes."""
        other = self._others.get(node)
        return other is None or other.gone_ms is not None

    def takes_over(self, now_ms: int) -> bool:
        """Whether the owner has just handed over to this node."""
        is_fresh = now_ms - self._handed_ms <= FRESH_MS
        return is_fresh and self._read is not None and self._read.owner == self._handed_by

    def report(self, now_ms: int) -> Heard:
        """What this node answers to a probe."""
        read = self._read
        heard_ms = now_ms - self._owner_heard_ms if read and read.owner is not None else None
        may_bid = read is not None and not self.obstacle
        return Heard(self.node, read.position if read else -1, may_bid, owner_heard_ms=heard_ms)

    @property
    def obstacle(self) -> str:
        """What keeps this node from bidding whatever happens; empty: nothing does."""
        return self.hindered or self._clock_is_off()

    def lacks(self, now_ms: int) -> str:
        """Why this node could not take over at once, with all that was answered; empty: it could."""
        if self._end_ms is None or now_ms - self._end_ms > FRESH_MS:
            return self.obstacle or "the log is not read to its end"
        return self.obstacle

    def _clock_is_off(self) -> str:
        """Most of the others say so; the log's last record does where no other was ever heard."""
        offs = [other.heard.clock_ms for other in self._others.values() if other.heard]
        if not offs and self._read:
            offs = [-max(self._read.ahead_ms, 0)]
        wrong = sorted((off for off in offs if abs(off) > self.clock_skew_max_ms), key=abs)
        if 2 * len(wrong) <= len(offs):
            return ""
        way = "ahead of" if wrong[0] > 0 else "behind"
        return (
            f"the clock of this node is {abs(wrong[0])} ms {way} the group's, and cluster.clock_skew_max_ms is "
            f"{self.clock_skew_max_ms}: let NTP set it"
        )

    def decide(self, now_ms: int) -> Decision:
        """Whether to append a takeover now. A node that owns does not ask."""
        read = self._read
        if self.obstacle:
            return Decision(False, self.obstacle, is_alarm=True)
        if read is None or now_ms - self._read_ms > FRESH_MS:
            return Decision(False, "the log does not answer")
        if not read.is_end:  # each new record says so for a moment, which is nothing to tell
            was_at_end = self._end_ms is not None and now_ms - self._end_ms <= FRESH_MS
            return Decision(False, "" if was_at_end else "the log is not read to its end yet")
        if self.takes_over(now_ms) and (self._bid_ms is None or self._bid_ms < self._handed_ms):
            return Decision(True, "the owner hands over", is_moved=True)
        rank = self._rank(now_ms)
        due = [(since_ms + rank * APART_MS, why) for since_ms, why in self._causes(now_ms, read)]
        due_ms, why = min(due, default=(now_ms + 1, ""))
        if due_ms > now_ms:
            return Decision(False, "")
        waits = min(max(read.short_terms - SHORT_TERMS_MAX, 0), WAITS_MAX)
        if waits and now_ms < self._moved_ms + waits * WAIT_MS:
            return Decision(
                False,
                f"{read.short_terms} terms in a row ended within 10 s of their takeover: this bid waits {waits} min. "
                "The owners' logs say why they ended",
                is_alarm=True,
            )
        again_ms = AGAIN_MS if self._another_lives(now_ms, read) else AGAIN_ALONE_MS
        if self._bid_ms is not None and now_ms < self._bid_ms + again_ms:
            return Decision(False, "this node has just bidden")
        return Decision(True, why)

    def _causes(self, now_ms: int, read: Read) -> Iterator[tuple[int, str]]:
        """Since when each cause to bid is there, or will be."""
        still_ms = self._moved_ms + STILL_MS
        if read.owner is None:
            yield still_ms, "there is no owner yet"
            return
        if read.owner == self.node:
            yield still_ms, "the owner was this node, before it began anew"
        owner = self._others.get(read.owner)
        if owner is not None and owner.gone_ms is not None:
            yield max(owner.gone_ms, still_ms), "the owner answers no probe, and the log stands still"
        yield self._moved_ms + STILL_LONG_MS, "the log stands still"
        if self._has_witness(now_ms, read.owner):
            yield self._owner_heard_ms + UNHEARD_MS, "no node hears of the owner, though its log goes on"

    def _has_witness(self, now_ms: int, owner: int) -> bool:
        """In a group of two there is none to be had. Else a node that hears nobody may be the one that is cut off."""
        witnesses = [other for node, other in self._others.items() if node != owner]
        return not witnesses or any(other.lives(now_ms) for other in witnesses)

    def _rank(self, now_ms: int) -> int:
        """How many standbys are to bid before this one."""
        assert self._read is not None
        mine = (-self._read.position, self.node)
        return sum(
            other.heard.may_bid and (-other.heard.position, node) < mine
            for node, other in self._others.items()
            if other.heard and other.lives(now_ms) and node != self._read.owner
        )

    def _another_lives(self, now_ms: int, read: Read) -> bool:
        log_is_anothers = read.owner not in (None, self.node) and now_ms - self._moved_ms <= STILL_LONG_MS
        return log_is_anothers or any(other.lives(now_ms) for other in self._others.values())
