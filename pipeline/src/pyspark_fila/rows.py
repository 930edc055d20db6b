"""The columns of a write, and how rows of them become messages of the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_fila.columns import SCHEMA
from pyspark_fila.errors import OptionInvalid
from pyspark_fila.wire import service_pb2 as pb

TYPES: dict[str, tuple[str, ...]] = {
    "queue": ("string",),
    "headers": ("map<string,string>",),
    "payload": ("binary", "string"),
    "dedup_key": ("string",),
    "delay_ms": ("bigint", "int"),
}
FRAME_BYTES_MAX = 2 << 20
"""Of messages in one call; a larger message is a call of its own."""
FIELD_BYTES = 6
"""Of a message beside its own bytes, at most: what says that it is one, and how long."""


def check_write_schema(schema: StructType, queue: str) -> None:
    """Raise OptionInvalid unless `payload` is among the columns, a queue to go to, and no column but those of TYPES
    and of a read: rows that were read can be written as they are, and what the broker gives anew is passed over."""
    names = [field.name for field in schema.fields]
    for field in schema.fields:
        if field.name not in TYPES and field.name in SCHEMA.names:
            continue
        if field.name not in TYPES:
            raise OptionInvalid(
                "schema", f"column {field.name} is not known; a write has the columns {', '.join(TYPES)}"
            )
        if field.dataType.simpleString() not in TYPES[field.name]:
            raise OptionInvalid(
                "schema",
                f"column {field.name} is {field.dataType.simpleString()}, not {' or '.join(TYPES[field.name])}",
            )
    if "payload" not in names:
        raise OptionInvalid("schema", "there must be a column payload, binary or string")
    if "queue" not in names and not queue:
        raise OptionInvalid("queue", "must be given, or be a column of the rows: .save('orders')")


def messages_of(batch: pa.RecordBatch, default_queue: str) -> Iterator[tuple[str, Any, int]]:
    """Each row's queue, message and size."""
    columns = {name: _values(batch.column(i)) for i, name in enumerate(batch.schema.names)}
    empty: list[Any] = [None] * batch.num_rows
    rows = zip(*(columns.get(name, empty) for name in TYPES), strict=True)
    for queue, headers, payload, dedup_key, delay_ms in rows:
        body = payload.encode() if isinstance(payload, str) else payload or b""
        message = pb.EnqueueMessage(payload=body, headers=headers)
        if dedup_key:
            message.options.dedup_key = dedup_key
        if delay_ms is not None:
            if delay_ms < 0:
                raise OptionInvalid("delay_ms", f"must not be below 0 in any row, got {delay_ms}")
            message.options.delay_ms = delay_ms
        if not queue and not default_queue:
            raise OptionInvalid("queue", "is empty in a row, and no option names a queue for such rows")
        yield queue or default_queue, message, message.ByteSize() + FIELD_BYTES


def _values(column: pa.Array) -> list[Any]:
    """A column as Python has it. Maps are made of all names and values at once: one by one they take most of it."""
    if not pa.types.is_map(column.type):
        return list(column.to_pylist())
    begins = column.offsets.to_pylist()
    names, values = column.keys.to_pylist(), column.items.to_pylist()
    return [
        dict(zip(names[begin:end], values[begin:end], strict=True)) if is_there and begin < end else None
        for begin, end, is_there in zip(begins, begins[1:], column.is_valid().to_pylist(), strict=False)
    ]
