"""From a snapshot to points: what each metric says now, for the exporters.

Both exporters read the same points, so they never disagree. A generator, one metric after the other: the
Prometheus page is written in slices between which the loop serves others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from fila_server.core.admin.metrics import QUEUE_COUNTERS
from fila_server.telemetry import catalog as c
from fila_server.telemetry.catalog import Metric
from fila_server.telemetry.group import HALTED, OWNER, STANDBY, GroupStatus
from fila_server.telemetry.snapshot import WAIT_CAUSES, Channel, Key, Queue, Snapshot, text_of

Attributes = dict[str, str]

LATENCY_BUCKETS = 23
"""Finite ones: 1 ms to 70 minutes, each twice the one before."""
SYNC_BUCKETS = 24
BATCH_BUCKETS = 14


class Histogram(NamedTuple):
    """Counts by upper bound; one more count than bounds."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float

    @property
    def observed(self) -> int:
        return sum(self.counts)


class Series(NamedTuple):
    """One metric and its points."""

    metric: Metric
    points: list[tuple[Attributes, float]]
    histograms: list[tuple[Attributes, Histogram]]


class HookCounters(Protocol):
    """As hooks/counters.py has them; telemetry and hooks do not import one another."""

    runs: int
    errors: int
    fallbacks: int
    held: int
    duration_sum_ns: int
    duration_counts: list[int]


class HookStatus(Protocol):
    """One script."""

    @property
    def hook(self) -> str: ...
    @property
    def breaker(self) -> str: ...
    @property
    def counters(self) -> HookCounters: ...


@dataclass(frozen=True, slots=True)
class HookReading:
    """A queue's script at this moment."""

    queue: str
    status: HookStatus


HookReader = Callable[[], Sequence[HookReading]]


@dataclass(frozen=True, slots=True)
class QuotaReading:
    """A name's quotas at this moment."""

    principal: str
    refused: int
    used: dict[str, float]
    """By quota, as a part of its bound; above 1 for a moment after the bound was lowered."""


QuotaReader = Callable[[], Sequence[QuotaReading]]


class TroubleReading(NamedTuple):
    """Something that is wrong; what does not apply is empty."""

    kind: str
    queue: str
    channel: str
    fairness_key: str
    throttle_key: str
    since_s: float


TroubleReader = Callable[[], Sequence[TroubleReading]]


class ScheduleReading(NamedTuple):
    """What the schedules of a queue did since the start."""

    queue: str
    fired: int
    missed: int
    failed: int


ScheduleReader = Callable[[], Sequence[ScheduleReading]]


class EdgeReading(NamedTuple):
    """What is held outside the core at this moment: by clients, whatever they came to, and for those that look back."""

    connections: int
    unread_bytes: int
    unread_bytes_max: int
    events: int
    hour_bytes: int


EdgeReader = Callable[[], EdgeReading | None]
"""None where no edge serves."""

BackupReader = Callable[[], float | None]
"""Seconds since the last good backup began; None where none is known."""

_ROLES = {STANDBY: 0, OWNER: 1, HALTED: 2}
_BREAKER_STATES = {"closed": 0, "half_open": 1, "open": 2}


