"""Every setting of `fila.toml`, with its default, unit, limits and reason. Read by load.py.

A section is a struct, a key a field, and a field's description is what
`docs/configuration.md` says about it (a test compares the two). Units are the last part
of a name; the Redis section alone takes "30s" and "16mb", as that protocol's users do.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fila_server.config.cluster import Cluster
from fila_server.config.kinds import DAY_MS, GIB, KIB, MIB, Address, AddressOrOff, Duration, HostNames, Size
from fila_server.config.sections import Auth, Section, Sinks, Telemetry, Tls

_U32_MAX = 2**32 - 1


class Server(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the server listens and keeps its data."""

    listen_addr: Annotated[
        Address,
        Meta(
            description="Address of the gRPC API. While `auth.enabled` is false only clients of this machine are "
            "served, whatever it listens on."
        ),
    ] = Address("0.0.0.0:5555")
    allow_anonymous: Annotated[
        bool,
        Meta(
            description="While `auth.enabled` is false: serve clients of other machines too, as admins. For networks "
            "in which everybody may do everything."
        ),
    ] = False
    allow_plaintext: Annotated[
        bool,
        Meta(
            description="While `auth.enabled` is true: take keys from other machines over connections without TLS, "
            "as behind a proxy that ends TLS."
        ),
    ] = False
    data_dir: Annotated[
        str,
        Meta(
            min_length=1,
            description="Directory of the store, made if missing, owned by one server at a time. "
            "`FILA_DATA_DIR` sets it too.",
        ),
    ] = "data"
    io_threads: Annotated[
        int,
        Meta(
            ge=1,
            le=16,
            description="Threads that speak gRPC and the Redis protocol. A connection belongs to one of them; one "
            "serves some 30,000 single calls a second.",
        ),
    ] = 1


class Scheduler(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The thread that owns all queues."""

    quantum: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000_000,
            description="Thousandths of a message a fairness key earns per unit of weight per turn. "
            "Smaller interleaves more finely; the default alternates message by message.",
        ),
    ] = 1000
    command_channel_capacity: Annotated[
        int,
        Meta(
            ge=16,
            le=10_000_000,
            description="Frames that may wait for the scheduler; beyond it calls are refused with "
            "RESOURCE_EXHAUSTED instead of waiting unseen.",
        ),
    ] = 10_000
    idle_timeout_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=60_000,
            description="Longest sleep of an idle scheduler. Work and due timers wake it at once; "
            "this only bounds how long a missed wake-up could last.",
        ),
    ] = 500
    outstanding_calls_max: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000_000,
            description="Calls that may wait for their answer at a time, waiting pulls included; beyond "
            "it calls are refused with RESOURCE_EXHAUSTED.",
        ),
    ] = 20_000


class Storage(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How messages are kept."""

    durability: Annotated[
        Literal["fsync", "os"],
        Meta(
            description='When an enqueue is answered: "fsync" after it is on disk, "os" after the write to '
            "the operating system (lost by a power cut, not by a crash of the server). A queue may choose."
        ),
    ] = "fsync"
    min_free_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=1024 * GIB,
            description="Free disk below which enqueues are refused while acks and deliveries go on. "
            "A full disk would stop the storage engine itself.",
        ),
    ] = 256 * MIB
    on_damage: Annotated[
        Literal["start", "stop"],
        Meta(
            description='What to do when damage is found at start: "start" reports and counts every lost '
            'range and goes on, "stop" exits, and reads all waiting payloads to find damage in them.'
        ),
    ] = "start"
    hot_payload_bytes: Annotated[
        int,
        Meta(
            ge=MIB,
            le=1024 * GIB,
            description="Memory for payloads likely to be delivered next. Payloads beyond it are read "
            "back from disk ahead of delivery.",
        ),
    ] = 256 * MIB
    memtable_bytes: Annotated[
        int,
        Meta(
            ge=MIB,
            le=16 * GIB,
            description="One write buffer of the storage engine. A message acked before the buffer it lies in "
            "is full is never written to a table at all.",
        ),
    ] = 12 * MIB
    memtable_count: Annotated[
        int,
        Meta(
            ge=5,
            le=64,
            description="Write buffers there may be; when all are full, enqueues are refused until one is "
            "flushed.",
        ),
    ] = 7
    block_cache_bytes: Annotated[
        int,
        Meta(ge=MIB, le=1024 * GIB, description="Memory for blocks read back from tables."),
    ] = 8 * MIB
    wal_bytes_max: Annotated[
        int,
        Meta(
            ge=MIB,
            le=1024 * GIB,
            description="Total size of write-ahead logs before buffers are flushed; bounds both recovery "
            "time and disk use.",
        ),
    ] = 256 * MIB
    ballast_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=16 * GIB,
            description="File that is given up when the disk is nearly full, so that acks can still be "
            "written. 0 keeps none.",
        ),
    ] = 64 * MIB


