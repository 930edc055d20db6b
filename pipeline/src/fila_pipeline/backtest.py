"""Feeds what the broker took in through the broker's own core again, and compares what it decides; or, under another
policy, what would have come of it.

Beside `checkpoint` the only part of the pipeline that knows the broker: it needs `fila-server` beside it
(`fila-spark[backtest]`), of the version that recorded. A segment is all that one start of the broker recorded, up to
the first gap. Segments know nothing of each other, so each is a task for Spark, and a process of its own: the core
seeds its maps once.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import RDD
from pyspark.sql import Row, SparkSession

from fila_pipeline import schema
from fila_pipeline.history import live_entries
from fila_pipeline.pages.page import Page, Table
from fila_pipeline.storage import Storage

SAME, DIFFERENT, REFUSED, NO_BASE = "same", "different", "refused", "no base"
OTHER_VERSION = "other version"
CHECKPOINTS = "checkpoints"
"""The folder of a history that they lie in."""
SEEDS = 5
"""Courses of a model: what is not known differs between them."""
MISSING = (
    "backtest replays through the broker's own core, and fila-server is not installed here; "
    "pip install 'fila-spark[backtest]'"
)


class FileUnreadable(Exception):
    """A file that is listed is missing or damaged; the text says which."""


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
    since: str = ""
    """The moment of the checkpoint that it begins at, ISO 8601; empty: the start of the broker."""


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
        files, why = _followable(files, why)

        def of(table: str, files: list[Row] = files) -> tuple[str, ...]:
            return tuple(sorted(entry.file for entry in files if entry.table == table))

        if files:
            found.append(Segment(run, directory, of(schema.INPUTS), of(schema.DECISIONS), why))
    return found


def core_is_here() -> bool:
    """Return whether the broker's core is installed beside the pipeline."""
    return importlib.util.find_spec("fila_server") is not None


def backtest(spark: SparkSession, directory: str) -> list[Verdict]:
    """Verify every segment of a history. Raises BacktestMissing, and HistoryMissing."""
    if not core_is_here():
        raise BacktestMissing(MISSING)
    found = segments(live_entries(spark, directory, replaced=True), directory)
    done = in_tasks(spark, directory, [Wanted("verify", segment) for segment in found])
    return [Verdict(**told) for told in done]


def _followable(files: list[Row], why: str | None) -> tuple[list[Row], str | None]:
    """Leave out decisions behind the last inputs: nobody can say what they should have been.

    A broker that is killed, or left while it closes the files of one stretch, may have closed only some of them.
    """
    through = max((entry.last_at for entry in files if entry.table == schema.INPUTS), default=None)
    if through is None:
        return files, why
    late = [entry for entry in files if entry.table == schema.DECISIONS and entry.first_at > through]
    if not late:
        return files, why
    count = sum(entry.messages or 0 for entry in late)
    said = (
        f"{count:,} decisions after {datetime.fromisoformat(through):%Y-%m-%d %H:%M:%S} are left out: the file with "
        "the inputs that led to them was not closed"
    )
    return [entry for entry in files if entry not in late], said


class PolicyNotTried(Exception):
    """The policy is none, or this history cannot be modelled; the text says why."""


@dataclass(frozen=True)
class Courses:
    """What came of the segments by queue and key; columns as `fila_server.modelling.served` has them."""

    recorded: pd.DataFrame
    as_it_was: pd.DataFrame
    """The model under the recorded policy, with a column `seed`: how far it is from what happened."""
    with_policy: pd.DataFrame
    drawn: int
    unknown: int
    refused: int
    script_failures: int


