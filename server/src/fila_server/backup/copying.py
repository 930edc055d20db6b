"""A file on its way into a backup or out of it: summed while it is read, synced, and read once more.

What was written is dropped from the page cache before it is read again, so that the disk answers and not the memory
it was written from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from fila_server import errors

PIECE_BYTES = 1 << 20
OURS_ALONE = 0o600


def copy_file(source: Path, target: Path) -> str:
    """Copy a file whole, with a mode for its owner alone, and return its SHA-256.

    Raises StartError when the copy reads differently from what was written; OSError as the disk has it.
    """
    reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return write_pieces(target, iter(lambda: os.read(reading, PIECE_BYTES), b""))
    finally:
        os.close(reading)


def write_pieces(target: Path, pieces: Iterable[bytes]) -> str:
    """Write a file of what comes, with a mode for its owner alone, and return its SHA-256.

    Raises as copy_file, and what `pieces` raises.
    """
    reported = hashlib.sha256()
    writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OURS_ALONE)
    try:
        for piece in pieces:
            reported.update(piece)
            _write_whole(writing, piece)
        os.fsync(writing)
        os.posix_fadvise(writing, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(writing)
    if sum_of(target) != reported.hexdigest():
        raise errors.StartError(f"{target} reads differently from what was written to it. Check that disk")
    return reported.hexdigest()


def write_file(target: Path, text: str) -> str:
    """Make a small file, synced, and return its SHA-256."""
    writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OURS_ALONE)
    try:
        _write_whole(writing, text.encode())
        os.fsync(writing)
    finally:
        os.close(writing)
    return hashlib.sha256(text.encode()).hexdigest()


def sum_of(path: Path) -> str:
    """Return a file's SHA-256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_directory(path: Path) -> None:
    """Make a directory for its owner alone, and those above it; one that exists is left as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def sync_directory(path: Path) -> None:
    """Make names that were made, moved or removed in it durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_room(place: Path, needed: int) -> None:
    """Raise StartError when a disk has fewer than `needed` bytes free: before an hour of copying, not behind it."""
    free = shutil.disk_usage(place).free
    if free < needed:
        raise errors.StartError(
            f"{place} has {free >> 20} MiB free and {(needed >> 20) + 1} MiB are to be written. Make room there, "
            "or give another directory"
        )


def _write_whole(descriptor: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
