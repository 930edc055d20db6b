"""Evidence: whatever is changed in a history, cut off it or added to it is found, and named."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from fila_server.history_files import chain, columns, upkeep, verifying
from fila_server.history_files.command_line import group
from fila_server.history_files.files import RunFiles
from fila_server.history_files.signing import Signer
from tests.recording.recorded import RecordedEngine
from tests.recording.test_replay import busy

RUNS = ("20260302T140000-aaaaaa", "20260302T150000-bbbbbb")
BEGAN_MS = 1_700_000_000_000


def record(directory: Path, run: str, seed: int, signer: Signer | None = None) -> None:
    """One start of a broker, in three files a table."""
    engine = RecordedEngine()
    files = RunFiles(directory, run, 1, signer)
    for part in range(3):
        busy(engine, seed + part, steps=60, makes=part == 0)
        engine.take()
        rows = {name: pa.concat_tables(parts) for name, parts in engine.kept.items()}
        engine.kept.clear()
        files.write(rows, BEGAN_MS + part * 1_000, BEGAN_MS + part * 1_000 + 999)
        files.close()
    files.end()
    engine.remove()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("chain") / "history"
    for number, run in enumerate(RUNS):
        record(directory, run, 3 + 10 * number)
    return directory


@pytest.fixture
def history(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "history"))


def verified(directory: Path, *more: str) -> tuple[int, str]:
    """As the command says, but in this process: one for each run of a history is most of what it costs."""
    with pytest.MonkeyPatch.context() as here:
        here.setattr(verifying, "_in_a_process", verifying.verify)
        return verified_by_the_command(directory, *more)


def verified_by_the_command(directory: Path, *more: str) -> tuple[int, str]:
    done = CliRunner().invoke(group, ["verify", str(directory), *more])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def links(directory: Path) -> list[dict[str, Any]]:
    return [dict(entry) for entry in chain.chained(upkeep.entries(directory))]


def of(directory: Path, table: str, number: int = 0, run: str = RUNS[0]) -> dict[str, Any]:
    return [entry for entry in links(directory) if entry["run"] == run and entry.get("table") == table][
        number
    ]


def put(entry: dict[str, Any]) -> None:
    entry["_path"].write_text(
        json.dumps({name: value for name, value in entry.items() if name != "_path"}) + "\n"
    )


def test_a_history_that_nobody_touched_is_consistent_and_says_its_head(history: Path):
    code, said = verified_by_the_command(history)
    assert code == 0, said
    assert "Consistent: " in said
    assert f"Its head is {chain.entry_hash(links(history)[-1])}." in said
    assert "note:" not in said
    assert len(links(history)) == len(list((history / "_list").glob("[!_]*.json")))
    assert [entry["run"] for entry in links(history) if entry.get("end")] == list(RUNS)


def rewritten(entry: dict[str, Any], directory: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    path = directory / entry["file"]
    rows = pq.ParquetFile(path).read().to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=columns.SCHEMAS[entry["table"]]), path)


def cell(column: str, value: Any) -> Callable[[list[dict[str, Any]]], None]:
    def change(rows: list[dict[str, Any]]) -> None:
        chosen = next(row for row in rows if row[column] not in (None, [], value))
        chosen[column] = value

    return change


def in_file(table: str, change: Callable[[list[dict[str, Any]]], None]) -> Callable[[Path], None]:
    return lambda history: rewritten(of(history, table, table != "changes"), history, change)


def resealed(table: str, change: Callable[[list[dict[str, Any]]], None]) -> Callable[[Path], None]:
    """Changed by somebody who knows the format: with the hash of the file, and every hash behind it, made anew."""

    def falsify(history: Path) -> None:
        rewritten(of(history, table, table != "changes"), history, change)
        before = ""
        for entry in links(history):
            if entry.get("file"):
                entry["sha256"] = chain.file_hash(history / entry["file"])
                entry["rows"] = pq.read_metadata(history / entry["file"]).num_rows
            entry["before"] = before
            put(entry)
            before = chain.entry_hash(entry)

    return falsify


def swapped_files(history: Path) -> None:
    one, other = (history / of(history, "decisions", number)["file"] for number in (0, 1))
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


def swapped_entries(history: Path) -> None:
    one, other = of(history, "decisions", 0), of(history, "decisions", 1)
    one["_path"], other["_path"] = other["_path"], one["_path"]
    one["number"], other["number"] = other["number"], one["number"]
    put(one)
    put(other)


def without(choose: Callable[[Path], list[dict[str, Any]]]) -> Callable[[Path], None]:
    def cut(history: Path) -> None:
        for entry in choose(history):
            entry["_path"].unlink()
            if entry.get("file"):
                (history / entry["file"]).unlink()

    return cut


def in_entry(choose: Callable[[Path], dict[str, Any]], **fields: Any) -> Callable[[Path], None]:
    return lambda history: put(choose(history) | fields)


def a_bit(choose: Callable[[Path], dict[str, Any]]) -> Callable[[Path], None]:
    def flip(history: Path) -> None:
        path = history / choose(history)["file"]
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    return flip


def added(**fields: Any) -> Callable[[Path], None]:
    def add(history: Path) -> None:
        entry = of(history, "decisions", 1)
        copy = Path(entry["file"]).with_name("added.parquet")
        shutil.copy(history / entry["file"], history / copy)
        kept = {name: value for name, value in entry.items() if name not in ("number", "before", "sha256")}
        put(kept | {"file": str(copy), "_path": history / "_list/added.json"} | fields)

    return add


def of_run(history: Path, run: str) -> list[dict[str, Any]]:
    return [entry for entry in links(history) if entry["run"] == run]


FALSIFIED: dict[str, tuple[Callable[[Path], None], str]] = {
    "a wait": (in_file("decisions", cell("wait_share_ms", [60_000])), "decisions/.* was changed"),
    "a cost": (in_file("decisions", cell("costs", [10.0])), "decisions/.* was changed"),
    "a weight": (in_file("decisions", cell("weight", 9)), "decisions/.* was changed"),
    "a reason": (in_file("decisions", cell("reason", "customer's fault")), "decisions/.* was changed"),
    "a time held": (in_file("decisions", cell("held_ms", [1])), "decisions/.* was changed"),
    "a fairness key": (in_file("decisions", cell("fairness_key", "acme")), "decisions/.* was changed"),
    "a decision left out": (
        in_file("decisions", lambda rows: rows.__delitem__(3)),
        "decisions/.* was changed",
    ),
    "a decision doubled": (
        in_file("decisions", lambda rows: rows.append(rows[3])),
        "decisions/.* was changed",
    ),
    "a limit": (in_file("changes", cell("rate", 5.0)), "changes/.* was changed"),
    "an input": (in_file("inputs", cell("token", 77)), "inputs/.* was changed"),
    "a bit of a file": (a_bit(lambda history: of(history, "decisions", 2)), "decisions/.* was changed"),
    "files that changed places": (swapped_files, "was changed: its hash is not the one that was listed"),
    "entries that changed places": (swapped_entries, "does not follow the one before it"),
    "a file taken away": (
        lambda history: (history / of(history, "decisions", 1)["file"]).unlink(),
        "is listed, and missing",
    ),
    "a file and its entry taken out": (
        without(lambda history: [of(history, "decisions", 1)]),
        "entry [0-9]+ of .* is missing",
    ),
    "an entry taken out": (lambda history: of(history, "decisions", 1)["_path"].unlink(), "is missing"),
    "the beginning cut off": (
        without(lambda history: of_run(history, RUNS[0])[:3]),
        "entries 1 to 3 of .* are missing",
    ),
    "the end of the first run cut off": (
        without(lambda history: of_run(history, RUNS[0])[-3:]),
        "the end of .* is missing",
    ),
    "the first run's last word": (
        without(lambda history: of_run(history, RUNS[0])[-1:]),
        "follows an entry that is not there",
    ),
    "the first run taken out": (
        without(lambda history: of_run(history, RUNS[0])),
        "follows an entry that is not there",
    ),
    "an end moved forward": (
        without(lambda history: of_run(history, RUNS[1])[-4:-1]),
        "entries [0-9]+ to [0-9]+ of .* are missing",
    ),
    "an entry's moment": (
        in_entry(lambda history: of(history, "decisions", 1), last_at="2026-03-02T00:00:00+00:00"),
        "does not follow the one before it",
    ),
    "an entry's count": (
        in_entry(lambda history: of(history, "decisions", 1), messages=5),
        "does not follow the one before it",
    ),
    "an entry's table": (
        in_entry(lambda history: of(history, "decisions", 1), table="changes"),
        "does not follow",
    ),
    "an entry's hash": (
        in_entry(lambda history: of(history, "decisions", 1), sha256="0" * 64),
        "was changed",
    ),
    "an entry's number": (
        in_entry(lambda history: of(history, "decisions", 1), number=2),
        "there are two of entry 2",
    ),
    "an entry that names a file elsewhere": (
        in_entry(lambda history: of(history, "decisions", 1), file="../../secret"),
        "outside of the history",
    ),
    "an entry that nobody can read": (
        lambda history: of(history, "decisions", 1)["_path"].write_text("{"),
        "cannot be read",
    ),
    "a file added beside the chain": (added(), "_list/added.json is not in the chain"),
    "a file added under a number": (added(number=3, before=""), "there are two of entry 3"),
    "a run added behind": (added(run="20260302T160000-cccccc"), "is not in the chain"),
    "a wait, all hashes made anew": (
        resealed("decisions", cell("wait_share_ms", [60_000])),
        "wait_share_ms recorded 60000, replayed [0-9]+, of delivered",
    ),
    "a cost, all hashes made anew": (
        resealed("decisions", cell("costs", [10.0])),
        "cost recorded 10.0, replayed 1.0",
    ),
    "a limit, all hashes made anew": (
        resealed("changes", cell("rate", 5.0)),
        "rate recorded 5.0, replayed 20.0",
    ),
    "an input, all hashes made anew": (
        resealed("inputs", lambda rows: rows.__delitem__(len(rows) // 2)),
        "does not follow",
    ),
}


def test_there_are_thirty_kinds():
    assert len(FALSIFIED) >= 30


@pytest.mark.parametrize("kind", FALSIFIED)
def test_whatever_is_falsified_is_found_and_named(history: Path, kind: str):
    falsify, said_of_it = FALSIFIED[kind]
    falsify(history)
    code, said = verified(history)
    assert code == 3, said
    assert re.search(said_of_it, said), said


def test_a_tail_that_is_cut_off_the_newest_run_shows_by_a_head_that_somebody_kept(history: Path):
    """As after a kill: the run has no end, and nobody but the head knows what is missing."""
    newest = of_run(history, RUNS[1])
    newest[-1]["_path"].unlink()
    kept = chain.check(history).head
    without(lambda _: newest[-4:-1])(history)
    code, said = verified(history)
    assert code == 0, said
    assert (
        f"note: {RUNS[1]} has no end yet: whether files were cut off its end, --head HASH tells alone" in said
    )
    code, said = verified(history, "--head", kept)
    assert code == 3
    assert f"no entry has the head {kept[:16]}" in said
    assert verified(history, "--head", chain.entry_hash(newest[0]))[0] == 0


@pytest.mark.parametrize("head", ["zzz", "5f1c", "g" * 64, "0" * 65])
def test_what_is_no_head_is_no_sign_that_a_history_was_changed(history: Path, head: str):
    code, said = verified(history, "--head", head)
    assert (code, "changed" in said) == (2, False)
    assert "is no head: give all 64 digits" in said


def test_what_retention_removed_is_no_cut_and_what_somebody_cut_behind_it_is(history: Path):
    files = RunFiles(history, "20260302T160000-cccccc", sample=1)
    rows = {columns.CHANGES: columns.SCHEMAS[columns.CHANGES].empty_table()}
    files.write(rows, BEGAN_MS + 9_000, BEGAN_MS + 9_999)
    files.close()
    due = upkeep.due(history, 0, 60_000, BEGAN_MS + 61_500)
    assert due
    assert [entry["number"] for entry in due if entry["run"] == RUNS[0]] == list(
        range(1, len(of_run(history, RUNS[0])) + 1)
    )
    files.removes(due[-1])
    assert upkeep.remove(history, due) == len([entry for entry in due if entry.get("file")])
    files.end()
    found = chain.check(history)
    assert found.wrong == []
    assert any("was removed by retention, which the broker listed" in said for said in found.noted)
    without(lambda _: links(history)[:1])(history)
    assert any("missing" in said for said in chain.check(history).wrong)


def test_a_run_that_was_killed_has_its_end_in_the_chain(whole: Path, history: Path):
    files = RunFiles(history, "20260302T160000-cccccc", sample=1)
    files.write({columns.CHANGES: columns.SCHEMAS[columns.CHANGES].empty_table()}, BEGAN_MS, BEGAN_MS)
    files.close()
    os.close(files._mark[1])  # as its process dies
    assert upkeep.end_dead_runs(history, BEGAN_MS) == ["20260302T160000-cccccc"]
    assert chain.check(history).wrong == []
    assert links(history)[-1]["gap"] == upkeep.KILLED
    assert not [said for said in chain.check(history).noted if "no end" in said]


def checkpointed(directory: Path) -> Path:
    """In a process of its own, since the core can take up only one recording a process."""
    code = (
        "import sys; from pathlib import Path; from fila_server.history_files import segments, upkeep, verifying;"
        "found = segments.segments(upkeep.entries(Path(sys.argv[1])), sys.argv[1]);"
        "print(verifying.write_checkpoint(found[0]).outcome)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(directory)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "same", done
    (path,) = (directory / "checkpoints").iterdir()
    return path


def test_a_checkpoint_is_tied_to_the_entry_that_it_was_made_of(history: Path):
    path = checkpointed(history)
    assert chain.check(history).wrong == []
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert [said for said in chain.check(history).wrong if path.name in said and "was changed" in said]


def test_a_checkpoint_of_another_recording_is_found(history: Path):
    path = checkpointed(history)
    (entry,) = [entry for entry in upkeep.entries(history) if entry.get("checkpoint")]
    put(entry | {"of": "0" * 64})
    assert [said for said in chain.check(history).wrong if path.name in said and "not there" in said]
    without(lambda _: of_run(history, RUNS[0])[: entry["of_number"]])(history)
    assert not [said for said in chain.check(history).wrong if path.name in said], (
        "retention takes what it was of"
    )


def test_a_history_of_before_is_verified_as_far_as_it_goes_and_says_so(history: Path):
    for entry in links(history):
        if entry.get("end"):
            entry["_path"].unlink()
            continue
        put({name: value for name, value in entry.items() if name not in ("number", "before", "sha256")})
    code, said = verified(history)
    assert code == 0, said
    assert "Consistent: its files form no chain; the core decided the same again" in said
    assert "entries are of before there was a chain: cut or swapped files are not found among them" in said


def test_a_directory_that_is_no_history_is_refused(tmp_path: Path):
    code, said = verified(tmp_path)
    assert code == 2
    assert "holds no history: it has no folder _list" in said


def test_a_list_that_was_emptied_is_no_history_that_follows(history: Path):
    for path in (history / "_list").iterdir():
        path.unlink()
    code, said = verified(history)
    assert code == 3
    assert "files lie there and no entry lists them: _list was emptied" in said


def test_a_history_of_which_nothing_is_left_is_not_called_consistent(history: Path):
    for path in [*history.rglob("*.parquet"), *(history / "_list").iterdir()]:
        path.unlink()
    code, said = verified(history)
    assert code == 1
    assert (
        "lists no file: its broker has closed none yet, or all of it was removed; nothing was verified"
        in said
    )