class Limits(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds checked before anything is stored."""

    payload_bytes_max: Annotated[
        int,
        Meta(
            ge=1,
            le=64 * MIB,
            description="Largest payload of a message. Delivery frames stay under 4 MiB unless one message "
            "is larger, so clients must raise their receive limit together with this one.",
        ),
    ] = MIB
    headers_max: Annotated[int, Meta(ge=0, le=1024, description="Headers of a message.")] = 64
    header_key_bytes_max: Annotated[int, Meta(ge=1, le=64 * KIB, description="Length of a header's key.")] = (
        4 * KIB
    )
    header_value_bytes_max: Annotated[
        int, Meta(ge=1, le=64 * KIB, description="Length of a header's value.")
    ] = 4 * KIB
    fairness_key_bytes_max: Annotated[
        int,
        Meta(ge=1, le=4 * KIB, description="Length of a fairness key, one taken from a header included."),
    ] = 256
    throttle_key_bytes_max: Annotated[
        int,
        Meta(ge=1, le=4 * KIB, description="Length of a throttle key, one taken from a header included."),
    ] = 256
    throttle_keys_max: Annotated[int, Meta(ge=0, le=16, description="Throttle keys of a message.")] = 16
    dedup_key_bytes_max: Annotated[int, Meta(ge=1, le=4 * KIB, description="Length of a dedup key.")] = 128
    dedup_keys_max: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000_000,
            description="Dedup keys remembered over all queues; beyond it, enqueues that carry one are refused.",
        ),
    ] = 1_000_000
    config_key_bytes_max: Annotated[
        int, Meta(ge=1, le=4 * KIB, description="Length of a runtime config key.")
    ] = 300
    config_value_bytes_max: Annotated[
        int, Meta(ge=1, le=MIB, description="Length of a runtime config value.")
    ] = 64 * KIB
    script_bytes_max: Annotated[int, Meta(ge=1, le=MIB, description="Length of a Lua script.")] = 64 * KIB
    batch_messages_max: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="Messages of one enqueue frame, or items of a settle batch."),
    ] = 10_000
    batch_bytes_max: Annotated[int, Meta(ge=1, le=256 * MIB, description="Size of one enqueue frame.")] = (
        16 * MIB
    )
    unwritten_bytes_max: Annotated[
        int,
        Meta(
            ge=16 * MIB,
            le=1024 * GIB,
            description="Answers their clients have not read yet, over all connections. Beyond it pulls wait, peeks, "
            "statistics and reads of the log are refused with RESOURCE_EXHAUSTED, and consumers get no deliveries. "
            "A connection has as many of them as are left for others: half, if it is the only one that does not read. "
            "Answers under 4 KiB are not counted.",
        ),
    ] = 256 * MIB


class Lua(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sandbox of a queue's hooks."""

    default_timeout_ms: Annotated[
        int, Meta(ge=1, le=1000, description="Time one call of a hook may take before it is cut off.")
    ] = 10
    default_memory_limit_bytes: Annotated[
        int,
        Meta(ge=64 * KIB, le=GIB, description="Memory one call of a hook may use for what it makes itself."),
    ] = MIB
    circuit_breaker_threshold: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="Failures in a row after which a queue's hook is not called."),
    ] = 3
    circuit_breaker_cooldown_ms: Annotated[
        int,
        Meta(ge=1, le=DAY_MS, description="How long a hook that failed so often is left alone."),
    ] = 10_000


class Log(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What goes to stderr."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(
            description='The least that is written. "info" is what an operator wants to read later: starts, stops, and '
            "every change by whom; nothing a message."
        ),
    ] = "info"
    format: Annotated[
        Literal["auto", "json", "text"],
        Meta(
            description='"json" is a line each for machines, "text" for people; "auto" is text on a terminal.'
        ),
    ] = "auto"


