"""Keys in order, and priorities inside keys, judged by slow twins over histories by chance: kills, power cuts, order
switched on and off."""

import pytest

from tests.simulation.key_order import History
from tests.simulation.priorities import RankedHistory


@pytest.mark.parametrize("seed", range(12))
def test_a_key_in_order_sends_what_its_slow_twin_says(seed: int) -> None:
    history = History(seed)
    try:
        history.run(250)
    finally:
        history.engine.remove()

    assert history.judged > 30


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_more_histories_of_keys_in_order(seed: int) -> None:
    history = History(seed)
    try:
        history.run(400)
    finally:
        history.engine.remove()


@pytest.mark.parametrize("seed", range(6))
def test_a_key_sends_by_priority_what_its_slow_twin_says(seed: int) -> None:
    history = RankedHistory(seed)
    try:
        history.run(200)
    finally:
        history.engine.remove()

    assert history.judged > 30
    assert history.ahead > 10


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_more_histories_of_priorities(seed: int) -> None:
    history = RankedHistory(seed)
    try:
        history.run(400)
    finally:
        history.engine.remove()
