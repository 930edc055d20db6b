"""A backup becomes a data directory: whole, or not at all.

    DATA_DIR/restoring/...       everything is copied here and compared with the backup's sums
    DATA_DIR/format, ...         then moved, the store last: from that rename on it is a data directory

A restore that was killed leaves `restoring` and no store. No server starts on that (opening.py), since it would begin
an empty one; the next restore begins anew.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from pathlib import Path

from fila_server import errors
from fila_server.backup.copying import check_room, copy_file, make_directory, sync_directory
from fila_server.backup.sums import read_sums
from fila_server.backup.taking import LOCK, Reported
from fila_server.opening import RESTORING, is_restored_in_part

_MAY_BE_THERE = {LOCK, "lost+found"}
_NOT_RESTORED = {"backup.json"}


def restore_backup(backup: Path, data_dir: Path) -> Reported:
    """Make `data_dir` what the backup holds; it must be new or empty. Raises StartError, and then it is no store."""
    began_s = time.monotonic()
    backup, data_dir = backup.absolute(), data_dir.absolute()
    sums = read_sums(backup)
    try:
        make_directory(data_dir)
        lock = os.open(data_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise errors.DataDirUnwritable(str(data_dir), error.strerror or str(error)) from None
    try:
        take_lock(lock, data_dir)
        _check_empty(data_dir)
        size = _restore(backup, data_dir, sums)
    except OSError as error:
        raise errors.StartError(
            f"the restore failed at {error.filename or data_dir}: {error.strerror}. Nothing was put in place"
        ) from None
    finally:
        os.close(lock)
    return Reported(len(sums), size, time.monotonic() - began_s)


def take_lock(lock: int, data_dir: Path) -> None:
    """Of an open lock file, and say whose it is. Raises DataDirInUse."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise errors.DataDirInUse(str(data_dir)) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)


def _check_empty(data_dir: Path) -> None:
    found = {path.name for path in data_dir.iterdir()} - _MAY_BE_THERE
    if found and not is_restored_in_part(data_dir):
        raise errors.StartError(
            f"{data_dir} is not empty ({', '.join(sorted(found)[:3])}). A restore never overwrites: move what is "
            "there away, or give another directory"
        )


def _restore(backup: Path, data_dir: Path, sums: dict[str, str]) -> int:
    parts = data_dir / RESTORING
    shutil.rmtree(parts, ignore_errors=True)
    make_directory(parts)
    sync_directory(data_dir)
    make_directory(parts / "rocksdb")
    sizes = {name: _size(backup, name) for name in sums}
    check_room(data_dir, sum(sizes.values()))
    for name, wanted in sums.items():
        if copy_file(backup / name, parts / name) != wanted:
            raise errors.StartError(
                f"{backup / name} is not what was backed up: its SHA-256 differs from the one in SHA256SUMS. Use "
                "another backup"
            )
    _give_to_owner_of(data_dir, parts)
    sync_directory(parts / "rocksdb")
    sync_directory(parts)
    for name in [name for name in sums if "/" not in name and name not in _NOT_RESTORED]:
        (parts / name).replace(data_dir / name)
    sync_directory(data_dir)
    (parts / "rocksdb").rename(data_dir / "rocksdb")
    sync_directory(data_dir)
    shutil.rmtree(parts)
    return sum(sizes.values())


def _size(backup: Path, name: str) -> int:
    try:
        return (backup / name).stat().st_size
    except FileNotFoundError:
        raise errors.StartError(f"{backup / name} is missing from the backup. Use another one") from None


def _give_to_owner_of(data_dir: Path, parts: Path) -> None:
    """Where root restores for a server that runs as another user."""
    if os.geteuid() != 0:
        return
    owner = data_dir.stat()
    for path in [parts, *parts.rglob("*"), data_dir / LOCK]:
        os.chown(path, owner.st_uid, owner.st_gid)