class Metrics(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The page that Prometheus reads."""

    listen_addr: Annotated[
        AddressOrOff,
        Meta(description="Address of the metrics page; empty: none. Wants an admin's key, but on loopback."),
    ] = AddressOrOff("127.0.0.1:9464")
    allowed_hosts: Annotated[
        HostNames,
        Meta(
            description="Names by which `/metrics` may be asked for. Addresses, `localhost` and the name in "
            "`listen_addr` always may. A request for another name gets 421, so that no web page reads the numbers "
            "through a browser on this machine."
        ),
    ] = HostNames("")


class Redis(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The Redis protocol, and the queues made over it."""

    enabled: Annotated[bool, Meta(description="Whether to speak the Redis protocol.")] = True
    listen_addr: Annotated[
        Address,
        Meta(description="Address of the Redis protocol. Its earlier name `bind_address` is still read."),
    ] = Address("127.0.0.1:9797")
    max_connections: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Clients at a time; a further one is told so and closed.")
    ] = 10_000
    message_timeout: Annotated[
        Duration,
        Meta(ge=1000, le=12 * 3600 * 1000, description="Visibility timeout of queues made over Redis."),
    ] = Duration(30_000)
    segment_size: Annotated[
        Size,
        Meta(description="Accepted and reported for existing clients; storage has no segments of this kind."),
    ] = Size(16 * MIB)
    retention_period: Annotated[
        Duration,
        Meta(description="How long queues made over Redis keep messages every channel is done with."),
    ] = Duration(0)
    retention_size: Annotated[
        Size, Meta(description="How much queues made over Redis keep of what every channel is done with.")
    ] = Size(0)
    hard_retention_period: Annotated[
        Duration,
        Meta(description="Age at which queues made over Redis drop messages, done or not. 0 means never."),
    ] = Duration(DAY_MS)
    hard_retention_size: Annotated[
        Size,
        Meta(
            description="Size beyond which queues made over Redis drop the oldest, done or not. 0 is no limit."
        ),
    ] = Size(0)
    maintenance_interval: Annotated[
        Duration, Meta(description="Accepted and reported for existing clients; upkeep runs by itself.")
    ] = Duration(10_000)
    monitor_interval: Annotated[Duration, Meta(description="Accepted and reported for existing clients.")] = (
        Duration(1_000)
    )


class History(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every decision of the scheduler, and what it was made from, as Parquet files."""

    enabled: Annotated[bool, Meta(description="Whether to record. Needs pyarrow: `pip install pyarrow`.")] = (
        False
    )
    dir: Annotated[
        str, Meta(min_length=1, description="Directory of the history, relative to the working directory.")
    ] = "history"
    headers: Annotated[
        Literal["none", "policy", "all"],
        Meta(
            description="Which headers are recorded with the inputs; `policy`: those that queues' settings name."
        ),
    ] = "policy"
    sample: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Decisions about one message in so many are recorded; inputs always.",
        ),
    ] = 1
    retention_bytes: Annotated[
        int,
        Meta(ge=0, le=2**50, description="The oldest files go beyond so many bytes. 0 is no limit."),
    ] = 16 * GIB
    retention_age_ms: Annotated[
        int,
        Meta(ge=0, le=100 * 365 * DAY_MS, description="Older files go. 0 means never."),
    ] = 30 * DAY_MS
    roll_ms: Annotated[
        int,
        Meta(ge=1000, le=3_600_000, description="A file is closed, and can be read, after so long at most."),
    ] = 60_000
    roll_bytes: Annotated[
        int, Meta(ge=MIB, le=2**40, description="Or once all open files together have so many bytes.")
    ] = 256 * MIB
    sign_key_file: Annotated[
        str,
        Meta(
            description="Private Ed25519 key, PEM, that signs what is listed. "
            "Needs cryptography: `pip install cryptography`."
        ),
    ] = ""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The effective configuration of one server."""

    server: Server = Server()
    scheduler: Scheduler = Scheduler()
    storage: Storage = Storage()
    limits: Limits = Limits()
    sinks: Sinks = Sinks()
    lua: Lua = Lua()
    log: Log = Log()
    telemetry: Telemetry = Telemetry()
    metrics: Metrics = Metrics()
    redis: Redis = Redis()
    auth: Auth = Auth()
    tls: Tls = Tls()
    history: History = History()
    cluster: Cluster = Cluster()

    def engine_settings(self) -> dict[str, int | str]:
        """What the core needs, flat: `{"scheduler.quantum": 1000, ...}`."""
        return self.telemetry.engine_settings() | {
            f"{name}.{key}": value
            for name in ("scheduler", "storage", "limits", "sinks", "history")
            for key, value in msgspec.structs.asdict(getattr(self, name)).items()
        }
