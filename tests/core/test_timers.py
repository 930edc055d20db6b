"""Timers fire when due, earliest first, and a moved or cancelled one not where it used to be."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from fila_server.core.structures.reference import ReferenceTimers
from fila_server.core.structures.timers import TimerHeap
from tests.core.at_length import LONG_SCRIPTS

NEVER = 2**63 - 1

numbers = st.integers(0, 39)
moments_ns = st.one_of(st.integers(0, 50), st.integers(-(2**63), NEVER))
steps = st.one_of(
    *[st.tuples(st.just("set"), numbers, moments_ns)] * 3,
    st.tuples(st.just("cancel"), numbers),
    st.tuples(st.just("pop_due"), moments_ns),
)


def pop_of_both(timers: TimerHeap, reference: ReferenceTimers, now_ns: int) -> bool:
    due = reference.due(now_ns)
    number = timers.pop_due(now_ns)
    assert (number in due) if due else (number is None)
    if number is not None:
        assert not timers.is_set(number)
        reference.cancel(number)
    return number is not None


@settings(max_examples=LONG_SCRIPTS)
@given(st.lists(steps, min_size=60, max_size=250))
def test_the_compiled_timers_agree_with_a_look_at_them_all(script):
    timers, reference = TimerHeap(40), ReferenceTimers()
    for name, *arguments in script:
        if name == "pop_due":
            pop_of_both(timers, reference, *arguments)
        else:
            getattr(timers, name)(*arguments)
            getattr(reference, name)(*arguments)
        assert timers.next() == reference.next()
        assert len(timers) == len(reference.due_ns_by_number)
    while pop_of_both(timers, reference, NEVER):
        pass
    assert len(timers) == 0


@given(st.integers(0, 2**32))
def test_cancelling_in_any_order_keeps_the_rest_in_order(seed):
    chance = random.Random(seed)
    timers = TimerHeap(300)
    due_ns = [chance.randrange(1000) for _ in range(300)]
    for number in range(300):
        timers.set(number, due_ns[number])
    for number in (cancelled := set(chance.sample(range(300), 150))):
        timers.cancel(number)

    fired = []
    while (number := timers.pop_due(1000)) is not None:
        fired.append(number)

    assert sorted(fired) == [n for n in range(300) if n not in cancelled]
    assert [due_ns[n] for n in fired] == sorted(due_ns[n] for n in fired)


def test_a_timer_fires_at_its_moment_and_not_before():
    timers = TimerHeap(1)
    timers.set(0, 100)

    assert timers.pop_due(99) is None
    assert timers.pop_due(100) == 0
    assert timers.pop_due(100) is None


def test_a_timer_set_again_fires_once_at_its_new_moment():
    timers = TimerHeap(2)
    timers.set(0, 100)
    timers.set(1, 150)
    timers.set(0, 200)

    assert timers.next() == 150
    assert [timers.pop_due(NEVER) for _ in range(3)] == [1, 0, None]


def test_cancelling_what_is_not_set_does_nothing():
    timers = TimerHeap(1)
    timers.cancel(0)
    timers.set(0, 5)
    timers.cancel(0)
    timers.cancel(0)
    assert (len(timers), timers.next()) == (0, NEVER)


def test_memory_is_given_back_when_the_timers_have_fired():
    timers = TimerHeap(10_000)
    for number in range(10_000):
        timers.set(number, number)
    grown = timers.capacity

    while timers.pop_due(NEVER) is not None:
        pass

    assert grown >= 10_000
    assert timers.capacity <= 64
