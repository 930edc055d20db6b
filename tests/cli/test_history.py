"""`fila history` reads a history's files, and says what it cannot read."""

import csv
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fila_cli import main
from fila_server.history_files import chain, columns


def recorded(folder: Path, *minutes: int, run: str = "r", **of_term: str | int) -> Path:
    """One file, of one decision a minute."""
    rows = [
        {
            "at": datetime(2026, 3, 2, 14, minute, tzinfo=UTC),
            "pass": minute,
            "kind": ("enqueued", "delivered", "acked")[minute % 3],
            "queue": "orders",
            "channel": "default",
            "fairness_key": ("acme", "globex")[minute % 3 == 1],
            "throttle_keys": [],
            "offsets": [minute, minute + 1],
            "costs": [1.0, 1.0],
            "attempts": [0, 0],
        }
        for minute in minutes
    ]
    file = folder / f"decisions/date=2026-03-02/hour=14/{run}-000001.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=columns.SCHEMAS[columns.DECISIONS]), file)
    entry = of_term | {
        "version": 1,
        "run": run,
        "table": "decisions",
        "file": str(file.relative_to(folder)),
        "rows": len(rows),
        "messages": 2 * len(rows),
        "bytes": file.stat().st_size,
        "first_at": f"2026-03-02T14:{minutes[0]:02}:00+00:00",
        "last_at": f"2026-03-02T14:{minutes[-1]:02}:00+00:00",
    }
    (folder / "_list").mkdir(exist_ok=True)
    (folder / f"_list/{run}-000001.json").write_text(json.dumps(entry))
    return folder


@pytest.fixture
def history(tmp_path: Path) -> Path:
    folder = recorded(tmp_path / "history", 0, 1, 2)
    gap = {
        "version": 1,
        "run": "r",
        "gap": "the broker was killed",
        "first_at": "2026-03-02T14:02:00+00:00",
        "last_at": "2026-03-02T14:05:00+00:00",
    }
    (folder / "_list/r-killed.json").write_text(json.dumps(gap))
    (folder / "_list/_r-000002.json").write_text("{")
    return folder


@pytest.fixture
def group(tmp_path: Path) -> list[str]:
    """The directories of three nodes: the first served, then the second, and then the first again."""
    first, second, third = (tmp_path / f"fila-{number}" for number in (1, 2, 3))
    recorded(first, 0, 1, run="a", node="fila-1", term=0, deposes=-1)
    recorded(second, 3, 4, run="b", node="fila-2", term=50, deposes=0)
    recorded(first, 5, run="c", node="fila-1", term=90, deposes=50)
    third.mkdir()
    return [word for folder in (second, third, first) for word in ("--dir", str(folder))]


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


def test_ls_of_a_group_is_one_list_and_names_node_and_term(group, capsys):
    assert main.run(["history", "ls", *group]) == 0
    said = capsys.readouterr()
    heading, *lines = (line.split() for line in said.out.splitlines())
    assert heading[2:5] == ["NODE", "TERM", "TABLE"]
    assert [line[2:4] for line in lines] == [["fila-1", "0"], ["fila-2", "50"], ["fila-1", "90"]]
    assert "fila-3: nothing was recorded here" in said.err


def test_tail_of_a_group_goes_back_over_its_terms(group, capsys):
    assert main.run(["history", "tail", *group, "--count", "4"]) == 0
    heading, *lines = (line.split() for line in capsys.readouterr().out.splitlines())
    assert heading[1:3] == ["NODE", "TERM"]
    assert [line[1:4] for line in lines] == [
        ["fila-1", "0", "delivered"],
        ["fila-2", "50", "enqueued"],
        ["fila-2", "50", "delivered"],
        ["fila-1", "90", "acked"],
    ]


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet"])
def test_export_of_a_group_says_of_each_row_node_and_term(group, tmp_path, name):
    recorded(tmp_path / "fila-1", 6, run="d")
    out = tmp_path / name
    assert main.run(["history", "export", *group, "--out", str(out)]) == 0
    if name.endswith("parquet"):
        rows = pq.read_table(out).to_pylist()
    elif name.endswith("csv"):
        rows = [row | {"term": int(row["term"] or -1)} for row in csv.DictReader(out.open())]
    else:
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    found = [(row.get("node") or "", -1 if row.get("term") is None else row["term"]) for row in rows]
    assert found == [("fila-1", 0), ("fila-1", 0), ("fila-2", 50), ("fila-2", 50), ("fila-1", 90), ("", -1)]


def test_what_two_directories_both_have_is_told_once(group, tmp_path, capsys):
    shutil.copytree(tmp_path / "fila-2", tmp_path / "copied")
    assert main.run(["history", "tail", *group, "--dir", str(tmp_path / "copied"), "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["node"], row["term"], row["pass"]) for row in rows] == [
        ("fila-1", 0, 0), ("fila-1", 0, 1), ("fila-2", 50, 3), ("fila-2", 50, 4), ("fila-1", 90, 5),
    ]  # fmt: skip


def test_directories_none_of_which_holds_a_history_are_refused(tmp_path, capsys):
    given = [word for name in ("x", "y") for word in ("--dir", str(tmp_path / name))]
    (tmp_path / "x").mkdir()
    assert main.run(["history", "tail", *given]) == 1
    assert f"{tmp_path / 'x'} holds no history" in capsys.readouterr().err


def test_status_of_a_group_passes_a_node_that_never_served(group, capsys):
    assert main.run(["history", "status", *group]) == 0
    assert "Term 50" in capsys.readouterr().out
