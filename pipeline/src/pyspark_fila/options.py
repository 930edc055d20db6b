"""The options of reads and writes: parsed and checked before anything is contacted.

Spark hands option names over in lower case; messages use the documented spelling. No message repeats a key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Literal

from pyspark_fila.connection import Connection, parse_key
from pyspark_fila.errors import OptionInvalid
from pyspark_fila.tables import is_of_table, is_table

EARLIEST: Literal["earliest"] = "earliest"
LATEST: Literal["latest"] = "latest"
LOG: Literal["log"] = "log"
PENDING: Literal["pending"] = "pending"

NAME_BYTES_MAX = 255
OFFSET_MAX = 2**63 - 1
BATCH_SIZE_MAX = 10_000
PARTITIONS_MAX = 10_000

_HOST_PORT = re.compile(r"(?:https?://)?(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})/?")
_QUEUE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_PATTERN = re.compile(r"[A-Za-z0-9_*-][A-Za-z0-9._*-]*")

Start = int | Literal["earliest", "latest"]
Use = Literal["batch read", "streaming read", "batch write", "streaming write"]
READS: tuple[Use, ...] = ("batch read", "streaming read")
WRITES: tuple[Use, ...] = ("batch write", "streaming write")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read, and how."""

    connection: Connection
    queue: str
    """The one queue; empty where `queues` says which."""
    queues: tuple[str, ...]
    """Names and patterns of several queues; empty where `queue` says which."""
    view: Literal["log", "pending"]
    """The log, or what is pending now."""
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
    bytes_per_trigger: int
    """Streaming: about so many bytes of a micro-batch, at most; 0 for no limit."""
    least_per_trigger: int
    """Streaming: fewer messages wait for more of them; 0 for no such wait."""
    trigger_delay_ms: int
    """Streaming: and go after this time all the same."""
    fail_on_data_loss: bool
    channel: str
    """Streaming: the channel that keeps unread messages in the log; empty for none."""
    poll_interval_ms: int
    """Streaming: the broker is asked for the log's end at most this often."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Where to write, and how."""

    connection: Connection
    queue: str
    """The queue of rows that name none; empty where every row must."""
    batch_size: int
    """Messages in one call, at most."""
    sink_id: str
    """Batch writes: the name under which this write is done once; empty for one of its own."""
    sink_version: int | None
    """Batch writes: the number of this write under that name; None for a name that is used once."""
    accept_gap: bool
    """Streaming: go on although the broker has forgotten what it published last."""


def check_options(given: Mapping[str, str]) -> None:
    """Check what holds for every use: each name is known, each value can be read, and which exclude each other.

    Raises OptionInvalid, which names the option, the value and what is accepted.
    """
    options = _Given.of(given)
    options.refuse_unknown(given)
    for name in options.values:
        options.get(name, None)
    _connection(options, 1)
    options.queue(needed=False)
    options.check_pairs()


def parse_options(given: Mapping[str, str]) -> ReadOptions:
    """Check every option of a read; `load("orders")` names the queue as `path`. Raises OptionInvalid."""
    check_options(given)
    options = _Given.of(given)
    read = ReadOptions(
        connection=_connection(options, 10_000),
        queue=options.queue(),
        queues=options.get("queues", ()),
        view=options.get("view", LOG),
        fairness_key=options.get("fairnessKey", ""),
        starting_offset=options.get("startingOffset", EARLIEST),
        ending_offset=options.get("endingOffset", LATEST),
        starting_time=options.get("startingTimestamp", None),
        ending_time=options.get("endingTimestamp", None),
        partitions=options.get("partitions", 4),
        batch_size=options.get("batchSize", 1000),
        messages_per_trigger=options.get("maxMessagesPerTrigger", 100_000),
        bytes_per_trigger=options.get("maxBytesPerTrigger", 0),
        least_per_trigger=options.get("minMessagesPerTrigger", 0),
        trigger_delay_ms=options.get("maxTriggerDelay", 900_000),
        fail_on_data_loss=options.get("failOnDataLoss", True),
        channel=options.get("channel", ""),
        poll_interval_ms=options.get("pollIntervalMs", 500),
    )
    _check_together(read, options)
    return read


