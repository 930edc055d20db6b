"""A group that is reseeded again and again keeps all that was answered, and its stores are the same."""

from __future__ import annotations

from tests.simulation.group_world import run
from tests.simulation.reseeding_world import ReseedingWorld

SEEDS = 5


def test_with_the_copy_that_holds_most_nothing_answered_is_lost_and_no_store_is_another():
    judged = run(1, SEEDS, ReseedingWorld)
    assert judged["reseeds"] >= 4 * SEEDS
    assert judged["copies"] > SEEDS
    assert judged["followed"] > 0
    assert judged["died"] > 0