@dataclass(slots=True)
class OtherKeys:
    """What the keys without a series of their own add up to.

    Keys come into and go out of the busiest thousand, and a counter must not go down for that. So what counts is the
    difference from reading to reading: the channel's, less that of the keys that were listed both times.
    """

    _channels: dict[tuple[bytes, bytes], tuple[float, ...]] = field(default_factory=dict)
    _keys: dict[tuple[bytes, bytes, bytes], tuple[float, ...]] = field(default_factory=dict)
    _others: dict[tuple[bytes, bytes], list[float]] = field(default_factory=dict)

    def read(self, snapshot: Snapshot) -> dict[tuple[bytes, bytes], list[float]]:
        """Return, for each channel: delivered, cost, and the waits of the keys not listed, since the start."""
        channels = {
            (queue.name, channel.name): _channel_numbers(channel)
            for queue in snapshot.queues
            for channel in queue.channels
        }
        keys = {(key.queue, key.channel, key.fairness_key): _key_numbers(key) for key in snapshot.keys}
        listed: dict[tuple[bytes, bytes], list[float]] = {}
        for place, numbers in keys.items():
            before = self._keys.get(place)
            if before is not None:
                sums = listed.setdefault(place[:2], [0.0] * len(numbers))
                for i, number in enumerate(numbers):
                    sums[i] += max(0.0, number - before[i])
        for where, totals in channels.items():
            earlier = self._channels.get(where, (0.0,) * len(totals))
            if any(number < old for number, old in zip(totals, earlier, strict=True)):
                earlier = (0.0,) * len(totals)  # deleted and made again
            own = listed.get(where, [0.0] * len(totals))
            others = self._others.setdefault(where, [0.0] * len(totals))
            for i, total in enumerate(totals):
                others[i] += max(0.0, total - earlier[i] - own[i])
        self._channels, self._keys = channels, keys
        self._others = {where: sums for where, sums in self._others.items() if where in channels}
        return self._others


def _channel_numbers(channel: Channel) -> tuple[float, ...]:
    return (channel.delivered, channel.served / 1000, *(ms / 1000 for ms in channel.waited_ms))


def _key_numbers(key: Key) -> tuple[float, ...]:
    return (key.delivered, key.served / 1000, *(ms / 1000 for ms in key.totals[: len(WAIT_CAUSES)]))


def all_series(
    snapshot: Snapshot,
    others: OtherKeys,
    hooks: Sequence[HookReading],
    quotas: Sequence[QuotaReading] = (),
    troubles: Sequence[TroubleReading] = (),
    backup_age_s: float | None = None,
    schedules: Sequence[ScheduleReading] = (),
    edge: EdgeReading | None = None,
    group: GroupStatus | None = None,
) -> Iterator[Series]:
    """Every metric of the catalog that has something to say."""
    yield from _queues(snapshot)
    yield from _channels(snapshot)
    yield from _keys(snapshot, others)
    yield from _limits(snapshot)
    yield from _hooks(hooks)
    yield from _quotas(quotas)
    yield from _troubles(troubles)
    yield from _schedules(schedules)
    if backup_age_s is not None:
        yield _one(c.BACKUP_AGE, backup_age_s)
    if edge is not None:
        yield _one(c.CONNECTIONS, edge.connections)
        yield _one(c.UNREAD, edge.unread_bytes)
        yield _one(c.UNREAD_MAX, edge.unread_bytes_max)
        yield _one(c.EVENTS_KEPT, edge.events)
        yield _one(c.HOUR, edge.hour_bytes)
    if group is not None:
        yield from group_series(group)
    yield from _core(snapshot, group.group if group else "")


def group_series(group: GroupStatus) -> Iterator[Series]:
    """What a node of a group tells of it, a standby too."""
    for metric, value in (
        (c.CLUSTER_ROLE, _ROLES.get(group.own.role, 0)),
        (c.CLUSTER_IN_SYNC, int(group.own.is_synced)),
        (c.CLUSTER_NODES, len(group.nodes)),
        (c.CLUSTER_NODES_IN_SYNC, group.synced),
        (c.CLUSTER_BEHIND, group.own.behind),
        (c.CLUSTER_LOG_AGE, group.log_age_ms / 1000),
        (c.CLUSTER_UNCONFIRMED, group.unconfirmed[1]),
        (c.CLUSTER_TAKEOVERS, group.takeovers),
        (c.CLUSTER_SHORT_TERMS, group.short_terms),
        (c.CLUSTER_SKIPPED, group.skipped),
        (c.CLUSTER_CLOCK, group.clock_ms / 1000),
    ):
        yield Series(metric, [({c.GROUP: group.group}, value)], [])


class Disk(NamedTuple):
    """Of a data directory, as of the last look."""

    level: int
    free_bytes: int
    """-1: nobody has looked."""


