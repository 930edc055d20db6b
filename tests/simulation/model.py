"""What a broker knows, as slow and obvious Python: queues, channels, and one Note a message and channel.

The model is told which commands a pass carried out and what left the core after it. It predicts everything but
which message is delivered next; deliveries are taken from the core, and the oracles say whether they were allowed.
A note that may or may not be there (its frame may have been reclaimed, its enqueue was never answered) is `maybe`.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from fila_server.hooks.packed import Routing
from tests.simulation.limit_model import LimitModel
from tests.simulation.producer_routing import NOTHING_SAID, Said

Place = tuple[int, ...]

Routed = tuple[str, frozenset[str], int, int]  # fairness key, throttle keys, cost, priority

READY, DELAYED, LEASED, DONE = "ready", "delayed", "leased", "done"
DECIDING = "deciding"  # failed, and on_failure is being asked


@dataclass(eq=False)
class Entry:
    """One message in one queue's log."""

    token: int
    queue: "QueueModel"
    headers: dict[str, str]
    key: str
    weight: int
    cost: int
    throttles: frozenset[str]
    hooked: Routing | None = None  # what on_enqueue said
    said: Said = NOTHING_SAID  # what its producer said of how it is shared
    priority: int = 1
    is_refused: bool = False  # it says what its queue does not take
    fsync: int = 0  # how its enqueue was to be durable
    deliver_at_ms: int = 0
    delayed_from_ms: int = 0  # the wall clock when it was accepted
    expires_ms: int = 0  # on the wall clock of now
    stored_expires_ms: int = 0  # on the one of then; so is the next
    window_ends_ms: int = 0
    dedup_key: str = ""
    id: str = ""
    offset: int = 0
    source: str = ""  # of a dead letter: the channel it failed in
    excluded: set[str] = field(default_factory=set)  # channels that start behind it
    fuzzy: set[str] = field(default_factory=set)  # channels that may start behind it
    executed_pass: int = 0
    only: "ChannelModel | None" = None  # redriven: seen by this channel alone
    first: "Entry | None" = None  # the message its dedup key was seen with
    before: "tuple[int, Entry | None]" = (1, None)  # its key's weight without it, and whose that was
    may_be_none: bool = False  # it was not answered yet, and may be refused or met by an older dedup key

    def clock_restarts(self, wall_ms: int) -> None:
        """Its time to live goes on where it stood; where the clock was set back, it is not longer than it was."""
        if self.expires_ms:
            self.expires_ms = self.at_most(self.stored_expires_ms, wall_ms)

    def at_most(self, end_ms: int, wall_ms: int) -> int:
        """When something ends that was to end then, and was accepted with this message."""
        return min(end_ms, wall_ms + end_ms - self.delayed_from_ms)

    @property
    def routed(self) -> Routed:
        return self.key, self.throttles, self.cost, self.priority

    def __repr__(self) -> str:
        times = f" at {self.deliver_at_ms % 10**7}" * bool(self.deliver_at_ms)
        times += f" until {self.expires_ms % 10**7}" * bool(self.expires_ms)
        rank = f" priority {self.priority}" * (self.priority != 1)
        where = f"{self.queue.name}@{self.offset}{'<' + self.source if self.source else ''}"
        return f"<{self.token} {where} {self.key} cost {self.cost} {sorted(self.throttles)}{times}{rank}>"


@dataclass(eq=False)
class Note:
    """One message as one channel sees it."""

    entry: Entry
    channel: "ChannelModel"
    state: str = READY
    attempts: int | None = 0  # None: unknown
    place: Place | None = None  # None: ready, but nobody knows before or behind whom
    maybe: bool = False
    lease_id: int = 0
    leased_ms: int = 0
    expires_ms: int = 0
    due_mono_ms: int = 0  # LEASED: when the lease ends
    due_ms: tuple[int, int] = (0, 0)  # DELAYED: earliest and latest, wall clock
    delayed_at_ms: int = 0  # DELAYED: since when, by the monotonic clock
    stored_due_ms: tuple[int, int] = (0, 0)  # DELAYED: `due_ms` as it began,
    delayed_from_ms: int = 0  # and when that was by the wall clock
    keeps_place: bool = False  # DELAYED: it failed where keys are in order, and its key waits for it
    returned_pass: int = 0  # by a consumer that left: the core takes it back at the end of that pass
    ended_ms: int = -1  # DONE other than by an ack: a cold delivery may have leased it before that
    acked: bool = False
    buried: "list[Note]" = field(default_factory=list)  # its dead letters
    holder: int = 0  # LEASED: the stream's token, 0 = a pull
    decision: "Decision | None" = None  # DECIDING
    ended_by: str = ""  # what was answered of its end

    def delay(
        self, due_ms: tuple[int, int], wall_ms: int, mono_ms: int, *, keeps_place: bool = False
    ) -> None:
        self.state, self.due_ms, self.stored_due_ms = DELAYED, due_ms, due_ms
        self.delayed_from_ms, self.delayed_at_ms = wall_ms, mono_ms
        self.keeps_place = keeps_place
        if not keeps_place:
            self.place = None  # it takes a new one; with jitter nobody sees when

    @property
    def in_order(self) -> bool:
        return self.channel.queue.in_order

    @property
    def holds_its_key(self) -> bool:
        """It counts to its key's cap; where keys are in order, a failed one does until it is leased again."""
        return self.state in (LEASED, DECIDING) or (self.state == DELAYED and self.keeps_place)

    def delay_resumes(self, stopped_ms: int, wall_ms: int, mono_ms: int) -> None:
        """After a restart: of a clock that was set back, nothing has passed, and no more than all is left. A delay with
        jitter may have been over as the broker stopped: then it does not begin again."""
        shift = min(0, wall_ms - self.delayed_from_ms)
        may_be_over = self.due_ms[0] <= stopped_ms
        earliest_ms = min(self.due_ms[0], wall_ms) if may_be_over else self.stored_due_ms[0] + shift
        self.due_ms = (min(earliest_ms, self.stored_due_ms[1] + shift), self.stored_due_ms[1] + shift)
        self.delayed_at_ms = mono_ms

    def __repr__(self) -> str:
        return (
            f"{self.entry!r} in {self.channel.name}: {'maybe ' * self.maybe}{self.state} {self.place} attempts"
            f" {self.attempts} lease {self.lease_id} expires {self.expires_ms % 10**7} due {self.due_ms}"
            f" ended {self.ended_ms} acked {self.acked}"
        )


