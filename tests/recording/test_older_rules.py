"""A recording says by which rules the broker decided: one of older rules is never told to differ."""

import json

import pyarrow as pa
import pytest

from fila_server.core.runtime.engine import DECISION_RULES
from fila_server.history_files import columns, replaying
from tests.recording.recorded import RecordedEngine
from tests.recording.test_replay import busy


@pytest.fixture(scope="module")
def recorded():
    engine = RecordedEngine()
    busy(engine)
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()
    return inputs, decisions


def of_rules(inputs: pa.Table, rules: int | None) -> pa.Table:
    """As if other rules of decision had been followed; None: those of before there was a number."""
    rows = inputs.to_pylist()
    head = json.loads(rows[0]["data"])
    assert head.pop("rules") == DECISION_RULES
    rows[0]["data"] = json.dumps(head | ({} if rules is None else {"rules": rules})).encode()
    return pa.Table.from_pylist(rows, schema=inputs.schema)


@pytest.mark.parametrize("rules", [None, 1])
def test_a_recording_of_older_rules_that_follows_by_todays_too_is_verified(recorded, rules):
    inputs, decisions = recorded

    outcome = replaying.verify([of_rules(inputs, rules)], [decisions])

    assert outcome.difference is None
    assert outcome.decisions > 0


def test_a_recording_of_older_rules_never_differs_it_says_older_rules(recorded):
    inputs, decisions = recorded
    rows = decisions.to_pylist()
    number = next(i for i, row in enumerate(rows) if row["kind"] == "delivered")
    rows[number]["fairness_key"] = "another"
    altered = pa.Table.from_pylist(rows, schema=decisions.schema)

    with pytest.raises(replaying.OlderRules, match=f"under rules 1 .* decides by rules {DECISION_RULES}"):
        replaying.verify([of_rules(inputs, None)], [altered])
