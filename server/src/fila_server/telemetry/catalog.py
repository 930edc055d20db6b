"""Every metric there is: name, kind, unit, attributes, and what it says. docs/telemetry.md repeats this table.

Names follow OpenTelemetry. Its messaging conventions speak of clients, so what only a broker knows is under `fila.`;
its attributes are used where one fits: the queue is `messaging.destination.name`, the channel
`messaging.consumer.group.name`. In Prometheus dots become underscores, units and `_total` are appended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["counter", "gauge", "histogram"]

QUEUE: Final = "messaging.destination.name"
CHANNEL: Final = "messaging.consumer.group.name"
FAIRNESS_KEY: Final = "fila.fairness_key"
THROTTLE_KEY: Final = "fila.throttle_key"
CAUSE: Final = "fila.wait.cause"
REASON: Final = "error.type"
HOOK: Final = "fila.hook"
PRINCIPAL: Final = "fila.principal"
QUOTA: Final = "fila.quota"
TROUBLE: Final = "fila.trouble.kind"
GROUP: Final = "fila.cluster"

OTHER_KEYS: Final = "~other"
"""The fairness key under which the keys are counted that have no series of their own."""

_UNIT_WORDS = {"s": "seconds", "By": "bytes", "1": "ratio"}


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the table."""

    name: str
    kind: Kind
    unit: str
    description: str
    attributes: tuple[str, ...] = ()
    core: str = ""
    """Its name among a queue's counters or, without attributes, the totals (core/admin/metrics.pyx), where it is
    told as it stands there."""
    is_of_each: bool = False
    """A queue or channel has it from its creation on. Every other number of theirs that is 0 is left out."""

    @property
    def prometheus_name(self) -> str:
        """As OpenTelemetry's rules translate it."""
        name = re.sub(r"[^a-zA-Z0-9_]", "_", self.name)
        word = "per_second" if self.unit.endswith("/s") else _UNIT_WORDS.get(self.unit, "")
        if word and not name.endswith(f"_{word}") and not (self.unit == "1" and self.kind == "counter"):
            name = f"{name}_{word}"
        return f"{name}_total" if self.kind == "counter" else name


def _counter(
    name: str, unit: str, description: str, *attributes: str, core: str = "", is_of_each: bool = False
) -> Metric:
    return Metric(name, "counter", unit, description, attributes, core, is_of_each)


def _gauge(
    name: str, unit: str, description: str, *attributes: str, core: str = "", is_of_each: bool = False
) -> Metric:
    return Metric(name, "gauge", unit, description, attributes, core, is_of_each)


def _histogram(name: str, unit: str, description: str, *attributes: str) -> Metric:
    return Metric(name, "histogram", unit, description, attributes)


# --- a queue's messages: what happened to them ------------------------------------------------------------------
ENQUEUED = _counter("fila.messages.enqueued", "{message}", "Messages stored.", QUEUE, core="enqueued")
LEASED = _counter(
    "fila.messages.leased",
    "{message}",
    "Messages sent to a consumer, also those that came back before they were begun.",
    QUEUE,
    core="leased",
)
DELIVERED = _counter(
    "fila.messages.delivered",
    "{message}",
    "Messages begun by a consumer; leased ones where nobody tracks what is begun.",
    QUEUE,
    core="delivered",
)
ACKED = _counter("fila.messages.acked", "{message}", "Messages acked.", QUEUE, core="acked")
NACKED = _counter("fila.messages.nacked", "{message}", "Messages nacked.", QUEUE, core="nacked")
EXPIRED = _counter(
    "fila.messages.expired",
    "{message}",
    "Leases that ran into their visibility timeout.",
    QUEUE,
    core="expired",
)
DEAD_LETTERED = _counter(
    "fila.messages.dead_lettered",
    "{message}",
    "Messages moved to the DLQ.",
    QUEUE,
    core="dead_lettered",
    is_of_each=True,
)
REDRIVEN = _counter(
    "fila.messages.redriven", "{message}", "Dead letters moved back from this DLQ.", QUEUE, core="redriven"
)
RETURNED = _counter(
    "fila.messages.returned",
    "{message}",
    "Leases that came back without counting an attempt.",
    QUEUE,
    core="returned",
)
DEAD_DROPPED = _counter(
    "fila.messages.dead_dropped",
    "{message}",
    "Dead letters of a queue that expires, and so has no DLQ: dropped.",
    QUEUE,
    core="dead_dropped",
)
CANCELLED = _counter(
    "fila.messages.cancelled",
    "{message}",
    "Messages taken back by id or dedup key, in each channel.",
    QUEUE,
    core="cancelled",
)
REPLACED = _counter(
    "fila.messages.replaced",
    "{message}",
    "Messages that gave way to a later one of their dedup key, in each channel.",
    QUEUE,
    core="replaced",
)
SKIPPED = _counter(
    "fila.messages.skipped",
    "{message}",
    "First messages of keys in order that an operator made dead letters.",
    QUEUE,
    core="skipped",
)
RETRIED_IN_PLACE = _counter(
    "fila.messages.retried_in_place",
    "{message}",
    "Failures of keys in order: the message keeps its place, and its key waits for the retry.",
    QUEUE,
    core="retried_in_place",
)
TTL_DROPPED = _counter(
    "fila.messages.ttl_expired",
    "{message}",
    "Messages whose time to live ended before a lease.",
    QUEUE,
    core="ttl_dropped",
)
HARD_DROPPED = _counter(
    "fila.messages.retention_dropped",
    "{message}",
    "Unfinished messages dropped by hard retention.",
    QUEUE,
    core="hard_dropped",
)
QUEUE_REFUSED = _counter(
    "fila.queue.refused", "{message}", "Messages this queue did not take.", QUEUE, core="refused"
)
STALE_ACKS = _counter(
    "fila.acks.stale", "{ack}", "Acks and nacks of a lease that was over.", QUEUE, core="stale_acks"
)
CLAMPED = _counter(
    "fila.routing.clamped",
    "{message}",
    "Weights or costs out of bounds that were clamped.",
    QUEUE,
    core="clamped",
)
LATENCY = _histogram("fila.delivery.latency", "s", "From enqueue to lease, each lease counted.", QUEUE)

