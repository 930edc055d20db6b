"""A learned rate before providers whose limit nobody knows: what it uses of it, and what is refused."""

from __future__ import annotations

import pytest

from tests.simulation.providers import (
    REFUSED_MAX,
    STARTS,
    USED_MIN,
    Change,
    FixedWindow,
    SlidingWindow,
    World,
    outcomes,
    together,
)

SEEDS = 1


@pytest.mark.parametrize("change", USED_MIN)
@pytest.mark.costly("twenty minutes of a provider's clock")
def test_nearly_all_of_a_hidden_limit_is_used_and_hardly_anything_refused(change):
    whole = together(outcomes(change, range(1, 1 + SEEDS)))
    assert whole.used >= USED_MIN[change]
    assert whole.refused_part <= REFUSED_MAX[change]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("counter", [SlidingWindow, FixedWindow])
def test_a_provider_that_counts_seconds_without_any_slack_is_mostly_used(counter, start):
    whole = together([World(seed, Change.CONSTANT, start, counter(1)).run(420) for seed in (1, 2)])
    assert whole.used >= 0.85
    assert whole.refused_part <= 0.005
