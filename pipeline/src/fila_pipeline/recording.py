"""Writes a history the way a reader may rely on: whole files under their final name, then the entry that lists them.

This is the format's reference writer, for synthetic histories. A file appears in the list only when it is closed and
synced, so a reader of what is listed never sees half a file, whenever the writer is stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fila_pipeline import schema

Row = Mapping[str, Any]


def once(row: Row) -> dict[str, Any]:
    """Return a row as files have it: what all its messages are alike in stands there once."""
    lists = {name: row[name] for name in schema.OF_EACH if row.get(name)}
    return dict(row) | {name: each[:1] for name, each in lists.items() if each.count(each[0]) == len(each)}


class HistoryWriter:
    """One run of a recorder; `run` keeps its file names apart from those of other runs in the same directory."""

    def __init__(self, directory: Path, run: str) -> None:
        self._directory = directory
        self._run = run
        self._files = 0
        (directory / schema.LIST).mkdir(parents=True, exist_ok=True, mode=0o700)

    def write(self, table: str, rows: Sequence[Row]) -> str:
        """Write rows of one hour as one file, and list it. Returns its path below the directory."""
        first, last = rows[0]["at"], rows[-1]["at"]
        columns = schema.ARROW[table]
        tagged = columns.with_metadata(
            {schema.VERSION_KEY: str(schema.VERSION).encode(), schema.TABLE_KEY: table.encode()}
        )
        data = pa.Table.from_pylist([once(row) for row in rows], schema=tagged)
        self._files += 1
        name = f"{table}/date={first:%Y-%m-%d}/hour={first:%H}/{self._run}-{self._files:06d}.parquet"
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        aside = path.with_name(f"_{path.name}")
        pq.write_table(data, aside, compression="zstd", write_page_checksum=True)
        _sync(aside)
        aside.rename(path)
        messages = sum(len(row.get("offsets") or ()) for row in rows)
        self._list({"table": table, "file": name, "rows": len(rows), "messages": messages}, first, last)
        return name

    def gap(self, first: datetime, last: datetime, why: str) -> None:
        """List that nothing is known of the time between two moments."""
        self._files += 1
        self._list({"gap": why}, first, last)

    def _list(self, entry: dict[str, Any], first: datetime, last: datetime) -> None:
        entry |= {"version": schema.VERSION, "first_at": first.isoformat(), "last_at": last.isoformat()}
        path = self._directory / schema.LIST / f"{self._run}-{self._files:06d}.json"
        aside = path.with_name(f"_{path.name}")
        aside.write_text(json.dumps(entry) + "\n")
        _sync(aside)
        aside.rename(path)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