# --- a queue's state --------------------------------------------------------------------------------------------
DEPTH = _gauge("fila.queue.depth", "{message}", "Messages pending in some channel.", QUEUE, is_of_each=True)
IN_FLIGHT = _gauge("fila.queue.in_flight", "{message}", "Messages leased in some channel.", QUEUE)
STORED_BYTES = _gauge("fila.queue.stored", "By", "Bytes of headers and payloads stored.", QUEUE)
QUEUE_KEYS = _gauge("fila.queue.keys", "{key}", "Fairness keys with messages or a policy.", QUEUE)
OLDEST = _gauge(
    "fila.queue.oldest_age",
    "s",
    "Age of the oldest message that waits, backoffs included.",
    QUEUE,
    is_of_each=True,
)
OLDEST_LEASE = _gauge(
    "fila.queue.oldest_lease_age", "s", "For how long the lease that began first has run.", QUEUE
)
PAUSED = _gauge(
    "fila.queue.paused", "{state}", "1 while an operator has paused the queue.", QUEUE, is_of_each=True
)
PAUSED_KEYS = _gauge("fila.queue.paused_keys", "{key}", "Fairness keys that an operator has paused.", QUEUE)
LONGEST_PAUSED = _gauge(
    "fila.queue.paused_keys.longest", "s", "For how long the one paused first has been paused.", QUEUE
)
QUEUES = _gauge("fila.queues", "{queue}", "Queues, dead-letter queues included.")

# --- channels ---------------------------------------------------------------------------------------------------
READY = _gauge(
    "fila.channel.ready",
    "{message}",
    "Messages ready, held by a throttle or not.",
    QUEUE,
    CHANNEL,
    is_of_each=True,
)
DELAYED = _gauge("fila.channel.delayed", "{message}", "Messages under a delay or a backoff.", QUEUE, CHANNEL)
CHANNEL_IN_FLIGHT = _gauge("fila.channel.in_flight", "{message}", "Messages leased.", QUEUE, CHANNEL)
CHANNEL_UNBEGUN = _gauge(
    "fila.channel.unbegun", "{message}", "Of the leased, those nobody has begun to work on.", QUEUE, CHANNEL
)
CONSUMERS = _gauge(
    "fila.channel.consumers", "{consumer}", "Streams that consume.", QUEUE, CHANNEL, is_of_each=True
)
WAITING_PULLS = _gauge(
    "fila.channel.waiting_pulls",
    "{call}",
    "Lease calls that wait for messages.",
    QUEUE,
    CHANNEL,
    is_of_each=True,
)
CHANNEL_PAUSED = _gauge(
    "fila.channel.paused", "{state}", "1 while it, or its queue, is paused by an operator.", QUEUE, CHANNEL
)
ACTIVE_KEYS = _gauge(
    "fila.channel.active_keys", "{key}", "Fairness keys with pending messages.", QUEUE, CHANNEL
)
ROUNDS = _counter(
    "fila.scheduler.rounds", "{round}", "Rounds begun; skipped ones are not counted.", QUEUE, CHANNEL
)
SERVED = _counter("fila.channel.served_cost", "{cost}", "Cost delivered.", QUEUE, CHANNEL)
WAITED = _counter(
    "fila.channel.wait", "s", "Waiting, summed over messages, by what they waited for.", QUEUE, CHANNEL, CAUSE
)

