"""Feeds what the broker took in through the broker's own core again, and compares what it decides.

The only part of the pipeline that knows the broker: it needs `fila-server` beside it (`fila-spark[backtest]`), of the
version that recorded. A segment is all that one start of the broker recorded, up to the first gap. Segments know
nothing of each other, so each is a task for Spark, and a process of its own: the core seeds its maps once.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row, SparkSession

from fila_pipeline import schema
from fila_pipeline.history import live_entries
from fila_pipeline.pages.page import Page, Table

SAME, DIFFERENT, REFUSED, NO_BASE = "same", "different", "refused", "no base"
MISSING = (
    "backtest replays through the broker's own core, and fila-server is not installed here; "
    "pip install 'fila-spark[backtest]'"
)


class BacktestMissing(Exception):
    """The broker's core is not installed beside the pipeline."""


@dataclass(frozen=True)
class Segment:
    """What one start of the broker recorded up to the first gap; files in their order."""

    run: str
    directory: str
    inputs: tuple[str, ...]
    decisions: tuple[str, ...]
    gap: str | None = None
    """Why it ends before the run does."""


@dataclass(frozen=True)
class Verdict:
    """What came of one segment."""

    run: str
    outcome: str
    passes: int = 0
    decisions: int = 0
    deliveries: int = 0
    said: str = ""


def segments(entries: Sequence[Row], directory: str) -> list[Segment]:
    """Sort the list's entries into segments, oldest first."""
    runs: dict[str, list[Row]] = defaultdict(list)
    for entry in entries:
        if entry.run is not None:
            runs[entry.run].append(entry)
    found = []
    for run, of_run in sorted(runs.items()):
        gaps = sorted((entry.last_at, entry.gap) for entry in of_run if entry.gap is not None)
        end, why = gaps[0] if gaps else (None, None)
        files = [entry for entry in of_run if entry.file and (end is None or entry.first_at < end)]

        def of(table: str, files: list[Row] = files) -> tuple[str, ...]:
            return tuple(sorted(entry.file for entry in files if entry.table == table))

        if files:
            found.append(Segment(run, directory, of(schema.INPUTS), of(schema.DECISIONS), why))
    return found


def backtest(spark: SparkSession, directory: str) -> list[Verdict]:
    """Verify every segment of a history. Raises BacktestMissing, and HistoryMissing."""
    if importlib.util.find_spec("fila_server") is None:
        raise BacktestMissing(MISSING)
    found = segments(live_entries(spark, directory, replaced=True), directory.rstrip("/"))
    if not found:
        return []
    tasks = spark.sparkContext.parallelize([json.dumps(asdict(each)) for each in found], len(found))
    return [Verdict(**json.loads(line)) for line in tasks.map(_in_a_process).collect()]


def verdict_page(verdicts: Sequence[Verdict]) -> Page:
    """Say in a sentence whether what was recorded follows from what was taken in."""
    table = Table(
        "Starts of the broker",
        "Each is replayed from what it found on its disk, up to its end or the first gap.",
        pd.DataFrame([asdict(verdict) for verdict in verdicts]),
    )
    return Page("Backtest: does it follow?", answer(verdicts), tables=[table] if verdicts else [])


def answer(verdicts: Sequence[Verdict]) -> str:
    """Return the answer in a sentence or two."""
    wrong = [verdict for verdict in verdicts if verdict.outcome in (DIFFERENT, REFUSED)]
    same = [verdict for verdict in verdicts if verdict.outcome == SAME]
    if wrong:
        return f"It does not follow. {wrong[0].run}: {wrong[0].said}."
    if not same:
        return "Nothing could be replayed: no start of the broker has its beginning in this history."
    decisions = sum(verdict.decisions for verdict in same)
    deliveries = sum(verdict.deliveries for verdict in same)
    rest = len(verdicts) - len(same)
    return (
        f"The core decided the same again, {decisions:,} of {decisions:,} decisions, {deliveries:,} of them deliveries"
        + (f"; {rest} starts could not be replayed." if rest else ".")
    )


# --- one segment, in a process of its own ------------------------------------------------------


def _in_a_process(segment: str) -> str:
    command = [sys.executable, "-m", "fila_pipeline.backtest", segment]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    if done.returncode != 0:
        raise RuntimeError(f"the replay of {json.loads(segment)['run']} broke off:\n{done.stderr}")
    return done.stdout.splitlines()[-1]


def verify(segment: Segment) -> Verdict:
    """Replay one segment in this process, which can do so once."""
    from fila_server.recording import replaying

    try:
        outcome = replaying.verify(_tables(segment, segment.inputs), _tables(segment, segment.decisions))
    except replaying.NoBase as missing:
        return Verdict(segment.run, NO_BASE, said=str(missing))
    except replaying.NotReplayable as refused:
        return Verdict(segment.run, REFUSED, said=str(refused))
    return Verdict(
        segment.run,
        SAME if outcome.difference is None else DIFFERENT,
        outcome.passes,
        outcome.decisions,
        outcome.messages_delivered,
        str(outcome.difference) if outcome.difference is not None else segment.gap or "",
    )


def _tables(segment: Segment, files: Sequence[str]) -> Iterator[pa.Table]:
    """One row group after the other: memory does not grow with the history."""
    for file in files:
        path = Path(segment.directory.removeprefix("file://")) / file
        opened = pq.ParquetFile(path, page_checksum_verification=True)
        for number in range(opened.num_row_groups):
            yield opened.read_row_group(number)


def _main(argument: str) -> None:
    given: dict[str, Any] = json.loads(argument)
    segment = Segment(**given | {"inputs": tuple(given["inputs"]), "decisions": tuple(given["decisions"])})
    print(json.dumps(asdict(verify(segment))))


if __name__ == "__main__":
    _main(sys.argv[1])
