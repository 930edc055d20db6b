"""Seeded runs of the whole core against its model; FILA_SIM_SEEDS=2000 runs that many, and `make soak` far more."""

import os
from collections import Counter
from functools import cache

import pytest

from tests.simulation.seeds import too_little
from tests.simulation.simulate import simulate

SEEDS_EVERY_TIME = 5
SEEDS_TO_JUDGE_JUDGES = 20
COUNT = int(os.environ.get("FILA_SIM_SEEDS", SEEDS_EVERY_TIME))


@cache
def judged(seed: int, policy: bool, /) -> Counter[str]:
    """One run, made once."""
    return simulate(seed, policy)


@pytest.mark.parametrize("seed", range(1, COUNT + 1))
def test_the_core_keeps_its_promises_whatever_happens_to_it(seed: int) -> None:
    assert judged(seed, False)["messages"] > 0


@pytest.mark.parametrize("seed", range(1, COUNT + 1))
def test_policy_may_change_under_everything_and_hooks_may_decide_late_or_never(seed: int) -> None:
    assert judged(seed, True)["messages"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("policy", [False, True])
def test_every_judge_has_something_to_judge(policy: bool) -> None:
    total: Counter[str] = Counter()
    for seed in range(1, SEEDS_TO_JUDGE_JUDGES + 1):
        total += judged(seed, policy)

    assert too_little("policy" if policy else "plain", total, SEEDS_TO_JUDGE_JUDGES) == {}
