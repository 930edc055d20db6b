"""The slow judge: a recording of the core keeps what is promised, and one in which a promise is broken is named."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from fila_server.history_files import columns, judging
from fila_server.history_files.channel_twin import ChannelTwin, Flow, Message
from fila_server.history_files.command_line import group
from fila_server.history_files.judge import NOT_JUDGED, UNSURE
from tests.core import driven_engine
from tests.core.driven_session import DrivenSession
from tests.recording.mixed_crowd import MixedCrowd
from tests.recording.recorded import RecordedEngine, Tables, judged, tables_of
from tests.recording.test_chain import RUNS, record, resealed
from tests.recording.test_replay import busy
from tests.recording.test_simulated import recording_core
from tests.simulation.simulate import simulate

TENANTS = {"ant": 1, "bee": 2, "cat": 5}


def crowded(engine: RecordedEngine, steps: int = 60) -> None:
    """Tenants of different weights, whose messages cost different amounts."""
    engine.create_queue(
        "orders", fairness_key_header="tenant", cost_header="cost", weights=TENANTS, max_attempts=9
    )

    def headers(chance: random.Random) -> dict[str, str]:
        return {"cost": chance.choice(["0.7", "1", "1.3", "4.2"]), "tenant": chance.choice(list(TENANTS))}

    engine.crowd(headers, at_once=12, steps=steps)


@pytest.fixture(scope="module")
def crowd() -> Tables:
    engine = RecordedEngine()
    crowded(engine)
    return tables_of(engine)


def altered(tables: Tables, kind: str, change: Callable[[list[dict[str, Any]], int], None]) -> Tables:
    """The same recording with one row of this kind altered, which is about one message."""
    rows = pa.concat_tables(tables[columns.DECISIONS]).to_pylist()
    places = [number for number, row in enumerate(rows) if row["kind"] == kind and len(row["offsets"]) == 1]
    at = places[len(places) // 2]
    change(rows, at)
    table = pa.Table.from_pylist(rows, schema=columns.SCHEMAS[columns.DECISIONS])
    return tables | {columns.DECISIONS: [table]}


def test_the_turn_of_nearly_every_delivery_of_a_crowd_is_judged_and_kept(crowd: Tables):
    found = judged(crowd)
    assert found.wrong == []
    assert found.deliveries > 400
    assert found.turns > 0.95 * found.deliveries


def other_key(rows: list[dict[str, Any]], at: int) -> None:
    """Let a delivery and a later one, of another key, change places."""
    names = ("fairness_key", "weight", "offsets", "costs", "attempts")
    one = rows[at]
    other = next(
        row
        for row in rows[at:]
        if row["kind"] == "delivered"
        and row["fairness_key"] != one["fairness_key"]
        and len(row["offsets"]) == 1
    )
    values = {name: one[name] for name in names}
    one |= {name: other[name] for name in names}
    other |= values


def cell(column: str, value: Any) -> Callable[[list[dict[str, Any]], int], None]:
    def change(rows: list[dict[str, Any]], at: int) -> None:
        rows[at][column] = value

    return change


def twice(rows: list[dict[str, Any]], at: int) -> None:
    rows.insert(at + 1, dict(rows[at]))


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("delivered", other_key, "it was the turn of key"),
        ("delivered", cell("costs", [9.0]), "counted as 9"),
        ("delivered", cell("attempts", [7]), "counted as 7"),
        ("delivered", cell("offsets", [987654]), "nobody knows of this message"),
        ("delivered", twice, "two leases at a time"),
        ("acked", twice, "it was over already"),
        ("enqueued", twice, "it is in the channel already"),
    ],
)
def test_a_recording_in_which_a_promise_is_broken_is_named(crowd: Tables, kind, change, said: str):
    found = judged(altered(crowd, kind, change))
    assert found.faults
    assert said in " ".join(found.wrong)


def test_keys_that_a_limit_may_have_held_are_not_judged_by_their_turn_but_by_the_limit():
    engine = RecordedEngine()
    busy(engine)
    tables = tables_of(engine)
    found = judged(tables)
    assert found.wrong == []
    assert found.not_judged[UNSURE]

    changes = pa.concat_tables(tables[columns.CHANGES]).to_pylist()
    for row in changes:
        if row["kind"] == "limit":
            row["rate"], row["burst"] = 0.01, 1.0
    lower = tables | {
        columns.CHANGES: [pa.Table.from_pylist(changes, schema=columns.SCHEMAS[columns.CHANGES])]
    }
    assert "the limit 'openai' of 0.01 a second" in " ".join(judged(lower).wrong)


@pytest.mark.parametrize(
    ("setting", "row", "said"),
    [
        ("cap", '{"weight": 1, "paused": false, "cap": 1}', "its key may have 1 out at once"),
        ("pause", '{"weight": 1, "paused": true, "cap": 0}', "its key is paused"),
        ("weight", '{"weight": 7, "paused": false, "cap": 0}', "its key has the weight 7"),
    ],
)
def test_what_an_operator_set_for_a_key_and_was_not_kept_is_named(crowd: Tables, setting, row, said: str):
    changes = pa.concat_tables(crowd[columns.CHANGES]).to_pylist()
    nothing = dict.fromkeys(columns.SCHEMAS[columns.CHANGES].names)
    changed = nothing | {"pass": changes[-1]["pass"] + 1, "kind": "key", "queue": "orders", "name": "ant"}
    table = pa.Table.from_pylist(
        [*changes, changed | {"value": row}], schema=columns.SCHEMAS[columns.CHANGES]
    )
    assert said in " ".join(judged(crowd | {columns.CHANGES: [table]}).wrong)


def test_streams_delays_and_returns_are_followed():
    engine = RecordedEngine()
    engine.create_queue("q", fairness_key_header="tenant")
    chance = random.Random(5)
    session = DrivenSession(engine, "q", max_in_flight=4, initial_credit=10_000)
    settled = 0
    for step in range(80):
        for _ in range(3):
            engine.enqueue("q", b"x", {"tenant": chance.choice("abcd")})
        session.read()
        leases, settled = session.lease_ids()[settled:], len(session.messages)
        if step % 5 == 0 and leases:
            session.say(nack={"lease_ids": leases[:1], "release": True})
        elif step % 7 == 0 and leases:
            session.say(nack={"lease_ids": leases[:1], "delay_ms": 30})
        session.say(ack={"lease_ids": leases})
        engine.sleep(10)
    tables = tables_of(engine)
    found = judged(tables)
    assert found.wrong == []
    assert found.turns > 100
    kinds = pa.concat_tables(tables[columns.DECISIONS]).column("kind").to_pylist()
    assert {"returned", "nacked", "delayed", "acked"} <= set(kinds)


@pytest.mark.parametrize(
    "seed", [3, 54, 494, 1277, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2001, 2201))]
)
def test_in_a_mixed_crowd_nobody_is_accused(seed: int):
    """Of these four the first three were, where a pull was served before the delays of its pass ended; and the last,
    where more or fewer rounds had passed than were seen."""
    found = judged(MixedCrowd(seed).recorded())
    assert found.wrong == []
    assert found.deliveries > 50


@pytest.mark.parametrize("policy", [False, True])
@pytest.mark.parametrize("seed", [5, pytest.param(8, marks=pytest.mark.soak)])
@pytest.mark.costly("a simulation of a whole core, judged in Python")
def test_whatever_happens_in_a_simulation_nothing_is_called_broken(seed: int, policy: bool, monkeypatch):
    runs: list[Tables] = []
    monkeypatch.setattr(driven_engine, "CoreEngine", recording_core(runs))
    simulate(seed, policy=policy)
    for tables in runs:
        assert judged(tables).wrong == []


def test_one_message_in_several_is_not_judged_and_it_says_so():
    engine = RecordedEngine({"history.sample": 3})
    busy(engine)
    with pytest.raises(judging.Unjudged, match="one message in several was recorded"):
        judged(tables_of(engine))


def test_the_judge_loads_nothing_that_schedules():
    code = (
        "import sys\n"
        "from fila_server.history_files import judging\n"
        "print(sorted(name for name in sys.modules if name.startswith('fila_server.core.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    core = "fila_server.core."
    # The checksum is what `core` itself loads.
    allowed = [f"{core}{name}" for name in ("structures", "structures.checksum", "structures.reference")]
    assert done.stdout.strip() == str(allowed)


def test_verify_says_what_was_judged_and_what_was_not(tmp_path):
    record(tmp_path / "history", RUNS[0], 3)
    done = CliRunner().invoke(group, ["verify", str(tmp_path / "history"), "--against", "reference"])
    assert done.exit_code == 0, done.output
    assert "promises kept: each of " in done.output
    assert f"not judged: {NOT_JUDGED[1]}" in done.output

    resealed("decisions", lambda rows: twice(rows, [row["kind"] for row in rows].index("delivered")))(
        tmp_path / "history"
    )
    done = CliRunner().invoke(group, ["verify", str(tmp_path / "history"), "--against", "reference"])
    assert done.exit_code == 3
    assert f"A promise was broken. {RUNS[0]}: delivered of orders/default" in done.output
    assert "two leases at a time" in done.output


def test_rounds_that_a_limited_key_makes_pass_unseen_put_nobody_in_the_wrong():
    twin = ChannelTwin(1000)
    noisy, hooli, umbrella = (twin.flow(key, 1) for key in ("noisy", "hooli", "umbrella"))

    def ready(offset: int, flow: Flow, cost: int, *, is_limited: bool = False) -> Message:
        message = Message(offset, flow, cost, is_limited=is_limited)
        twin.is_unknown(message)
        twin.becomes_ready(message, in_pass=offset)
        return message

    first, second = ready(1, noisy, 5000), ready(2, noisy, 3000)
    assert twin.goes(ready(3, hooli, 1000, is_limited=True), in_pass=3) is None
    ready(4, umbrella, 6000)
    assert twin.goes(first, in_pass=4) == ""
    assert twin.goes(second, in_pass=4) == ""


def test_a_key_that_may_have_had_nothing_left_before_its_delay_ended_puts_nobody_in_the_wrong():
    """In a pass, a pull may be served before the delays end, and no row says so: then the key had lost its turn."""
    twin = ChannelTwin(1000)
    acme, noisy = twin.flow("acme", 3), twin.flow("noisy", 1)
    last, late, other = Message(1, acme, 1000), Message(2, acme, 1000), Message(3, noisy, 1000)
    for message in (last, late, other):
        twin.is_unknown(message)
    twin.becomes_ready(last, in_pass=1)
    twin.becomes_ready(other, in_pass=1)
    twin.delay_ends(late, in_pass=2)

    assert twin.goes(last, in_pass=2) == ""
    assert twin.goes(other, in_pass=2) == ""
    assert twin.goes(late, in_pass=2) is None


def test_a_crowd_whose_keys_run_empty_while_delays_end_is_judged_and_kept():
    engine = RecordedEngine()
    engine.create_queue("orders", fairness_key_header="tenant", weights=TENANTS, max_attempts=9)
    chance = random.Random(5)
    for _ in range(150):
        for _ in range(chance.randrange(6)):
            engine.enqueue("orders", b"x", {"tenant": chance.choice(list(TENANTS))})
        engine.advance(20)  # the pass that serves the next call ends the delays, too
        leased = engine.lease("orders", most=chance.choice((1, 2, 5)))
        if chance.random() < 0.5:
            engine.nack("orders", leased, delay_ms=20)
        else:
            engine.ack("orders", leased)
    found = judged(tables_of(engine))
    assert found.wrong == []
    assert found.turns > 0.4 * found.deliveries > 50
