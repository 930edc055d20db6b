"""Where a copy lies that is on its way into the data directory, and where a damaged one goes.

    DATA_DIR/seeding/         filled and tried, a data directory of its own. `whole` in it says that it is whole
    DATA_DIR/rocksdb          the copy that serves
    DATA_DIR/set-aside/       the last copy that was damaged, or too old, for people to look at
    DATA_DIR/salvage          the store met damage: the copy is not opened any more

Whatever is cut off on the way, the next start finds the copy that was there, none, or a whole one for its place.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from fila_server.backup.copying import make_directory, sync_directory, write_file
from fila_server.backup.restoring import take_lock
from fila_server.backup.taking import LOCK
from fila_server.cluster.giving import GIVING
from fila_server.opening import CHECKPOINT, STORE

SEEDING = "seeding"
SET_ASIDE = "set-aside"
DAMAGE_NOTE = "salvage"
"""As the store writes it (core/storage/data_directory.pyx)."""
WHOLE = "whole"
FORMAT = "format"


class Directories:
    """The directories of one node's copies. Its methods raise OSError."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.seeding = data_dir / SEEDING

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """No other process has the directory meanwhile. Raises DataDirInUse."""
        lock = os.open(self.data_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            take_lock(lock, self.data_dir)
            yield
        finally:
            os.close(lock)

    @property
    def has_copy(self) -> bool:
        """Whether there is one, sound or not."""
        return (self.data_dir / STORE).exists()

    @property
    def is_damaged(self) -> bool:
        """Whether the store has met damage in it."""
        return self.has_copy and (self.data_dir / DAMAGE_NOTE).exists()

    def say_damaged(self) -> None:
        """The copy is not to be opened any more."""
        (self.data_dir / DAMAGE_NOTE).touch(0o600)
        sync_directory(self.data_dir)

    def clear_up(self) -> None:
        """What a process that ended has left; a whole copy is put in place if it was on its way there."""
        for name in (CHECKPOINT, GIVING):
            shutil.rmtree(self.data_dir / name, ignore_errors=True)
            shutil.rmtree(self.data_dir / f"{name}.tmp", ignore_errors=True)
        if not self.has_copy and (self.seeding / WHOLE).exists():
            self.put_in_place()
        shutil.rmtree(self.seeding, ignore_errors=True)

    def begin(self, needed: int) -> None:
        """An empty place for a copy of so many bytes. What was set aside is given up if they need its room."""
        shutil.rmtree(self.seeding, ignore_errors=True)
        if shutil.disk_usage(self.data_dir).free < needed:
            self._make_room()
        make_directory(self.seeding)
        make_directory(self.seeding / STORE)
        sync_directory(self.data_dir)

    def _make_room(self) -> None:
        shutil.rmtree(self.data_dir / SET_ASIDE, ignore_errors=True)

    def finish(self) -> None:
        """What is there is whole, and on the disk."""
        sync_directory(self.seeding / STORE)
        write_file(self.seeding / WHOLE, "a copy that was taken from another node\n")
        sync_directory(self.seeding)

    def put_in_place(self) -> None:
        """The whole copy becomes the node's. One that was there is set aside."""
        if self.has_copy:
            self._make_room()
            aside = self.data_dir / SET_ASIDE
            make_directory(aside)
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(self.data_dir / FORMAT, aside / FORMAT)
            (self.data_dir / STORE).rename(aside / STORE)
            sync_directory(self.data_dir)
        (self.data_dir / DAMAGE_NOTE).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):  # it was moved before a process ended
            (self.seeding / FORMAT).replace(self.data_dir / FORMAT)
        sync_directory(self.data_dir)
        (self.seeding / STORE).rename(self.data_dir / STORE)
        sync_directory(self.data_dir)
        shutil.rmtree(self.seeding, ignore_errors=True)
