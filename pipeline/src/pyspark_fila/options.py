"""The options of a read: parsed and checked before anything is contacted.

Spark hands option names over in lower case; messages use the documented spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeVar

from pyspark_fila.errors import OptionInvalid

EARLIEST: Literal["earliest"] = "earliest"
LATEST: Literal["latest"] = "latest"

NAME_BYTES_MAX = 255
OFFSET_MAX = 2**63 - 1
BATCH_SIZE_MAX = 10_000
PARTITIONS_MAX = 10_000

_HOST_PORT = re.compile(r"(?:https?://)?(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})/?")
_QUEUE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")

Start = int | Literal["earliest", "latest"]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read, and how."""

    address: str
    """`host:port`, with `https://` in front for TLS."""
    queue: str
    fairness_key: str
    """Only this key's messages; empty for all."""
    starting_offset: Start
    ending_offset: int | Literal["latest"]
    """Batch reads: below this offset."""
    starting_time: datetime | None
    """Only what was appended at this moment or later."""
    ending_time: datetime | None
    """Batch reads: only what was appended before this moment."""
    partitions: int
    """Tasks of a batch read or of a micro-batch, at most."""
    batch_size: int
    """Messages in one Arrow batch, at most."""
    messages_per_trigger: int
    """Streaming: messages of a micro-batch, at most; 0 for no limit."""
    fail_on_data_loss: bool
    channel: str
    """Streaming: the channel that keeps unread messages in the log; empty for none."""
    poll_interval_ms: int
    """Streaming: the broker is asked for the log's end at most this often."""
    timeout_ms: int
    """How long a broker that cannot be reached is tried for."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Where to write, and how."""

    address: str
    queue: str
    """The queue of rows that name none; empty where every row must."""
    batch_size: int
    """Messages in one call, at most."""
    sink_id: str
    """Batch writes: the name under which this write is done once; empty for one of its own."""
    accept_gap: bool
    """Streaming: go on although the broker has forgotten what it published last."""
    timeout_ms: int


WRITE_NAMES = ("address", "queue", "batchSize", "sinkId", "acceptGap", "timeoutMs")
WRITE_BATCH_ONLY = ("sinkId",)
WRITE_STREAM_ONLY = ("acceptGap",)
SPARKS_OWN = frozenset(("checkpointlocation", "queryname"))
"""What Spark hands to a stream's sink among its options."""

BATCH_ONLY = ("endingOffset", "endingTimestamp")
STREAM_ONLY = ("channel", "maxMessagesPerTrigger", "pollIntervalMs")
EVERYWHERE = (
    "address",
    "queue",
    "fairnessKey",
    "startingOffset",
    "startingTimestamp",
    "partitions",
    "batchSize",
    "failOnDataLoss",
    "timeoutMs",
)
NAMES = EVERYWHERE + BATCH_ONLY + STREAM_ONLY


def parse_options(given: Mapping[str, str]) -> ReadOptions:
    """Check every option; `load("orders")` names the queue as `path`.

    Raises OptionInvalid, which names the option, the value and what is accepted.
    """
    options = _Given({name.lower(): value for name, value in given.items()})
    options.refuse_unknown()
    read = ReadOptions(
        address=options.get("address", "localhost:5555", _address),
        queue=options.queue(),
        fairness_key=options.get("fairnessKey", "", str),
        starting_offset=options.get("startingOffset", EARLIEST, _start),
        ending_offset=options.get("endingOffset", LATEST, _end),
        starting_time=options.get("startingTimestamp", None, _moment),
        ending_time=options.get("endingTimestamp", None, _moment),
        partitions=options.get("partitions", 4, _whole(1, PARTITIONS_MAX)),
        batch_size=options.get("batchSize", 1000, _whole(1, BATCH_SIZE_MAX)),
        messages_per_trigger=options.get("maxMessagesPerTrigger", 100_000, _whole(0, OFFSET_MAX)),
        fail_on_data_loss=options.get("failOnDataLoss", True, _truth),
        channel=options.get("channel", "", _name),
        poll_interval_ms=options.get("pollIntervalMs", 500, _whole(10, 3_600_000)),
        timeout_ms=options.get("timeoutMs", 10_000, _whole(1, 3_600_000)),
    )
    _check_together(read, options)
    return read


