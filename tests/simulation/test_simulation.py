"""Seeded runs of the whole core against its model; FILA_SIM_SEEDS=2000 runs that many, and `make soak` far more."""

import os
from collections import Counter
from functools import cache

import pytest

from tests.simulation.seeds import too_little
from tests.simulation.simulate import simulate

SEEDS_EVERY_TIME = 30
POLICY_SEEDS_EVERY_TIME = 20


@cache
def judged(seed: int, policy: bool, /) -> Counter[str]:
    """One run, made once."""
    return simulate(seed, policy)


def seeds(every_time: int) -> range:
    return range(1, int(os.environ.get("FILA_SIM_SEEDS", every_time)) + 1)


@pytest.mark.parametrize("seed", seeds(SEEDS_EVERY_TIME))
def test_the_core_keeps_its_promises_whatever_happens_to_it(seed: int) -> None:
    assert judged(seed, False)["messages"] > 0


@pytest.mark.parametrize("seed", seeds(POLICY_SEEDS_EVERY_TIME))
def test_policy_may_change_under_everything_and_hooks_may_decide_late_or_never(seed: int) -> None:
    assert judged(seed, True)["messages"] > 0


@pytest.mark.parametrize("policy", [False, True])
def test_every_judge_has_something_to_judge(policy: bool) -> None:
    count = POLICY_SEEDS_EVERY_TIME if policy else SEEDS_EVERY_TIME
    total: Counter[str] = Counter()
    for seed in range(1, count + 1):
        total += judged(seed, policy)

    assert too_little("policy" if policy else "plain", total, count) == {}
