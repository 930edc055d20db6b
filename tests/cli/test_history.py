"""`fila history` reads a history's files, and says what it cannot read."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fila_cli import main
from fila_server.history_files import chain, columns


@pytest.fixture
def history(tmp_path: Path) -> Path:
    folder = tmp_path / "history"
    rows = [
        {
            "at": datetime(2026, 3, 2, 14, minute, tzinfo=UTC),
            "pass": minute,
            "kind": kind,
            "queue": "orders",
            "channel": "default",
            "fairness_key": key,
            "throttle_keys": [],
            "offsets": [minute, minute + 1],
            "costs": [1.0, 1.0],
            "attempts": [0, 0],
        }
        for minute, kind, key in [(0, "enqueued", "acme"), (1, "delivered", "globex"), (2, "acked", "acme")]
    ]
    file = folder / "decisions/date=2026-03-02/hour=14/r-000001.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=columns.SCHEMAS[columns.DECISIONS]), file)
    entry = {
        "version": 1,
        "run": "r",
        "table": "decisions",
        "file": str(file.relative_to(folder)),
        "rows": 3,
        "messages": 6,
        "bytes": file.stat().st_size,
        "first_at": "2026-03-02T14:00:00+00:00",
        "last_at": "2026-03-02T14:02:00+00:00",
    }
    gap = {
        "version": 1,
        "run": "r",
        "gap": "the broker was killed",
        "first_at": "2026-03-02T14:02:00+00:00",
        "last_at": "2026-03-02T14:05:00+00:00",
    }
    (folder / "_list").mkdir()
    (folder / "_list/r-000001.json").write_text(json.dumps(entry))
    (folder / "_list/r-killed.json").write_text(json.dumps(gap))
    (folder / "_list/_r-000002.json").write_text("{")
    return folder


def test_status_says_how_much_there_is_and_what_is_missing(history, capsys):
    assert main.run(["history", "status", "--dir", str(history)]) == 0
    said = capsys.readouterr().out
    assert "Decisions about messages" in said
    assert "2026-03-02T14:05:00+00:00: the broker was killed" in said


def test_status_prints_the_head_as_the_broker_hashes_it(history, capsys):
    first = json.loads((history / "_list/r-000001.json").read_text()) | {"number": 1, "before": ""}
    second = {"version": 1, "run": "r", "end": True, "number": 2, "before": chain.entry_hash(first)}
    moments = {"first_at": first["last_at"], "last_at": first["last_at"]}
    for number, entry in ((1, first), (2, second | moments)):
        (history / f"_list/r-00000{number}.json").write_text(json.dumps(entry))
    assert main.run(["history", "status", "--dir", str(history), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["head"] == chain.entry_hash(second | moments)
    assert main.run(["history", "ls", "--dir", str(history)]) == 0
    assert " end " in capsys.readouterr().out


def test_verify_is_the_brokers_own_word_and_exit_code(history, capfd):
    assert main.run(["history", "verify", str(history)]) == 0
    assert "its files form no chain; nothing could be replayed" in capfd.readouterr().out
    assert main.run(["history", "verify", str(history), "--against", "reference"]) == 0
    assert "not judged: waits, and how long messages were held" in capfd.readouterr().out
    (history / "decisions/date=2026-03-02/hour=14/r-000001.parquet").unlink()
    assert main.run(["history", "verify", str(history)]) == 3
    assert "r-000001.parquet is listed, and missing" in capfd.readouterr().out
    assert main.run(["history", "verify", str(history.parent)]) == 1
    assert "holds no history" in capfd.readouterr().err


def test_ls_lists_files_and_gaps_in_order(history, capsys):
    assert main.run(["history", "ls", "--dir", str(history), "-o", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry.get("table") or entry.get("gap") for entry in listed] == [
        "decisions",
        "the broker was killed",
    ]


def test_tail_prints_the_newest_decisions_of_a_key(history, capsys):
    assert main.run(["history", "tail", "--dir", str(history), "--key", "acme", "--count", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[1].split()[1:4] == ["acked", "orders/default", "acme"]


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet"])
def test_export_writes_what_lies_between_two_moments(history, tmp_path, name):
    out = tmp_path / name
    given = ["--from", "2026-03-02T14:01Z", "--to", "2026-03-02T16:02+02:00", "--out", str(out)]
    assert main.run(["history", "export", "--dir", str(history), *given]) == 0
    if name.endswith("parquet"):
        assert pq.read_table(out).column("kind").to_pylist() == ["delivered"]
    else:
        assert "delivered" in out.read_text()
        assert "acked" not in out.read_text()


def test_a_directory_that_is_no_history_is_said_in_a_sentence(tmp_path, capsys):
    assert main.run(["history", "status", "--dir", str(tmp_path)]) == 1
    assert "set history.enabled" in capsys.readouterr().err


def test_an_export_of_an_unknown_kind_is_refused(history, tmp_path, capsys):
    assert main.run(["history", "export", "--dir", str(history), "--out", str(tmp_path / "x.xls")]) == 2
    assert "must end in" in capsys.readouterr().err
