"""Seeded runs of the whole core against its model. FILA_SIM_SEEDS=2000 (make soak) runs that many; see simulate.py."""

import os

import pytest

from tests.simulation.simulate import simulate

SEEDS_EVERY_TIME = 30
SEEDS_SOAK = 3000
# Reproduced, not settled: the core or the model is wrong there. Each is to be shrunk and struck off.
UNEXPLAINED: frozenset[int] = frozenset()


def seeds() -> list[int]:
    count = int(
        os.environ.get("FILA_SIM_SEEDS", SEEDS_SOAK if os.environ.get("FILA_SOAK") else SEEDS_EVERY_TIME)
    )
    return [seed for seed in range(1, count + 1) if seed not in UNEXPLAINED]


@pytest.mark.parametrize("seed", seeds())
def test_the_core_keeps_its_promises_whatever_happens_to_it(seed: int) -> None:
    assert simulate(seed) > 0