def parse_write_options(given: Mapping[str, str]) -> WriteOptions:
    """Check every option of a write; `save("orders")` names the queue as `path`. Raises OptionInvalid."""
    check_options(given)
    options = _Given.of(given)
    return WriteOptions(
        connection=_connection(options, 60_000),
        queue=options.queue(needed=False),
        batch_size=options.get("batchSize", 1000),
        sink_id=options.get("sinkId", ""),
        sink_version=options.get("sinkVersion", None),
        accept_gap=options.get("acceptGap", False),
    )


def refuse_for(use: Use, given: Mapping[str, str]) -> None:
    """Raise OptionInvalid for an option that this use would silently ignore."""
    options = _Given.of(given)
    logs_only = use == "batch read" and options.get("view", LOG) == LOG
    for name in options.values:
        if use not in OPTIONS[name].uses or (name == "channel" and logs_only):
            raise OptionInvalid(name, f"has no meaning in a {use}; remove it")


def _connection(options: _Given, timeout_ms: int) -> Connection:
    made = Connection(
        address=options.get("address", "localhost:5555"),
        timeout_ms=options.get("timeoutMs", timeout_ms),
        token=options.get("token", ""),
        token_file=options.get("tokenFile", ""),
        ca_file=options.get("caFile", ""),
        cert_file=options.get("certFile", ""),
        key_file=options.get("keyFile", ""),
        server_name=options.get("serverName", ""),
    )
    if made.token and made.token_file:
        raise OptionInvalid("tokenFile", "give either it or token, not both")
    if bool(made.cert_file) != bool(made.key_file):
        raise OptionInvalid("certFile", "belongs together with keyFile: give both, or neither")
    if made.by_tls and made.address.startswith("http://"):
        raise OptionInvalid(
            "address", f"says http://, and the TLS options want https://, got {made.address!r}"
        )
    return made


def _check_together(read: ReadOptions, options: _Given) -> None:
    if read.starting_time is not None and "startingOffset" in options.values:
        raise OptionInvalid("startingTimestamp", "give either it or startingOffset, not both")
    if read.ending_time is not None and "endingOffset" in options.values:
        raise OptionInvalid("endingTimestamp", "give either it or endingOffset, not both")
    start, end = read.starting_offset, read.ending_offset
    if isinstance(start, int) and isinstance(end, int) and end < start:
        raise OptionInvalid("endingOffset", f"is {end}, below startingOffset {start}")
    if read.queues and (isinstance(start, int) or isinstance(end, int)):
        name = "startingOffset" if isinstance(start, int) else "endingOffset"
        raise OptionInvalid(
            name,
            "is a number, which each queue counts for itself; with queues give a timestamp, earliest or latest",
        )
    most, least = read.messages_per_trigger, read.least_per_trigger
    if most and least > most:
        raise OptionInvalid("minMessagesPerTrigger", f"is {least}, above maxMessagesPerTrigger {most}")


