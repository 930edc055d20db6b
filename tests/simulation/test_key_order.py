"""Keys in order, and priorities inside keys, judged by slow twins over histories by chance: kills, power cuts, order
switched on and off."""

from types import SimpleNamespace
from typing import cast

import pytest

from tests.simulation.key_order import History
from tests.simulation.model import DECIDING, DELAYED, LEASED, READY, ChannelModel, Entry, Note
from tests.simulation.oracles import Broken, OneAtATime
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


def notes_of_a_key(state: str, *, maybe: bool) -> tuple[Note, Note]:
    """One that waits, and an earlier one of its key, in order."""
    channel = SimpleNamespace(name="a", queue=SimpleNamespace(in_order=True))
    notes = [
        Note(cast("Entry", SimpleNamespace(key="ant")), cast("ChannelModel", channel), state=each)
        for each in (READY, state)
    ]
    channel.all_notes = lambda: notes
    notes[1].maybe, notes[1].keeps_place = maybe, True
    return notes[0], notes[1]


@pytest.mark.parametrize("state", [LEASED, DECIDING, DELAYED])
def test_the_judge_sees_that_a_message_goes_beside_another_of_its_key(state: str) -> None:
    note, _ = notes_of_a_key(state, maybe=False)

    with pytest.raises(Broken, match="held its key"):
        OneAtATime().picked(note, hidden=False)


@pytest.mark.parametrize("state", [DECIDING, DELAYED])
def test_one_that_may_have_been_taken_back_after_it_failed_holds_nothing_up(state: str) -> None:
    note, _ = notes_of_a_key(state, maybe=True)
    judge = OneAtATime()

    judge.picked(note, hidden=False)

    assert judge.judged == 1
