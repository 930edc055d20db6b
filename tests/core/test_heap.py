"""The pairing heap: the lowest rank is first, whatever came and went before."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila_server.core.structures.heap import RankHeap
from fila_server.core.structures.reference import ReferenceHeap
from tests.core.at_length import LONG_SCRIPTS

numbers = st.integers(0, 39)
ranks = st.one_of(st.integers(0, 30), st.integers(-(2**63), 2**63 - 1))
steps = st.one_of(
    *[st.tuples(st.just("insert"), numbers, ranks)] * 3,
    st.tuples(st.just("remove"), numbers),
    st.tuples(st.just("remove_first")),
)


@settings(max_examples=LONG_SCRIPTS)
@given(st.lists(steps, min_size=60, max_size=250))
def test_the_compiled_heap_agrees_with_a_look_at_all_of_it(script):
    heap, reference = RankHeap(40), ReferenceHeap()
    for name, *arguments in script:
        if name == "insert":
            if not heap.in_heap(arguments[0]):
                heap.insert(*arguments)
                reference.insert(*arguments)
        else:
            number = heap.first() if name == "remove_first" else arguments[0]
            if number is not None and heap.in_heap(number):
                heap.remove(number)
                reference.remove(number)
        assert [heap.in_heap(n) for n in range(40)] == [n in reference.rank_by_number for n in range(40)]
        first = heap.first()
        assert (first in reference.first()) if reference.rank_by_number else (first is None)


@given(st.integers(0, 2**32))
def test_nodes_taken_out_of_the_middle_leave_the_rest_in_order(seed):
    chance = random.Random(seed)
    heap = RankHeap(400)
    rank = chance.sample(range(10_000), 400)
    left = set(range(400))
    for number in range(400):
        heap.insert(number, rank[number])

    order = []
    while left:
        number = heap.first()
        order.append(number)
        for gone in {number, *chance.sample(sorted(left), min(2, len(left)))}:
            heap.remove(gone)
            left.remove(gone)

    assert heap.first() is None
    assert [rank[n] for n in order] == sorted(rank[n] for n in order)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_hundred_thousand_siblings_are_paired_without_recursion(direction):
    count = 100_000
    heap = RankHeap(count)
    for number in range(count):
        heap.insert(number, direction * number)

    order = []
    for _ in range(count):
        order.append(heap.first())
        heap.remove(order[-1])

    assert order == list(range(count))[::direction]


def test_of_equal_ranks_the_one_that_came_first_stays_first():
    heap = RankHeap(3)
    for number in range(3):
        heap.insert(number, 7)
    assert heap.first() == 0
