"""From a checkpoint on a recording is followed as from its beginning; what does not fit it is refused in words."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fila_server.history_files import checkpoints, columns, replaying
from tests.core import driven_engine
from tests.recording.checkpointing import RUN, Pieces
from tests.recording.recorded import RecordedEngine
from tests.recording.test_replay import busy
from tests.recording.test_simulated import recording_core
from tests.simulation.simulate import simulate


def _pieces(engine: RecordedEngine) -> list[dict[str, pa.Table]]:
    """What was recorded so far, as one piece of several; they are emptied for the next."""
    engine.take()
    piece = {name: pa.concat_tables(tables) for name, tables in engine.kept.items() if tables}
    engine.kept.clear()
    return [piece]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Pieces:
    engine = RecordedEngine()
    tables = []
    busy(engine, steps=60)
    tables += _pieces(engine)
    for seed in (4, 5, 6):
        busy(engine, seed, steps=60, makes=False)
        tables += _pieces(engine)
    engine.remove()
    return Pieces(tmp_path_factory.mktemp("recording"), tables)


@pytest.fixture(scope="module")
def whole(recording: Pieces, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    path = tmp_path_factory.mktemp("whole") / "whole.checkpoint"
    return recording.make(path, recording.count - 1)


@pytest.fixture(scope="module")
def taken(recording: Pieces, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Behind the second of four pieces."""
    path = tmp_path_factory.mktemp("checkpoints") / "second.checkpoint"
    assert recording.make(path, 1)["difference"] is None
    return path


@pytest.mark.timeout(180)  # six processes, one after the other
def test_from_a_checkpoint_on_the_same_is_decided_as_in_the_whole_run(recording, whole, tmp_path):
    for through in range(recording.count - 1):
        path = tmp_path / f"{through}.checkpoint"
        before = recording.make(path, through)
        behind = recording.verify(path, through)
        assert before["difference"] is None, through
        assert behind["difference"] is None, through
        assert before["decisions"] + behind["decisions"] >= whole["decisions"]
        assert before["deliveries"] + behind["deliveries"] >= whole["deliveries"] > 30


def test_a_checkpoint_can_be_made_from_another(recording, whole, taken, tmp_path):
    path = tmp_path / "third.checkpoint"
    assert recording.make(path, 2, start=taken, behind=1)["difference"] is None
    assert recording.verify(path, 2)["difference"] is None
    last = tmp_path / "last.checkpoint"
    recording.make(last, 3, start=path, behind=2)
    assert checkpoints.read_head(last).decisions == whole["decisions"]
    assert checkpoints.read_head(last).deliveries == whole["deliveries"]


@pytest.mark.parametrize("seed", [12, pytest.param(1, marks=pytest.mark.soak)])
def test_what_a_simulation_did_is_followed_from_its_middle(seed, monkeypatch, tmp_path):
    runs: list[dict[str, list[pa.Table]]] = []
    monkeypatch.setattr(driven_engine, "CoreEngine", recording_core(runs))
    simulate(seed, policy=True)
    tables = max(runs, key=lambda run: len(run[columns.INPUTS]))
    inputs, decisions = tables[columns.INPUTS], tables[columns.DECISIONS]
    cut = len(inputs) // 2
    moment = inputs[cut].column("pass")[0].as_py()
    early = [part for part in decisions if part.column("pass")[0].as_py() < moment]
    halves = [
        {columns.INPUTS: pa.concat_tables(inputs[:cut]), columns.DECISIONS: pa.concat_tables(early)},
        {
            columns.INPUTS: pa.concat_tables(inputs[cut:]),
            columns.DECISIONS: pa.concat_tables(decisions[len(early) :]),
        },
    ]
    pieces = Pieces(tmp_path, halves)
    path = tmp_path / "middle.checkpoint"

    assert pieces.make(path, 0)["difference"] is None
    behind = pieces.verify(path, 0)
    assert behind["difference"] is None
    assert behind["deliveries"] > 0


