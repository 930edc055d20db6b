"""Runs a job: computes it, writes its tables as Parquet, reads them back for the page, writes the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from fila_pipeline import schema
from fila_pipeline.events import count, window_of
from fila_pipeline.history import History
from fila_pipeline.jobs.anomalies import anomalies
from fila_pipeline.jobs.capacity import capacity
from fila_pipeline.jobs.delays import delays
from fila_pipeline.jobs.fairness import fairness
from fila_pipeline.jobs.retries import retries
from fila_pipeline.jobs.throttles import throttles
from fila_pipeline.pages.fairness import fairness_page
from fila_pipeline.pages.page import Page, render
from fila_pipeline.pages.trouble import anomalies_page, retries_page
from fila_pipeline.pages.waiting import capacity_page, delays_page, throttles_page
from fila_pipeline.storage import Storage

Tables = dict[str, DataFrame]
Rows = Mapping[str, pd.DataFrame]

ROWS_SHOWN_MAX = 100_000
"""Of each table, for the page; Parquet has all."""


@dataclass(frozen=True)
class Choices:
    """What the command line can choose."""

    window_s: float = 60.0
    key: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    p99_ms: float = 1000.0


@dataclass(frozen=True)
class Job:
    """One job: what it computes, how it is shown, what it needs to say anything."""

    tables: Callable[[History, Choices], Tables]
    page: Callable[[Rows, Choices], Page]
    needs: str
    """The table that must have rows."""
    lacking: str
    """What it means when it has none."""


def run_job(name: str, history: History, out: str, choices: Choices) -> Page:
    """Run one job into `out`; returns its page, which is written there as index.html."""
    job, storage = JOBS[name], Storage(history.spark, out)
    rows: dict[str, pd.DataFrame] = {}
    for table, frame in job.tables(history, choices).items():
        path = storage.write_table(table, frame)
        written = history.spark.read.schema(frame.schema).parquet(path)
        rows[table] = written.limit(ROWS_SHOWN_MAX).toPandas()
    if rows[job.needs].empty:
        lacking = f"There is too little data: {job.lacking}."
        page = Page(f"{name.capitalize()}: too little data", lacking, light="unknown")
    else:
        page = job.page(rows, choices)
    page = replace(page, notes=[*page.notes, *notes(history)])
    storage.write("index.html", render(page, datetime.now(UTC), history.directory))
    history.spark.catalog.clearCache()
    return page


def notes(history: History) -> Sequence[str]:
    """What a reader of any page must know about the history."""
    said = [f"From {gap.first_at} to {gap.last_at} nothing was recorded: {gap.gap}." for gap in history.gaps]
    said += history.noted
    said += [f"Nothing was recorded in {directory}." for directory in history.unrecorded]
    return said + [f"{skipped.file} was skipped: it {skipped.why}." for skipped in history.skipped]


def _fairness_tables(history: History, choices: Choices) -> Tables:
    found = fairness(history.decisions, choices.window_s)
    return {
        # The others are derived from it, and take it from the cache once it is written.
        "shares": found.shares.cache(),
        "windows": found.windows,
        "keys": found.keys,
        "starvation": found.starvation,
    }


def _delays_tables(history: History, choices: Choices) -> Tables:
    found = delays(history.decisions, choices.key, choices.since, choices.until)
    return {"by_hour": found.by_hour, "by_key": found.by_key}


def _throttles_tables(history: History, _: Choices) -> Tables:
    found = throttles(history.decisions, history.changes)
    return {
        "buckets": found.buckets,
        "larger": found.larger,
        "minutes": found.minutes,
        "limits": found.limits,
    }


def _retries_tables(history: History, _: Choices) -> Tables:
    found = retries(history.decisions)
    return {"keys": found.keys, "poison": found.poison, "causes": found.causes}


def _capacity_tables(history: History, choices: Choices) -> Tables:
    found = capacity(history.decisions, choices.p99_ms)
    return {"queues": found.queues, "curve": found.curve}


def _anomalies_tables(history: History, choices: Choices) -> Tables:
    arrivals = (
        history.decisions.where(f.col("kind") == schema.ENQUEUED)
        .groupBy("queue", "channel", "fairness_key", window_of(f.col("at"), choices.window_s).alias("window"))
        .agg(f.sum(count()).alias("arrived"))
    )
    return {"anomalies": anomalies(history.decisions, choices.window_s), "arrivals": arrivals}


def _asked(choices: Choices) -> str:
    said = f" of {choices.key}" if choices.key else ""
    said += f" from {choices.since:%H:%M}" if choices.since else ""
    return said + (f" to {choices.until:%H:%M}" if choices.until else "")


JOBS: dict[str, Job] = {
    "fairness": Job(
        _fairness_tables,
        lambda rows, _: fairness_page(rows["shares"], rows["windows"], rows["keys"], rows["starvation"]),
        "shares",
        "no message was enqueued or delivered",
    ),
    "delays": Job(
        _delays_tables,
        lambda rows, choices: delays_page(rows["by_hour"], rows["by_key"], _asked(choices)),
        "by_key",
        "no message was delivered, of that key and in that time",
    ),
    "throttles": Job(
        _throttles_tables,
        lambda rows, _: throttles_page(rows["buckets"], rows["larger"], rows["minutes"], rows["limits"]),
        "buckets",
        "no message names a bucket",
    ),
    "retries": Job(
        _retries_tables,
        lambda rows, _: retries_page(rows["keys"], rows["poison"], rows["causes"]),
        "keys",
        "no message was delivered",
    ),
    "capacity": Job(
        _capacity_tables,
        lambda rows, choices: capacity_page(rows["queues"], rows["curve"], choices.p99_ms),
        "queues",
        "no message was enqueued or delivered",
    ),
    "anomalies": Job(
        _anomalies_tables,
        lambda rows, _: anomalies_page(rows["anomalies"], rows["arrivals"]),
        "arrivals",
        "no message was enqueued",
    ),
}
