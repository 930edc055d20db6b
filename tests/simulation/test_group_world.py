"""A group of three nodes, and whatever befalls log and nodes: every answer is true, and every store is the log's."""

from __future__ import annotations

import pytest

from tests.simulation import group_world

SEEDS_A_TEST = 10


@pytest.mark.parametrize("first", range(1, 41, SEEDS_A_TEST))
def test_every_answer_is_in_the_log_before_it_leaves_and_every_store_is_what_the_log_makes(first):
    judged = group_world.run(first, SEEDS_A_TEST)
    assert judged["answers"] > 30 * SEEDS_A_TEST
    assert judged["deliveries"] > 5 * SEEDS_A_TEST
    assert judged["emptiness"]
    assert judged["logs"]
    assert judged["takeovers"] > SEEDS_A_TEST
    assert judged["terms over"] > SEEDS_A_TEST // 4
    assert judged["crashes"] > SEEDS_A_TEST