@dataclass(eq=False)
class Decision:
    """What on_failure is asked about one message, and who waits for it."""

    delay_ms: int | None  # the nack's own wish
    error: str
    twins: "list[Decision]" = field(default_factory=list)  # asked about in one breath, under one id
    nack: int = 0  # token or sequence of the call that is answered once all of its decisions are in


@dataclass(eq=False)
class ChannelModel:
    name: str
    queue: "QueueModel"
    start: int = 1
    notes: dict[int, list[Note]] = field(default_factory=dict)
    unordered_until: int = 0  # pass; while a seek takes the log in, places are anybody's guess

    def all_notes(self) -> list[Note]:
        return [note for notes in self.notes.values() for note in notes]

    def find(self, token: int, source: str, offset: int, routing: Routed | None = None) -> Note | None:
        """The note of a message that was seen; of those without an offset, one that is sure and routed like it."""
        found = [n for n in self.notes.get(token, []) if n.entry.source == source]
        for note in found:
            if note.entry.offset == offset:
                return note
        new = [n for n in found if n.entry.offset == 0 and n.state != DONE]
        return min(new, key=lambda n: (routing not in (None, n.entry.routed), n.maybe), default=None)

    def add(self, note: Note) -> None:
        self.notes.setdefault(note.entry.token, []).append(note)


@dataclass(eq=False)
class KeyModel:
    weight: int = 1  # the newest enqueue's or redrive's
    table_weight: int = 0
    admin_weight: int = 0
    changes: int = 0  # of the weight
    newest: "Entry | None" = None  # the enqueue that gave the weight
    is_vague: bool = False  # it may have been forgotten with its last message, and weigh 1 again
    paused: bool = False
    in_order: bool = False
    own_cap: int | None = None  # an operator's; 0 is no cap, whatever the queue's default
    default_cap: int = 0
    own_committed: int | None = None  # an operator's committed rate; 0 is none, whatever the queue's default

    COMMITTED_WITH_CAP: ClassVar[dict[int, int]] = {3: 2}
    """By a queue's default cap, its default committed rate: both change together."""

    @property
    def committed(self) -> int:
        if self.own_committed is None:
            return self.COMMITTED_WITH_CAP.get(self.default_cap, 0)
        return self.own_committed

    @property
    def cap(self) -> int:
        if self.in_order:
            return 1
        return self.default_cap if self.own_cap is None else self.own_cap

    @property
    def due_weight(self) -> int:
        return self.admin_weight or self.table_weight or self.weight

    def enqueued(self, entry: "Entry") -> None:
        entry.before = self.weight, self.newest
        self.weigh(entry.weight)
        self.newest = entry

    @property
    def is_sure(self) -> bool:
        """Whether all that may be the newest enqueue bring the same weight."""
        weight, newest = self.weight, self.newest
        if self.is_vague:
            return False
        while newest is not None and newest.may_be_none:
            weight, newest = newest.before
            if weight != self.weight:
                return False
        return True

    def was_none(self, entry: "Entry") -> None:
        """It was refused, or never came. If it was the newest, the one before it is that again; else it stands behind
        another no more, whose own answer is still on its way and may be a refusal as well."""
        after, found = None, self.newest
        while found is not None and found is not entry:
            after, found = found, found.before[1]
        if found is None:  # a redrive has given the key its weight since
            return
        if after is not None:
            after.before = entry.before
            return
        weight, before = entry.before
        self.weigh(weight)
        self.newest = before

    def weigh(
        self, weight: int | None = None, admin_weight: int | None = None, table_weight: int | None = None
    ) -> None:
        before = self.due_weight
        self.newest = self.newest if weight is None else None
        self.is_vague = self.is_vague and weight is None
        self.weight = self.weight if weight is None else weight
        self.admin_weight = self.admin_weight if admin_weight is None else admin_weight
        self.table_weight = self.table_weight if table_weight is None else table_weight
        self.changes += self.due_weight != before