def try_policy(spark: SparkSession, directory: str, policy: str, runs: Sequence[str], seeds: int) -> Courses:
    """Model these runs under another policy, `seeds` times, and as often under the recorded one. Each course is a task.

    policy: TOML. Raises PolicyNotTried, where the policy is refused or a recording cannot be modelled.
    """
    from fila_server.modelling.policy import PolicyRefused, read_policy

    try:
        named = read_policy(policy).queues
    except PolicyRefused as refused:
        raise PolicyNotTried(str(refused)) from None
    found = segments(live_entries(spark, directory, replaced=True), directory)
    chosen = [each for each in found if each.run in runs]
    wanted = [Wanted("recorded", segment) for segment in chosen]
    for seed in range(seeds):
        for segment in chosen:
            wanted.append(Wanted("as it was", segment, None, seed))
            wanted.append(Wanted("policy", segment, policy, seed))
    came = in_tasks(spark, directory, wanted)
    for each in came:
        if "refused" in each:
            raise PolicyNotTried(each["refused"])
    queues = sorted({row["queue"] for each in came for row in each["served"]})
    missing = sorted(set(named) - set(queues))
    if missing:
        raise PolicyNotTried(
            f"queues.{missing[0]}: nothing was delivered from a queue of this name; there are {', '.join(queues)}"
        )
    of = {
        course: [each for each in came if each["course"] == course]
        for course in ("recorded", "as it was", "policy")
    }
    return Courses(
        *(_served(of[course]) for course in ("recorded", "as it was", "policy")),
        *(
            sum(each[name] for each in of["policy"])
            for name in ("drawn", "unknown", "refused_calls", "script_failures")
        ),
    )


def _served(came: Sequence[dict[str, Any]]) -> pd.DataFrame:
    rows = [{"run": each["run"], "seed": each["seed"], **row} for each in came for row in each["served"]]
    names = ("delivered", "acked", "nacked", "expired", "dead_lettered", "dropped", "cost", "throttle_ms")
    frame = pd.DataFrame(rows)
    for name in names:
        frame[name] = frame[name].fillna(0) if name in frame else 0
    return frame


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
    cut = [verdict.said for verdict in same if verdict.said]
    return (
        f"The core decided the same again, {decisions:,} of {decisions:,} decisions, {deliveries:,} of them deliveries"
        + (f"; {rest} starts could not be replayed" if rest else "")
        + (f"; not all that was recorded could be followed: {cut[0]}." if cut else ".")
    )


# --- one segment, in a process of its own ------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    """What a process is to do with a segment."""

    what: str
    """`verify`, `checkpoint`, or the kind of a course: `recorded`, `as it was`, `policy`."""
    segment: Segment
    policy: str | None = None
    seed: int = 0


def in_tasks(spark: SparkSession, directory: str, wanted: Sequence[Wanted]) -> list[dict[str, Any]]:
    """Do everything that is wanted, each as a task of Spark; returns what each came to.

    A replay opens files by path. A history that is not on a disk is brought to it: Spark's own reader hands a task the
    files of its segment, and a checkpoint that it makes comes back through the driver.
    """
    if not wanted:
        return []
    storage = Storage(spark, directory)
    if storage.local is not None:
        placed = [
            replace(each, segment=replace(each.segment, directory=str(storage.local))) for each in wanted
        ]
        return list(spark.sparkContext.parallelize(placed, len(placed)).map(in_a_process).collect())
    checkpoints = [f"{CHECKPOINTS}/{name}" for name in storage.names(CHECKPOINTS)]
    tasks = []
    for each in wanted:
        of_run = [file for file in checkpoints if file.startswith(f"{CHECKPOINTS}/{each.segment.run}-")]
        files = storage.present([*each.segment.inputs, *each.segment.decisions, *of_run])
        tasks.append(brought(spark, storage.directory, files).mapPartitions(partial(in_a_folder, each)))
    done = spark.sparkContext.union(tasks).collect()
    for _, made in done:
        for file, content in made.items():
            storage.write(file, content)
    return [told for told, _ in done]


def brought(spark: SparkSession, directory: str, files: Collection[str]) -> RDD[Row]:
    """Return files of a history as rows of one partition, each with its path and its content."""
    paths = [f"{directory}/{file}" for file in files]
    if not paths:
        return spark.sparkContext.parallelize(list[Row](), 1)
    read = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(paths)
    return read.select("path", "content").coalesce(1).rdd


def in_a_folder(wanted: Wanted, rows: Iterable[Row]) -> Iterator[tuple[dict[str, Any], dict[str, bytes]]]:
    """Do what is wanted over files that are handed in; gives what it came to, and the checkpoint that it wrote."""
    with TemporaryDirectory(prefix="fila-history-") as folder:
        there = set()
        for row in rows:
            parts = row.path.split("/")
            # Tables have folders for the date and the hour.
            path = Path(folder, *parts[-2 if parts[-2] == CHECKPOINTS else -4 :])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(row.content)
            there.add(path)
        told = in_a_process(replace(wanted, segment=replace(wanted.segment, directory=folder)))
        made = set(Path(folder, CHECKPOINTS).glob("[!._]*")) - there
        yield told, {f"{CHECKPOINTS}/{path.name}": path.read_bytes() for path in made}


