"""Histories at random: rows that keep the format's rules and nothing else, to judge a job against its twin."""

from __future__ import annotations

import random
import tempfile
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from fila_pipeline import schema
from fila_pipeline.recording import once

START = datetime(2026, 3, 2, 8, 58, tzinfo=UTC)
WAITS = [f"wait_{cause}_ms" for cause in schema.CAUSES]


def random_rows(seed: int) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    keys = {f"k{n}": dice.choice([1, 1, 2, 5]) for n in range(dice.randint(1, 5))}
    buckets = ["openai", "smtp"]
    rows = []
    offset = 1
    for number in range(dice.randint(0, 120)):
        key = dice.choice(list(keys))
        kind = dice.choice([schema.ENQUEUED, schema.DELIVERED, *schema.KINDS])
        count = dice.randint(1, 6)
        row: dict[str, Any] = {
            "at": START + timedelta(milliseconds=dice.randrange(600_000)),
            "pass": number,
            "kind": kind,
            "queue": dice.choice(["orders", "mail"]),
            "channel": "default",
            "fairness_key": key,
            "weight": keys[key],
            "throttle_keys": dice.sample(buckets, dice.randint(0, 2)),
            "offsets": list(range(offset, offset + count)),
            "costs": [dice.choice([0.5, 1.0, 3.0]) for _ in range(count)],
            "attempts": [dice.randrange(3) for _ in range(count)],
        }
        if dice.random() < 0.5:
            row["offsets"] = [dice.randint(1, 20) for _ in range(count)]
        if kind in (schema.THROTTLED, schema.RELEASED):
            row["bucket"] = dice.choice(buckets)
        if kind == schema.DEAD_LETTERED:
            row["reason"] = dice.choice(["ttl", "max_attempts"])
        if kind in (schema.ACKED, schema.NACKED, schema.EXPIRED, schema.DELAYED, schema.RELEASED):
            row["held_ms"] = [dice.randrange(90_000) for _ in range(count)]
        if kind == schema.DELIVERED:
            row |= {name: [dice.choice([0, dice.randrange(5000)]) for _ in range(count)] for name in WAITS}
        if dice.random() < 0.5:
            row |= {name: row[name][:1] * count for name in schema.OF_EACH if name in row}
        rows.append(row)
        offset += count
    return rows


def as_files_have_it(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every second row as files of version 1 have it, with one element a message in each list."""
    return [once(row) if number % 2 else row for number, row in enumerate(rows)]


def frame(spark: SparkSession, rows: list[dict[str, Any]], table: str = schema.DECISIONS) -> DataFrame:
    columns = schema.ARROW[table]
    if not rows:
        return spark.createDataFrame([], schema.spark_schema(columns))
    with tempfile.NamedTemporaryFile(suffix=".parquet", delete=False) as file:
        pq.write_table(pa.Table.from_pylist(as_files_have_it(rows), schema=columns), file)
    return spark.read.schema(schema.spark_schema(columns)).parquet(file.name)