def standby_series(disk: Disk, backup_age_s: float | None) -> Iterator[Series]:
    """What a standby tells of its machine, under the names that a broker's core tells it by."""
    if disk.free_bytes >= 0:
        yield _plain(c.DISK_LEVEL, [({}, disk.level)])
        yield _plain(c.DISK_FREE, [({}, disk.free_bytes)])
    if backup_age_s is not None:
        yield _plain(c.BACKUP_AGE, [({}, backup_age_s)])


def _plain(metric: Metric, points: list[tuple[Attributes, float]]) -> Series:
    return Series(metric, points, [])


def _one(metric: Metric, value: float) -> Series:
    return Series(metric, [({}, value)], [])


# --- queues and channels ------------------------------------------------------------------------------------------


def _of_queues(metric: Metric, rows: Iterable[tuple[Attributes, float, bool]]) -> Series:
    """Of 2,000 queues most do nothing, and a series costs Prometheus more than the broker. So a 0 is told where every
    queue has the series, and of a gauge where the queue had traffic since the start."""
    points = [
        (attributes, number)
        for attributes, number, had_traffic in rows
        if number or metric.is_of_each or (had_traffic and metric.kind == "gauge")
    ]
    return _plain(metric, points)


def _queues(snapshot: Snapshot) -> Iterator[Series]:
    named = [({c.QUEUE: text_of(queue.name)}, queue, had_traffic(queue)) for queue in snapshot.queues]
    for metric in c.METRICS:
        if metric.core and metric.attributes:
            yield _of_queues(
                metric, [(labels, getattr(q.counts, metric.core), had) for labels, q, had in named]
            )
    numbers: tuple[tuple[Metric, str], ...] = (
        (c.DEPTH, "depth"), (c.IN_FLIGHT, "in_flight"), (c.STORED_BYTES, "stored_bytes"), (c.QUEUE_KEYS, "keys"),
        (c.PAUSED, "is_paused"),
    )  # fmt: skip
    for metric, number in numbers:
        yield _of_queues(metric, [(labels, getattr(queue, number), had) for labels, queue, had in named])
    yield _of_queues(c.OLDEST, [(labels, queue.oldest_ms / 1000, had) for labels, queue, had in named])
    yield _of_queues(c.OLDEST_LEASE, [(labels, q.oldest_lease_ms / 1000, had) for labels, q, had in named])
    yield _of_queues(c.PAUSED_KEYS, [(labels, queue.paused_keys, False) for labels, queue, _ in named])
    paused = [(labels, queue) for labels, queue, _ in named if queue.paused_keys]
    yield _plain(c.LONGEST_PAUSED, [(labels, queue.longest_paused_ms / 1000) for labels, queue in paused])
    yield Series(
        c.LATENCY,
        [],
        [
            (labels, _by_bit_length(queue.latency, LATENCY_BUCKETS, 0.001, queue.latency_ms / 1000))
            for labels, queue, _ in named
            if any(queue.latency)
        ],
    )


def had_traffic(queue: Queue) -> bool:
    """Whether anything happened in it since the start."""
    return any(getattr(queue.counts, counter) for counter in QUEUE_COUNTERS)


def _channels(snapshot: Snapshot) -> Iterator[Series]:
    named = [
        ({c.QUEUE: text_of(queue.name), c.CHANNEL: text_of(channel.name)}, channel, had_traffic(queue))
        for queue in snapshot.queues
        for channel in queue.channels
    ]
    numbers: tuple[tuple[Metric, str], ...] = (
        (c.READY, "ready"), (c.DELAYED, "delayed"), (c.CHANNEL_IN_FLIGHT, "in_flight"), (c.CHANNEL_UNBEGUN, "unbegun"),
        (c.CONSUMERS, "consumers"), (c.WAITING_PULLS, "waiting_pulls"), (c.ACTIVE_KEYS, "active_keys"),
        (c.CHANNEL_PAUSED, "is_paused"), (c.ROUNDS, "rounds"),
    )  # fmt: skip
    for metric, number in numbers:
        yield _of_queues(metric, [(labels, getattr(channel, number), had) for labels, channel, had in named])
    yield _of_queues(c.SERVED, [(labels, channel.served / 1000, had) for labels, channel, had in named])
    yield _of_queues(
        c.WAITED,
        [
            (labels | {c.CAUSE: cause}, ms / 1000, had)
            for labels, channel, had in named
            for cause, ms in zip(WAIT_CAUSES, channel.waited_ms, strict=True)
        ],
    )


