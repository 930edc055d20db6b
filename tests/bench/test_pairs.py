"""What pairs of runs say of two builds."""

import random

import pytest
from fila_bench.pairs import in_turn, ratio_of
from fila_bench.report import Finding


def noisy(rate: float, count: int, seed: int) -> list[float]:
    draw = random.Random(seed)
    return [rate * draw.uniform(0.9, 1.1) for _ in range(count)]


def test_a_machine_that_slows_down_between_pairs_does_not_touch_their_ratio() -> None:
    old = [100.0, 50.0, 25.0]

    ratio = ratio_of(old, [rate * 0.9 for rate in old])

    assert (round(ratio.low, 3), round(ratio.median, 3), round(ratio.high, 3)) == (0.9, 0.9, 0.9)
    assert not ratio.reaches(0.98)


@pytest.mark.parametrize("seed", range(5))
def test_two_runs_of_one_build_are_not_told_apart(seed: int) -> None:
    assert ratio_of(noisy(100, 15, seed), noisy(100, 15, seed + 100)).reaches(0.98)


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_of_a_fifth_is_seen_through_a_tenth_of_noise(seed: int) -> None:
    assert not ratio_of(noisy(100, 15, seed), noisy(80, 15, seed + 100)).reaches(0.98)


@pytest.mark.parametrize(("high", "reached"), [(0.86, True), (0.84, False)])
def test_a_ratio_is_missed_only_where_its_interval_ends_below_the_figure(high: float, reached: bool) -> None:
    found = Finding(benchmark="drain", case="many / few", value=0.83, unit="", reach=0.85, high=high)

    assert found.reached is reached


@pytest.mark.parametrize(("old", "new"), [([], []), ([1.0], [1.0, 2.0]), ([1.0], [0.0])])
def test_runs_that_are_no_pairs_are_refused(old: list[float], new: list[float]) -> None:
    with pytest.raises(ValueError, match=r"needed|above 0"):
        ratio_of(old, new)


def test_every_side_is_as_often_first_as_last_and_its_runs_are_told_in_their_order() -> None:
    order: list[str] = []

    def run(side: str) -> int:
        order.append(side)
        return len(order)

    found = in_turn({side: lambda side=side: run(side) for side in "abc"}, rounds=4)  # type: ignore[misc]

    assert "".join(order) == "abccbaabccba"
    assert found == {"a": [1, 6, 7, 12], "b": [2, 5, 8, 11], "c": [3, 4, 9, 10]}
