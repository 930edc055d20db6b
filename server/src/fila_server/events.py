"""What happens in the broker: one `emit`, from which the log and everybody who watches learns the same.

    emit("queue.created", queue="orders", peer="ipv4:10.0.0.7:5021")
      ├─ a line of the log                                    (the audit trail; also where it was not let through)
      └─ the ring ── WatchEvents, a cursor a watcher          (the last EVENTS_KEPT; who falls behind is told how many
                                                               were missed)

Events are rare acts, never messages: what may happen often is told as one with a count, and each kind has a rate
beyond which events are only counted. Positions grow over restarts, because they begin with the time of the start.
All of it belongs to the loop's thread.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

log = structlog.get_logger("fila_server.events")

EVENTS_KEPT = 10_000
PER_KIND_A_SECOND = 100
MISSED = "events.missed"

KINDS = (
    "queue.created", "queue.updated", "queue.deleted", "queue.purged", "queue.expired", "queue.dead_letters_dropped",
    "channel.created", "channel.deleted", "channel.moved", "channel.purged", "channel.expired",
    "config.set", "config.deleted",
    "limit.set", "limit.deleted", "limit.reset", "limit.closed", "limit.learned", "limit.budget",
    "key.policy_set", "key.message_skipped", "key.throttled", "key.starved", "key.released",
    "consumer.joined", "consumer.left",
    "dead_letters.made", "dead_letters.redriven", "dead_letters.dropped_by_hand", "dead_letters.edited",
    "operation.started", "operation.ended",
    "schedule.created", "schedule.updated", "schedule.paused", "schedule.resumed", "schedule.deleted",
    "schedule.missed", "schedule.failed",
    "message.keeps_returning",
    "hook.failed", "hook.circuit_opened", "hook.circuit_closed",
    "access.key_created", "access.key_rotated", "access.key_revoked", "access.granted", "access.grant_revoked",
    "access.quotas_set", "access.forgotten", "access.link_created", "access.link_revoked", "access.denied",
    "sink.messages_lost",
    "trouble.began", "trouble.ended",
    "disk.low", "disk.critical", "disk.roomy",
    "store.recovered", "store.unsynced_end_dropped", "store.damage_found", "store.range_lost",
    "checkpoint.made", "checkpoint.removed", "checkpoint.refused",
    "cluster.owner", "cluster.standby", "cluster.halted", "cluster.gone", "cluster.moves", "cluster.removed",
    "cluster.upgrades",
    "server.started", "server.draining", "server.stopped",
    MISSED,
)  # fmt: skip
"""All there are: a watcher may name them, or what stands before their dot."""
FAMILIES = tuple(dict.fromkeys(kind.partition(".")[0] for kind in KINDS))
_ASKED_FOR = frozenset((*KINDS, *FAMILIES))


@dataclass(frozen=True, slots=True)
class Happening:
    """One event. Times are milliseconds since 1970."""

    position: int
    at_ms: int
    kind: str
    queue: str = ""
    channel: str = ""
    fairness_key: str = ""
    principal: str = ""
    peer: str = ""
    count: int = 1
    details: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Rate:
    """How many of a kind were let through in the second that began at `since_s`, and how many were not since."""

    since_s: float = float("-inf")
    let_through: int = 0
    held_back: int = 0


class Ring:
    """The last events, and who waits for more."""

    def __init__(
        self, first_position: int, kept: int = EVENTS_KEPT, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._next = first_position
        self._first = first_position
        self._kept: deque[Happening] = deque(maxlen=kept)
        self._now_s = now_s
        self._rates: dict[str, _Rate] = {}
        self._changed: asyncio.Event | None = None

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def head(self) -> int:
        """The position the next event will get."""
        return self._next

    def add(self, at_ms: int, kind: str, count: int, details: dict[str, str], **about: str) -> bool:
        """Keep an event; False when its kind has used up its rate and it was only counted."""
        rate = self._rates.setdefault(kind, _Rate())
        now_s = self._now_s()
        if now_s - rate.since_s >= 1:
            rate.since_s, rate.let_through = now_s, 0
        if rate.let_through >= PER_KIND_A_SECOND:
            rate.held_back += 1
            return False
        rate.let_through += 1
        if rate.held_back:
            details = {**details, "held_back": str(rate.held_back)}
            rate.held_back = 0
        self._kept.append(Happening(self._next, at_ms, kind, count=count, details=details, **about))
        self._next += 1
        if self._changed is not None:
            self._changed.set()
            self._changed = None
        return True

    def after(self, position: int, most: int) -> tuple[Sequence[Happening], int]:
        """Return up to `most` events after `position`, and how many of those after it are not kept any more."""
        if not self._kept or position >= self._next - 1:
            return (), 0
        oldest = self._kept[0].position
        missed = max(0, oldest - 1 - max(position, self._first - 1)) if position else 0
        skip = max(0, position + 1 - oldest)
        return [self._kept[i] for i in range(skip, min(skip + most, len(self._kept)))], missed

    def changed(self) -> asyncio.Event:
        """Return what will be set by the next event from this moment on."""
        if self._changed is None:
            self._changed = asyncio.Event()
        return self._changed


RING = Ring(time.time_ns() // 1_000_000 * 1_000)
"""This process's. A broker that emitted a million events a second would still begin anew beyond its last position."""


def emit(
    kind: str,
    *,
    queue: str = "",
    channel: str = "",
    fairness_key: str = "",
    principal: str = "",
    peer: str = "",
    count: int = 1,
    level: str = "info",
    **details: object,
) -> None:
    """Tell the log and the watchers. Details hold no secrets: scripts and values by their size or digest."""
    about = {
        "queue": queue,
        "channel": channel,
        "fairness_key": fairness_key,
        "principal": principal,
        "peer": peer,
    }
    texts = {name: _text(value) for name, value in details.items()}
    if RING.add(time.time_ns() // 1_000_000, kind, count, texts, **about):
        reported = {name: text for name, text in about.items() if text} | details
        if count != 1:
            reported["count"] = count
        getattr(log, level)(kind, **reported)


def _text(value: object) -> str:
    """A detail as watchers get it: in no language's own notation, and headers as they are typed, name=value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return " ".join(f"{name}={value[name]}" for name in sorted(value))
    return str(value)


def unknown_kinds(asked: Sequence[str]) -> list[str]:
    """Those of the kinds, or families of kinds, that never happen."""
    return [kind for kind in asked if kind not in _ASKED_FOR]


def matches(happening: Happening, queue: str, kinds: Sequence[str], fairness_key: str) -> bool:
    """Whether a watcher asked for it; what is left empty means all."""
    return (
        (not queue or happening.queue == queue)
        and (not fairness_key or happening.fairness_key == fairness_key)
        and (
            not kinds
            or any(happening.kind == kind or happening.kind.startswith(f"{kind}.") for kind in kinds)
        )
    )
