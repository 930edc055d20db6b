"""Later places to begin a replay at: the core as it was between two passes of a recording, in one file.

    head.json         which run, core and build; behind which pass; which files of the recording are in it
    base.json         the row `base` that the recording began with
    inputs.arrow      rows of the pass that those files end in: there may be more of it in the next ones
    decisions.arrow   recorded decisions of that pass and later, one row a message
    memory            the core (core/replay/checkpoint.pyx)

A file is whole or not there: it is written beside its place, synced and renamed. It holds what inputs hold: no
payloads, and of headers what history.headers says. Only the very build that wrote it can take it up.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

import fila_server.core
from fila_server.core.replay.checkpoint import NotTaken, Resumed, arena_used, image_write
from fila_server.core.replay.replay import Replay
from fila_server.history_files import columns
from fila_server.history_files.files import make_private, sync
from fila_server.history_files.replaying import Followed, Outcome, Start, begin, flat, follow
from fila_server.version import version

FORMAT = 2


class CheckpointRefused(Exception):
    """The checkpoint is damaged, of another run or build, or cannot be taken up here; the text says which."""


@dataclass(frozen=True)
class Head:
    """What a checkpoint is of."""

    run: str
    passes: int
    """The last pass that is in it. The next one is the newest of the files below, whose rows so far are beside it."""
    last_at: str
    """When that next pass was, ISO 8601."""
    inputs_through: str
    decisions_through: str
    """The last files that are in it; empty: none."""
    decisions: int
    """How many were compared up to here, since the run began."""
    deliveries: int
    version: str = ""
    build: str = ""
    format: int = FORMAT


@dataclass(frozen=True)
class Beginning:
    """A checkpoint that was taken up."""

    head: Head
    start: Start


@functools.cache
def build() -> str:
    """What tells builds of the core apart: a digest of its modules as they are installed."""
    digest = hashlib.sha256()
    folder = Path(fila_server.core.__path__[0])
    for path in sorted(folder.rglob("*.so")):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def fits(head: Head) -> bool:
    """Whether this build wrote it, and so can take it up."""
    return head.version == version() and head.build == build()


@dataclass(frozen=True)
class Reached:
    """Which files of a recording a checkpoint is to hold, the last of each table; empty: none."""

    run: str
    inputs: str
    decisions: str


def make(
    path: Path,
    reached: Reached,
    start: Path | None,
    inputs: Iterable[pa.Table],
    decisions: Iterable[pa.Table],
    changes: Iterable[pa.Table] | None = None,
) -> Outcome:
    """Follow a recording and write a checkpoint of where its files end; once a process.

    start: the checkpoint to go on from; None: the recording's base. inputs, decisions, changes: what comes behind it,
    to where the files that are `reached` end. Nothing is written where the recording is not followed. Raises
    CheckpointRefused, NoBase, NotReplayable, OSError.
    """
    folder = Path(tempfile.mkdtemp(prefix="fila-replay-"))
    rows = iter(inputs)
    try:
        if start is not None:
            beginning = take_up(start, reached.run, folder)
            came, before = beginning.start, beginning.head
        else:
            _prepare()
            came, before = Start(*begin(rows, folder, Replay)), None
        try:
            followed = follow(came, rows, decisions, changes, runs_newest=False)
            if followed.outcome.difference is None:
                _write(path, _reached(reached, before, followed), came.replay, followed)
            return followed.outcome
        finally:
            came.replay.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def verify(
    path: Path,
    run: str,
    inputs: Iterable[pa.Table],
    decisions: Iterable[pa.Table],
    changes: Iterable[pa.Table] | None = None,
) -> tuple[Outcome, Head]:
    """Replay what comes behind a checkpoint, as replaying.verify does from the base; once a process. Raises
    CheckpointRefused, NotReplayable."""
    folder = Path(tempfile.mkdtemp(prefix="fila-replay-"))
    try:
        beginning = take_up(path, run, folder)
        try:
            return follow(beginning.start, inputs, decisions, changes).outcome, beginning.head
        finally:
            beginning.start.replay.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _reached(reached: Reached, before: Head | None, followed: Followed) -> Head:
    last_at = followed.pending.column("at")[0].as_py()
    return Head(
        reached.run,
        followed.outcome.passes,
        last_at.isoformat(),
        reached.inputs,
        reached.decisions,
        followed.outcome.decisions + (before.decisions if before else 0),
        followed.outcome.messages_delivered + (before.deliveries if before else 0),
    )


def _prepare() -> None:
    try:
        arena_used()
    except NotTaken as why:
        raise CheckpointRefused(str(why)) from None


def _write(path: Path, head: Head, replay: Replay, followed: Followed) -> None:
    recorded = (
        followed.recorded
        if followed.recorded is not None
        else flat(columns.SCHEMAS[columns.DECISIONS].empty_table())
    )
    write(path, head, replay, followed.pending, recorded)


def write(path: Path, head: Head, replay: Replay, inputs: pa.Table, decisions: pa.Table) -> None:
    """Write a checkpoint of a replay between two passes, whole or not at all. Raises CheckpointRefused, OSError."""
    make_private(path.parent)
    aside = path.with_name(f"_{path.name}")
    descriptor = os.open(aside, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    try:
        with (
            os.fdopen(descriptor, "wb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            with archive.open("memory", "w", force_zip64=True) as out:
                facts = image_write(replay, out)
            _put_json(
                archive, "head.json", asdict(head) | {"version": version(), "build": build(), "facts": facts}
            )
            _put_json(archive, "base.json", replay.head)
            _put_rows(archive, "inputs.arrow", inputs)
            _put_rows(archive, "decisions.arrow", decisions)
        sync(aside)
        aside.rename(path)
        sync(path.parent)
    except NotTaken as why:
        raise CheckpointRefused(str(why)) from None
    finally:
        aside.unlink(missing_ok=True)


_UNREADABLE = (OSError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)
"""What `zipfile` raises at damage: a method that nobody knows may be a flipped bit, too."""


def read_head(path: Path) -> Head:
    """What a checkpoint is of, without taking it up. Raises CheckpointRefused."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _head(path, archive)[0]
    except (*_UNREADABLE, KeyError) as error:
        raise CheckpointRefused(f"{path.name} cannot be read: {error}") from None


