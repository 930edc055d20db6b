"""How often oracles judged is gathered over several trees, and tells what is usual."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.simulation.usual import ENOUGH_RUNS, counts, pack, tell

FIVE = 5


def judged(path: Path, seeds: range, world: str = "dice") -> Path:
    lines = [json.dumps({"world": world, "seed": seed, "judged": {"sixes": seed}}) for seed in seeds]
    path.write_text("\n".join(lines))
    return path


def test_slices_of_seeds_that_ran_as_a_whole_are_packed_and_come_back(tmp_path: Path) -> None:
    packed = tmp_path / "packed.jsonl"
    found = counts(packed, judged(tmp_path / "judged.jsonl", range(1, 14)))
    packed.write_text("\n".join(pack(found, FIVE)))

    again = counts(packed, tmp_path / "nothing.jsonl")
    assert again == {"dice": {seed: Counter(sixes=seed) for seed in range(1, 11)}}
    assert pack(again, FIVE) == pack(found, FIVE)


def test_another_tree_adds_its_runs_and_the_newest_of_a_seed_counts(tmp_path: Path) -> None:
    packed = tmp_path / "packed.jsonl"
    packed.write_text("\n".join(pack({"dice": {seed: Counter(sixes=9) for seed in range(1, 6)}}, FIVE)))

    found = counts(packed, judged(tmp_path / "judged.jsonl", range(3, 8)))
    assert {seed: many["sixes"] for seed, many in found["dice"].items()} == {
        1: 9,
        2: 9,
        3: 3,
        4: 4,
        5: 5,
        6: 6,
        7: 7,
    }


def test_no_more_is_packed_than_the_numbers_stand_on() -> None:
    found = {"dice": {seed: Counter(sixes=1) for seed in range(1, 2 * ENOUGH_RUNS)}}

    assert len(pack(found, FIVE)) * FIVE == ENOUGH_RUNS


def test_what_is_usual_is_the_median_or_a_third_of_the_mean_where_most_have_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell({"dice": {1: Counter(sixes=1), 2: Counter(sixes=7, sevens=6), 3: Counter(sixes=9)}})

    assert capsys.readouterr().out == (
        '    "dice": {  # 3 runs\n        "sevens": 0.667,\n        "sixes": 7,\n    },\n'
    )
