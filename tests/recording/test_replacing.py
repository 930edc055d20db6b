"""The slow judge where messages are replaced: the later one stands where the earlier one stood, or waits for its lease.

A recording says of each message which one it replaces, so the judge follows both, and still names what is wrong.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.history_files import columns, replaying
from fila_server.history_files.judge import UNTOLD
from tests.core import driven_engine
from tests.recording.recorded import RecordedEngine, Tables, judged, tables_of
from tests.recording.test_simulated import recording_core
from tests.simulation.replacing import History

REPLACE = service.EnqueueOptions.ON_DUPLICATE_REPLACE
TENANTS = {"ant": 1, "bee": 2, "cat": 5}
RELAXED, STRICT = admin.KEY_ORDER_RELAXED, admin.KEY_ORDER_STRICT


class Crowd:
    """Tenants whose messages replace one another in every state: waiting, delayed, leased, failed, done."""

    def __init__(self, seed: int, order: int = RELAXED) -> None:
        self.engine = RecordedEngine()
        self.engine.create_queue(
            "orders",
            fairness_key_header="tenant",
            cost_header="cost",
            priority_header="priority",
            weights=TENANTS,
            key_order=order,
            max_attempts=3,
        )
        self._chance = random.Random(seed)
        self._leased: list[Any] = []

    def run(self, steps: int = 60) -> Tables:
        for _ in range(steps):
            for _ in range(self._chance.randrange(10)):
                self._enqueue()
            self._leased += self.engine.lease("orders", most=self._chance.randrange(1, 8))
            self._settle()
            self.engine.sleep(self._chance.choice((1, 20, 150)))
        return tables_of(self.engine)

    def _enqueue(self) -> None:
        options: dict[str, Any] = {}
        if self._chance.random() < 0.5:
            options = {"dedup_key": self._chance.choice("stuvwxyz"), "on_duplicate": REPLACE}
        if self._chance.random() < 0.2:
            options["delay_ms"] = self._chance.choice((30, 300))
        headers = {
            "tenant": self._chance.choice(list(TENANTS)),
            "cost": self._chance.choice(("0.7", "1", "4.2")),
            "priority": self._chance.choice("0111123"),
        }
        self.engine.enqueue("orders", b"x", headers, **options)

    def _settle(self) -> None:
        """Some of what is leased is done, some fails, some comes back; the rest stays for a while."""
        kept = []
        for message in self._leased:
            what = self._chance.random()
            if what < 0.4:
                self.engine.ack("orders", [message])
            elif what < 0.5:
                self.engine.nack("orders", [message], delay_ms=self._chance.choice((0, 100)))
            elif what < 0.55:
                item = service.SettleItem(
                    message_id=message.id, lease_id=message.metadata.lease_id, release=True
                )
                request = service.NackBatchRequest(queue="orders", items=[item])
                self.engine.call(commands.NACK_BATCH, request, service.SettleBatchResponse)
            else:
                kept.append(message)
        self._leased = kept


@pytest.fixture(scope="module")
def crowd() -> Tables:
    return Crowd(1).run()


def test_a_recording_names_the_message_that_each_one_replaces():
    engine = RecordedEngine()
    engine.create_queue("orders")
    first, other = engine.enqueue("orders", dedup_key="x", on_duplicate=REPLACE), engine.enqueue("orders")
    second = engine.enqueue("orders", dedup_key="x", on_duplicate=REPLACE)
    [leased] = engine.lease("orders", most=1)
    third = engine.enqueue("orders", dedup_key="x", on_duplicate=REPLACE)
    came = [(row["offset"], row["replaces"]) for row in engine.decisions("enqueued")]
    engine.remove()

    assert came == [(first, None), (other, None), (second, first), (third, second)]
    assert leased.metadata.offset == second


@pytest.mark.parametrize("seed", [1, 3, 12])
def test_whatever_state_the_earlier_one_is_in_nothing_is_called_broken_and_turns_are_judged(seed: int):
    tables = Crowd(seed).run()
    found = judged(tables)
    assert found.wrong == []
    assert found.turns > 70
    outcome = replaying.verify(tables[columns.INPUTS], tables[columns.DECISIONS])
    assert outcome.difference is None


def test_where_keys_come_in_order_nothing_is_called_broken_either():
    found = judged(Crowd(1, STRICT).run())
    assert found.wrong == []
    assert found.deliveries > 80


@pytest.mark.parametrize("seed", range(4))
def test_over_restarts_and_in_two_channels_nothing_is_called_broken(
    seed: int, monkeypatch: pytest.MonkeyPatch
):
    runs: list[Tables] = []
    monkeypatch.setattr(driven_engine, "CoreEngine", recording_core(runs))
    history = History(seed)
    try:
        history.run(160)
    finally:
        history.engine.remove()
    judgements = [judged(tables) for tables in runs if columns.DECISIONS in tables]
    assert [found.wrong for found in judgements if found.faults] == []
    assert sum(found.deliveries for found in judgements) > 20


def told(tables: Tables, rows: list[dict[str, Any]]) -> Tables:
    table = pa.Table.from_pylist(rows, schema=columns.SCHEMAS[columns.DECISIONS])
    return tables | {columns.DECISIONS: [table]}


def rows_of(tables: Tables) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.concat_tables(tables[columns.DECISIONS]).to_pylist()
    return rows


class Line:
    """One key: a message that is replaced, one behind it, and what a test adds; another key beside it."""

    def __init__(self) -> None:
        self.engine = RecordedEngine()
        self.engine.create_queue("orders", fairness_key_header="tenant")

    def add(self, tenant: str = "a", **options: Any) -> int:
        return self.engine.enqueue("orders", b"x", {"tenant": tenant}, **options)

    def replace(self, **options: Any) -> int:
        return self.add(dedup_key="x", on_duplicate=REPLACE, **options)

    def take(self, most: int = 9) -> list[Any]:
        return self.engine.lease("orders", most=most)


def delivered_as(tables: Tables, offsets: list[int]) -> Tables:
    """The same recording, whose deliveries to key `a` are of these messages."""
    rows = rows_of(tables)
    left = list(offsets)
    for row in rows:
        if row["kind"] == "delivered" and row["fairness_key"] == "a":
            row["offsets"], left = left[: len(row["offsets"])], left[len(row["offsets"]) :]
    assert not left
    return told(tables, rows)


def test_one_that_waits_hands_over_its_place_and_what_goes_before_it_is_named():
    line = Line()
    line.replace()
    behind = line.add()
    line.add("b")
    later = line.replace()
    line.take()
    tables = tables_of(line.engine)
    found = judged(tables)
    assert (found.wrong, found.turns) == ([], 3)

    wrong = judged(delivered_as(tables, [behind, later])).wrong
    assert f"offset {later} of the same key was ready before it" in " ".join(wrong)


def test_one_behind_a_lease_takes_its_place_when_that_ends_and_is_named_before():
    line = Line()
    first = line.replace()
    [leased] = line.take(1)
    behind, later = line.add(), line.replace()
    line.take(1)
    line.engine.ack("orders", [leased])
    another = line.add()
    line.take()
    tables = tables_of(line.engine)
    found = judged(tables)
    assert (found.wrong, found.turns) == ([], 4)

    wrong = judged(delivered_as(tables, [first, later, behind, another])).wrong
    assert f"offset {first}, which it replaces, is leased" in " ".join(wrong)
    wrong = judged(delivered_as(tables, [first, behind, another, later])).wrong
    assert f"offset {later} of the same key was ready before it" in " ".join(wrong)


def test_one_that_replaces_a_delayed_one_goes_to_the_back():
    line = Line()
    line.replace(delay_ms=500)
    before = line.add()
    later = line.replace(deliver_at=Timestamp(seconds=1))
    line.take()
    tables = tables_of(line.engine)
    found = judged(tables)
    assert (found.wrong, found.turns) == ([], 2)

    wrong = judged(delivered_as(tables, [later, before])).wrong
    assert f"offset {before} of the same key was ready before it" in " ".join(wrong)


def test_the_turn_of_another_key_is_judged_beside_replacements(crowd: Tables):
    rows = rows_of(crowd)
    named = 0
    for at, row in enumerate(rows[:-1]):
        other = rows[at + 1]
        pair = (row["kind"], other["kind"], row["fairness_key"] == other["fairness_key"])
        if pair == ("delivered", "delivered", False) and len(row["offsets"]) == len(other["offsets"]) == 1:
            swapped = [*rows[:at], row | {"places": [1]}, other | {"places": [0]}, *rows[at + 2 :]]
            swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
            named += judged(told(crowd, swapped)).faults > 0
    assert named >= 3


def test_a_delivery_of_one_that_was_replaced_is_named():
    line = Line()
    first = line.replace()
    line.replace()
    line.take()
    tables = tables_of(line.engine)
    rows = [row for row in rows_of(tables) if row["kind"] != "dropped"]
    assert "had replaced it" in " ".join(judged(delivered_as(told(tables, rows), [first])).wrong)


def test_a_recording_that_does_not_tell_who_replaced_whom_leaves_the_turns_of_that_queue_unjudged():
    line = Line()
    line.engine.create_queue("mail")
    line.replace()
    line.add()
    line.replace()
    line.take()
    line.engine.enqueue("mail")
    line.engine.lease("mail")
    tables = tables_of(line.engine)
    older = tables | {columns.DECISIONS: [tables[columns.DECISIONS][0].drop_columns(["replaces"])]}
    found = judged(older)
    assert (found.wrong, found.turns, found.not_judged[UNTOLD]) == ([], 1, 2)
    assert replaying.verify(older[columns.INPUTS], older[columns.DECISIONS]).difference is None
