"""Seeded runs of the whole core against its model. FILA_SIM_SEEDS=2000 (make soak) runs that many; see simulate.py."""

import os
from collections import Counter
from functools import cache

import pytest

from tests.simulation.simulate import simulate

SEEDS_EVERY_TIME = 30
POLICY_SEEDS_EVERY_TIME = 20
SEEDS_SOAK = 3000
JUDGES = {
    "messages": 10_000,
    "no answered message is lost or comes back": 25_000,
    "one lease a message": 15_000,
    "order within a key": 4_000,
    "no bucket over its curve": 500,
    "keys stay within the bound": 500_000,
    "the numbers agree": 1_000,
    "nothing that could go is left lying": 120,
}
"""What each oracle has to judge in the seeds of every time, about half of what it does: fewer, and it sees nothing."""


@cache
def judged(seed: int, policy: bool, /) -> Counter[str]:
    """One run, made once."""
    return simulate(seed, policy)


def seeds(every_time: int) -> range:
    count = int(os.environ.get("FILA_SIM_SEEDS", SEEDS_SOAK if os.environ.get("FILA_SOAK") else every_time))
    return range(1, count + 1)


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
    share = count / SEEDS_EVERY_TIME

    assert {name: total[name] for name, least in JUDGES.items() if total[name] < least * share} == {}
    assert set(total) == set(JUDGES)
