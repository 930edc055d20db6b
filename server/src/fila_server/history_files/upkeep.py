"""What a run that was killed left behind, and what is too old or too much."""

from __future__ import annotations

import contextlib
import fcntl
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from fila_server.history_files.files import LIST, sync, write_entry

KILLED = "the broker was killed, or had no time to close its files"


def entries(directory: Path) -> list[dict[str, Any]]:
    """Return the list, oldest first; an entry that cannot be parsed lists nothing."""
    found = []
    for path in sorted((directory / LIST).glob("[!_]*.json")):
        with contextlib.suppress(OSError, ValueError):
            entry = json.loads(path.read_text())
            if isinstance(entry, dict) and "version" in entry:
                found.append(entry | {"_path": path})
    return sorted(found, key=lambda entry: (entry.get("first_at") or "", entry["_path"].name))


def end_dead_runs(directory: Path, now_ms: int) -> list[str]:
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
            write_entry(
                directory, f"{run}-killed", {"gap": KILLED, "run": run}, since_ms, max(now_ms, since_ms)
            )
            mark.unlink()
            ended.append(run)
    for half in (directory / LIST).glob("_*.json"):
        half.unlink()
    return ended


def retain(directory: Path, bytes_max: int, age_ms_max: int, now_ms: int) -> int:
    """Remove the oldest files until the rest is within both bounds (0: no bound); returns how many.

    The entry goes first: whoever reads the list afterwards does not look for the file.
    """
    listed = [entry for entry in entries(directory) if entry.get("file")]
    total = sum(int(entry.get("bytes") or 0) for entry in listed)
    removed = 0
    for entry in listed:
        age_ms = now_ms - int(datetime.fromisoformat(entry["last_at"]).timestamp() * 1000)
        if not ((bytes_max and total > bytes_max) or (age_ms_max and age_ms > age_ms_max)):
            continue
        path: Path = entry["_path"]
        path.unlink(missing_ok=True)
        sync(path.parent)
        (directory / entry["file"]).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            (directory / entry["file"]).parent.rmdir()
        total -= int(entry.get("bytes") or 0)
        removed += 1
    return removed
