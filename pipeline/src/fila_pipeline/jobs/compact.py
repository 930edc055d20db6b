"""Merges the small files of each hour into one, as often as wanted with the same result.

New files are written beside the old ones under names that follow from what they replace; then one list entry says
both at once. A job that is stopped in between leaves files that nobody lists; run again, it writes the same
names over them. Old files stay until `remove_replaced`: a reader that began before may still have them in hand.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Row, SparkSession

from fila_pipeline import schema
from fila_pipeline.history import History, read_files
from fila_pipeline.storage import Storage


@dataclass(frozen=True)
class Merged:
    """One hour of one table."""

    hour: str
    """`decisions/date=.../hour=...`."""
    files_before: int
    rows: int
    file: str


def compact(history: History, remove_replaced: bool = False) -> list[Merged]:
    """Merge every hour that has more than one file, of a group's owner each term of it for itself.

    `history` is of one directory. Files that could not be read whole are left as they are.
    """
    (directory,) = history.directories
    storage = Storage(history.spark, directory)
    hours: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for entry in history.files:
        hours[entry.file.rpartition("/")[0], -1 if entry.term is None else entry.term].append(entry)
    done = [
        _merge(history.spark, storage, hour, entries)
        for (hour, _), entries in sorted(hours.items())
        if len(entries) > 1
    ]
    if remove_replaced:
        _remove(storage, hours)
    return done


def _merge(spark: SparkSession, storage: Storage, hour: str, entries: Sequence[Row]) -> Merged:
    names = sorted(entry.file for entry in entries)
    table = entries[0].table
    mark = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    rows = sum(entry.rows for entry in entries)
    aside = f"{hour}/_compact-{mark}"
    # One task an hour: the order of passes is kept within the file, and a reader gets one file.
    merged = read_files(spark, storage.directory, table, names).coalesce(1).sortWithinPartitions("at", "pass")
    merged.write.mode("overwrite").option("compression", "zstd").parquet(f"{storage.directory}/{aside}")
    (part,) = [name for name in storage.names(aside) if name.endswith(".parquet")]
    file = f"{hour}/compact-{mark}.parquet"
    storage.copy(f"{aside}/{part}", file)
    storage.remove(aside)
    entry = {
        "version": max(entry.version for entry in entries),
        "table": table,
        "file": file,
        "rows": rows,
        "messages": sum(entry.messages or 0 for entry in entries),
        "first_at": min(entry.first_at for entry in entries),
        "last_at": max(entry.last_at for entry in entries),
        "replaces": names,
    }
    if entries[0].term is not None:
        entry |= {"node": entries[0].node, "term": entries[0].term}
    storage.write(f"{schema.LIST}/compact-{mark}.json", json.dumps(entry) + "\n")
    return Merged(hour, len(names), rows, file)


def _remove(storage: Storage, hours: Mapping[tuple[str, int], list[Row]]) -> None:
    replaced = [entry.file for entries in hours.values() if len(entries) > 1 for entry in entries]
    for file in replaced:
        storage.remove(file)
