"""`fila-server cluster init`: the data of a broker alone become the first copy of a group, whose log is empty.

    DATA_DIR/group-begins   what the log's first records are to say, so that only this directory goes on with them
    the log                 TAKEOVER, then a BARRIER whose `chain` no record made. A node that has no copy halts there,
                            and takes one (core/log/reading.pxd)
    the store               in one write: the log was read up to there, and it is a copy
    DATA_DIR/format         says so, too
    DATA_DIR/group-begins   is removed

Before the store is written the directory is a broker's, as ever; from then on it is a copy. Wherever this ends, to run
it again goes on.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from fila_server import errors
from fila_server.backup.copying import sync_directory, write_file
from fila_server.cluster.directories import DAMAGE_NOTE
from fila_server.core.log.kafka import LogRefused
from fila_server.core.log.reading import LogReading
from fila_server.core.log.record import KIND_BARRIER, KIND_TAKEOVER, encode
from fila_server.core.runtime.store_copy import FORMAT, TurningStore
from fila_server.opening import STORE, is_restored_in_part

NOTE = "group-begins"
RECORDS_MAX = 64
"""More than what is left of tries that were cut off: the log is another group's."""
ANSWER_S_MAX = 30.0
READ_MS = 500
ENDS_MS = 10_000


class Log(Protocol):
    """As much of a log as is needed to begin it."""

    def ends(self, wait_ms: int = ...) -> tuple[int, int]:
        """The offset of the first record there is, and of the next that comes. Raises LogRefused."""
        ...

    def read(
        self, first: int, room: int = ..., wait_ms: int = ...
    ) -> tuple[list[tuple[int, bytes]], int, int]:
        """Records from an offset on, where the log begins, and where it ends."""
        ...

    def append(self, content: bytes, tag: int) -> bool:
        """False: it takes nothing just now. Raises LogRefused."""
        ...

    def reports(self, room: int = ..., wait_ms: int = ...) -> list[tuple[int, int, int, int]]:
        """What became of appended records: tag, offset, broker, error."""
        ...


class Identity(NamedTuple):
    """Of the node that begins the group, and of the group."""

    node: int
    name: str
    cluster: bytes


class Note(msgspec.Struct):
    """What makes the log's first records this directory's."""

    nonce: int
    chain: int

    @classmethod
    def new(cls) -> Note:
        """One that nobody has."""
        return cls(secrets.randbits(63) + 1, secrets.randbits(63) + 1)

    @classmethod
    def read(cls, data_dir: Path) -> Note | None:
        """What an init that was cut off has left."""
        try:
            return msgspec.json.decode((data_dir / NOTE).read_bytes(), type=cls)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, UnicodeError) as error:
            raise errors.StartError(
                f"{data_dir / NOTE} cannot be read: {error}. Remove it, and give the group a new topic"
            ) from None

    def write(self, data_dir: Path) -> None:
        """Whole or not at all, and on the disk."""
        beside = data_dir / f"{NOTE}.new"
        beside.unlink(missing_ok=True)
        write_file(beside, msgspec.json.encode(self).decode())
        beside.rename(data_dir / NOTE)
        sync_directory(data_dir)


def check_directory(data_dir: Path) -> None:
    """What a look at its names tells. Raises StartError."""
    if is_restored_in_part(data_dir):
        raise errors.StoreError(f"{data_dir} is restored in part: run fila-server restore again first")
    if not (data_dir / STORE / "CURRENT").exists():
        raise errors.StoreError(f"{data_dir} is no data directory of a Fila server")


def opened(data_dir: Path, settings: dict[str, int | str]) -> TurningStore:
    """The store of a broker that stands still. Raises StartError."""
    check_directory(data_dir)
    return TurningStore(str(data_dir), settings)