def take_up(path: Path, run: str, folder: Path) -> Beginning:
    """Go on where a checkpoint was written; once a process. folder: an empty directory. Raises CheckpointRefused."""
    try:
        with zipfile.ZipFile(path) as archive:
            head, facts = _head(path, archive)
            _must_fit(path, head, run)
            base = json.loads(archive.read("base.json"))
            inputs, decisions = _rows(archive, "inputs.arrow"), _rows(archive, "decisions.arrow")
            with archive.open("memory") as source:
                _check(source)
            with archive.open("memory") as source:
                replay = Resumed(str(folder), base, facts, source)
    except NotTaken as why:
        raise CheckpointRefused(f"{path.name} cannot be taken up: {why}") from None
    except (*_UNREADABLE, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise CheckpointRefused(f"{path.name} is damaged: {error}") from None
    return Beginning(head, Start(replay, inputs, decisions))


def _must_fit(path: Path, head: Head, run: str) -> None:
    if head.run != run:
        raise CheckpointRefused(f"{path.name} is of the run {head.run}, not of {run}")
    if head.version != version():
        raise CheckpointRefused(
            f"{path.name} was written by the core of Fila {head.version}, and this is {version()}; "
            "make checkpoints anew with the version that replays them"
        )
    if head.build != build():
        raise CheckpointRefused(
            f"{path.name} was written by another build of Fila {head.version}: its memory fits that build alone; "
            "make checkpoints anew with the one that replays them"
        )


def _head(path: Path, archive: zipfile.ZipFile) -> tuple[Head, dict[str, Any]]:
    try:
        reported = json.loads(archive.read("head.json"))
        if reported["format"] != FORMAT:
            raise CheckpointRefused(
                f"{path.name} is of format {reported['format']}, and this reader knows {FORMAT}"
            )
        facts = reported.pop("facts")
        return Head(**reported), facts
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointRefused(f"{path.name} is damaged: {error}") from None


def _check(source: IO[bytes]) -> None:
    """Read it to its end, where its checksum is compared: nothing of it may be in memory before that."""
    while source.read(1 << 20):
        pass


def _put_json(archive: zipfile.ZipFile, name: str, value: dict[str, Any]) -> None:
    archive.writestr(name, json.dumps(value))


def _put_rows(archive: zipfile.ZipFile, name: str, rows: pa.Table) -> None:
    data = pa.BufferOutputStream()
    with pa.ipc.new_stream(data, rows.schema) as stream:
        stream.write_table(rows)
    archive.writestr(name, data.getvalue().to_pybytes())


def _rows(archive: zipfile.ZipFile, name: str) -> pa.Table:
    return pa.ipc.open_stream(archive.read(name)).read_all()