# --- the busiest keys and limits ----------------------------------------------------------------------------------


def _keys(snapshot: Snapshot, others: OtherKeys) -> Iterator[Series]:
    named = [
        (_key_attributes(key.queue, key.channel, text_of(key.fairness_key)), key) for key in snapshot.keys
    ]
    rows = [(attributes, _key_numbers(key)) for attributes, key in named]
    rows += [
        (_key_attributes(queue, channel, c.OTHER_KEYS), tuple(sums))
        for (queue, channel), sums in others.read(snapshot).items()
        if any(sums)
    ]
    yield _plain(c.KEY_DELIVERED, [(attributes, numbers[0]) for attributes, numbers in rows])
    yield _plain(c.KEY_SERVED, [(attributes, numbers[1]) for attributes, numbers in rows])
    yield _plain(
        c.KEY_WAITED,
        [
            (attributes | {c.CAUSE: cause}, waited_s)
            for attributes, numbers in rows
            for cause, waited_s in zip(WAIT_CAUSES, numbers[2:], strict=True)
            if waited_s
        ],
    )
    yield _plain(c.KEY_RATIO, [(attributes, key.share_ratio) for attributes, key in named])
    yield _plain(c.KEY_PENDING, [(attributes, key.pending) for attributes, key in named])
    yield _plain(c.KEY_IN_FLIGHT, [(attributes, key.in_flight) for attributes, key in named if key.in_flight])
    yield _plain(c.KEY_PAUSED, [(attributes, 1) for attributes, key in named if key.is_paused])
    yield _plain(
        c.KEY_OLDEST, [(attributes, key.oldest_ms / 1000) for attributes, key in named if key.oldest_ms]
    )


def _key_attributes(queue: bytes, channel: bytes, fairness_key: str) -> Attributes:
    return {c.QUEUE: text_of(queue), c.CHANNEL: text_of(channel), c.FAIRNESS_KEY: fairness_key}


def _limits(snapshot: Snapshot) -> Iterator[Series]:
    named = [({c.THROTTLE_KEY: text_of(limit.throttle_key)}, limit) for limit in snapshot.limits]
    own = [(attributes, limit) for attributes, limit in named if not limit.has_no_tokens]
    yield _plain(c.TOKENS, [(attributes, limit.tokens) for attributes, limit in own])
    yield _plain(c.THROTTLE_RATE, [(attributes, limit.rate) for attributes, limit in own])
    learning = [(attributes, limit) for attributes, limit in named if limit.learned_rate]
    yield _plain(c.LEARNED_RATE, [(attributes, limit.learned_rate) for attributes, limit in learning])
    yield _plain(c.THROTTLE_WAITING, [(attributes, limit.waiting) for attributes, limit in named])
    yield _plain(c.PASSED, [(attributes, limit.passed) for attributes, limit in named])
    yield _plain(c.HELD, [(attributes, limit.held) for attributes, limit in named])
    yield _plain(c.WOULD_HOLD, [(attributes, limit.would_hold) for attributes, limit in named])


# --- hooks --------------------------------------------------------------------------------------------------------

HOOK_BOUNDS_NS: tuple[int, ...] = (
    2_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000,
)  # fmt: skip
"""hooks.counters.DURATION_BOUNDS_NS; a test holds the two together."""


