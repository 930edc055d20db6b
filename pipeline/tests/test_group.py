"""The histories of a group's nodes, each in a directory of its own, are one history."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import copyfile, copytree

import pytest
from pyspark.sql import SparkSession
from recordings import closed_recording, more_work, some_work

from fila_pipeline import schema
from fila_pipeline.history import History, HistoryMissing, check_is_there, open_history
from fila_pipeline.jobs.compact import compact
from fila_pipeline.main import main
from fila_pipeline.pages.page import Page
from fila_pipeline.synthetic import Scenario, Tenant, record
from fila_pipeline.verdicts import with_evidence

SCENARIO = Scenario((Tenant("acme", 20), Tenant("globex", 10)), seconds=60, capacity=25, roll_s=10)
FIRST, SECOND, THIRD = 0, 50, 90


def of_term(entry: Path, node: str, term: int, deposes: int) -> None:
    """The list's entry, as the owner of a group writes it."""
    said = json.loads(entry.read_text())
    said = {"run": f"run-{term}"} | said | {"node": node, "term": term, "deposes": deposes}
    entry.write_text(json.dumps(said))


def moved(whole: Path, target: Path, numbers: Sequence[int], node: str, term: int, deposes: int) -> None:
    """Some files of a history, and the entries that list them, as that node's."""
    for number in numbers:
        (listed,) = (whole / schema.LIST).glob(f"*-{number:06d}.json")
        file = json.loads(listed.read_text())["file"]
        for each in (file, f"{schema.LIST}/{listed.name}"):
            (target / each).parent.mkdir(parents=True, exist_ok=True)
            copyfile(whole / each, target / each)
        of_term(target / schema.LIST / listed.name, node, term, deposes)


@pytest.fixture
def nodes(tmp_path: Path) -> tuple[str, str, str]:
    """The whole, and two nodes that recorded it: one after the other, and then the first again."""
    whole, first, second = tmp_path / "whole", tmp_path / "fila-1", tmp_path / "fila-2"
    record(SCENARIO, whole)
    numbers = sorted(int(path.stem[-6:]) for path in (whole / schema.LIST).glob("*.json"))
    moved(whole, first, numbers[:2], "fila-1", FIRST, -1)
    moved(whole, second, numbers[2:5], "fila-2", SECOND, FIRST)
    moved(whole, first, numbers[5:], "fila-1", THIRD, SECOND)
    return str(whole), str(first), str(second)


def content(history: History) -> list[str]:
    columns = [name for name in history.decisions.columns if name != "throttle_keys"]
    return sorted(map(str, history.decisions.select(*columns).collect()))


def test_directories_of_several_nodes_are_read_as_one_and_name_each_runs_term(spark, nodes, tmp_path):
    whole, first, second = nodes
    copytree(second, tmp_path / "copied")
    (tmp_path / "idle").mkdir()
    history = open_history(spark, first, f"{second}/", str(tmp_path / "copied"), str(tmp_path / "idle"))
    assert content(history) == content(open_history(spark, whole))
    assert history.messages == open_history(spark, whole).messages
    assert history.terms == {
        "run-0": "term 0 of fila-1", "run-50": "term 50 of fila-2", "run-90": "term 90 of fila-1",
    }  # fmt: skip
    assert history.unrecorded == [str(tmp_path / "idle")]
    assert not history.skipped
    assert open_history(spark, whole).terms == {}


def test_what_a_deposed_owner_went_on_to_record_is_left_out(spark, nodes):
    whole, first, second = nodes
    numbers = sorted(int(path.stem[-6:]) for path in (Path(whole) / schema.LIST).glob("*.json"))
    moved(Path(whole), Path(first), numbers[2:4], "fila-1", FIRST, -1)
    history = open_history(spark, first, second)
    assert content(history) == content(open_history(spark, whole))
    assert any("counts for nobody" in note for note in history.noted)


def test_merged_files_say_their_term(spark, nodes):
    whole, first, second = nodes
    assert [merged.files_before for merged in compact(open_history(spark, second))] == [3]
    (merged,) = compact(open_history(spark, first))
    assert merged.files_before == 2
    history = open_history(spark, first, second)
    assert content(history) == content(open_history(spark, whole))
    assert sorted((entry.node, entry.term) for entry in history.files) == [
        ("fila-1", FIRST), ("fila-1", THIRD), ("fila-2", SECOND),
    ]  # fmt: skip


def test_a_directory_that_is_not_there_is_refused_and_one_without_a_list_beside_another_is_not(
    nodes, tmp_path
):
    (tmp_path / "idle").mkdir()
    check_is_there([nodes[1], str(tmp_path / "idle")])
    with pytest.raises(HistoryMissing, match="idle holds no history"):
        check_is_there([str(tmp_path / "idle")])
    with pytest.raises(HistoryMissing, match="typo holds no history"):
        check_is_there([nodes[1], str(tmp_path / "typo")])


def test_a_head_is_of_one_directory(nodes, capsys):
    given = [word for directory in nodes[1:] for word in ("--history", directory)]
    with pytest.raises(SystemExit):
        main(["backtest", *given, "--out", "nowhere", "--head", "0" * 64])
    assert "--head is of one directory" in capsys.readouterr().err


def test_a_backtest_replays_the_terms_of_all_nodes_and_names_each(
    spark: SparkSession,
    tmp_path: Path,
    address_of: Callable[[Path], str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fila_pipeline.main.session", lambda *_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    given: list[str] = []
    for number, work in enumerate((some_work, lambda broker: (some_work(broker), more_work(broker)))):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        directory, _ = closed_recording(folder, lambda broker, _, work=work: work(broker))
        for entry in (directory / schema.LIST).glob("[!_]*.json"):
            of_term(entry, f"fila-{number}", 50 * number, 50 * number - 50)
        given += ["--history", address_of(directory)]
    assert main(["backtest", *given, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert ", term 0 of fila-0: same, " in said
    assert ", term 50 of fila-1: same, " in said
    assert "The core decided the same again" in said
    assert "term 50 of fila-1" in (tmp_path / "out/index.html").read_text()


def test_what_a_look_at_each_directory_came_to_is_told_beside_the_answer(nodes, capsys):
    from fila_server.history_files import evidence

    page = Page("Backtest", "The core decided the same again.")
    found = {directory: evidence.look(Path(directory)) for directory in nodes[1:]}
    answer = with_evidence(page, found, is_wrong=False).answer
    assert answer.startswith(
        f"{page.answer} {nodes[1]}: Consistent: its files form no chain; it is one node's part"
    )
    assert f" {nodes[2]}: Consistent: " in answer
    assert with_evidence(page, found, is_wrong=True).answer == page.answer

    found[nodes[2]] = evidence.look(Path(nodes[2]), "0" * 64)
    told = with_evidence(page, found, is_wrong=False)
    assert told.answer.startswith(f"{nodes[2]}: This history was changed: ")
    assert told.light == "trouble"
    assert f"wrong: {nodes[2]}: " in capsys.readouterr().out
