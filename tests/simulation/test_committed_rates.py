"""Committed rates in random histories: the twin's messages go, and both rings keep the promise."""

from collections.abc import Iterator

import pytest

from tests.simulation.committed_rates import bench
from tests.simulation.histories import Bench

HISTORIES = 500
HISTORIES_A_TEST = 250
INTERVALS_A_HISTORY_MIN = 25


@pytest.fixture(scope="module")
def judge() -> Iterator[Bench]:
    made = bench()
    yield made
    made.engine.remove()


@pytest.mark.parametrize("first", range(1, HISTORIES + 1, HISTORIES_A_TEST))
def test_in_random_histories_who_is_within_goes_first_and_each_ring_keeps_the_promise(
    judge: Bench, first: int
) -> None:
    judged = judge.run(first, HISTORIES_A_TEST)

    assert judged >= INTERVALS_A_HISTORY_MIN * HISTORIES_A_TEST
