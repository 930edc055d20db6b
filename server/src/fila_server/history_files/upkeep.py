"""What a run that was killed left behind, and what is too old or too much."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from fila_server.history_files.chain import LIST, chained, next_link
from fila_server.history_files.files import listed, sync, write_entry
from fila_server.history_files.signing import Signer

KILLED = "the broker was killed, or had no time to close its files"


def entries(directory: Path) -> list[dict[str, Any]]:
    """Return the list, oldest first; an entry that cannot be parsed lists nothing."""
    return sorted(listed(directory), key=lambda entry: (entry.get("first_at") or "", entry["_path"].name))


def end_dead_runs(directory: Path, now_ms: int, signer: Signer | None = None) -> list[str]:
    """Mark the end of each run that was killed as a gap, and remove its half files; returns those runs."""
    ended = []
    for mark in sorted((directory / LIST).glob("_*.open")):
        with mark.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue  # it lives, and records to the same directory
            run = mark.name[1 : -len(".open")]
            began_ms = int(mark.stat().st_mtime * 1000)
            ends = [entry["last_at"] for entry in entries(directory) if entry.get("run") == run]
            since_ms = int(datetime.fromisoformat(max(ends)).timestamp() * 1000) if ends else began_ms
            for half in directory.glob(f"*/date=*/hour=*/_{run}-*.parquet"):
                half.unlink()
            link = next_link(listed(directory), run)
            write_entry(
                directory,
                f"{run}-killed",
                {"gap": KILLED, "run": run} | link,
                since_ms,
                max(now_ms, since_ms),
                signer,
            )
            mark.unlink()
            ended.append(run)
    for half in (directory / LIST).glob("_*.json"):
        half.unlink()
    return ended


def due(directory: Path, bytes_max: int, age_ms_max: int, now_ms: int) -> list[dict[str, Any]]:
    """Return the oldest entries, without which the rest is within both bounds (0: no bound), in the chain's order.

    With an entry of the chain goes all that comes before it: so what is left is its end.
    """
    every = entries(directory)
    total = sum(int(entry.get("bytes") or 0) for entry in every)
    found = []
    for entry in every:
        age_ms = now_ms - int(datetime.fromisoformat(entry["last_at"]).timestamp() * 1000)
        if entry.get("file") and ((bytes_max and total > bytes_max) or (age_ms_max and age_ms > age_ms_max)):
            found.append(entry)
            total -= int(entry.get("bytes") or 0)
    links = chained(found)
    if not links:
        return found
    last = (links[-1]["run"], links[-1]["number"])
    before = [entry for entry in chained(every) if (entry["run"], entry["number"]) <= last]
    return [entry for entry in found if "number" not in entry] + [dict(entry) for entry in before]


def remove(directory: Path, due: Sequence[dict[str, Any]]) -> int:
    """Remove entries and their files; returns how many files.

    The entry goes first: a later reader of the list does not look for the file.
    """
    removed = 0
    for entry in due:
        path: Path = entry["_path"]
        path.unlink(missing_ok=True)
        sync(path.parent)
        if entry.get("file"):
            (directory / entry["file"]).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                (directory / entry["file"]).parent.rmdir()
            removed += 1
    return removed