@dataclass(frozen=True, slots=True)
class _Given:
    values: dict[str, str]
    """By the documented spelling; `path` is what load(), save() and start() name."""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> _Given:
        spelled = {name.lower(): name for name in OPTIONS}
        return cls({spelled[name.lower()]: value for name, value in given.items() if name.lower() in spelled})

    def refuse_unknown(self, given: Mapping[str, str]) -> None:
        if is_table(given) and "token" in self.values:
            raise OptionInvalid(
                "token",
                "cannot be an option of a table, since the catalog would keep the key and show it; name its file, by "
                "tokenFile, or put it into FILA_API_KEY on each machine",
            )
        known = {option.lower(): option for option in OPTIONS}
        for name in sorted(given):
            plain = name.lower()
            if plain in known or plain in SPARKS_OWN or is_of_table(plain):
                continue
            if plain in NAMED_OTHERWISE:
                raise OptionInvalid(name, NAMED_OTHERWISE[plain])
            if plain.startswith("kafka."):
                raise OptionInvalid(name, "is Kafka's; Fila's are address, token and those for TLS")
            near = get_close_matches(plain, known, n=1, cutoff=0.7)
            meant = f"; did you mean {known[near[0]]}?" if near else "."
            listed = ", ".join(sorted(OPTIONS.keys() - {"path"}, key=str.lower))
            raise OptionInvalid(name, f"is not known{meant} The options are {listed}")

    def get(self, name: str, default: Any) -> Any:
        value = self.values.get(name)
        if value is None:
            return default
        try:
            return OPTIONS[name].parse(value.strip())
        except ValueError as problem:
            got = "" if name == "token" else f", got {value!r}"
            raise OptionInvalid(name, f"{problem}{got}") from None

    def check_pairs(self) -> None:
        """Which options belong together, and which exclude each other."""
        if "channel" in self.values and "queues" in self.values:
            raise OptionInvalid(
                "channel",
                "belongs to one queue, and queues names several; give the queues a soft retention, or read each of "
                "them by a query of its own",
            )
        for name, other in (("sinkVersion", "sinkId"), ("maxTriggerDelay", "minMessagesPerTrigger")):
            if name in self.values and other not in self.values:
                raise OptionInvalid(name, f"says nothing without {other}; give both")
        if str(self.get("view", LOG)) == PENDING:
            for name in sorted(self.values.keys() - OF_PENDING, key=str.lower):
                raise OptionInvalid(name, "has no meaning where view is pending; remove it")

    def queue(self, *, needed: bool = True) -> str:
        named = [name for name in ("queue", "path", "queues") if name in self.values]
        if len(named) > 1:
            said = {"queue": "the option queue", "path": "load()", "queues": "the option queues"}
            raise OptionInvalid(
                named[-1] if named[-1] == "queues" else "queue",
                f"the queue is named twice, by {said[named[0]]} and by {said[named[1]]}; name it once",
            )
        if "queues" in self.values:
            return ""
        name = str(self.get("queue", "") or self.get("path", ""))
        if needed and not name:
            raise OptionInvalid(
                "queue",
                "must be given: .option('queue', 'orders') or .load('orders'); a table keeps its options only where it "
                "was made without columns: CREATE TABLE orders USING fila OPTIONS (queue 'orders')",
            )
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


