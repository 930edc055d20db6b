"""What a history looks like on disk, and how a block of the core becomes it without a copy of its columns.

The numbers of the kinds are those of core/history/decisions.pxd, changes.pxd and inputs.pxd.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import json_format

from fila.v1 import admin_pb2

if TYPE_CHECKING:
    from fila_server.core.history.tap import RecordedBlock

VERSION = 2
DECISIONS, CHANGES, INPUTS = "decisions", "changes", "inputs"

KINDS = (
    *("", "enqueued", "redriven", "rewound", "throttled", "released", "delivered", "returned"),
    *("nacked", "expired", "delayed", "acked", "dead_lettered", "dropped"),
)
CHANGE_KINDS = (
    *("", "limit", "queue_created", "queue_updated", "queue_deleted"),
    *("channel_created", "channel_deleted", "channel_sought"),
    *("key", "consumer_joined", "consumer_room", "consumer_left"),
)
INPUT_KINDS = ("", "pass", "command", "load", "write", "base", "record", "base_ends")

_WITH_SETTINGS = pa.array(
    [CHANGE_KINDS.index(kind) for kind in ("queue_created", "queue_updated")], pa.uint8()
)

_AT = pa.timestamp("us", tz="UTC")
_INTS = pa.list_(pa.field("element", pa.int32()))
_LONGS = pa.list_(pa.field("element", pa.int64()))
_DOUBLES = pa.list_(pa.field("element", pa.float64()))
_TEXTS = pa.list_(pa.field("element", pa.string()))

SCHEMAS = {
    DECISIONS: pa.schema(
        [
            pa.field("at", _AT),
            pa.field("pass", pa.int64()),
            pa.field("kind", pa.string()),
            pa.field("queue", pa.string()),
            pa.field("channel", pa.string()),
            pa.field("fairness_key", pa.string()),
            pa.field("weight", pa.int32()),
            pa.field("consumer", pa.int64()),
            pa.field("throttle_keys", _TEXTS),
            pa.field("bucket", pa.string()),
            pa.field("reason", pa.string()),
            pa.field("offsets", _LONGS),
            pa.field("costs", _DOUBLES),
            pa.field("attempts", _INTS),
            pa.field("held_ms", _INTS),
            pa.field("wait_no_consumer_ms", _INTS),
            pa.field("wait_share_ms", _INTS),
            pa.field("wait_throttle_ms", _INTS),
            pa.field("wait_delay_ms", _INTS),
            pa.field("wait_held_ms", _INTS),
            pa.field("messages", pa.int64()),
            pa.field("places", _INTS),
            pa.field("priority", pa.int32()),
            pa.field("replaces", pa.int64()),
        ]
    ),
    CHANGES: pa.schema(
        [
            pa.field("at", _AT),
            pa.field("pass", pa.int64()),
            pa.field("kind", pa.string()),
            pa.field("queue", pa.string()),
            pa.field("channel", pa.string()),
            pa.field("name", pa.string()),
            pa.field("value", pa.string()),
            pa.field("rate", pa.float64()),
            pa.field("burst", pa.float64()),
        ]
    ),
    INPUTS: pa.schema(
        [
            pa.field("at", _AT),
            pa.field("pass", pa.int64()),
            pa.field("kind", pa.string()),
            pa.field("token", pa.int64()),
            pa.field("a", pa.int64()),
            pa.field("b", pa.int64()),
            pa.field("c", pa.int64()),
            pa.field("goes_on", pa.bool_()),
            pa.field("data", pa.binary()),
        ]
    ),
}

# Numbers that grow by little from row to row are written as their differences, texts by a dictionary.
DIFFERENCES = {
    DECISIONS: ("at", "pass", "offsets.list.element", "places.list.element"),
    CHANGES: ("at", "pass"),
    INPUTS: ("at", "pass", "token", "a", "b"),
}
DICTIONARIES = {
    DECISIONS: [
        *("kind", "queue", "channel", "fairness_key", "weight", "consumer", "bucket", "reason", "messages"),
        *("priority", "replaces"),
        *("throttle_keys.list.element", "costs.list.element", "attempts.list.element"),
        *("held_ms.list.element", "wait_no_consumer_ms.list.element", "wait_share_ms.list.element"),
        *("wait_throttle_ms.list.element", "wait_delay_ms.list.element", "wait_held_ms.list.element"),
    ],
    CHANGES: ["kind", "queue", "channel", "name", "value"],
    INPUTS: ["kind", "c", "goes_on"],
}


def tables(block: RecordedBlock) -> dict[str, pa.Table]:
    """Return what a block holds, by table; only tables that have rows. Good until the block is given back."""
    runs, _, _, changes, inputs = block.counts
    columns = block.columns()
    found = {}
    if runs:
        found[DECISIONS] = _decisions(columns, block.lists(), runs)
    if changes:
        found[CHANGES] = _changes(columns, changes)
    if inputs:
        found[INPUTS] = _inputs(columns, inputs)
    return found


def _array(kind: pa.DataType, columns: Mapping[str, memoryview], name: str, count: int) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(columns[name])])


def _texts(columns: Mapping[str, memoryview]) -> pa.Array:
    count = len(columns["text_begins"]) // 4 - 1
    buffers = [None, pa.py_buffer(columns["text_begins"]), pa.py_buffer(columns["text"])]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def _named(texts: pa.Array, numbers: pa.Array) -> pa.Array:
    """Texts by their numbers; none for 0."""
    return texts.take(_or_null(numbers))


def _or_null(numbers: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(numbers, 0), pa.scalar(None, numbers.type), numbers)


def _kinds(names: tuple[str, ...], numbers: pa.Array) -> pa.Array:
    return pa.array(names).take(numbers)


def _lists(kind: pa.ListType, begins: memoryview, elements: memoryview | pa.Array) -> pa.ListArray:
    """Lists over elements that lie one behind the other, without touching them; null where a row has none."""
    if not isinstance(elements, pa.Array):
        size = kind.value_type.bit_width // 8
        elements = pa.Array.from_buffers(
            kind.value_type, len(elements) // size, [None, pa.py_buffer(elements)]
        )
    rows = len(begins) // 4 - 1
    filled = pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(begins)], children=[elements])
    mask = pc.not_equal(pc.list_value_length(filled), 0).buffers()[1]
    return pa.Array.from_buffers(kind, rows, [mask, pa.py_buffer(begins)], children=[elements])


def _costs(begins: memoryview, thousandths: memoryview) -> pa.ListArray:
    whole = pa.Array.from_buffers(pa.int64(), len(thousandths) // 8, [None, pa.py_buffer(thousandths)])
    return _lists(_DOUBLES, begins, pc.divide(pc.cast(whole, pa.float64()), 1000.0))


def _throttle_keys(texts: pa.Array, numbers: pa.Array) -> pa.Array:
    """Take a set apart, once a block: u32 length and bytes of each key."""
    distinct = pc.unique(numbers)
    sets = pa.array([_keys_of(texts[number.as_py()].as_buffer()) for number in distinct], _TEXTS)
    return sets.take(pc.index_in(numbers, distinct))


def _keys_of(packed: pa.Buffer) -> list[str]:
    data, keys, at = packed.to_pybytes(), [], 0
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        keys.append(data[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return keys


def _decisions(
    columns: Mapping[str, memoryview], lists: Mapping[str, tuple[memoryview, memoryview]], runs: int
) -> pa.Table:
    texts = _texts(columns)
    kind = _array(pa.uint8(), columns, "kind", runs)
    begins = columns["begins"]

    def text(name: str) -> pa.Array:
        return _named(texts, _array(pa.int32(), columns, name, runs))

    return pa.Table.from_arrays(
        [
            _array(_AT, columns, "at_us", runs),
            _array(pa.int64(), columns, "pass", runs),
            _kinds(KINDS, kind),
            text("queue"),
            text("channel"),
            texts.take(_array(pa.int32(), columns, "key", runs)),
            _array(pa.int32(), columns, "weight", runs),
            _or_null(_array(pa.int64(), columns, "consumer", runs)),
            _throttle_keys(texts, _array(pa.int32(), columns, "throttle_set", runs)),
            text("bucket"),
            text("reason"),
            _lists(_LONGS, begins, columns["offset"]),
            _costs(*lists["costs"]),
            _lists(_INTS, *lists["attempts"]),
            _lists(_INTS, *lists["held_ms"]),
            _lists(_INTS, *lists["wait_no_consumer_ms"]),
            _lists(_INTS, *lists["wait_share_ms"]),
            _lists(_INTS, *lists["wait_throttle_ms"]),
            _lists(_INTS, *lists["wait_delay_ms"]),
            _lists(_INTS, *lists["wait_held_ms"]),
            _or_null(_array(pa.int64(), columns, "many", runs)),
            _lists(_INTS, begins, columns["place"]),
            _array(pa.int32(), columns, "priority", runs),
            _or_null(_array(pa.int64(), columns, "replaces", runs)),
        ],
        schema=SCHEMAS[DECISIONS],
    )


def _changes(columns: Mapping[str, memoryview], count: int) -> pa.Table:
    texts = _texts(columns)
    rate = _array(pa.float64(), columns, "change_rate", count)
    burst = _array(pa.float64(), columns, "change_burst", count)
    unlimited = pc.less(rate, 0.0)
    none = pa.scalar(None, pa.float64())

    kinds = _array(pa.uint8(), columns, "change_kind", count)
    settings = pc.is_in(kinds, _WITH_SETTINGS).to_pylist()
    stored = _named(texts, _array(pa.int32(), columns, "change_value", count)).view(pa.binary()).to_pylist()
    values = [
        _settings(value) if is_settings else value and value.decode()
        for value, is_settings in zip(stored, settings, strict=True)
    ]

    def text(name: str) -> pa.Array:
        return _named(texts, _array(pa.int32(), columns, name, count))

    return pa.Table.from_arrays(
        [
            _array(_AT, columns, "change_at_us", count),
            _array(pa.int64(), columns, "change_pass", count),
            _kinds(CHANGE_KINDS, kinds),
            text("change_queue"),
            text("change_channel"),
            text("change_name"),
            pa.array(values, pa.string()),
            pc.if_else(unlimited, none, rate),
            pc.if_else(unlimited, none, burst),
        ],
        schema=SCHEMAS[CHANGES],
    )


def _settings(stored: bytes | None) -> str | None:
    """A queue's settings as they are stored, with the names of their fields."""
    if stored is None:
        return None
    config = admin_pb2.QueueConfig.FromString(stored)
    return json_format.MessageToJson(config, indent=None, preserving_proto_field_name=True)


def _inputs(columns: Mapping[str, memoryview], count: int) -> pa.Table:
    at = pc.multiply(_array(pa.int64(), columns, "input_at_ms", count), 1000)
    data = [None, pa.py_buffer(columns["input_begins"]), pa.py_buffer(columns["input"])]
    return pa.Table.from_arrays(
        [
            pc.cast(at, _AT),
            _array(pa.int64(), columns, "input_pass", count),
            _kinds(INPUT_KINDS, _array(pa.uint8(), columns, "input_kind", count)),
            _array(pa.int64(), columns, "input_token", count),
            _array(pa.int64(), columns, "input_a", count),
            _array(pa.int64(), columns, "input_b", count),
            _array(pa.int64(), columns, "input_c", count),
            pc.not_equal(_array(pa.uint8(), columns, "input_goes_on", count), 0),
            pa.Array.from_buffers(pa.binary(), count, data),
        ],
        schema=SCHEMAS[INPUTS],
    )