def in_a_process(wanted: Wanted) -> dict[str, Any]:
    """Do what is wanted in a process of its own; returns what it came to."""
    command = [sys.executable, "-m", "fila_pipeline.backtest", json.dumps(asdict(wanted))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    if done.returncode != 0:
        raise RuntimeError(f"the replay of {wanted.segment.run} broke off:\n{done.stderr}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def verify(segment: Segment) -> Verdict:
    """Replay one segment in this process, which can do so once: from its base, or else from a checkpoint."""
    from fila_pipeline import checkpoint
    from fila_server.history_files import replaying

    try:
        other = of_another_version(segment)
        if other is not None:
            return other
        outcome = replaying.verify(tables(segment, segment.inputs), tables(segment, segment.decisions))
    except replaying.NoBase as missing:
        return checkpoint.verify(segment) or Verdict(segment.run, NO_BASE, said=str(missing))
    except (FileUnreadable, replaying.NotReplayable) as refused:
        return Verdict(segment.run, REFUSED, said=str(refused))
    return verdict_of(segment, outcome, segment.gap or "")


def verdict_of(segment: Segment, outcome: Any, said: str, since: str = "") -> Verdict:
    """Judge what a replay came to, a fila_server.history_files.replaying.Outcome.

    said: what there is to say where it is the same; otherwise the first difference is.
    """
    same = outcome.difference is None
    return Verdict(
        segment.run,
        SAME if same else DIFFERENT,
        outcome.passes,
        outcome.decisions,
        outcome.messages_delivered,
        said if same else str(outcome.difference),
        since,
    )


def of_another_version(segment: Segment) -> Verdict | None:
    """Say so where another version's core recorded it; None: it is this one's, or nobody can tell."""
    from fila_server.history_files.files import RECORDED_BY
    from fila_server.version import version

    if not segment.inputs:
        return None
    recorded = (
        (opened(segment, segment.inputs[0]).metadata.metadata or {}).get(RECORDED_BY, b"unknown").decode()
    )
    if "unknown" in (recorded, version()) or recorded == version():
        return None
    said = f"Fila {recorded} recorded it, and the core here is of {version()}; replay it with fila-server=={recorded}"
    return Verdict(segment.run, OTHER_VERSION, said=said)


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


def course(segment: Segment, kind: str, policy: str | None, seed: int) -> dict[str, Any]:
    """What came of one segment: as recorded, or in a model; `refused` says why it cannot be told."""
    from fila_server.history_files import replaying
    from fila_server.modelling import course as modelled
    from fila_server.modelling.policy import Policy, PolicyRefused, read_policy
    from fila_server.modelling.served import Served

    told: dict[str, Any] = {"run": segment.run, "course": kind, "seed": seed}
    if kind == "recorded":
        served = Served()
        for part in tables(segment, segment.decisions):
            served.take(part)
        return told | {"served": served.rows()}
    try:
        came = modelled.run(
            tables(segment, segment.inputs),
            tables(segment, segment.decisions),
            read_policy(policy) if policy is not None else Policy(),
            seed,
        )
    except (
        FileUnreadable,
        PolicyRefused,
        modelled.NotModelled,
        replaying.NoBase,
        replaying.NotReplayable,
    ) as refused:
        return told | {"refused": str(refused)}
    return told | {
        "served": came.served,
        "drawn": came.drawn,
        "unknown": came.unknown,
        "refused_calls": came.refused,
        "script_failures": came.script_failures,
    }


def _main(argument: str) -> None:
    given: dict[str, Any] = json.loads(argument)
    listed = given["segment"]
    segment = Segment(**listed | {"inputs": tuple(listed["inputs"]), "decisions": tuple(listed["decisions"])})
    if given["what"] == "verify":
        told = asdict(verify(segment))
    elif given["what"] == "checkpoint":
        from fila_pipeline import checkpoint

        told = asdict(checkpoint.make(segment))
    else:
        told = course(segment, given["what"], given["policy"], given["seed"])
    print(json.dumps(told))


if __name__ == "__main__":
    _main(sys.argv[1])
