"""The latest wins, over histories by chance: kills, power cuts, failures, delays, two channels."""

import pytest

from tests.simulation.replacing import History


@pytest.mark.parametrize("seed", range(12))
def test_the_newest_of_a_dedup_key_is_what_is_delivered(seed: int) -> None:
    history = History(seed)
    try:
        history.run(160)
    finally:
        history.engine.remove()

    assert history.judged["deliveries"] > 20
    assert history.judged["looks"] > 40


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_more_histories_of_replacements(seed: int) -> None:
    history = History(seed)
    try:
        history.run(400)
    finally:
        history.engine.remove()
