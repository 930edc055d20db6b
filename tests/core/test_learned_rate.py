"""A learned rate does what its slow twin does, and never leaves its bounds."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila_server.core.structures.learned_rate import FollowingRate
from fila_server.core.structures.reference import ReferenceLearnedRate
from tests.core.at_length import LONG_SCRIPTS

NS_PER_S = 1_000_000_000
MINUTE_NS = 60 * NS_PER_S

pauses_ns = st.one_of(
    st.integers(0, NS_PER_S // 10),
    st.integers(0, 3 * NS_PER_S),
    st.integers(0, 300 * NS_PER_S),
)
steps = st.one_of(
    st.tuples(st.just("goes"), st.integers(1, 60), st.integers(0, NS_PER_S)),
    st.tuples(st.just("accepted"), st.integers(1, 60)),
    st.tuples(st.just("refused"), st.integers(0, 60), pauses_ns),
    st.tuples(st.just("remains"), st.integers(0, 60), st.integers(0, 50), st.integers(0, 50), pauses_ns),
    st.tuples(st.just("bound"), st.floats(0.01, 10), st.floats(10, 1e6)),
    st.tuples(st.just("later"), pauses_ns),
)


@settings(max_examples=LONG_SCRIPTS)
@given(
    least=st.floats(0.01, 100),
    most=st.floats(100, 1e6),
    rate=st.floats(0, 1e7),
    script=st.lists(steps, min_size=30, max_size=120),
)
def test_the_compiled_rate_agrees_with_one_that_looks_at_every_answer(least, most, rate, script):
    now_ns, departed = 5 * NS_PER_S, 0
    rates = FollowingRate(least, most, rate, now_ns), ReferenceLearnedRate(least, most, rate, now_ns)
    for name, *said in script:
        if name == "goes":
            for _ in range(said[0]):
                now_ns += said[1]
                departed += 1
                for each in rates:
                    each.grow(now_ns)
                    each.take(now_ns)
        elif name == "accepted":
            for _ in range(said[0]):
                for each in rates:
                    each.accepted()
        elif name == "refused":
            for each in rates:
                each.refused(max(0, departed - said[0]), departed, said[1], now_ns)
        elif name == "remains":
            for each in rates:
                each.remains(max(0, departed - said[0]), said[1], said[2], said[3], now_ns)
        elif name == "bound":
            least, most = said
            for each in rates:
                each.bound(least, most)
        else:
            now_ns += said[0]
            grew = [each.grow(now_ns) for each in rates]
            assert grew[0] == grew[1] or math.isclose(rates[0].rate, most)
        compiled, reference = rates
        assert math.isclose(compiled.rate, reference.rate, rel_tol=1e-6)
        assert compiled.open_ns == reference.open_ns
        assert least <= compiled.rate <= most


def test_nothing_goes_until_the_time_that_a_refusal_asked_for():
    rate = FollowingRate(1, 1000, 100)
    rate.refused(1, 1, 30 * NS_PER_S, NS_PER_S)
    assert rate.open_ns == 31 * NS_PER_S
    rate.refused(1, 1, NS_PER_S, 2 * NS_PER_S)
    assert rate.open_ns == 31 * NS_PER_S


def test_what_left_before_a_decrease_brings_no_second_one():
    rate = FollowingRate(1, 1000, 100)
    rate.refused(5, 10, 0, NS_PER_S)
    assert rate.rate == pytest.approx(92.15)
    for _ in range(100):
        rate.accepted()
    rate.refused(9, 10, 0, NS_PER_S)
    assert rate.rate == pytest.approx(92.15, abs=0.1)
    rate.refused(11, 20, 0, NS_PER_S)
    assert rate.rate < 86


def test_a_limit_of_which_half_is_gone_is_felt_within_one_round_of_answers():
    rate = FollowingRate(1, 1000, 100)
    for _ in range(20):
        rate.refused(1, 40, 0, NS_PER_S)
        rate.accepted()
    assert rate.rate == pytest.approx(50, abs=8)


def test_a_rate_that_holds_nobody_does_not_grow():
    rate = FollowingRate(1, 1000, 100)
    rate.grow(60 * NS_PER_S)
    assert rate.rate < 102


def test_a_rate_that_is_waited_for_comes_back_to_where_it_was_refused_and_goes_beyond():
    rate = FollowingRate(1, 1000, 100)
    rate.refused(1, 1, 0, 0)
    seen = {}
    for tenth in range(1, 600):
        rate.grow(tenth * NS_PER_S // 10)
        seen[tenth // 10] = rate.rate
    assert seen[1] < 93
    assert seen[17] == pytest.approx(100, abs=0.5)
    assert seen[27] < 120
    assert seen[59] > 400


def test_a_provider_that_is_down_gets_a_try_in_ten_seconds_at_the_lower_bound_of_a_tenth():
    rate = FollowingRate(0.1, 1000, 100)
    now_ns, tries = 0, 0
    while now_ns < 10 * MINUTE_NS:
        tries += 1
        rate.grow(now_ns)
        rate.refused(tries, tries, 0, now_ns)
        now_ns += int(NS_PER_S / rate.rate)
    assert rate.rate == pytest.approx(0.1)
    assert tries < 200


def test_no_more_go_than_remain_until_the_reset():
    rate = FollowingRate(1, 1000, 100)
    rate.remains(1, 5, 2, 10 * NS_PER_S, 0)
    gone = 0
    while rate.open_ns == 0:
        rate.take(NS_PER_S)
        gone += 1
    assert (gone, rate.open_ns) == (3, 10 * NS_PER_S)


def test_an_answer_that_comes_late_does_not_undo_what_a_later_departure_was_told():
    rate = FollowingRate(1, 1000, 100)
    rate.remains(7, 50, 0, 10 * NS_PER_S, 0)
    rate.remains(3, 0, 0, 60 * NS_PER_S, 0)
    assert rate.open_ns == 0
    rate.remains(8, 0, 0, 60 * NS_PER_S, 0)
    assert rate.open_ns == 60 * NS_PER_S
