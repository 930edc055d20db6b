"""The columns of a write, and how rows of them become messages of the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

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


def check_write_schema(schema: StructType, queue: str) -> None:
    """Raise OptionInvalid unless the rows have columns of TYPES only, `payload` among them and a queue to go to."""
    names = [field.name for field in schema.fields]
    for field in schema.fields:
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
    columns = {name: batch.column(i).to_pylist() for i, name in enumerate(batch.schema.names)}
    empty: list[Any] = [None] * batch.num_rows
    rows = zip(*(columns.get(name, empty) for name in TYPES), strict=True)
    for queue, headers, payload, dedup_key, delay_ms in rows:
        body = payload.encode() if isinstance(payload, str) else payload or b""
        message = pb.EnqueueMessage(payload=body)
        size = len(body) + 16
        if headers:
            pairs = dict(headers)
            message.headers.update(pairs)
            size += sum(len(name) + len(value) + 8 for name, value in pairs.items())
        if dedup_key:
            message.options.dedup_key = dedup_key
        if delay_ms is not None:
            if delay_ms < 0:
                raise OptionInvalid("delay_ms", f"must not be below 0 in any row, got {delay_ms}")
            message.options.delay_ms = delay_ms
        if not queue and not default_queue:
            raise OptionInvalid("queue", "is empty in a row, and no option names a queue for such rows")
        yield queue or default_queue, message, size
