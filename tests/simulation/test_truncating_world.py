"""A group whose log forgets its beginning, and whose nodes lose their disks: two copies have what is truncated."""

from __future__ import annotations

import pytest

from tests.simulation.group_world import run
from tests.simulation.truncating_world import TruncatingWorld

SEEDS_A_TEST = 5


@pytest.mark.parametrize("first", range(1, 16, SEEDS_A_TEST))
def test_two_copies_have_what_is_truncated_and_who_lacks_it_takes_a_copy(first):
    judged = run(first, SEEDS_A_TEST, TruncatingWorld)
    assert judged["answers"] > 30 * SEEDS_A_TEST
    assert judged["truncations"] > SEEDS_A_TEST
    assert judged["copies"] > SEEDS_A_TEST // 2
    assert judged["disks lost"] > SEEDS_A_TEST
    assert judged["synced"]
