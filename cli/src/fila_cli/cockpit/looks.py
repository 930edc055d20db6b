"""What `fila top` remembers of its looks at the broker: rates are differences of counters, shares of served costs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import GetStatsResponse, ListQueuesResponse, PerFairnessKeyStats, QueueInfo

LOOKS = 60
"""How many are kept of each queue and key."""
SHARE_OVER = 10
"""Looks over which a share is measured: of one, it jumps with every message."""
DLQ_SUFFIX = ".dlq"


@dataclass
class Trail:
    """Rates of late of one queue or key, a second, oldest first."""

    into: deque[float] = field(default_factory=lambda: deque(maxlen=LOOKS))
    out: deque[float] = field(default_factory=lambda: deque(maxlen=LOOKS))
    served: deque[float] = field(default_factory=lambda: deque(maxlen=SHARE_OVER))


@dataclass(frozen=True)
class QueueRow:
    """One queue at the last look."""

    name: str
    depth: int
    in_flight: int
    consumers: int
    keys: int
    oldest_ms: int
    in_per_s: float
    out_per_s: float
    acked_per_s: float
    dead: int
    """Dead letters that lie in its dead-letter queue now."""
    enqueued_total: int
    acked_total: int
    dead_lettered_total: int
    totals_since: str
    """From when on these count."""
    paused: bool
    circuit: str
    """`closed`, `half_open`, `open`, or empty without hooks."""
    trail: Trail


@dataclass(frozen=True)
class KeyRow:
    """One fairness key at the last look."""

    name: str
    pending: int
    in_flight: int
    weight: int
    oldest_ms: int
    out_per_s: float
    share: float | None
    """Its part of what was served lately; None while nothing was."""
    due: float | None
    """The part of that its weight gives it among the keys that have something and may go; None for others."""
    paused: bool
    throttled: bool
    cap: int
    trail: Trail


class QueueLooks:
    """Looks at all queues."""

    def __init__(self) -> None:
        self._before: dict[str, QueueInfo] = {}
        self._at_s = 0.0
        self._trails: dict[str, Trail] = {}
        self.rows: list[QueueRow] = []

    def take(self, answer: ListQueuesResponse, at_s: float) -> None:
        """The next look."""
        elapsed_s = at_s - self._at_s if self._before else 0.0
        depth_by_name = {queue.name: queue.depth + queue.in_flight for queue in answer.queues}
        trails: dict[str, Trail] = {}
        self.rows = []
        for queue in answer.queues:
            trail = trails[queue.name] = self._trails.get(queue.name) or Trail()
            before = self._before.get(queue.name, queue)
            rates = [
                _rate(before.enqueued_total, queue.enqueued_total, elapsed_s),
                _rate(before.delivered_total, queue.delivered_total, elapsed_s),
                _rate(before.acked_total, queue.acked_total, elapsed_s),
            ]
            if elapsed_s > 0:
                trail.into.append(rates[0])
                trail.out.append(rates[1])
            self.rows.append(
                QueueRow(
                    name=queue.name,
                    depth=queue.depth,
                    in_flight=queue.in_flight,
                    consumers=queue.active_consumers,
                    keys=queue.active_fairness_keys,
                    oldest_ms=queue.oldest_age_ms,
                    in_per_s=rates[0],
                    out_per_s=rates[1],
                    acked_per_s=rates[2],
                    dead=depth_by_name.get(queue.name + DLQ_SUFFIX, 0),
                    enqueued_total=queue.enqueued_total,
                    acked_total=queue.acked_total,
                    dead_lettered_total=queue.dead_lettered_total,
                    totals_since=queue.totals_since.ToJsonString() if queue.HasField("totals_since") else "",
                    paused=queue.paused,
                    circuit=circuit_word(queue.breaker_state),
                    trail=trail,
                )
            )
        self._before = {queue.name: queue for queue in answer.queues}
        self._trails, self._at_s = trails, at_s


class KeyLooks:
    """Looks at one queue's keys."""

    def __init__(self) -> None:
        self._before: dict[str, PerFairnessKeyStats] = {}
        self._at_s = 0.0
        self._is_first = True
        self._trails: dict[str, Trail] = {}
        self.stats: GetStatsResponse | None = None
        self.rows: list[KeyRow] = []

    def take(self, answer: GetStatsResponse, at_s: float, *, of_one_channel: bool = False) -> None:
        """The next look: at all channels, unless it says otherwise."""
        elapsed_s = 0.0 if self._is_first else at_s - self._at_s
        trails: dict[str, Trail] = {}
        rates: dict[str, float] = {}
        for key in answer.per_key_stats:
            trail = trails[key.key] = self._trails.get(key.key) or Trail()
            before = self._before.get(key.key)
            if elapsed_s > 0:
                delivered = before.delivered_total if before else 0
                rates[key.key] = _rate(delivered, key.delivered_total, elapsed_s)
                served = before.served_cost_total if before else 0.0
                trail.out.append(rates[key.key])
                trail.served.append(max(key.served_cost_total - served, 0.0))
        self._trails, self._at_s, self.stats, self._is_first = trails, at_s, answer, False
        self._before = {key.key: key for key in answer.per_key_stats}
        served_in_all = sum(sum(trail.served) for trail in trails.values())
        # Each channel divides its own: what all of them served together is due to nobody.
        is_one = of_one_channel or len(answer.channels) < 2
        competing = [key for key in answer.per_key_stats if is_one and _competes(key)]
        due_something = {key.key for key in competing}
        weights = sum(key.weight for key in competing)
        # What those without a backlog took is theirs: the rest is what weights divide.
        divided = 1.0
        if served_in_all:
            divided = sum(sum(trails[key.key].served) for key in competing) / served_in_all
        self.rows = [
            KeyRow(
                name=key.key,
                pending=key.pending_count,
                in_flight=key.in_flight,
                weight=key.weight,
                oldest_ms=key.oldest_age_ms,
                out_per_s=rates.get(key.key, 0.0),
                share=sum(trails[key.key].served) / served_in_all if served_in_all else None,
                due=divided * key.weight / weights if key.key in due_something else None,
                paused=key.paused,
                throttled=key.throttled,
                cap=key.max_in_flight,
                trail=trails[key.key],
            )
            for key in answer.per_key_stats
        ]


def _competes(key: PerFairnessKeyStats) -> bool:
    """What it has and may go: a key with nothing but delays has no age."""
    return bool(key.pending_count and key.oldest_age_ms) and not key.paused and not key.throttled


def _rate(before: int, now: int, elapsed_s: float) -> float:
    # Counters start again with the broker.
    return max(0, now - before) / elapsed_s if elapsed_s > 0 else 0.0


def circuit_word(state: int) -> str:
    """BREAKER_STATE_OPEN as `open`."""
    from fila.v1 import admin_pb2

    word = admin_pb2.BreakerState.Name(state).removeprefix("BREAKER_STATE_").lower()
    return "" if word == "unspecified" else word
