"""`fila-server cluster leave`: a copy becomes the data of a broker alone.

It reads the log to its end first, so that all is in it that the group answered. Then the store is changed in one write,
and DATA_DIR/format behind it. Wherever this ends, to run it again goes on.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from fila_server import errors
from fila_server.backup.copying import sync_directory
from fila_server.cluster.directories import DAMAGE_NOTE, FORMAT, SEEDING
from fila_server.cluster.founding import opened
from fila_server.cluster.giving import GIVING
from fila_server.cluster.log_keeper import MARKS
from fila_server.cluster.removed import REMOVED
from fila_server.cluster.written import NOTE, WrittenFormat
from fila_server.core.runtime.store_copy import FORMAT as COPY
from fila_server.core.runtime.store_copy import HALTS, StoreCopy

READ_MS = 500
SILENT_S_MAX = 20.0
LIVES_S = 2.0
"""An owner appends something every half second."""
AS_IT_IS = "give --as-it-is to go on with what it has"


def leave_group(
    data_dir: Path, settings: dict[str, int | str], follow: Callable[[], StoreCopy] | None
) -> int | None:
    """Make a copy a broker's alone, once it has the whole log; `follow` opens it to read on, None: as it is.

    The offset up to which it has the log; None: it was a broker's alone already, but for the last step. Raises
    StartError.
    """
    if (data_dir / DAMAGE_NOTE).exists():
        raise _damaged(data_dir, "the store has met damage")
    try:
        return _leave(data_dir, settings, follow)
    except errors.StoreDamaged as damaged:  # what a broker alone would do about it is no use here
        raise _damaged(data_dir, str(damaged).partition(";")[0]) from None


def _damaged(data_dir: Path, what: str) -> errors.StoreError:
    return errors.StoreError(
        f"the copy in {data_dir} is damaged, and would be a broker that lacks something: {what}. Take another node's, "
        "or start this node once more: it takes one itself"
    )


def _leave(
    data_dir: Path, settings: dict[str, int | str], follow: Callable[[], StoreCopy] | None
) -> int | None:
    store = opened(data_dir, settings)
    is_copy, position = store.format == COPY, store.applied[1]
    store.close()
    try:
        if not is_copy and (data_dir / FORMAT).read_text() != f"fila {COPY}\n":
            raise errors.StoreError(f"{data_dir} is the data of a broker alone already: start it")
        if is_copy and follow:
            position = _caught_up(data_dir, follow(), WrittenFormat(data_dir))
        store = opened(data_dir, settings)
        try:
            if is_copy:
                store.leave_group()
            store.write_format()
        finally:
            store.close()
        _clear_up(data_dir)
    except OSError as error:
        raise errors.StoreError(
            f"{error.filename or data_dir}: {error.strerror}. Look at the disk of the data directory"
        ) from None
    return position if is_copy else None


def _caught_up(data_dir: Path, copy: StoreCopy, written: WrittenFormat) -> int:
    """Its position, once it is at the log's end, and nobody goes on with the log."""
    try:
        _read_to_end(data_dir, copy, written)
        before_ms, until_s = copy.wall_ms, time.monotonic() + LIVES_S
        while time.monotonic() < until_s:
            _read_to_end(data_dir, copy, written)
            if copy.wall_ms != before_ms:
                raise errors.StartError(
                    "a node serves the group: its log goes on. Stop all nodes of the group first, or two brokers "
                    "answer for the same messages"
                )
        copy.sync()
        return copy.position
    finally:
        copy.close()


def _read_to_end(data_dir: Path, copy: StoreCopy, written: WrittenFormat) -> None:
    answers, _ = copy.answers
    copy.look_again()  # else a log that has nothing more says nothing
    until_s = time.monotonic() + SILENT_S_MAX
    while copy.answers[0] == answers or not copy.answers[1]:
        if copy.follow(READ_MS):
            until_s = time.monotonic() + SILENT_S_MAX
        if copy.state == HALTS and not written.goes_on(copy):
            raise errors.StartError(
                f"the copy in {data_dir} has the log up to offset {copy.position}, and cannot read on: {copy.why}. "
                f"Take another node's, or {AS_IT_IS}"
            )
        if time.monotonic() > until_s:
            raise errors.StartError(
                f"cluster.log does not answer, so nobody knows what it holds beyond offset {copy.position}, which the "
                f"copy in {data_dir} has. Look at its brokers, or {AS_IT_IS}"
            )


def _clear_up(data_dir: Path) -> None:
    """What only a node of a group has. A copy that was set aside stays."""
    for name in (SEEDING, GIVING):
        shutil.rmtree(data_dir / name, ignore_errors=True)
    for name in (MARKS, REMOVED, NOTE):
        (data_dir / name).unlink(missing_ok=True)
    sync_directory(data_dir)
