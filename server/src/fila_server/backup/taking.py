"""A backup is taken: from a checkpoint of the server that runs, or from the files of one that does not."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from fila_server import errors
from fila_server.backup.control import asked_for_checkpoint
from fila_server.backup.copying import check_room, copy_file, make_directory, sync_directory, write_file
from fila_server.backup.last import FILE_NAME, note_backup
from fila_server.backup.sums import files_of, write_sums
from fila_server.version import commit, version

LOCK = "fila.lock"
MARKER = "access-marker"
"""How many changes of keys were answered (access/marker.py). It may say less than the store, never more."""


class Reported(NamedTuple):
    """What was copied."""

    files: int
    bytes: int
    took_s: float
    trouble: str = ""
    """The backup is whole, but the server will not tell its age."""


class About(msgspec.Struct):
    """backup.json: for people and scripts; a restore goes by the sums."""

    taken_at: str
    version: str
    commit: str
    data_dir: str
    server_ran: bool


def take_backup(data_dir: Path, target: Path) -> Reported:
    """Copy the data directory to `target`, which must be new or empty. Raises StartError.

    It holds all that was answered before the call.
    """
    began_s, began_ms = time.monotonic(), time.time_ns() // 1_000_000
    data_dir, target = data_dir.absolute(), target.absolute()
    if not (data_dir / "rocksdb").is_dir():
        raise errors.StartError(f"{data_dir} is no data directory of a Fila server")
    if not (data_dir / "format").is_file():
        raise errors.StartError(
            f"{data_dir} has no file `format`. Start the server once, which writes it anew"
        )
    _make_target(data_dir, target)
    try:
        # Before the checkpoint: it says how many changes of keys the store has at least, and a store that has fewer
        # is refused as damaged.
        marker = _marker(data_dir)
        with _source(data_dir) as (source, server_runs):
            sums, size = _copy_all(data_dir, source, target)
        if marker:
            sums[MARKER] = write_file(target / MARKER, marker)
    except FileNotFoundError as error:
        raise errors.StartError(
            f"{error.filename} went while it was copied: the server was started again meanwhile. Empty {target}, "
            "and take the backup again"
        ) from None
    except OSError as error:
        raise errors.StartError(
            f"the backup failed at {error.filename or target}: {error.strerror}"
        ) from None
    taken_at = datetime.now(UTC).isoformat(timespec="seconds")
    about = About(taken_at, version(), commit(), str(data_dir), server_runs)
    sums["backup.json"] = write_file(target / "backup.json", msgspec.json.encode(about).decode() + "\n")
    write_sums(target, sums)
    sync_directory(target.parent)
    trouble = ""
    try:
        note_backup(data_dir, began_ms)
    except OSError as error:
        trouble = (
            f"fila_backup_age_seconds does not know of this backup: {data_dir}/{FILE_NAME}: {error.strerror}"
        )
    return Reported(len(sums), size, time.monotonic() - began_s, trouble)


def _make_target(data_dir: Path, target: Path) -> None:
    if target.is_relative_to(data_dir):
        raise errors.StartError(
            f"{target} lies in the data directory, and would be lost with it. Give another disk"
        )
    try:
        make_directory(target)
        if any(target.iterdir()):
            raise errors.StartError(
                f"{target} is not empty. Give a directory that is new or empty, one for each backup"
            )
        make_directory(target / "rocksdb")
    except OSError as error:
        raise errors.StartError(f"{target} cannot be made: {error.strerror}") from None


@contextlib.contextmanager
def _source(data_dir: Path) -> Iterator[tuple[Path, bool]]:
    """Give the directory with the store's files, which stand still, and whether a server runs."""
    lock = os.open(data_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with asked_for_checkpoint(data_dir) as checkpoint:
                yield checkpoint, True
            return
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)  # a server that is started now says who holds it
        yield data_dir / "rocksdb", False
    finally:
        os.close(lock)


def _marker(data_dir: Path) -> str:
    try:
        return (data_dir / MARKER).read_text("ascii")
    except FileNotFoundError:
        return ""


def _copy_all(data_dir: Path, source: Path, target: Path) -> tuple[dict[str, str], int]:
    """Copy what belongs to a backup; return the sums by name, and how many bytes it is."""
    files = files_of(source, data_dir)
    size = sum(file.stat().st_size for file in files.values())
    check_room(target, size)
    sums = {name: copy_file(file, target / name) for name, file in files.items()}
    sync_directory(target / "rocksdb")
    return sums, size
