"""What one start of the broker recorded, up to the first gap: its files in their order, and their rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fila_server.history_files import columns

Entry = Mapping[str, Any]
"""Of the list of files."""


class FileUnreadable(Exception):
    """A file that is listed is missing or damaged; the text says which."""


@dataclass(frozen=True)
class Segment:
    """What one start of the broker recorded up to the first gap; files in their order."""

    run: str
    directory: str
    inputs: tuple[str, ...]
    decisions: tuple[str, ...]
    changes: tuple[str, ...] = ()
    gap: str | None = None
    """Why it ends before the run does."""


def segments(entries: Sequence[Entry], directory: str) -> list[Segment]:
    """Sort the list's entries into segments, oldest first."""
    runs: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.get("run") is not None:
            runs[entry["run"]].append(entry)
    found = []
    for run, of_run in sorted(runs.items()):
        gaps = sorted((entry["last_at"], entry["gap"]) for entry in of_run if entry.get("gap") is not None)
        end, why = gaps[0] if gaps else (None, None)
        files = [entry for entry in of_run if entry.get("file") and (end is None or entry["first_at"] < end)]
        files, why = _followable(files, why)

        def of(table: str, files: list[Entry] = files) -> tuple[str, ...]:
            return tuple(sorted(entry["file"] for entry in files if entry.get("table") == table))

        if files:
            found.append(
                Segment(run, directory, of(columns.INPUTS), of(columns.DECISIONS), of(columns.CHANGES), why)
            )
    return found


def _followable(files: list[Entry], why: str | None) -> tuple[list[Entry], str | None]:
    """Leave out decisions behind the last inputs: nobody can say what they should have been.

    A broker that is killed, or left while it closes the files of one stretch, may have closed only some of them.
    """
    through = max((entry["last_at"] for entry in files if entry.get("table") == columns.INPUTS), default=None)
    if through is None:
        return files, why
    late = [entry for entry in files if entry.get("table") != columns.INPUTS and entry["first_at"] > through]
    count = sum(entry.get("messages") or 0 for entry in late)
    if count:
        why = (
            f"{count:,} decisions after {datetime.fromisoformat(through):%Y-%m-%d %H:%M:%S} are left out: the file "
            "with the inputs that led to them was not closed"
        )
    return [entry for entry in files if entry not in late], why


def opened(segment: Segment, file: str) -> Any:
    """Open a file of a segment, a pyarrow.parquet.ParquetFile. Raises FileUnreadable."""
    try:
        return pq.ParquetFile(Path(segment.directory) / file, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(file, error) from None


def tables(segment: Segment, files: Sequence[str]) -> Iterator[pa.Table]:
    """Read files of a segment, one row group after the other: memory does not grow with the history.

    Raises FileUnreadable.
    """
    for file in files:
        groups = opened(segment, file)
        for number in range(groups.num_row_groups):
            try:
                rows = groups.read_row_group(number)
            except (OSError, pa.ArrowException) as error:
                raise _unreadable(file, error) from None
            yield rows


def _unreadable(file: str, error: Exception) -> FileUnreadable:
    if isinstance(error, FileNotFoundError):
        return FileUnreadable(f"{file} is listed, and missing")
    return FileUnreadable(f"{file} is damaged: {' '.join(str(error).split())[:200]}")