@dataclass(frozen=True)
class Headers:
    """Which headers the declarative policy reads; an empty name reads none."""

    key: str = "k"
    weight: str = "w"
    cost: str = "c"
    throttles: tuple[str, ...] = ("t1", "t2")
    key_limit: str = ""


@dataclass(eq=False)
class ScheduleModel:
    """What the core must know of a schedule, and the firing that is on its way."""

    due_ms: int
    last_ms: int = 0  # the moment that fired last
    firing: "Entry | None" = None  # carried out, and not answered
    moment_ms: int = 0  # its moment,
    next_ms: int = 0  # and the one that follows


@dataclass(eq=False)
class QueueModel:
    name: str
    config: dict[str, int]
    headers: Headers = Headers()
    weights: dict[str, int] = field(default_factory=dict)
    retention_changed: bool = False  # what is done may be kept, or not any more
    is_dlq: bool = False
    dlq: "QueueModel | None" = None
    origin: "QueueModel | None" = None  # a dead-letter queue's
    gone: bool = False
    sought_pass: int = -100  # when a channel of it was sought the last time
    channels: dict[str, ChannelModel] = field(default_factory=dict)
    keys: dict[str, KeyModel] = field(default_factory=dict)
    log: list[Entry] = field(default_factory=list)
    dedup: dict[str, tuple[Entry, int]] = field(default_factory=dict)
    ghosts: dict[int, Entry] = field(default_factory=dict)  # enqueues a crash left unanswered
    ghost_keys: set[str] = field(default_factory=set)  # dedup keys of these
    # Dedup keys that were over before the clock was set back: the core may have dropped them by then.
    over_once: dict[str, tuple[Entry, int]] = field(default_factory=dict)
    number: int = 0  # of the incarnation
    schedules: "dict[str, ScheduleModel]" = field(default_factory=dict)

    @property
    def in_order(self) -> bool:
        return bool(self.config.get("in_order"))

    @property
    def lets_producers_route(self) -> bool:
        return bool(self.config.get("producers_route"))

    def key(self, name: str) -> KeyModel:
        if name not in self.keys:
            table_weight, cap = self.weights.get(name, 0), self.config.get("key_cap", 0)
            self.keys[name] = KeyModel(table_weight=table_weight, default_cap=cap, in_order=self.in_order)
        return self.keys[name]


@dataclass(eq=False)
class BucketModel:
    """The most a bucket can hold: it begins full, and what a late wake earns is allowed for.

    A lease that is not seen yet has taken its tokens, and may give them back before it ever is: the level here
    counts them as still there.
    """

    rate: float
    burst: float
    level: float
    at_ms: int
    since_ms: int = 0  # when the limits were set

    LATENESS_S = 0.010
    KEPT = (
        1.0  # what the oldest message that needs several limits may have kept while the bucket filled again
    )

    @property
    def full(self) -> float:
        # Up to a message of credit is earned by somebody who waits while the level is just below one.
        return self.burst + self.rate * self.LATENESS_S

    def refill(self, now_ms: int, unseen: int) -> None:
        earned = self.rate * max(0, now_ms - self.at_ms) / 1000
        self.level = min(max(self.level, self.full + self.KEPT + unseen), self.level + earned)
        self.at_ms = now_ms


@dataclass(eq=False)
class ConsumerModel:
    token: int
    kind: str  # stream, session, pull
    queue: QueueModel
    channel: str
    max_in_flight: int
    limit: int
    unwritten: list[list[Note]] = field(default_factory=list)
    reported: int = 0  # deliveries whose WRITTEN is on its way
    closing: bool = False
    ended: bool = False


@dataclass
class Model:
    """All of it; copied whole at a commit that a power cut will go back to."""

    queues: dict[str, QueueModel] = field(default_factory=dict)
    buckets: dict[str, BucketModel] = field(default_factory=dict)
    lifted_pass: dict[str, int] = field(
        default_factory=dict
    )  # in which a bucket was taken away the last time
    limits: LimitModel = field(default_factory=LimitModel)
    config: dict[str, str] = field(default_factory=dict)
    leases: dict[int, Note] = field(default_factory=dict)
    consumers: dict[int, ConsumerModel] = field(default_factory=dict)
    fired: dict[tuple[str, str], str] = field(default_factory=dict)  # ids of messages, by schedule and moment

    def pending(self, queue: QueueModel) -> list[Note]:
        return [n for c in queue.channels.values() for n in c.all_notes() if n.state in (READY, DELAYED)]

    def all_notes(self) -> list[Note]:
        return [n for q in self.queues.values() for c in q.channels.values() for n in c.all_notes()]
