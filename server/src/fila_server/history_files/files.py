"""The files of one run: written beside their place, synced, renamed, and only then listed.

So a reader of what is listed never sees half a file, whenever the writer is stopped. A file holds rows of one
hour. Names of a run's files begin with the run's; the list has one small JSON object a file, or a gap.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fila_server.history_files import chain, columns
from fila_server.history_files.chain import LIST
from fila_server.history_files.signing import Signer
from fila_server.version import core_fingerprint, version

RECORDED_BY = b"fila.history.recorded_by"
CORE = b"fila.history.core"


def moment(ms: int) -> datetime:
    """Return a wall clock's milliseconds as a moment."""
    return datetime.fromtimestamp(ms / 1000, UTC)


class OpenFile:
    """One file that is being written."""

    def __init__(
        self, directory: Path, table: str, name: str, first_ms: int, facts: dict[bytes, bytes]
    ) -> None:
        self.table = table
        self.name = name
        self.rows = 0
        self.messages = 0
        self.first_ms = self.last_ms = first_ms
        self._path = directory / name
        self.aside = self._path.with_name(f"_{self._path.name}")
        _make_folder(directory, self._path.parent)
        os.close(os.open(self.aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._writer = pq.ParquetWriter(
            self.aside,
            columns.SCHEMAS[table],
            compression="zstd",
            compression_level=1,
            use_dictionary=columns.DICTIONARIES[table],
            column_encoding=dict.fromkeys(columns.DIFFERENCES[table], "DELTA_BINARY_PACKED"),
            write_statistics=["at", "pass"],
            write_page_checksum=True,
            store_schema=False,
        )
        # Not with the schema: what stands there is left out with it.
        self._writer.add_key_value_metadata(facts | {b"fila.history.table": table.encode()})

    def write(self, rows: pa.Table, first_ms: int, last_ms: int) -> None:
        """Add a block's rows as one row group."""
        self._writer.write_table(rows, row_group_size=max(len(rows), 1))
        self.rows += len(rows)
        if self.table == columns.DECISIONS:
            self.messages += pc.sum(pc.list_value_length(rows.column("offsets"))).as_py()
        self.first_ms, self.last_ms = min(self.first_ms, first_ms), max(self.last_ms, last_ms)

    @property
    def bytes(self) -> int:
        """How much is on the disk by now."""
        return self.aside.stat().st_size

    def close(self) -> None:
        """Finish it, and put it where its name says."""
        self._writer.close()
        sync(self.aside)
        self.aside.rename(self._path)
        sync(self._path.parent)

    def abandon(self) -> None:
        """Give it up: the disk refused some of it."""
        with contextlib.suppress(OSError, pa.ArrowException):
            self._writer.close()
        self.aside.unlink(missing_ok=True)


class RunFiles:
    """What one run of the broker records. Every call may raise OSError, and then leaves nothing half listed."""

    def __init__(
        self,
        directory: Path,
        run: str,
        sample: int,
        signer: Signer | None = None,
        of_term: Mapping[str, Any] | None = None,
    ) -> None:
        """`of_term` is what each entry says of the term, where the run is one of a group (terms.py)."""
        self._directory = directory
        self._run = run
        self._signer = signer
        self._of_term = dict(of_term or {})
        self._sample = sample
        self._number = 0
        self._open: dict[str, OpenFile] = {}
        self._hour = ""
        self._facts = {
            b"fila.history.version": str(columns.VERSION).encode(),
            b"fila.history.run": run.encode(),
            b"fila.history.sample": str(sample).encode(),
            RECORDED_BY: version().encode(),
            CORE: core_fingerprint().encode(),
        }
        make_private(directory)
        make_private(directory / LIST)
        self._mark = _hold_mark(directory, run)
        self._link: dict[str, Any] = {}
        self._ended_ms = 0

    @property
    def open_bytes(self) -> int:
        """Bytes in files that are not closed yet."""
        return sum(file.bytes for file in self._open.values())

    def write(self, rows: dict[str, pa.Table], first_ms: int, last_ms: int) -> None:
        """Add a block; closes the files first where it belongs to another hour."""
        hour = f"date={moment(first_ms):%Y-%m-%d}/hour={moment(first_ms):%H}"
        if hour != self._hour:
            self.close()
            self._hour = hour
        for table, part in rows.items():
            if table not in self._open:
                self._number += 1
                name = f"{table}/{hour}/{self._run}-{self._number:06d}.parquet"
                self._open[table] = OpenFile(self._directory, table, name, first_ms, self._facts)
            self._open[table].write(part, first_ms, last_ms)

    def close(self) -> None:
        """Close and list what is open."""
        for file in list(self._open.values()):
            file.close()
            del self._open[file.table]
            self._list(
                Path(file.name).stem,
                {
                    "table": file.table,
                    "file": file.name,
                    "rows": file.rows,
                    "messages": file.messages,
                    "bytes": (self._directory / file.name).stat().st_size,
                    "sha256": chain.file_hash(self._directory / file.name),
                    "run": self._run,
                    "sample": self._sample,
                },
                file.first_ms,
                file.last_ms,
            )

    def abandon(self) -> tuple[int, int] | None:
        """Give up what is open; returns from when to when it was."""
        times = [(file.first_ms, file.last_ms) for file in self._open.values()]
        for file in self._open.values():
            file.abandon()
        self._open.clear()
        return (min(t[0] for t in times), max(t[1] for t in times)) if times else None

    def gap(self, first_ms: int, last_ms: int, why: str) -> None:
        """List that nothing is known of the time between two moments."""
        self._number += 1
        self._list(f"{self._run}-{self._number:06d}", {"gap": why, "run": self._run}, first_ms, last_ms)

    def removes(self, last: Mapping[str, Any]) -> None:
        """List that everything up to an entry of the chain goes, before it goes."""
        self._number += 1
        entry = {"removed": chain.entry_hash(last), "run": self._run}
        self._list(f"{self._run}-{self._number:06d}", entry, self._ended_ms, self._ended_ms)

    def end(self) -> None:
        """Close what is open, and say that the run ended well."""
        self.close()
        if self._link:
            self._number += 1
            self._list(
                f"{self._run}-{self._number:06d}",
                {"end": True, "run": self._run},
                self._ended_ms,
                self._ended_ms,
            )
        self._mark[0].unlink()
        os.close(self._mark[1])

    def _list(self, stem: str, entry: dict[str, Any], first_ms: int, last_ms: int) -> None:
        link = self._link or chain.next_link(listed(self._directory), self._run)
        entry = entry | self._of_term | link
        written = write_entry(self._directory, stem, entry, first_ms, last_ms, self._signer)
        self._link = chain.link_behind(written)
        self._ended_ms = max(self._ended_ms, last_ms)


def listed(directory: Path) -> list[dict[str, Any]]:
    """Return the list as it stands; an entry that cannot be parsed lists nothing."""
    found = []
    for path in sorted((directory / LIST).glob("[!_]*.json")):
        with contextlib.suppress(OSError, ValueError):
            entry = json.loads(path.read_text())
            if isinstance(entry, dict) and "version" in entry:
                found.append(entry | {"_path": path})
    return found


def write_entry(
    directory: Path,
    stem: str,
    entry: dict[str, Any],
    first_ms: int,
    last_ms: int,
    signer: Signer | None = None,
) -> dict[str, Any]:
    """Put one entry into the list, signed if somebody signs, whole or not at all; returns it."""
    entry = entry | {
        "version": columns.VERSION,
        "first_at": moment(first_ms).isoformat(),
        "last_at": moment(last_ms).isoformat(),
    }
    if signer is not None:
        entry = signer.signed(entry)
    path = directory / LIST / f"{stem}.json"
    aside = path.with_name(f"_{path.name}")
    descriptor = os.open(aside, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(json.dumps(entry) + "\n")
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)
    sync(path.parent)
    return entry


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can look into."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def sync(path: Path) -> None:
    """Wait until a file, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(directory: Path, folder: Path) -> None:
    missing = []
    while folder != directory and not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
        sync(each.parent)


def _hold_mark(directory: Path, run: str) -> tuple[Path, int]:
    """Leave a mark that stays when the process is killed; its lock says that the process lives."""
    path = directory / LIST / f"_{run}.open"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return path, descriptor
