"""Every figure that a report sums up is compared with what the core decides anew, to the millisecond."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from fila_server.history_files import alike, columns, replaying
from tests.recording.recorded import RecordedEngine
from tests.recording.test_replay import busy

Tables = dict[str, pa.Table]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def recorded() -> Tables:
    engine = RecordedEngine()
    busy(engine)
    engine.nack("orders", engine.lease("orders", most=1))
    engine.set_config("throttle.openai", "2,1")
    for _ in range(6):
        engine.enqueue("orders", headers={"tenant": "t1", "provider": "openai"})
    engine.sleep(5_000)
    engine.ack("orders", engine.lease("orders", most=10))
    engine.enqueue("orders", headers={"tenant": "last"})
    tables = {name: engine.table(name) for name in columns.SCHEMAS}
    engine.remove()
    return tables


def verified(tables: Tables) -> replaying.Outcome:
    return replaying.verify(
        *([tables[name]] for name in (columns.INPUTS, columns.DECISIONS, columns.CHANGES))
    )


def test_what_was_recorded_is_decided_again_in_every_column(recorded: Tables):
    outcome = verified(recorded)
    assert outcome.difference is None
    assert outcome.lacking == ()
    compared = set(alike.flat(recorded[columns.DECISIONS]).column_names)
    in_lists = set(alike.OF_MESSAGE) | {"places"}
    assert compared == set(columns.SCHEMAS[columns.DECISIONS].names) - in_lists | set(
        alike.OF_MESSAGE.values()
    )


def changed(tables: Tables, name: str, kind: str, column: str, change: Callable[[Any], Any]) -> Tables:
    """The same, but in one column of one row of its kind, one that has something there."""
    rows = tables[name].to_pylist()
    chosen = next(row for row in rows if row["kind"] == kind and row[column] not in (None, []))
    chosen[column] = change(chosen[column])
    return tables | {name: pa.Table.from_pylist(rows, schema=columns.SCHEMAS[name])}


def first(change: Callable[[Any], Any]) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [change(values[0]), *values[1:]]


FALSIFIED = [
    ("decisions", "delivered", "wait_no_consumer_ms", first(lambda ms: ms + 1)),
    ("decisions", "delivered", "wait_share_ms", first(lambda ms: ms + 60_000)),
    ("decisions", "delivered", "wait_throttle_ms", first(lambda ms: ms + 1)),
    ("decisions", "delivered", "wait_delay_ms", first(lambda ms: ms + 1)),
    ("decisions", "delivered", "wait_held_ms", first(lambda ms: ms + 1)),
    ("decisions", "delivered", "costs", first(lambda cost: cost * 10)),
    ("decisions", "enqueued", "costs", first(lambda cost: cost + 0.001)),
    ("decisions", "delivered", "weight", lambda weight: weight + 5),
    ("decisions", "delivered", "at", lambda at: at - timedelta(hours=1)),
    ("decisions", "acked", "at", lambda at: at + timedelta(milliseconds=1)),
    ("decisions", "acked", "held_ms", first(lambda ms: ms * 600 + 1)),
    ("decisions", "delayed", "held_ms", first(lambda ms: ms + 1)),
    ("decisions", "released", "held_ms", first(lambda ms: ms + 1)),
    ("decisions", "nacked", "reason", lambda _: "customer's fault"),
    ("decisions", "throttled", "bucket", lambda _: "another"),
    ("decisions", "enqueued", "throttle_keys", lambda keys: [*keys, "another"]),
    ("changes", "limit", "rate", lambda rate: rate + 1),
    ("changes", "limit", "burst", lambda burst: burst + 1),
    ("changes", "limit", "at", lambda at: at + timedelta(milliseconds=1)),
    ("changes", "limit", "name", lambda _: "another"),
    ("changes", "queue_created", "value", lambda value: value.replace("3", "4", 1)),
]


@pytest.mark.parametrize(
    ("table", "kind", "column", "change"), FALSIFIED, ids=[f"{each[1]}-{each[2]}" for each in FALSIFIED]
)
def test_a_falsified_cell_is_found_and_named(recorded: Tables, table, kind, column, change):
    found = verified(changed(recorded, table, kind, column, change)).difference
    assert found is not None
    assert found.column == alike.OF_MESSAGE.get(column, column)
    assert str(found).startswith(f"{found.column} recorded ")
    assert kind in str(found)


@pytest.mark.parametrize("twice", [False, True])
def test_a_change_that_is_left_out_or_doubled_is_found(recorded: Tables, twice: bool):
    rows = recorded[columns.CHANGES].to_pylist()
    rows[1:2] = [rows[1], rows[1]] if twice else []
    found = verified(
        recorded | {columns.CHANGES: pa.Table.from_pylist(rows, schema=recorded[columns.CHANGES].schema)}
    )
    assert found.difference is not None
    assert "change" in str(found.difference)


def test_settings_in_another_order_say_the_same(recorded: Tables):
    def turned(value: str) -> str:
        inner = value.removeprefix("{").removesuffix("}").split(", ", 1)
        return "{" + ", ".join(reversed(inner)) + "}"

    assert turned(turned("{a, b}")) == "{a, b}"
    outcome = verified(changed(recorded, "changes", "queue_created", "value", turned))
    assert outcome.difference is None


def test_a_recording_that_lacks_a_column_is_followed_without_it_and_says_so(recorded: Tables):
    """As files of before have it."""
    old = recorded[columns.DECISIONS].drop_columns(["wait_held_ms", "weight"])
    outcome = verified(recorded | {columns.DECISIONS: old})
    assert outcome.difference is None
    assert outcome.lacking == ("wait_held_ms", "weight")


def in_two(row: Row) -> list[Row]:
    """A row of several messages as two: of its first, and of the others."""
    count = len(row["offsets"])
    lists = {
        name: values for name, values in row.items() if isinstance(values, list) and name != "throttle_keys"
    }
    first = {name: values[:1] for name, values in lists.items()}
    others = {name: values[1:] if len(values) == count else values for name, values in lists.items()}
    return [row | first, row | others]


@pytest.mark.parametrize("is_falsified", [False, True])
def test_rows_that_were_cut_at_other_messages_say_the_same_and_hide_nothing(
    recorded: Tables, is_falsified: bool
):
    rows = recorded[columns.DECISIONS].to_pylist()
    at = next(number for number, row in enumerate(rows) if len(row["offsets"] or ()) > 1)
    cut = [*rows[:at], *in_two(rows[at]), *rows[at + 1 :]]
    if is_falsified:
        cut[at + 1]["costs"] = [cut[at + 1]["costs"][0] + 1]
    decisions = pa.Table.from_pylist(cut, schema=columns.SCHEMAS[columns.DECISIONS])
    difference = verified(recorded | {columns.DECISIONS: decisions}).difference
    assert (difference.column if difference else None) == ("cost" if is_falsified else None)