# --- the busiest fairness keys ----------------------------------------------------------------------------------
_KEY = (QUEUE, CHANNEL, FAIRNESS_KEY)
KEY_DELIVERED = _counter(
    "fila.key.delivered",
    "{message}",
    "Messages of the key begun; leased ones where nobody tracks that.",
    *_KEY,
)
KEY_SERVED = _counter("fila.key.served_cost", "{cost}", "Cost of the key delivered.", *_KEY)
KEY_WAITED = _counter("fila.key.wait", "s", "Waiting, summed over its messages, by cause.", *_KEY, CAUSE)
KEY_RATIO = _gauge(
    "fila.key.fair_share", "1", "Last hour's served cost for each unit it was due; 1 is fair.", *_KEY
)
KEY_PENDING = _gauge("fila.key.pending", "{message}", "Pending messages of the key.", *_KEY)
KEY_IN_FLIGHT = _gauge("fila.key.in_flight", "{message}", "Leased messages of the key.", *_KEY)
KEY_PAUSED = _gauge("fila.key.paused", "{state}", "1 while an operator has paused the key.", *_KEY)
KEY_OLDEST = _gauge("fila.key.oldest_age", "s", "Age of the key's next ready message.", *_KEY)

# --- token buckets ----------------------------------------------------------------------------------------------
TOKENS = _gauge("fila.throttle.tokens", "{token}", "Tokens in the bucket now.", THROTTLE_KEY)
THROTTLE_RATE = _gauge("fila.throttle.rate", "{token}/s", "Its configured rate.", THROTTLE_KEY)
LEARNED_RATE = _gauge(
    "fila.throttle.learned_rate",
    "{token}/s",
    "What a limit that follows its provider lets go now; of a pattern, what one of its keys may have at least.",
    THROTTLE_KEY,
)
THROTTLE_WAITING = _gauge(
    "fila.throttle.waiting",
    "{key}",
    "Fairness keys that want one of its tokens, counted in each channel.",
    THROTTLE_KEY,
)
PASSED = _counter("fila.throttle.passed", "{message}", "Deliveries that took a token.", THROTTLE_KEY)
HELD = _counter(
    "fila.throttle.held", "{wait}", "Times a key began to wait for one of its tokens.", THROTTLE_KEY
)
WOULD_HOLD = _counter(
    "fila.throttle.would_hold",
    "{message}",
    "Deliveries that a limit in shadow let go and would have held otherwise.",
    THROTTLE_KEY,
)

# --- hooks ------------------------------------------------------------------------------------------------------
HOOK_RUNS = _counter("fila.hook.runs", "{call}", "Calls of the script.", QUEUE, HOOK)
HOOK_ERRORS = _counter("fila.hook.errors", "{call}", "Calls that failed.", QUEUE, HOOK)
HOOK_FALLBACKS = _counter(
    "fila.hook.fallbacks", "{message}", "Messages the policy decided instead.", QUEUE, HOOK
)
HOOK_HELD = _counter("fila.hook.held", "{message}", "Messages made to wait for the script.", QUEUE, HOOK)
HOOK_BREAKER = _gauge(
    "fila.hook.breaker_state",
    "{state}",
    "0 closed, 1 half open, 2 open: the script is not called.",
    QUEUE,
    HOOK,
)
HOOK_DURATION = _histogram("fila.hook.duration", "s", "How long a call took.", QUEUE, HOOK)

# --- quotas, of the names that have some ------------------------------------------------------------------------
QUOTA_REFUSED = _counter(
    "fila.quota.refused", "{request}", "Requests of the name that its quotas refused.", PRINCIPAL
)
QUOTA_USE = _gauge(
    "fila.quota.use",
    "1",
    "Part of the bound that is used: connections, streams, in_flight, stored_bytes.",
    PRINCIPAL,
    QUOTA,
)

# --- schedules --------------------------------------------------------------------------------------------------
SCHEDULE_FIRED = _counter("fila.schedule.fired", "{message}", "Messages that schedules enqueued.", QUEUE)
SCHEDULE_MISSED = _counter(
    "fila.schedule.missed", "{moment}", "Moments of schedules that passed without a message.", QUEUE
)
SCHEDULE_FAILED = _counter(
    "fila.schedule.failed", "{try}", "Tries to enqueue a schedule's message that were refused.", QUEUE
)

