"""Whether a history is what its broker listed, and who signed it: the broker's own check, over any URL.

Spark hashes files that are not on a disk of this machine where it reads them; the list comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from fila_pipeline import schema
from fila_pipeline.history import live_entries
from fila_pipeline.segments import CHECKPOINTS
from fila_pipeline.storage import Storage

if TYPE_CHECKING:
    from fila_server.history_files.evidence import Evidence
    from fila_server.history_files.signing import PublicKey


class KeyRefused(Exception):
    """A file holds no key that signatures could be checked with; the text says which, and why."""


def read_keys(files: Sequence[str]) -> list[PublicKey]:
    """Read public keys, with the broker's own reader. Raises KeyRefused."""
    from fila_server.history_files.signing import KeyUnreadable, read_public

    try:
        return [read_public(Path(file)) for file in files]
    except KeyUnreadable as why:
        raise KeyRefused(f"--public-key: {why}") from None


def look(
    spark: SparkSession, directories: Sequence[str], head: str, keys: Sequence[PublicKey]
) -> dict[str, Evidence]:
    """Look at the chain of each directory, and with keys at its signatures. Raises HistoryMissing."""
    return {directory: _look(spark, directory, head, keys) for directory in directories}


def _look(spark: SparkSession, directory: str, head: str, keys: Sequence[PublicKey]) -> Evidence:
    from fila_server.history_files import evidence

    storage = Storage(spark, directory)
    if storage.local is not None:
        return evidence.look(storage.local, head, keys)
    files = [entry.file for entry in live_entries(spark, directory, replaced=True) if entry.file is not None]
    files += [f"{CHECKPOINTS}/{name}" for name in storage.names(CHECKPOINTS)]
    with storage.at_hand([f"{schema.LIST}/{name}" for name in storage.names(schema.LIST)]) as folder:
        return evidence.look(folder, head, keys, sums(storage, files))


def sums(storage: Storage, files: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of those of these files that are there, hashed where Spark reads them."""
    there = {f"{storage.directory}/{file}": file for file in storage.present(files)}
    if not there:
        return {}
    read = storage.spark.read.format("binaryFile").load(list(there))
    rows = read.select("path", f.sha2("content", 256).alias("sum")).collect()
    # Spark writes a path as a URL; what lies below the history's directory is enough to know it by.
    ends = {tuple(file.split("/")[-4:]): file for file in there.values()}
    return {ends[_end(row.path)]: row.sum for row in rows}


def _end(path: str) -> tuple[str, ...]:
    parts = path.replace("%3D", "=").split("/")
    return tuple(parts[-2 if parts[-2] == CHECKPOINTS else -4 :])
