"""The long runs are cut into slices that are done once, in turn, and anew when what they rest on has changed."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import soak
from tests.soak import CORE, LIVES, LIVES_A_SLICE, SEEDS, SEEDS_A_SLICE, Slice, in_turn, rows, slices


def test_every_slice_has_a_name_of_its_own_and_all_that_was_promised_is_in_one() -> None:
    every = list(slices())
    kinds = Counter(each.kind for each in every)

    assert len({each.name for each in every}) == len(every)
    assert all(kinds[world] * SEEDS_A_SLICE == SEEDS for world in soak.WORLDS)
    assert kinds["kills"] * LIVES_A_SLICE == kinds["cuts"] * LIVES_A_SLICE == LIVES
    kills = Counter(each.name.rpartition("-")[2] for each in every if each.kind == "kills")
    assert kills["fsync"] == kills["os"]


def test_a_short_run_is_a_part_of_every_kind() -> None:
    first = in_turn(list(slices()))[:200]
    assert {each.kind for each in first} == {each.kind for each in slices()}


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "done.jsonl"
    assert rows(path) == []
    path.write_text('{"slice": "a"}\n{"slice": "b')
    assert rows(path) == [{"slice": "a"}]


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two slices: one is good, the other fails; the folder they are noted in."""
    monkeypatch.setattr(soak, "FOLDER", tmp_path)
    monkeypatch.setattr(soak, "DONE", tmp_path / "done.jsonl")
    monkeypatch.setattr(soak, "state_of", lambda path: f"state of {path}")
    both = [
        Slice("kind", "good", ("-c", "print('3 seeds, 0 bad')"), CORE),
        Slice("kind", "bad", ("-c", "import sys; print('1 bad'); sys.exit(1)"), CORE),
    ]
    monkeypatch.setattr(soak, "slices", lambda: iter(both))
    monkeypatch.setattr(sys, "argv", ["soak"])
    return tmp_path


def done(folder: Path) -> list[tuple[str, bool]]:
    lines = (folder / "done.jsonl").read_text().splitlines()
    return [(row["slice"], row["good"]) for row in map(json.loads, lines)]


def test_what_was_good_is_not_run_again_and_what_failed_is(two: Path) -> None:
    assert soak.main() == 1
    assert done(two) == [("kind-good", True), ("kind-bad", False)]
    assert (two / "kind-bad.log").read_text() == "1 bad\n"

    assert soak.main() == 1
    assert done(two)[2:] == [("kind-bad", False)]


def test_a_core_that_changed_has_everything_before_it(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soak.main()
    monkeypatch.setattr(soak, "state_of", lambda path: f"another {path}")
    soak.main()

    assert [name for name, _ in done(two)] == ["kind-good", "kind-bad"] * 2


def test_no_slice_begins_after_the_time_that_was_given(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["soak", "--for=-1"])

    assert soak.main() == 0
    assert not (two / "done.jsonl").exists()
