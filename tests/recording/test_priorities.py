"""What a recording says of priorities inside a key: each message's, in which order they went, and that nothing else
has changed for recordings of before."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from fila_server.history_files import columns, replaying
from tests.recording.recorded import RecordedEngine, Tables, judged, tables_of


@pytest.fixture(scope="module")
def crowd() -> Tables:
    """Three keys with messages of all priorities."""
    engine = RecordedEngine()
    engine.create_queue(
        "orders",
        fairness_key_header="tenant",
        cost_header="cost",
        priority_header="priority",
        max_attempts=9,
    )

    def headers(chance: random.Random) -> dict[str, str]:
        return {
            "tenant": chance.choice("abc"),
            "cost": chance.choice(["0.7", "1", "4.2"]),
            "priority": chance.choice(["0", "1", "1", "2", "3"]),
        }

    engine.crowd(headers, at_once=10)
    return tables_of(engine)


def test_a_row_is_of_one_key_and_priority() -> None:
    engine = RecordedEngine()
    engine.create_queue("orders", fairness_key_header="tenant")
    for priority in (1, 3, 1, 0):
        engine.enqueue("orders", b"x", {"tenant": "a"}, priority=priority)
    engine.lease("orders")
    rows = [(row["offsets"], row["priority"]) for row in engine.rows("delivered")]
    engine.remove()

    assert rows == [([2], 3), ([1, 3], 1), ([4], 0)]


def test_a_crowd_with_priorities_keeps_what_is_promised_and_its_replay_follows_it(crowd: Tables) -> None:
    found = judged(crowd)
    assert found.wrong == []
    assert found.turns > 0.5 * found.deliveries > 200

    outcome = replaying.verify(crowd[columns.INPUTS], crowd[columns.DECISIONS])
    assert outcome.difference is None
    assert outcome.decisions > 1000


def altered(tables: Tables, change: dict[str, Any], kind: str = "enqueued") -> Tables:
    """Every tenth of these rows says something else."""
    rows = pa.concat_tables(tables[columns.DECISIONS]).to_pylist()
    for row in [row for row in rows if row["kind"] == kind][::10]:
        row.update(change)
    table = pa.Table.from_pylist(rows, schema=columns.SCHEMAS[columns.DECISIONS])
    return tables | {columns.DECISIONS: [table]}


def test_a_delivery_that_overtook_a_higher_one_of_its_key_is_named(crowd: Tables) -> None:
    found = judged(altered(crowd, {"priority": 4}))

    assert "of the same key was ready, and its priority is 4" in " ".join(found.wrong)


def test_a_replay_names_a_message_that_had_another_priority(crowd: Tables) -> None:
    other = altered(crowd, {"priority": 3}, "delivered")
    outcome = replaying.verify(other[columns.INPUTS], other[columns.DECISIONS])

    assert outcome.difference is not None
    assert outcome.difference.column == "priority"


def test_a_recording_of_before_there_were_priorities_is_verified_and_judged_as_ever() -> None:
    engine = RecordedEngine()
    engine.create_queue("orders", fairness_key_header="tenant")
    for n in range(40):
        engine.enqueue("orders", b"x", {"tenant": "abc"[n % 3]})
        engine.ack("orders", engine.lease("orders", most=1))
    found = tables_of(engine)
    older = found | {columns.DECISIONS: [found[columns.DECISIONS][0].drop_columns(["priority"])]}

    assert replaying.verify(older[columns.INPUTS], older[columns.DECISIONS]).difference is None
    assert judged(older).wrong == []
    assert judged(older).turns > 10