def parse_write_options(kind: Literal["batch", "streaming"], given: Mapping[str, str]) -> WriteOptions:
    """Check every option of a write; `save("orders")` names the queue as `path`."""
    options = _Given(
        {name.lower(): value for name, value in given.items() if name.lower() not in SPARKS_OWN}, WRITE_NAMES
    )
    options.refuse_unknown()
    for name in WRITE_STREAM_ONLY if kind == "batch" else WRITE_BATCH_ONLY:
        if name.lower() in options.given:
            raise OptionInvalid(name, f"has no meaning in a {kind} write; remove it")
    return WriteOptions(
        address=options.get("address", "localhost:5555", _address),
        queue=options.queue(needed=False),
        batch_size=options.get("batchSize", 1000, _whole(1, BATCH_SIZE_MAX)),
        sink_id=options.get("sinkId", "", _name),
        accept_gap=options.get("acceptGap", False, _truth),
        timeout_ms=options.get("timeoutMs", 60_000, _whole(1, 3_600_000)),
    )


def refuse_for(kind: Literal["batch", "streaming"], given: Mapping[str, str]) -> None:
    """Raise OptionInvalid for an option that this kind of read would silently ignore."""
    wrong = STREAM_ONLY if kind == "batch" else BATCH_ONLY
    present = {name.lower() for name in given}
    for name in wrong:
        if name.lower() in present:
            raise OptionInvalid(name, f"has no meaning in a {kind} read; remove it")


def _check_together(read: ReadOptions, options: _Given) -> None:
    if read.starting_time is not None and "startingoffset" in options.given:
        raise OptionInvalid("startingTimestamp", "give either it or startingOffset, not both")
    if read.ending_time is not None and "endingoffset" in options.given:
        raise OptionInvalid("endingTimestamp", "give either it or endingOffset, not both")
    start, end = read.starting_offset, read.ending_offset
    if isinstance(start, int) and isinstance(end, int) and end < start:
        raise OptionInvalid("endingOffset", f"is {end}, below startingOffset {start}")


@dataclass(frozen=True, slots=True)
class _Given:
    given: Mapping[str, str]
    names: tuple[str, ...] = NAMES

    def refuse_unknown(self) -> None:
        known = {name.lower() for name in self.names} | {"path"}
        for name in self.given:
            if name not in known:
                raise OptionInvalid(name, f"is not known; the options are {', '.join(sorted(self.names))}")

    def get(self, name: str, default: Value, parse: Callable[[str], Value]) -> Value:
        value = self.given.get(name.lower())
        if value is None:
            return default
        try:
            return parse(value.strip())
        except ValueError as problem:
            raise OptionInvalid(name, f"{problem}, got {value!r}") from None

    def queue(self, *, needed: bool = True) -> str:
        if "queue" in self.given and "path" in self.given:
            raise OptionInvalid(
                "queue", "the queue is named twice, by the option and by load(); name it once"
            )
        name = self.get("queue", "", _name) or self.get("path", "", _name)
        if needed and not name:
            raise OptionInvalid("queue", "must be given: .option('queue', 'orders') or .load('orders')")
        return name


def _address(text: str) -> str:
    match = _HOST_PORT.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= 65_535:
        raise ValueError("must look like localhost:5555 or https://fila.example.com:5555")
    return text.rstrip("/")


def _name(text: str) -> str:
    if len(text) > NAME_BYTES_MAX or _QUEUE.fullmatch(text) is None:
        raise ValueError(
            f"must be 1 to {NAME_BYTES_MAX} characters of A-Z a-z 0-9 . _ - and not start with a dot"
        )
    return text


def _start(text: str) -> Start:
    if text.lower() == EARLIEST:
        return EARLIEST
    return LATEST if text.lower() == LATEST else _offset(text, "'earliest', 'latest' or an offset from 1")


def _end(text: str) -> int | Literal["latest"]:
    return LATEST if text.lower() == LATEST else _offset(text, "'latest' or an offset from 1")


def _offset(text: str, accepted: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= OFFSET_MAX):
        raise ValueError(f"must be {accepted}")
    return int(text)


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(text)

    return parse


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _moment(text: str) -> datetime:
    accepted = "must be milliseconds since 1970 or ISO 8601 with an offset, such as 2026-01-31T12:00:00Z"
    try:
        if text.isascii() and text.isdigit():
            return datetime.fromtimestamp(int(text) / 1000, UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        raise ValueError(accepted) from None
    if moment.tzinfo is None:
        raise ValueError(accepted)
    return moment
