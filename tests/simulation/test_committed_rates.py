"""Committed rates in random histories: the twin's messages go, and both rings keep the promise."""

import pytest

from tests.simulation.committed_rates import bench

HISTORIES = 1_500
HISTORIES_A_TEST = 250
INTERVALS_A_HISTORY_MIN = 25


@pytest.mark.parametrize("first", range(1, HISTORIES + 1, HISTORIES_A_TEST))
def test_in_random_histories_who_is_within_goes_first_and_each_ring_keeps_the_promise(first: int) -> None:
    before = bench().judged
    for seed in range(first, first + HISTORIES_A_TEST):
        bench().run(seed)

    assert bench().judged - before >= INTERVALS_A_HISTORY_MIN * HISTORIES_A_TEST
