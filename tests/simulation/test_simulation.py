"""Seeded runs of the whole core against its model. FILA_SIM_SEEDS=2000 (make soak) runs that many; see simulate.py."""

import os

import pytest

from tests.simulation.simulate import simulate

SEEDS_EVERY_TIME = 30
POLICY_SEEDS_EVERY_TIME = 20
SEEDS_SOAK = 3000


def seeds(every_time: int) -> range:
    count = int(os.environ.get("FILA_SIM_SEEDS", SEEDS_SOAK if os.environ.get("FILA_SOAK") else every_time))
    return range(1, count + 1)


@pytest.mark.parametrize("seed", seeds(SEEDS_EVERY_TIME))
def test_the_core_keeps_its_promises_whatever_happens_to_it(seed: int) -> None:
    assert simulate(seed) > 0


@pytest.mark.parametrize("seed", seeds(POLICY_SEEDS_EVERY_TIME))
def test_policy_may_change_under_everything_and_hooks_may_decide_late_or_never(seed: int) -> None:
    assert simulate(seed, policy=True) > 0
