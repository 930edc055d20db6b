"""Open, lock and recover the data directory, and say what opening it found."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from fila_server import errors
from fila_server.config.schema import Config
from fila_server.events import emit

if TYPE_CHECKING:
    from fila_server.broker.interfaces import Engine
    from fila_server.core.runtime.scheduler_thread import Engine as CompiledEngine
    from fila_server.core.runtime.store_copy import StoreCopy

log = structlog.get_logger("fila_server.opening")

CHECKPOINT = "checkpoint"
"""In the data directory: made for a backup that is being copied (backup/control.py)."""
RESTORING = "restoring"
"""In the data directory: what a restore has copied so far (backup/restoring.py)."""
STORE = "rocksdb"
"""In the data directory: the messages, and all else that is kept."""
OURS_ALONE = 0o077
"""The umask: nobody but the server's user reads what the server writes, whatever the shell that started it says."""
OPENING_QUIET_S = 1.0
OPENING_REPORTED_EVERY_S = 10.0


def open_engine(settings: Config) -> Engine:
    """Lock, open and recover the data directory."""
    try:
        from fila_server.core.runtime import scheduler_thread
    except ImportError as error:
        raise errors.NotLoaded(error) from error
    data_dir = settings.server.data_dir
    try:
        Path(data_dir).mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise errors.DataDirUnwritable(data_dir, error.strerror or str(error)) from error
    if is_restored_in_part(Path(data_dir)):
        raise errors.StoreError(
            f"data directory {data_dir} is restored in part: a restore was stopped. Run fila-server restore again, "
            f"or remove {Path(data_dir, RESTORING)} to begin with an empty store"
        )
    engine = _open_once(scheduler_thread.Engine, settings)
    _clear_up(Path(data_dir))
    _keep_from_others(Path(data_dir))
    report = engine.open_report()
    _report_losses(report, data_dir)
    if report.get("damaged_blocks"):
        # A damaged block would stop the engine at the next compaction that meets it. Opening again
        # copies the store without it (core/storage/salvage.pyx), now rather than in the middle of the day.
        log.warning("store.copied_without_damage", data_dir=data_dir)
        engine.close()
        engine = _open_once(scheduler_thread.Engine, settings)
        _report_losses(engine.open_report(), data_dir)
    return engine


def open_owner(settings: Config, copy: StoreCopy) -> CompiledEngine:
    """Recover from the copy that a node of a group has open, and owns by."""
    from fila_server.core.runtime import scheduler_thread

    engine = _open_once(partial(scheduler_thread.Engine, copy=copy), settings)
    _keep_from_others(Path(settings.server.data_dir))
    return engine


def is_restored_in_part(data_dir: Path) -> bool:
    """Whether a restore began here and did not come to its end, which is the store's name."""
    return (data_dir / RESTORING).exists() and not (data_dir / STORE).exists()


def _clear_up(data_dir: Path) -> None:
    """Remove what a killed server, backup or restore left; the directory is ours by now."""
    for name in (CHECKPOINT, f"{CHECKPOINT}.tmp", RESTORING):
        shutil.rmtree(data_dir / name, ignore_errors=True)


def _keep_from_others(data_dir: Path) -> None:
    """Close the store, which an earlier version or a copy may have left open, and say where the directory is.

    The directory itself stays as it is, and a start is not refused for it: a volume has the mode and the owner that
    its maker chose, and files in it are closed one by one. Who may write there could still put others in
    their place.
    """
    for directory in (data_dir / STORE, data_dir):
        mode = stat.S_IMODE(directory.stat().st_mode) if directory.exists() else 0
        if not mode & OURS_ALONE:
            continue
        if directory != data_dir:
            with contextlib.suppress(OSError):
                directory.chmod(mode & ~OURS_ALONE)
                log.info("store.closed_to_others", directory=str(directory), mode=f"{mode:04o}")
                continue
        log.warning(
            "store.open_to_others",
            directory=str(directory),
            mode=f"{mode:04o}",
            detail=f"other users of this machine may {_what(mode)} the directory: run chmod 0700 on it",
        )


def _what(mode: int) -> str:
    return "replace files in" if mode & 0o022 else "look into"


def _open_once(compiled_engine: Callable[..., CompiledEngine], settings: Config) -> CompiledEngine:
    data_dir = settings.server.data_dir
    # What is recovered lasts until a moment of the wall clock. Read later than the other clock, it would end too early.
    wall_ns, started_ns = time.time_ns(), time.monotonic_ns()
    try:
        with _reported_while_it_lasts(data_dir):
            engine = compiled_engine(
                data_dir,
                settings.engine_settings(),
                mono_ns=started_ns,
                wall_ns=wall_ns,
                seed=int.from_bytes(os.urandom(8)) >> 1,
            )
    except errors.StartError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        detail = " ".join(str(error).split())
        raise errors.StoreError(
            f"data directory {data_dir} cannot be opened: {detail}. Check the disk, or restore a copy"
        ) from error
    emit("store.recovered", data_dir=data_dir, took_ms=(time.monotonic_ns() - started_ns) // 1_000_000)
    return engine


@contextlib.contextmanager
def _reported_while_it_lasts(data_dir: str) -> Iterator[None]:
    """Opening blocks this thread, for minutes where a large store is copied; another one says what it is at."""
    done = threading.Event()
    teller = threading.Thread(target=_report_opening, args=(data_dir, done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _report_opening(data_dir: str, done: threading.Event) -> None:
    wait_s = OPENING_QUIET_S
    while not done.wait(wait_s):
        wait_s = OPENING_REPORTED_EVERY_S
        if Path(data_dir, "rocksdb.copying").exists():
            detail = (
                "damage was found; what can be read is being copied into a new store before the start goes on"
            )
            log.warning("store.copying", data_dir=data_dir, detail=detail)
        else:
            log.info(
                "store.opening", data_dir=data_dir, detail="the write-ahead log and the index are being read"
            )


_NORMAL_AFTER_POWER_CUT = {"tail_bytes_dropped", "records_unsynced", "logs_unsynced"}
_NOTED_MS = "noted_ms"


def _report_losses(report: dict[str, Any], data_dir: str) -> None:
    """Say what opening found: unsynced ends are normal after a power cut, all else is damage.

    Where the log is short, what was answered behind its last note cannot be judged: so its time is told.
    """
    found = {name: count for name, count in report.items() if count and name != _NOTED_MS}
    unsynced = {name: count for name, count in found.items() if name in _NORMAL_AFTER_POWER_CUT}
    damage = {name: count for name, count in found.items() if name not in _NORMAL_AFTER_POWER_CUT}
    known: dict[str, Any] = {}
    if noted_ms := report.get(_NOTED_MS, 0):
        until = datetime.fromtimestamp(noted_ms / 1000, UTC).isoformat(timespec="seconds")
        known = {"known_until": until, "detail": _unknown_since(until)}
    if unsynced:
        emit("store.unsynced_end_dropped", data_dir=data_dir, **unsynced, **known)
    if damage:
        emit("store.damage_found", level="error", data_dir=data_dir, **damage, **known)


def _unknown_since(until: str) -> str:
    return (
        f"whether all that was answered after {until} is there cannot be known; what was answered before, and is "
        "lost, is counted. Of records_lost, an enqueue is a lost message; an ack only brings its message back"
    )