def test_an_altered_input_behind_it_is_refused(recording, taken, tmp_path):
    rows = pq.read_table(recording.file(columns.INPUTS, 2)).to_pylist()
    commands = [row for row in rows if row["kind"] == "command" and b"\x12\x02t" in row["data"]]
    changed = commands[len(commands) // 2]
    changed["data"] = changed["data"].replace(b"\x12\x02t", b"\x12\x02u")
    planted = recording.tables()
    planted[2][columns.INPUTS] = pa.Table.from_pylist(rows, schema=columns.SCHEMAS[columns.INPUTS])

    said = Pieces(tmp_path, planted).verify(taken, 1)
    assert said.get("difference") or said.get("refused")


def test_inputs_that_do_not_go_on_from_it_are_refused(recording, taken):
    assert "follows pass" in recording.verify(taken, 2)["refused"]


def test_a_recording_that_is_not_followed_gets_no_checkpoint(recording, tmp_path):
    tables = recording.tables()[:2]
    rows = tables[1][columns.DECISIONS].to_pylist()
    rows[len(rows) // 2]["offsets"] = [offset + 1 for offset in rows[len(rows) // 2]["offsets"]]
    tables[1][columns.DECISIONS] = pa.Table.from_pylist(rows, schema=columns.SCHEMAS[columns.DECISIONS])
    path = tmp_path / "planted.checkpoint"

    assert Pieces(tmp_path, tables).make(path, 1)["difference"]
    assert not path.exists()


def _with_head(taken: Path, path: Path, **changes: object) -> Path:
    with zipfile.ZipFile(taken) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            target.writestr(name, json.dumps(json.loads(data) | changes) if name == "head.json" else data)
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"run": "20250101T000000-000000"}, f"is of the run 20250101T000000-000000, not of {RUN}"),
        ({"version": "0.0.9"}, "was written by the core of Fila 0.0.9"),
        ({"build": "0" * 64}, "was written by another build of Fila"),
        ({"format": 7}, "is of format 7, and this reader knows 2"),
        ({"facts": {"used": 0, "passes": 1, "pointers": []}}, "cannot be taken up"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused_in_words(recording, taken, tmp_path, changes, said):
    other = _with_head(taken, tmp_path / "other.checkpoint", **changes)
    assert said in recording.verify(other, 1)["refused"]


def _flipped_until(data: bytes, found: type[Exception]) -> bytes:
    """One byte is wrong, of its memory or, for a way to pack that there is not, of the list at its end; the first that
    its reader finds so: of a run of zeros one may mean the same."""
    first = data.index(b"PK\x01\x02") if found is NotImplementedError else 200
    for at in range(first, len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 0xFF
        try:
            with zipfile.ZipFile(io.BytesIO(flipped)) as archive:
                archive.read("memory")
        except found:
            return bytes(flipped)
        except Exception:  # noqa: BLE001 - found in another way
            continue
    raise AssertionError(found)


@pytest.mark.parametrize("how", [None, zipfile.BadZipFile, zlib.error, NotImplementedError])
def test_a_damaged_checkpoint_is_refused_in_words(recording, taken, tmp_path, how):
    data = taken.read_bytes()
    data = _flipped_until(data, how) if how else data[: len(data) // 2]
    damaged = tmp_path / "damaged.checkpoint"
    damaged.write_bytes(data)
    said = recording.verify(damaged, 1)["refused"]
    assert "damaged.checkpoint is damaged" in said


def test_payloads_and_headers_that_nobody_named_are_not_in_a_checkpoint(taken):
    with zipfile.ZipFile(taken) as archive:
        held = b"".join(archive.read(name) for name in archive.namelist())
    assert b"orders" in held
    assert b"openai" in held
    assert b"xxxxxxxx" not in held
    assert b"not to be kept" not in held


def test_a_checkpoint_is_for_its_owner_alone(taken):
    assert taken.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in taken.parent.iterdir()] == [taken.name]


def test_an_input_whose_bytes_go_on_in_the_next_piece_is_followed():
    """A block that is full in the middle of a command hands the rest of it over with the next one."""
    engine = RecordedEngine({"history.headers": "all"})
    engine.create_queue("orders", fairness_key_header="tenant")
    for number in range(1200):
        engine.enqueue("orders", headers={"tenant": f"t{number % 3}", "filler": "f" * 4000})
        if number % 100 == 0:
            engine.ack("orders", engine.lease("orders", most=10))
    engine.take()
    inputs, decisions = engine.kept[columns.INPUTS], engine.kept[columns.DECISIONS]
    engine.remove()
    assert any(part.column("goes_on")[-1].as_py() for part in inputs)

    outcome = replaying.verify(inputs, decisions)
    assert outcome.difference is None
    assert outcome.decisions > 1200
