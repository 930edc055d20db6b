"""A group whose nodes decide by themselves who serves: somebody does before long, and nobody bids who should not."""

from __future__ import annotations

import pytest

from tests.simulation import group_world
from tests.simulation.serving_world import ServingWorld

SEEDS_A_TEST = 10


@pytest.mark.parametrize("first", range(1, 21, SEEDS_A_TEST))
def test_somebody_serves_before_long_and_nobody_bids_that_is_unfit_or_whose_owner_is_well(first):
    judged = group_world.run(first, SEEDS_A_TEST, ServingWorld)
    assert judged["answers"] > 30 * SEEDS_A_TEST
    assert judged["takeovers"] > SEEDS_A_TEST
    assert judged["waits"] > SEEDS_A_TEST
    assert judged["unfit"] > SEEDS_A_TEST
    assert judged["moves"] > SEEDS_A_TEST