# --- what is wrong ----------------------------------------------------------------------------------------------
TROUBLE_SINCE = _gauge(
    "fila.trouble.since",
    "s",
    "Since when a trouble lasts, in seconds since 1970; of the worst 200.",
    TROUBLE,
    QUEUE,
    CHANNEL,
    FAIRNESS_KEY,
    THROTTLE_KEY,
)

# --- a group, on the page of each of its nodes ------------------------------------------------------------------
CLUSTER_ROLE = _gauge(
    "fila.cluster.role",
    "{state}",
    "0 it stands by, 1 it serves, 2 it takes nothing more from the log.",
    GROUP,
)
CLUSTER_IN_SYNC = _gauge(
    "fila.cluster.in_sync", "{state}", "1 while the node serves, or could take over at once.", GROUP
)
CLUSTER_NODES = _gauge("fila.cluster.nodes", "{node}", "Nodes of the group, by this node's settings.", GROUP)
CLUSTER_NODES_IN_SYNC = _gauge(
    "fila.cluster.nodes_in_sync", "{node}", "Of them, those that serve or could take over at once.", GROUP
)
CLUSTER_BEHIND = _gauge(
    "fila.cluster.behind", "{record}", "Records of the log that only other nodes have read.", GROUP
)
CLUSTER_LOG_AGE = _gauge(
    "fila.cluster.log_age", "s", "Since the last record of the log that counts, by this node's clock.", GROUP
)
CLUSTER_UNCONFIRMED = _gauge(
    "fila.cluster.unconfirmed", "By", "What the owner has appended, and the log has not confirmed.", GROUP
)
CLUSTER_CONFIRM = _histogram(
    "fila.cluster.confirm_duration",
    "s",
    "From a record's append to its confirmation, in place of a sync; of the owner.",
    GROUP,
)
CLUSTER_TAKEOVERS = _counter(
    "fila.cluster.takeovers", "{takeover}", "Takeovers that the node saw while it was in sync.", GROUP
)
CLUSTER_SHORT_TERMS = _gauge(
    "fila.cluster.short_terms", "{term}", "Terms in a row that were over within ten seconds.", GROUP
)
CLUSTER_SKIPPED = _counter(
    "fila.cluster.skipped", "{record}", "Records of the log that did not count, of those it read.", GROUP
)
CLUSTER_CLOCK = _gauge("fila.cluster.clock_offset", "s", "Its clock, less that of most other nodes.", GROUP)

# --- the edge ---------------------------------------------------------------------------------------------------
CONNECTIONS = _gauge("fila.connections", "{connection}", "Connections of clients, over gRPC and Redis.")
UNREAD = _gauge("fila.answers.unread", "By", "Answers of 4 KiB and more that clients have not read.")
UNREAD_MAX = _gauge("fila.answers.unread_max", "By", "As many before pulls wait and reads are refused.")
EVENTS_KEPT = _gauge("fila.events.kept", "{event}", "Events that a watcher can still be told.")
HOUR = _gauge("fila.hour", "By", "Memory of the last hour's points of channels and keys.")

