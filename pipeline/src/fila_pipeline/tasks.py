"""Segments replayed side by side: each is a task for Spark, and a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pyspark import RDD
from pyspark.sql import Row, SparkSession

from fila_pipeline.segments import CHECKPOINTS
from fila_pipeline.storage import Storage

if TYPE_CHECKING:
    from fila_server.history_files.segments import Segment


@dataclass(frozen=True)
class Wanted:
    """What a process is to do with a segment."""

    what: str
    """`verify`, `judge`, `checkpoint`, or the kind of a course: `recorded`, `as it was`, `policy`."""
    segment: Segment
    policy: str | None = None
    seed: int = 0
    slowness: float = 1.0
    """How long consumers take, as a multiple of what was recorded."""


def in_tasks(spark: SparkSession, wanted: Sequence[Wanted]) -> list[dict[str, Any]]:
    """Do everything that is wanted, each as a task of Spark; returns what each came to.

    A replay opens files by path. A history that is not on a disk is brought to it: Spark's own reader hands a task the
    files of its segment, and a checkpoint that it makes comes back through the driver.
    """
    storages = {
        directory: Storage(spark, directory) for directory in {each.segment.directory for each in wanted}
    }
    placed, elsewhere, tasks = [], [], []
    for each in wanted:
        storage = storages[each.segment.directory]
        if storage.local is not None:
            placed.append(replace(each, segment=replace(each.segment, directory=str(storage.local))))
        else:
            elsewhere.append(storage)
            tasks.append(_brought_and_done(spark, storage, each))
    done = []
    if placed:
        done += spark.sparkContext.parallelize(placed, len(placed)).map(in_a_process).collect()
    if tasks:
        for storage, (told, made) in zip(elsewhere, spark.sparkContext.union(tasks).collect(), strict=True):
            for file, content in made.items():
                storage.write(file, content)
            done.append(told)
    return done


def _brought_and_done(
    spark: SparkSession, storage: Storage, wanted: Wanted
) -> RDD[tuple[dict[str, Any], dict[str, bytes]]]:
    of_run = [
        f"{CHECKPOINTS}/{name}"
        for name in storage.names(CHECKPOINTS)
        if name.startswith(f"{wanted.segment.run}-")
    ]
    segment = wanted.segment
    files = storage.present([*segment.inputs, *segment.decisions, *segment.changes, *of_run])
    return brought(spark, storage.directory, files).mapPartitions(partial(in_a_folder, wanted))


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
    command = [sys.executable, "-m", "fila_pipeline.replay", json.dumps(asdict(wanted))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    if done.returncode != 0:
        raise RuntimeError(f"the replay of {wanted.segment.run} broke off:\n{done.stderr}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