def _hooks(readings: Sequence[HookReading]) -> Iterator[Series]:
    named = [({c.QUEUE: reading.queue, c.HOOK: reading.status.hook}, reading.status) for reading in readings]
    yield _plain(c.HOOK_RUNS, [(attributes, status.counters.runs) for attributes, status in named])
    yield _plain(c.HOOK_ERRORS, [(attributes, status.counters.errors) for attributes, status in named])
    yield _plain(c.HOOK_FALLBACKS, [(attributes, status.counters.fallbacks) for attributes, status in named])
    yield _plain(c.HOOK_HELD, [(attributes, status.counters.held) for attributes, status in named])
    yield _plain(
        c.HOOK_BREAKER, [(attributes, _BREAKER_STATES[status.breaker]) for attributes, status in named]
    )
    bounds = tuple(bound / 1e9 for bound in HOOK_BOUNDS_NS)
    yield Series(
        c.HOOK_DURATION,
        [],
        [
            (
                attributes,
                Histogram(bounds, tuple(s.counters.duration_counts), s.counters.duration_sum_ns / 1e9),
            )
            for attributes, s in named
        ],
    )


def _quotas(readings: Sequence[QuotaReading]) -> Iterator[Series]:
    yield _plain(c.QUOTA_REFUSED, [({c.PRINCIPAL: each.principal}, each.refused) for each in readings])
    yield _plain(
        c.QUOTA_USE,
        [
            ({c.PRINCIPAL: each.principal, c.QUOTA: quota}, part)
            for each in readings
            for quota, part in each.used.items()
        ],
    )


def _troubles(readings: Sequence[TroubleReading]) -> Iterator[Series]:
    names = (c.TROUBLE, c.QUEUE, c.CHANNEL, c.FAIRNESS_KEY, c.THROTTLE_KEY)
    points: dict[tuple[str, ...], float] = {}
    for each in readings:
        # Two scripts of a queue are one series here: the older trouble.
        points.setdefault(each[:-1], each.since_s)
    named = [(dict(zip(names, about, strict=True)), since_s) for about, since_s in points.items()]
    yield _plain(c.TROUBLE_SINCE, named)


def _schedules(readings: Sequence[ScheduleReading]) -> Iterator[Series]:
    yield _plain(c.SCHEDULE_FIRED, [({c.QUEUE: each.queue}, each.fired) for each in readings])
    yield _plain(c.SCHEDULE_MISSED, [({c.QUEUE: each.queue}, each.missed) for each in readings])
    yield _plain(c.SCHEDULE_FAILED, [({c.QUEUE: each.queue}, each.failed) for each in readings])


# --- the core -----------------------------------------------------------------------------------------------------


def _core(snapshot: Snapshot, group: str = "") -> Iterator[Series]:
    totals = snapshot.totals
    by_reason: dict[str, int] = {}
    for reason, count in snapshot.refused:
        by_reason[text_of(reason)] = by_reason.get(text_of(reason), 0) + count
    yield _plain(c.REFUSED, [({c.REASON: reason}, count) for reason, count in by_reason.items()])
    yield _plain(
        c.REFUSED_CALLS,
        [({c.REASON: "OVERLOADED"}, totals.refused_mailbox), ({c.REASON: "INVALID"}, totals.malformed)],
    )
    yield _one(c.QUEUES, snapshot.queue_count)
    for metric in c.METRICS:
        if metric.core and not metric.attributes:
            yield _one(metric, getattr(totals, metric.core))
    sync = _by_bit_length(snapshot.sync_us, SYNC_BUCKETS, 1e-6, snapshot.sync_us_sum / 1e6)
    # What an owner of a group answers waits for the log, and for no sync of its own disk.
    yield (
        Series(c.CLUSTER_CONFIRM, [], [({c.GROUP: group}, sync)])
        if group
        else Series(c.SYNC, [], [({}, sync)])
    )
    # Whole numbers: of bit length n are those up to 2^n - 1.
    batch = _by_bit_length(snapshot.batch, BATCH_BUCKETS, 1, snapshot.batch_messages)
    yield Series(c.BATCH, [], [({}, batch._replace(bounds=tuple(bound - 1 for bound in batch.bounds)))])


def _by_bit_length(counts: Sequence[int], buckets: int, unit: float, total: float) -> Histogram:
    """counts[i]: how many had a whole number of units of bit length i, so less than 2^i units."""
    bounds = tuple(unit * 2**i for i in range(buckets))
    return Histogram(bounds, (*counts[:buckets], sum(counts[buckets:])), total)