def _file(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(
            "must be an absolute path, since each machine reads the file itself and no worker is started beside it"
        )
    return text


def _queues(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if len(name) > NAME_BYTES_MAX or _PATTERN.fullmatch(name) is None:
            raise ValueError(
                "must be names of queues with commas between them, in which * stands for any characters, such as "
                "orders,billing-*"
            )
    return names


def _view(text: str) -> str:
    if text.lower() not in (LOG, PENDING):
        raise ValueError("must be log or pending")
    return text.lower()


def _span_ms(text: str) -> int:
    found = re.fullmatch(r"(\d{1,9}) ?(ms|s|m|h)", text)
    span_ms = int(found[1]) * {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}[found[2]] if found else 0
    if not 1 <= span_ms <= 86_400_000:
        raise ValueError("must be a time up to 24h, such as 30s or 15m")
    return span_ms


def _server_name(text: str) -> str:
    if not text or re.fullmatch(r"[A-Za-z0-9._:-]+", text) is None:
        raise ValueError("must be the name in the broker's certificate, such as fila.example.com")
    return text


@dataclass(frozen=True, slots=True)
class Option:
    """One option: how its text is read, and where it means something."""

    parse: Callable[[str], Any]
    uses: tuple[Use, ...] = READS + WRITES


OPTIONS: dict[str, Option] = {
    "address": Option(_address),
    "token": Option(parse_key),
    "tokenFile": Option(_file),
    "caFile": Option(_file),
    "certFile": Option(_file),
    "keyFile": Option(_file),
    "serverName": Option(_server_name),
    "timeoutMs": Option(_whole(1, 3_600_000)),
    "queue": Option(_name),
    "path": Option(_name),
    "queues": Option(_queues, READS),
    "view": Option(_view, ("batch read",)),
    "batchSize": Option(_whole(1, BATCH_SIZE_MAX)),
    "fairnessKey": Option(str, READS),
    "startingOffset": Option(_start, READS),
    "startingTimestamp": Option(_moment, READS),
    "endingOffset": Option(_end, ("batch read",)),
    "endingTimestamp": Option(_moment, ("batch read",)),
    "partitions": Option(_whole(1, PARTITIONS_MAX), READS),
    "failOnDataLoss": Option(_truth, READS),
    "channel": Option(_name, READS),
    "maxMessagesPerTrigger": Option(_whole(0, OFFSET_MAX), ("streaming read",)),
    "maxBytesPerTrigger": Option(_whole(1, OFFSET_MAX), ("streaming read",)),
    "minMessagesPerTrigger": Option(_whole(1, OFFSET_MAX), ("streaming read",)),
    "maxTriggerDelay": Option(_span_ms, ("streaming read",)),
    "pollIntervalMs": Option(_whole(10, 3_600_000), ("streaming read",)),
    "sinkId": Option(_name, ("batch write",)),
    "sinkVersion": Option(_whole(0, OFFSET_MAX), ("batch write",)),
    "acceptGap": Option(_truth, ("streaming write",)),
}
OF_PENDING = frozenset(
    (
        "address",
        "token",
        "tokenFile",
        "caFile",
        "certFile",
        "keyFile",
        "serverName",
        "timeoutMs",
        "queue",
        "path",
        "queues",
        "view",
        "fairnessKey",
        "partitions",
        "channel",
    )
)
"""The options of a read of what is pending."""
SPARKS_OWN = frozenset(("checkpointlocation", "queryname"))
"""What Spark hands to a stream's sink among its options."""
_FILE_OF_KEY = "is not taken: Spark shows an option of that name in plans and pages. "
NAMED_OTHERWISE: dict[str, str] = {
    "apikey": f"{_FILE_OF_KEY}Give the key as token, which Spark redacts, or its file as tokenFile",
    "apikeyfile": "is called tokenFile",
    "subscribe": "is called queue, or queues where it names several",
    "subscribepattern": "is called queues, in which * stands for any characters, such as billing-*",
    "assign": "is called queue, or queues where it names several; a queue has no partitions",
    "topic": "is called queue",
    "startingoffsets": "is called startingOffset, and takes earliest, latest or a number",
    "endingoffsets": "is called endingOffset, and takes latest or a number",
    "startingoffsetsbytimestamp": "is called startingTimestamp",
    "endingoffsetsbytimestamp": "is called endingTimestamp",
    "maxoffsetspertrigger": "is called maxMessagesPerTrigger",
    "minoffsetspertrigger": "is called minMessagesPerTrigger",
    "maxfilespertrigger": "is called maxMessagesPerTrigger",
    "txnappid": "is called sinkId",
    "txnversion": "is called sinkVersion",
    "minpartitions": "is called partitions",
    "groupidprefix": "has no like: the option channel names what keeps unread messages for a stream",
    "includeheaders": "has no like: the column headers is always there",
    "kafka.bootstrap.servers": "is called address, and takes one host:port",
    "kafka.group.id": "has no like: the option channel names what keeps unread messages for a stream",
    "kafka.security.protocol": "has no like: TLS is spoken where the address begins with https://",
    "kafka.sasl.jaas.config": "has no like: give the key as token, or its file as tokenFile",
    "kafka.ssl.truststore.location": "is called caFile, and takes certificates in PEM form",
    "kafka.ssl.keystore.location": "is called certFile, with keyFile, in PEM form",
}
"""What other connectors, and Fila's own SDKs, call an option, in lower case."""
