"""The columns of a read, and how messages of the wire become an Arrow batch of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from google.protobuf.timestamp_pb2 import Timestamp
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_fila.errors import OptionInvalid

SCHEMA = StructType(
    [
        StructField("offset", LongType(), nullable=False),
        StructField("id", StringType(), nullable=False),
        StructField("fairness_key", StringType(), nullable=False),
        StructField("headers", MapType(StringType(), StringType(), valueContainsNull=False), nullable=False),
        StructField("payload", BinaryType(), nullable=False),
        StructField("weight", IntegerType(), nullable=False),
        StructField("cost", DoubleType(), nullable=False),
        StructField("throttle_keys", ArrayType(StringType(), containsNull=False), nullable=False),
        StructField("enqueued_at", TimestampType(), nullable=False),
        StructField("appended_at", TimestampType(), nullable=False),
    ]
)

QUEUE = StructField("queue", StringType(), nullable=False)
"""The column that rows of several queues have besides."""

PENDING_SCHEMA = StructType(
    [
        QUEUE,
        StructField("id", StringType(), nullable=False),
        StructField("fairness_key", StringType(), nullable=False),
        StructField("state", StringType(), nullable=False),
        StructField("enqueued_at", TimestampType(), nullable=False),
        StructField("due_at", TimestampType(), nullable=True),
        StructField("attempts", IntegerType(), nullable=False),
        StructField("age_ms", LongType(), nullable=False),
        StructField("cost", DoubleType(), nullable=False),
    ]
)
"""What is pending now, one row a message."""


def micros(moment: Timestamp) -> int:
    """Return a moment as Arrow has it."""
    return moment.seconds * 1_000_000 + moment.nanos // 1000


VALUES: dict[str, Callable[[Any], Any]] = {
    "offset": lambda message: message.metadata.offset,
    "id": lambda message: message.id,
    "fairness_key": lambda message: message.metadata.fairness_key,
    "headers": lambda message: list(message.headers.items()),
    "payload": lambda message: message.payload,
    "weight": lambda message: message.metadata.weight,
    "cost": lambda message: message.metadata.cost,
    "throttle_keys": lambda message: list(message.metadata.throttle_keys),
    "enqueued_at": lambda message: micros(message.timestamps.enqueued_at),
    "appended_at": lambda message: micros(message.timestamps.appended_at),
}


def check_schema(wanted: StructType, there: StructType) -> None:
    """Raise OptionInvalid unless `wanted` has columns of `there` only, each with its type.

    Fewer columns are right, and cheaper: what is left out is never turned into Arrow.
    """
    known = {field.name: field.dataType for field in there.fields}
    for field in wanted.fields:
        if field.name not in known:
            raise OptionInvalid(
                "schema", f"column {field.name} is not known; the columns are {', '.join(known)}"
            )
        if field.dataType.simpleString() != known[field.name].simpleString():
            raise OptionInvalid(
                "schema",
                f"column {field.name} is {known[field.name].simpleString()}, not {field.dataType.simpleString()}; "
                "read it as that and cast it afterwards",
            )
    if not wanted.fields:
        raise OptionInvalid("schema", "must have at least one column")


def arrow_schema(wanted: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects for these columns."""
    return to_arrow_schema(wanted, timezone="UTC")


def arrow_batch(messages: Sequence[Any], schema: pa.Schema, queue: str) -> pa.RecordBatch:
    """Return messages of one queue as columns of `schema`."""
    arrays = [
        pa.repeat(pa.scalar(queue, field.type), len(messages))
        if field.name == QUEUE.name
        else pa.array(list(map(VALUES[field.name], messages)), type=field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
