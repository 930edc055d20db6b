"""The long runs are cut into slices that are done once, in turn, and anew when what they rest on has changed."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import ledger, soak
from tests.simulation import usual
from tests.soak import (
    CORE,
    LIVES,
    LIVES_A_SLICE,
    SEEDS,
    SEEDS_A_SLICE,
    Slice,
    claimed,
    in_turn,
    slices,
    to_run,
)

TESTS = Path(__file__).parents[1]


def test_every_slice_has_a_name_of_its_own_and_all_that_was_promised_is_in_one() -> None:
    every = list(slices())
    kinds = Counter(each.kind for each in every)

    assert len({each.name for each in every}) == len(every)
    assert all(kinds[world] * SEEDS_A_SLICE == SEEDS for world in soak.WORLDS)
    assert kinds["kills"] * LIVES_A_SLICE == kinds["cuts"] * LIVES_A_SLICE == LIVES
    kills = Counter(each.name.rpartition("-")[2] for each in every if each.kind == "kills")
    assert kills["fsync"] == kills["os"]


def test_what_make_test_leaves_out_is_in_a_slice_of_the_long_runs() -> None:
    marked = {path for path in TESTS.rglob("test_*.py") if re.search(r"(?<!\")mark\.soak", path.read_text())}
    assert marked
    for path in marked - {Path(__file__)}:
        file = path.relative_to(TESTS)
        assert file.as_posix() in {*soak.AT_LENGTH, *soak.LIVENESS}, f"no slice runs {file} at length"


def test_for_another_commit_other_slices_come_first_and_for_the_same_one_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(soak, "state_of", lambda path: f"state of {path}")
    worlds = [each for each in slices() if each.kind in soak.WORLDS]
    one, again, other = ([each.name for each in to_run(worlds, by)][:5] for by in ("a1", "a1", "b2"))
    assert one == again != other


def test_a_short_run_is_a_part_of_every_kind() -> None:
    first = in_turn(list(slices()))[:220]
    assert {each.kind for each in first} == {each.kind for each in slices()}


def test_a_part_of_a_series_stands_for_seeds_of_one_world_or_inputs_of_one_target_alone() -> None:
    of = {each.name: each.series for each in slices()}

    assert of["plain-0051"] == of["plain-4951"] != of["policy-0051"]
    assert of["fuzz-wire-02"] == of["fuzz-wire-12"] != of["fuzz-resp-02"]
    assert of["sanitized-plain-0001"] == of["sanitized-plain-0451"] != of["sanitized-core"]


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two slices: one is good, the other fails; the folder they are noted in."""
    monkeypatch.setattr(soak, "FOLDER", tmp_path)
    monkeypatch.setattr(soak, "DONE", tmp_path / "done.jsonl")
    monkeypatch.setattr(soak, "JUDGED", tmp_path / "judged.jsonl")
    monkeypatch.setattr(soak, "RUNS", tmp_path / "docs" / "runs.jsonl")
    monkeypatch.setattr(usual, "PACKED", tmp_path / "docs" / "judged.jsonl")
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


def test_two_at_once_take_different_slices(two: Path) -> None:
    with claimed("kind-good") as is_mine:
        assert is_mine
        assert soak.main() == 1

    assert done(two) == [("kind-bad", False)]


def test_slices_that_build_in_the_same_copy_of_the_core_never_run_at_once() -> None:
    claims = {each.name: each.claim for each in slices()}

    assert claims["fuzz-wire-01"] == claims["fuzz-resp-01"]
    assert claims["faults-a-message-costs-nothing"] == claims["faults-a-refund-above-one-grant"]
    assert claims["sanitized-core"] == claims["sanitized-plain-0001"] != claims["fuzz-wire-01"]
    assert claims["plain-0001"] != claims["plain-0051"]


def test_a_slice_under_which_the_code_changed_counts_for_nothing(
    two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = iter(("one", "another"))
    monkeypatch.setattr(soak, "state_of", lambda _: next(states))

    assert soak.run(Slice("kind", "good", ("-c", "print('3 seeds, 0 bad')"), CORE))
    assert not (two / "done.jsonl").exists()


def test_a_row_says_what_it_took_and_no_more_of_what_was_said_than_the_outcome(two: Path) -> None:
    busy = "import time; x = [0 for _ in iter(lambda: time.process_time() < 0.6, False)]"
    assert soak.run(
        Slice("kind", "busy", ("-c", f"{busy}; print(\"9 seeds, 0 bad; judged {{'a': 1}}\")"), CORE)
    )

    [found] = ledger.runs(two / "done.jsonl")
    assert found.said == "9 seeds, 0 bad"
    assert found.cpu_s
    assert found.seconds


def test_what_a_failed_slice_left_is_kept_and_what_a_good_one_left_is_not(two: Path) -> None:
    leave = "import os, pathlib, sys; (pathlib.Path(os.environ['PYTEST_DEBUG_TEMPROOT']) / 'log').touch(); sys.exit({})"
    soak.run(Slice("kind", "good", ("-c", leave.format(0)), CORE))
    soak.run(Slice("kind", "bad", ("-c", leave.format(1)), CORE))

    assert [path.relative_to(two) for path in two.glob("tmp/*/*")] == [Path("tmp/kind-bad/log")]


def test_another_tree_goes_on_from_what_was_recorded(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soak.main()
    monkeypatch.setattr(sys, "argv", ["soak", "--record"])
    assert soak.main() == 0
    (two / "done.jsonl").unlink()
    monkeypatch.setattr(sys, "argv", ["soak"])
    soak.main()

    assert done(two) == [("kind-bad", False)]


def test_a_look_says_what_holds_what_failed_and_what_comes_next(
    two: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    soak.main()
    monkeypatch.setattr(sys, "argv", ["soak", "--list"])
    capsys.readouterr()
    soak.main()
    assert capsys.readouterr().out == "kind: 1 of 2 done on this state; failed: kind-bad\nnext: kind-bad\n"

    monkeypatch.setattr(soak, "state_of", lambda path: f"another {path}")
    soak.main()
    assert capsys.readouterr().out == (
        "kind: 0 of 2 done on this state; 1 earlier, 1 of which to run again before they hold; 1 left\n"
        "next: kind-good, kind-bad\n"
    )
