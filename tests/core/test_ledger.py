"""What was spent of so much a period, against a ledger that keeps every entry."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila_server.core.structures.ledger import PeriodLedger
from fila_server.core.structures.reference import ReferenceLedger
from tests.core.at_length import LONG_SCRIPTS

amounts = st.one_of(st.sampled_from([1.0, 5.0, 100.0]), st.floats(0.001, 1e9))
costs = st.one_of(st.sampled_from([0.001, 1.0, 7.5, 1e6]), st.floats(0.001, 1e6))
periods_ms = st.sampled_from([1000, 60_000, 86_400_000])
anchors_ms = st.integers(-8_640_000_000_000, 8_640_000_000_000)
steps = st.one_of(
    st.tuples(st.just("turn"), st.integers(-200_000, 200_000)),
    st.tuples(st.just("take"), costs),
    st.tuples(st.just("give_back"), costs),
    st.tuples(st.just("reset"), costs),
    st.tuples(st.just("configure"), amounts, periods_ms),
)


@settings(max_examples=LONG_SCRIPTS)
@given(amounts, periods_ms, anchors_ms, st.lists(steps, min_size=5, max_size=80))
def test_the_compiled_ledger_agrees_with_one_that_keeps_every_entry(amount, period_ms, anchor_ms, script):
    now_ms = 1_700_000_000_000
    ledger = PeriodLedger(amount, period_ms, anchor_ms, now_ms)
    reference = ReferenceLedger(amount, period_ms, anchor_ms, now_ms)
    for name, *arguments in script:
        if name == "turn":
            now_ms += arguments[0]
            ledger.turn(now_ms)
            reference.turn(now_ms)
        elif name == "take":
            exact = reference.amount - reference.spent - min(Fraction(arguments[0]), reference.amount)
            if abs(exact) > reference.amount * Fraction(1, 10**6):
                assert ledger.has(*arguments) == reference.has(*arguments)
            if ledger.has(*arguments):
                ledger.take(*arguments)
                reference.take(*arguments)
        elif name == "configure":
            amount, period_ms = arguments
            ledger.configure(amount, period_ms, anchor_ms, now_ms)
            reference.configure(amount, period_ms, anchor_ms, now_ms)
        else:
            getattr(ledger, name)(*arguments)
            getattr(reference, name)(*arguments)
        assert ledger.period == reference.period
        assert ledger.ends_ms() == reference.ends_ms()
        assert ledger.spent == pytest.approx(float(reference.spent), rel=1e-9, abs=1e-3)


@given(st.lists(st.tuples(st.integers(-500_000, 500_000), costs), max_size=200))
def test_no_period_has_more_than_its_amount_however_the_clock_is_set(script):
    amount, now_ms = 100.0, 1_700_000_000_000
    ledger = PeriodLedger(amount, 60_000, 0, now_ms)
    spent: dict[int, float] = {}
    newest = ledger.period
    for step_ms, cost in script:
        now_ms += step_ms
        ledger.turn(now_ms)
        assert ledger.period >= newest
        newest = ledger.period
        if ledger.has(cost):
            ledger.take(cost)
            spent[newest] = spent.get(newest, 0) + cost
            assert spent[newest] <= max(amount, cost) + 1e-6


def test_a_recovered_ledger_keeps_what_was_spent_in_its_period_and_nothing_of_an_earlier_one():
    ledger = PeriodLedger(10, 60_000, 0, 120_000)
    ledger.recover(2, 7, 150_000)
    assert (ledger.period, ledger.spent) == (2, 7)
    ledger.recover(1, 7, 150_000)
    assert (ledger.period, ledger.spent) == (2, 0)
    ledger.recover(9, 7, 150_000)
    assert (ledger.period, ledger.spent) == (9, 7), (
        "a clock that was set back over the start opens no period again"
    )
