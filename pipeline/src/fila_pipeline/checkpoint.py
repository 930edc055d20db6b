"""Makes later starting points for backtests: the replayed core, written down where the recorded files end so far.

Each run is followed from its newest checkpoint, or from its beginning, so what is checked once is not checked again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import Row, SparkSession

from fila_pipeline import schema
from fila_pipeline.history import live_entries
from fila_pipeline.replay import MISSING, BacktestMissing, core_is_here
from fila_pipeline.segments import CHECKPOINT_SUFFIX, CHECKPOINTS, Verdict, segments
from fila_pipeline.storage import Storage
from fila_pipeline.tasks import Wanted, in_tasks


def checkpoint(spark: SparkSession, directory: str, until: datetime | None) -> list[Verdict]:
    """Follow every run to where its files end, or to the last one that began before `until`, and write a checkpoint.

    Raises BacktestMissing, HistoryMissing.
    """
    if not core_is_here():
        raise BacktestMissing(MISSING)
    entries = [entry for entry in live_entries(spark, directory, replaced=True) if _began(entry, until)]
    found = [segment for segment in segments(entries, directory) if segment.inputs]
    wanted = [Wanted("checkpoint", segment) for segment in found]
    return [Verdict(**told) for told in in_tasks(spark, wanted)]


def sweep(spark: SparkSession, directory: str) -> list[str]:
    """Remove checkpoints that nothing of their run goes on from any more; returns their names."""
    from fila_server.history_files.verifying import usables

    storage = Storage(spark, directory)
    found = segments(live_entries(spark, directory, replaced=True), directory)
    names = [name for name in sorted(storage.names(CHECKPOINTS)) if name.endswith(CHECKPOINT_SUFFIX)]
    if not names:
        return []
    first = [segment.inputs[0] for segment in found if segment.inputs]
    with storage.at_hand([*(f"{CHECKPOINTS}/{name}" for name in names), *first]) as folder:
        placed = [replace(segment, directory=str(folder)) for segment in found]
        kept = {usable.path.name for segment in placed for usable in usables(segment)}
    removed = [name for name in names if name not in kept]
    for name in removed:
        storage.remove(f"{CHECKPOINTS}/{name}")
        storage.remove(f"{schema.LIST}/{name}.json")
    return removed


def _began(entry: Row, until: datetime | None) -> bool:
    if until is None or entry.first_at is None:
        return True
    moment = datetime.fromisoformat(entry.first_at)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) < until
