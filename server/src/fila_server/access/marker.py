"""DATA_DIR/access-marker: how many changes of keys were answered, outside of the store that could lose them."""

from __future__ import annotations

import os
from pathlib import Path

from fila_server import errors

FILE_NAME = "access-marker"
_HEAD = "fila access changes "


def read_changes(data_dir: Path) -> int:
    """Return how many changes were answered; 0 when there is no file. Raises AccessDamaged when it is no marker."""
    file = data_dir / FILE_NAME
    try:
        text = file.read_text("ascii")
    except FileNotFoundError:
        return 0
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file) from error
    number = text.removeprefix(_HEAD).strip()
    if not text.startswith(_HEAD) or not number.isdigit():
        raise _unreadable(file)
    return int(number)


def write_changes(data_dir: Path, changes: int) -> None:
    """Replace the file by one that says so; on the disk when this returns."""
    file = data_dir / FILE_NAME
    new = file.with_suffix(".new")
    write_synced(new, f"{_HEAD}{changes}\n", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    new.replace(file)
    sync_directory(data_dir)


def write_synced(file: Path, text: str, flags: int) -> None:
    """Write a file that only its owner may read, and sync it. Raises OSError."""
    descriptor = os.open(file, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, text.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """Make names that were made, replaced or removed in it durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unreadable(file: Path) -> errors.AccessDamaged:
    return errors.AccessDamaged(
        f"{file} cannot be read: whether keys are missing cannot be known. Restore it from a copy, or make a new "
        "admin key with fila-server auth recover, which drops all keys"
    )