def begin_group(data_dir: Path, settings: dict[str, int | str], topic: str, log: Log, who: Identity) -> bool:
    """Make the directory the first copy of a group. False: it was one already, but for the last step. Raises
    StartError; what was done until then does no harm, and the next try goes on with it."""
    if (data_dir / DAMAGE_NOTE).exists():
        raise errors.StoreError(
            f"the store in {data_dir} has met damage: start the server once, without a group, which repairs it"
        )
    store = opened(data_dir, settings)
    try:
        note = Note.read(data_dir)
        if store.format == FORMAT:
            if note is None:
                raise errors.StoreError(f"{data_dir} is a copy of a group's already: start it as a node")
            _finish(store, data_dir)
            return False
        _begin(store, data_dir, note, topic, log, who)
    except OSError as error:
        raise errors.StoreError(
            f"{error.filename or data_dir}: {error.strerror}. Look at the disk of the data directory"
        ) from None
    except LogRefused as refused:
        raise errors.StartError(f"cluster.log: topic {topic}: {refused}") from None
    finally:
        store.close()
    return True


def _begin(
    store: TurningStore, data_dir: Path, note: Note | None, topic: str, log: Log, who: Identity
) -> None:
    start, end = log.ends(ENDS_MS)
    if start > 0 or end > RECORDS_MAX or (end > 0 and note is None):
        raise _not_empty(topic, end - start, f"from offset {start} on" if start else "")
    if note is None:
        note = Note.new()
        note.write(data_dir)
    records = _appended(topic, log, note, who, end)
    store.begin_group(who.cluster, note.chain, records)
    _finish(store, data_dir)


def _finish(store: TurningStore, data_dir: Path) -> None:
    store.write_format()
    (data_dir / NOTE).unlink(missing_ok=True)
    sync_directory(data_dir)


def _appended(topic: str, log: Log, note: Note, who: Identity, end: int) -> list[tuple[int, bytes]]:
    """The log's records, once a term of this directory has its first one."""
    now_ms = time.time_ns() // 1_000_000
    takeover = encode(
        kind=KIND_TAKEOVER,
        node=who.node,
        nonce=note.nonce,
        cluster=who.cluster,
        incarnation=1,
        format=1,
        name=who.name,
        wall_ms=now_ms,
    )
    records = _read(log, [], end)
    while True:
        reading = LogReading(cluster=who.cluster, chain=note.chain)
        for offset, content in records:
            reading.take(offset, content)
        state = reading.state()
        is_ours = state["terms"] == 0 or (state["terms"] == 1 and state["term"][1] == note.nonce)
        if reading.is_halted or not is_ours or state["passes"] or len(records) > RECORDS_MAX:
            raise _not_empty(topic, len(records), reading.why or "another node began the group meanwhile")
        if state["barriers"]:
            return records
        barrier = encode(
            kind=KIND_BARRIER, node=who.node, term=state["term"], chain=note.chain, wall_ms=now_ms
        )
        content = barrier if state["terms"] else takeover
        if not log.append(content, len(records)):
            raise errors.StartError(f"cluster.log: topic {topic} takes no record just now. Try again")
        records = _read(log, records, len(records) + 1, topic)


def _read(log: Log, records: list[tuple[int, bytes]], end: int, topic: str = "") -> list[tuple[int, bytes]]:
    """All records, of which these were read, once there are so many."""
    records, until_s = list(records), time.monotonic() + ANSWER_S_MAX
    while len(records) < end:
        for _, _, _, error in log.reports():
            if error:
                raise errors.StartError(
                    f"cluster.log: topic {topic}: the record was not taken (error {error} of librdkafka). Look at its "
                    "brokers and at the rights of cluster.kafka, and try again"
                )
        found, _, _ = log.read(len(records), wait_ms=READ_MS)
        records += found
        if time.monotonic() > until_s:
            raise errors.StartError(
                f"cluster.log: topic {topic} has {len(records)} records after {ANSWER_S_MAX:.0f} s, and {end} are to "
                "be there. Look at its brokers, and try again"
            )
    return records


def _not_empty(topic: str, count: int, detail: str) -> errors.StartError:
    what = f"{count} records{f', {detail}' if detail else ''}"
    return errors.StartError(
        f"cluster.log: the topic {topic} is not empty: it has {what}. A group that begins with a broker's data needs a "
        "topic that was never written to. Make a new one, and name it in cluster.log"
    )
