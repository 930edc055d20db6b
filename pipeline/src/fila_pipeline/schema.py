"""What a history looks like on disk: the columns of its tables, and of the list that says which files are whole.

docs/history.md explains every column; the rules by which this may change are there as well. Writer and readers
take the columns from here and from nowhere else.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

VERSION = 2
"""Readers skip, and report, files of a later version. Adding a column that may be null does not make one."""

VERSION_KEY = b"fila.history.version"
TABLE_KEY = b"fila.history.table"

DECISIONS = "decisions"
CHANGES = "changes"
INPUTS = "inputs"
"""What a pass took in. Only `backtest` reads it, through the broker's own core."""
LIST = "_list"
"""The folder of list entries; Spark ignores names that start with an underscore when it looks for data."""

ENQUEUED, DELIVERED, ACKED, NACKED, EXPIRED = "enqueued", "delivered", "acked", "nacked", "expired"
DELAYED, THROTTLED, RELEASED = "delayed", "throttled", "released"
DEAD_LETTERED, REDRIVEN, DROPPED = "dead_lettered", "redriven", "dropped"
RETURNED, REWOUND = "returned", "rewound"
KINDS = (
    *(ENQUEUED, DELIVERED, ACKED, NACKED, EXPIRED, DELAYED),
    *(THROTTLED, RELEASED, DEAD_LETTERED, REDRIVEN, DROPPED, RETURNED, REWOUND),
)
FINAL = (ACKED, DEAD_LETTERED, DROPPED)
"""A message of a channel ends in exactly one of these, or is pending."""

CHANGE_KINDS = (
    *("limit", "queue_created", "queue_updated", "queue_deleted"),
    *("channel_created", "channel_deleted", "channel_sought"),
    *("key", "consumer_joined", "consumer_room", "consumer_left"),
)
INPUT_KINDS = ("base", "record", "base_ends", "pass", "command", "load", "write")

CAUSES = ("no_consumer", "share", "throttle", "delay", "held")
"""Why a message waited, as `fila explain` splits it."""

OF_EACH = ("costs", "attempts", "held_ms", *(f"wait_{cause}_ms" for cause in CAUSES))
"""Lists that have one element where a run's messages are alike."""

_INTS = pa.list_(pa.field("element", pa.int32()))

DECISION_COLUMNS = pa.schema(
    [
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("pass", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("queue", pa.string()),
        pa.field("channel", pa.string()),
        pa.field("fairness_key", pa.string()),
        pa.field("weight", pa.int32()),
        pa.field("consumer", pa.int64()),
        pa.field("throttle_keys", pa.list_(pa.field("element", pa.string()))),
        pa.field("bucket", pa.string()),
        pa.field("reason", pa.string()),
        # One element a message of the run, all in the same order; of `costs` to `wait_held_ms` one element where all
        # messages are alike (events.each_of).
        pa.field("offsets", pa.list_(pa.field("element", pa.int64()))),
        pa.field("costs", pa.list_(pa.field("element", pa.float64()))),
        pa.field("attempts", _INTS),
        pa.field("held_ms", _INTS),
        pa.field("wait_no_consumer_ms", _INTS),
        pa.field("wait_share_ms", _INTS),
        pa.field("wait_throttle_ms", _INTS),
        pa.field("wait_delay_ms", _INTS),
        pa.field("wait_held_ms", _INTS),
        # Where a run is counted and its messages are not listed: how many.
        pa.field("messages", pa.int64()),
        # In which order messages of several keys were decided on; see docs/history.md.
        pa.field("places", _INTS),
        # Of all messages of the run; null in older files, whose messages have 1.
        pa.field("priority", pa.int32()),
        # Of `enqueued`, whose one message takes the place of this offset; null otherwise, and in older files.
        pa.field("replaces", pa.int64()),
    ]
)

CHANGE_COLUMNS = pa.schema(
    [
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("pass", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("queue", pa.string()),
        pa.field("channel", pa.string()),
        pa.field("name", pa.string()),
        pa.field("value", pa.string()),
        pa.field("rate", pa.float64()),
        pa.field("burst", pa.float64()),
    ]
)

LIST_COLUMNS = pa.schema(
    [
        pa.field("version", pa.int32()),
        pa.field("table", pa.string()),
        pa.field("file", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("messages", pa.int64()),
        pa.field("first_at", pa.string()),
        pa.field("last_at", pa.string()),
        pa.field("replaces", pa.list_(pa.field("element", pa.string()))),
        pa.field("gap", pa.string()),
        pa.field("run", pa.string()),
        pa.field("sample", pa.int64()),
        pa.field("bytes", pa.int64()),
        # Of what the owner of a group recorded: which node it was, its term, and the term before.
        pa.field("node", pa.string()),
        pa.field("term", pa.int64()),
        pa.field("deposes", pa.int64()),
        pa.field("end", pa.bool_()),
    ]
)

ARROW = {DECISIONS: DECISION_COLUMNS, CHANGES: CHANGE_COLUMNS}
"""The tables that jobs read."""


def spark_schema(columns: pa.Schema) -> StructType:
    """Return the same columns for Spark."""
    return from_arrow_schema(columns)