# --- the core ---------------------------------------------------------------------------------------------------
REFUSED = _counter("fila.messages.refused", "{message}", "Messages not taken, by the reason told.", REASON)
REFUSED_CALLS = _counter(
    "fila.requests.refused", "{request}", "Requests refused whole, before parsing.", REASON
)
PASSES = _counter("fila.scheduler.passes", "{pass}", "Passes of the scheduler thread.", core="passes")
COMMANDS = _counter(
    "fila.scheduler.commands", "{command}", "Commands taken from the mailbox.", core="commands"
)
MAILBOX = _gauge("fila.scheduler.mailbox", "{command}", "Commands waiting in the mailbox.", core="mailbox")
MAILBOX_MAX = _gauge(
    "fila.scheduler.mailbox_max",
    "{command}",
    "Commands the mailbox takes before it refuses.",
    core="mailbox_capacity",
)
LEASES = _gauge("fila.leases", "{lease}", "Leases that run.", core="leases")
ALL_CONSUMERS = _gauge("fila.consumers", "{consumer}", "Streams and waiting Lease calls.", core="consumers")
TIMERS = _gauge("fila.timers", "{timer}", "Timers set: leases, delays, tokens, waiting calls.", core="timers")
ALL_KEYS = _gauge("fila.keys", "{key}", "Fairness keys in memory.", core="keys")
REMEMBERED_KEYS = _gauge(
    "fila.keys.remembered", "{key}", "Keys whose last hour is kept for explain.", core="remembered_keys"
)
DEDUP_KEYS = _gauge("fila.dedup.keys", "{key}", "Dedup keys remembered, over all queues.", core="dedup_keys")
DEDUP_KEYS_MAX = _gauge(
    "fila.dedup.keys_max",
    "{key}",
    "Dedup keys remembered before enqueues that carry one are refused.",
    core="dedup_keys_max",
)
DECISIONS = _gauge(
    "fila.failures.undecided", "{message}", "Failed messages whose hook is being asked.", core="decisions"
)
EPOCHS = _counter("fila.commit.epochs", "{epoch}", "Group commits begun.", core="epochs")
SYNC = _histogram("fila.commit.sync_duration", "s", "How long a sync of the write-ahead log took.")
BATCH = _histogram("fila.commit.batch_size", "{message}", "Messages stored together by one pass.")
STALLS = _counter(
    "fila.storage.stalls", "{write}", "Writes the storage engine would not take at once.", core="stalls"
)
LOADS = _counter("fila.storage.loads", "{frame}", "Frames read back from disk.", core="loads")
LOADED_BYTES = _counter("fila.storage.loaded", "By", "Bytes read back from disk.", core="loads_bytes")
EVICTIONS = _counter("fila.storage.evictions", "{frame}", "Frames put out of memory.", core="evictions")
REWRITES = _counter(
    "fila.storage.rewrites",
    "{frame}",
    "Frames written anew because few messages pinned them.",
    core="rewrites",
)
LOST_RANGES = _counter(
    "fila.storage.lost_ranges", "{range}", "Ranges of offsets lost to damage.", core="lost_ranges"
)
LOST_MESSAGES = _counter(
    "fila.storage.lost_messages", "{message}", "Messages lost to damage.", core="lost_messages"
)
LOST_ACKS = _counter(
    "fila.storage.lost_acks",
    "{range}",
    "Ranges of acks, leases and retries lost to damage: their messages may come once more, and none is lost.",
    core="lost_acks",
)
HOT_BYTES = _gauge("fila.storage.hot", "By", "Payload bytes in memory.", core="hot_bytes")
HOT_BYTES_MAX = _gauge(
    "fila.storage.hot_max", "By", "Payload bytes kept in memory at most.", core="hot_bytes_max"
)
INDEX_BYTES = _gauge("fila.storage.index", "By", "Bytes of the index in memory.", core="index_bytes")
MEMTABLE_BYTES = _gauge(
    "fila.storage.memtables", "By", "Bytes in the storage engine's memtables.", core="memtable_bytes"
)
DISK_FREE = _gauge("fila.storage.disk_free", "By", "Free bytes of the disk.", core="disk_free_bytes")
DISK_LEVEL = _gauge(
    "fila.storage.disk_level",
    "{level}",
    "0 roomy, 1 low: enqueues are refused, 2 critical: every write is.",
    core="disk_level",
)
BACKUP_AGE = _gauge(
    "fila.backup.age", "s", "Since the last backup that was written whole began; kept over restarts."
)
SINKS = _gauge("fila.sinks", "{sink}", "Sinks that are remembered.", core="sinks")
STAGED = _gauge(
    "fila.sinks.staged", "By", "Staged and not published yet, over all sinks.", core="staged_bytes"
)
STAGED_MAX = _gauge(
    "fila.sinks.staged_max",
    "By",
    "Bytes that may be staged before sinks are refused.",
    core="staged_bytes_max",
)
SINK_BATCHES = _counter("fila.sinks.batches", "{batch}", "Batches published.", core="sink_batches")
SINK_MESSAGES = _counter(
    "fila.sinks.messages", "{message}", "Messages that sinks put into queues.", core="sink_messages"
)
SINK_LOST = _counter(
    "fila.sinks.lost",
    "{message}",
    "Published messages lost to damage, or to a queue deleted by force.",
    core="sink_lost",
)
SINK_SWEPT = _counter(
    "fila.sinks.swept", "{attempt}", "Staged attempts that nobody published in time.", core="sink_swept"
)

METRICS: Final[tuple[Metric, ...]] = tuple(value for value in globals().values() if isinstance(value, Metric))


def reference_table() -> str:
    """Return the table of docs/telemetry.md."""
    lines = ["| Metric | Kind, unit | Attributes | Prometheus | Says |", "|---|---|---|---|---|"]
    for metric in METRICS:
        attributes = ", ".join(f"`{name}`" for name in metric.attributes)
        lines.append(
            f"| `{metric.name}` | {metric.kind}, `{metric.unit}` | {attributes} | `{metric.prometheus_name}` "
            f"| {metric.description} |"
        )
    return "\n".join(lines) + "\n"
