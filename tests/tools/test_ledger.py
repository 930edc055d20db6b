"""What was green before a change of the code holds when a tenth of it was run anew, and not before."""

from __future__ import annotations

from pathlib import Path

from tests.ledger import Run, rows, runs, standing, write

SEEDS = 50
NAMES = [f"plain-{first:04}" for first in range(1, 2_001, SEEDS)]


def green(names: list[str], state: str, day: int = 1) -> list[Run]:
    return [Run(name, state, "abc", f"2026-01-{day:02}", good=True) for name in names]


def red(name: str, state: str, day: int = 2) -> Run:
    return Run(name, state, "abc", f"2026-01-{day:02}", good=False)


def test_what_is_green_on_the_present_state_is_done_and_the_rest_is_left() -> None:
    found = standing(NAMES, SEEDS, green(NAMES[:3], "now"), "now")

    assert found.done == NAMES[:3]
    assert found.left == NAMES[3:]
    assert (found.earlier, found.again, found.failed) == ([], [], [])


def test_after_a_change_a_tenth_runs_again_before_the_rest_holds() -> None:
    before = green(NAMES, "old")
    found = standing(NAMES, SEEDS, before, "now")
    assert found.earlier == NAMES
    assert found.again == NAMES[:4]
    assert not found.holds
    assert not found.left

    found = standing(NAMES, SEEDS, before + green(NAMES[:3], "now"), "now")
    assert found.again == NAMES[3:4]
    assert not found.holds

    found = standing(NAMES, SEEDS, before + green(NAMES[:4], "now"), "now")
    assert found.done == NAMES[:4]
    assert found.earlier == NAMES[4:]
    assert found.holds


def test_a_hundred_run_again_where_a_tenth_is_less_and_all_where_there_are_fewer() -> None:
    assert len(standing(NAMES, SEEDS, green(NAMES[:8], "old"), "now").again) == 2
    assert len(standing(NAMES, SEEDS, green(NAMES[:1], "old"), "now").again) == 1
    assert len(standing(NAMES, 1, green(NAMES[:35], "old"), "now").again) == 35
    assert len(standing(NAMES, 300, green(NAMES[:10], "old"), "now").again) == 1
    assert len(standing(NAMES, 300, green(NAMES[:12], "old"), "now").again) == 2


def test_what_never_ran_before_makes_nothing_hold() -> None:
    found = standing(NAMES, SEEDS, green(NAMES[:8], "old") + green(NAMES[8:20], "now"), "now")

    assert len(found.again) == 2
    assert not found.holds


def test_what_was_run_longest_ago_runs_again_first() -> None:
    before = (
        green(NAMES[:2], "older", day=1) + green(NAMES[:1], "old", day=3) + green(NAMES[2:8], "old", day=2)
    )

    assert standing(NAMES, SEEDS, before, "now").again == [NAMES[1], NAMES[2]]


def test_nothing_earlier_holds_while_a_slice_fails_on_the_present_state() -> None:
    before = green(NAMES[:8], "old")
    found = standing(NAMES, SEEDS, [*before, *green(NAMES[1:3], "now"), red(NAMES[0], "now")], "now")
    assert found.failed == NAMES[:1]
    assert not found.again
    assert not found.holds

    mended = [*before, *green(NAMES[:3], "now", day=3)]
    assert standing(NAMES, SEEDS, mended, "now").holds


def test_what_was_red_on_an_older_state_was_never_done() -> None:
    assert standing(NAMES, SEEDS, [red(NAMES[0], "old")], "now").left == NAMES


def test_the_last_run_of_a_slice_on_a_state_counts_whatever_file_has_it(tmp_path: Path) -> None:
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    write(here, [red(NAMES[0], "now", day=2), *green(NAMES[1:2], "now")], NAMES)
    write(there, green(NAMES[:1], "now", day=3), NAMES)

    for paths in ((here, there), (there, here)):
        assert standing(NAMES, SEEDS, runs(*paths), "now").done == NAMES[:2]


def test_the_committed_file_has_one_order_on_every_machine(tmp_path: Path) -> None:
    found = [*green(NAMES[:3], "now", day=2), *green(NAMES[:3], "old", day=1), *green(["gone"], "old")]
    write(tmp_path / "a.jsonl", found, NAMES)
    write(tmp_path / "b.jsonl", runs(tmp_path / "a.jsonl")[::-1], NAMES)

    assert (tmp_path / "a.jsonl").read_text() == (tmp_path / "b.jsonl").read_text()
    assert [run.slice for run in runs(tmp_path / "a.jsonl")].count("gone") == 1


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "done.jsonl"
    assert rows(path) == []
    path.write_text('{"slice": "a"}\n{"slice": "b')
    assert rows(path) == [{"slice": "a"}]


def test_a_line_with_more_than_is_asked_for_is_read(tmp_path: Path) -> None:
    path = tmp_path / "done.jsonl"
    path.write_text(
        '{"slice": "a", "kind": "x", "state": "now", "commit": "abc", "began": "", "good": true}\n'
    )
    assert standing(["a"], SEEDS, runs(path), "now").done == ["a"]
