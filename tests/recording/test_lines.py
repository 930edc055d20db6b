"""Promise 2 on recordings: keys that wait for one limit share it, or the judge says by how much they do not."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from fila_server.history_files import columns
from fila_server.history_files.channel_twin import Flow
from fila_server.history_files.lines import KEYS_MAX, Line
from tests.recording.market import market
from tests.recording.recorded import RecordedEngine, judged, tables_of

NAMES = ("limit",)


def key(name: str, number: int, weight: int = 1, cost: int = 1000) -> Flow:
    return Flow(name, number, weight, sets={NAMES}, dearest=cost, cheapest=cost)


def waiting(*flows: Flow, at_once: int = 1) -> Line:
    line = Line("limit", 1000)
    for flow in flows:
        line.waits(flow, NAMES, 100)
        line.look(flow, at_once, 7)
    return line


def gone(line: Line, flow: Flow, at_once: int = 1) -> str | None:
    line.waits(flow, NAMES, -1)
    line.look(flow, at_once, 8)
    return line.goes(flow, flow.dearest, at_once)


def until_it_is_named(line: Line, flows: list[Flow], at_once: int = 1) -> int:
    """So many deliveries, in this order over and over, are nothing wrong."""
    for count in range(90):
        said = gone(line, flows[count % len(flows)], at_once)
        if said:
            assert "came " in said
            assert " apart for each of their weight, where " in said
            return count
    return 90


def test_keys_that_take_turns_by_their_weights_keep_the_promise():
    ant, bee = key("ant", 0), key("bee", 1, weight=3)
    assert until_it_is_named(waiting(ant, bee), [ant, bee, bee, bee]) == 90


@pytest.mark.parametrize(("at_once", "allowed"), [(1, 6), (4, 12)])
def test_one_that_is_served_alone_is_named_once_it_is_further_ahead_than_the_promise_says(
    at_once: int, allowed: int
):
    """(C + g + P) / w on both sides; P is the cost of as many messages as tokens can be spoken for at once."""
    ant, bee = key("ant", 0), key("bee", 1)
    assert until_it_is_named(waiting(ant, bee, at_once=at_once), [ant], at_once) == allowed


def test_equal_turns_of_unequal_keys_are_named():
    ant, bee = key("ant", 0), key("bee", 1, weight=5)
    assert 6 < until_it_is_named(waiting(ant, bee), [ant, bee]) < 30


def test_a_key_that_may_want_no_tokens_or_has_another_weight_begins_a_new_interval():
    ant, bee = key("ant", 0), key("bee", 1)
    line = waiting(ant, bee)
    for change in range(9):
        for _ in range(5):
            assert gone(line, ant) in ("", None)
        if change % 3 == 0:
            bee.reweighed += 1
        elif change % 3 == 1:
            line.look(bee, 0, 9)  # held by something else
        else:
            line.forget_all()
        line.look(bee, 1, 9)
        line.look(ant, 1, 9)


def test_a_crowd_costs_a_bounded_number_of_comparisons():
    flows = [key(str(number), number) for number in range(3 * KEYS_MAX)]
    line = waiting(*flows)
    assert sum(gone(line, flow) is not None for flow in flows) == KEYS_MAX


@pytest.mark.parametrize("seed", [5, 6])
def test_a_market_keeps_every_promise_and_its_shares_are_judged(seed: int):
    engine = RecordedEngine()
    market(engine, seed, steps=60)
    tables = tables_of(engine)
    found = judged(tables)
    assert found.wrong == []
    assert found.shares > 40
    assert found.turns > 400


def test_a_recording_in_which_a_limit_went_by_no_weights_is_named():
    """As if the weights that were recorded had been others: all else is as the core decided."""
    engine = RecordedEngine()
    market(engine, random.Random(3).randrange(100), steps=120)
    tables = tables_of(engine)
    rows = [row for part in tables[columns.DECISIONS] for row in part.to_pylist()]
    for row in rows:
        if row["queue"] == "slow" and row["fairness_key"] == "bee":
            row["weight"] = 20
    told = pa.Table.from_pylist(rows, schema=columns.SCHEMAS[columns.DECISIONS])
    found = judged(tables | {columns.DECISIONS: [told]})
    assert "apart for each of their weight" in " ".join(found.wrong)
