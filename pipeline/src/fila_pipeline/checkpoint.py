"""Makes later starting points for backtests: the replayed core, written down where the recorded files end so far.

Beside `backtest` the only part of the pipeline that knows the broker (`fila-spark[backtest]`). A checkpoint lies in
the history, in `checkpoints/`, under the name of the last file of inputs that is in it. Each run is followed from its
newest checkpoint, or from its beginning, so what is checked once is not checked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession

from fila_pipeline import backtest
from fila_pipeline.backtest import CHECKPOINTS, NO_BASE, REFUSED, Segment, Verdict
from fila_pipeline.history import live_entries
from fila_pipeline.storage import Storage

SUFFIX = ".checkpoint"
NOTHING_NEW = "nothing new"


@dataclass(frozen=True)
class Usable:
    """A checkpoint that what is left of a run goes on from."""

    path: Path
    head: Any
    """fila_server.history_files.checkpoints.Head"""
    rest: Segment
    """The files behind it."""


def checkpoint(spark: SparkSession, directory: str, until: datetime | None) -> list[Verdict]:
    """Follow every run to where its files end, or to the last one that began before `until`, and write a checkpoint.

    Raises BacktestMissing, HistoryMissing.
    """
    if not backtest.core_is_here():
        raise backtest.BacktestMissing(backtest.MISSING)
    entries = [entry for entry in live_entries(spark, directory, replaced=True) if _began(entry, until)]
    found = [segment for segment in backtest.segments(entries, directory) if segment.inputs]
    wanted = [backtest.Wanted("checkpoint", segment) for segment in found]
    return [Verdict(**told) for told in backtest.in_tasks(spark, directory, wanted)]


def sweep(spark: SparkSession, directory: str) -> list[str]:
    """Remove checkpoints that nothing of their run goes on from any more; returns their names."""
    storage = Storage(spark, directory)
    found = backtest.segments(live_entries(spark, directory, replaced=True), directory)
    names = [name for name in sorted(storage.names(CHECKPOINTS)) if name.endswith(SUFFIX)]
    if not names:
        return []
    first = [segment.inputs[0] for segment in found if segment.inputs]
    with storage.at_hand([*(f"{CHECKPOINTS}/{name}" for name in names), *first]) as folder:
        placed = [replace(segment, directory=str(folder)) for segment in found]
        kept = {usable.path.name for segment in placed for usable in usables(segment)}
    removed = [name for name in names if name not in kept]
    for name in removed:
        storage.remove(f"{CHECKPOINTS}/{name}")
    return removed


def usables(segment: Segment) -> list[Usable]:
    """The checkpoints that what is left of a run goes on from, oldest first; damaged ones are none.

    Where the last file that is in one was removed, the first that is left has to begin with its next pass, or the one
    behind it: a file often ends where a pass does.
    """
    from fila_server.history_files import checkpoints

    found: list[Usable] = []
    for path in sorted(_folder(segment.directory).glob(f"{segment.run}-*{SUFFIX}")):
        try:
            head = checkpoints.read_head(path)
        except checkpoints.CheckpointRefused:
            continue
        rest = _behind(segment, head)
        if head.run != segment.run or not segment.inputs:
            continue
        if head.inputs_through not in segment.inputs and _first_pass(segment) > head.passes + 2:
            continue
        found.append(Usable(path, head, rest))
    return sorted(found, key=lambda usable: usable.head.passes)


def make(segment: Segment) -> Verdict:
    """Follow one run in this process, which can do so once, and write a checkpoint of where its files end."""
    from fila_server.history_files import checkpoints, replaying

    try:
        other = backtest.of_another_version(segment)
    except backtest.FileUnreadable as damaged:
        return Verdict(segment.run, REFUSED, said=str(damaged))
    if other is not None:
        return other
    reached = checkpoints.Reached(
        segment.run, segment.inputs[-1], segment.decisions[-1] if segment.decisions else ""
    )
    path = _folder(segment.directory) / f"{Path(reached.inputs).stem}{SUFFIX}"
    start, rest = None, segment
    for usable in usables(segment):
        if checkpoints.fits(usable.head):
            start, rest = usable.path, usable.rest
    if start is not None and not rest.inputs:
        return Verdict(segment.run, NOTHING_NEW, said=f"{start.name} is of all there is")
    try:
        outcome = checkpoints.make(
            path, reached, start, backtest.tables(rest, rest.inputs), backtest.tables(rest, rest.decisions)
        )
    except replaying.NoBase as missing:
        return Verdict(segment.run, NO_BASE, said=str(missing))
    except (backtest.FileUnreadable, replaying.NotReplayable, checkpoints.CheckpointRefused) as refused:
        return Verdict(segment.run, REFUSED, said=str(refused))
    written = f"{path.name}, {path.stat().st_size:,} bytes" if outcome.difference is None else ""
    return backtest.verdict_of(segment, outcome, written)


def verify(segment: Segment) -> Verdict | None:
    """Verify a run whose beginning is gone from the oldest checkpoint that it goes on from; None: there is none."""
    from fila_server.history_files import checkpoints, replaying

    refused = ""
    for usable in usables(segment):
        try:
            outcome, head = checkpoints.verify(
                usable.path,
                segment.run,
                backtest.tables(usable.rest, usable.rest.inputs),
                backtest.tables(usable.rest, usable.rest.decisions),
            )
        except checkpoints.CheckpointRefused as why:
            refused = refused or str(why)
            continue
        except (backtest.FileUnreadable, replaying.NotReplayable) as why:
            return Verdict(segment.run, REFUSED, said=str(why))
        return backtest.verdict_of(segment, outcome, segment.gap or "", since=head.last_at)
    return Verdict(segment.run, NO_BASE, said=refused) if refused else None


def _began(entry: Row, until: datetime | None) -> bool:
    if until is None or entry.first_at is None:
        return True
    moment = datetime.fromisoformat(entry.first_at)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) < until


def _folder(directory: str) -> Path:
    return Path(directory) / CHECKPOINTS


def _behind(segment: Segment, head: Any) -> Segment:
    def after(files: Sequence[str], last: str) -> tuple[str, ...]:
        return tuple(file for file in files if file > last)

    return Segment(
        segment.run,
        segment.directory,
        after(segment.inputs, head.inputs_through),
        after(segment.decisions, head.decisions_through),
        segment.gap,
    )


def _first_pass(segment: Segment) -> int:
    """The first pass that is left, by the statistics of the file's first rows; 0 where the file cannot be read."""
    try:
        facts = backtest.opened(segment, segment.inputs[0]).metadata
    except backtest.FileUnreadable:
        return 0
    column = facts.schema.to_arrow_schema().get_field_index("pass")
    return int(facts.row_group(0).column(column).statistics.min)
