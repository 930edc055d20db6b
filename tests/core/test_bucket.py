"""Token buckets: never above the curve, and not below it while somebody waits."""

import random
from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fila_server.core.structures.bucket import TokenBucket
from fila_server.core.structures.reference import ReferenceBucket
from tests.core.at_length import LONG_SCRIPTS

NS_PER_S = 1_000_000_000
LATENESS_NS = 10_000_000
NEVER = 2**63 - 1
NEAR = Fraction(1, 1_000_000)  # of a token: where doubles and fractions may decide differently

rates = st.one_of(st.just(0.0), st.sampled_from([0.001, 0.3, 1.0, 7.0, 400.0]), st.floats(0, 1e6))
bursts = st.one_of(st.just(0.0), st.just(1.0), st.floats(1, 1000))
pauses_ns = st.one_of(
    st.integers(0, 10_000),
    st.integers(0, LATENESS_NS),
    st.integers(0, NS_PER_S),
    st.integers(0, 3600 * NS_PER_S),
)
steps = st.one_of(
    st.tuples(st.just("refill"), pauses_ns, st.booleans()),
    st.tuples(st.just("drain"), st.integers(1, 20)),
    st.tuples(st.just("give_back")),
    st.tuples(st.just("back_in_time"), pauses_ns),
    st.tuples(st.just("configure"), rates, bursts),
    st.tuples(st.just("until_due"), st.integers(0, LATENESS_NS)),
)


def take_if_both_agree(bucket: TokenBucket, reference: ReferenceBucket) -> bool:
    assert bucket.has() == (reference.level >= 1) or abs(reference.level - 1) < NEAR
    taken = bucket.take()
    if taken:
        reference.take()
    return taken


def due_of_both(bucket: TokenBucket, reference: ReferenceBucket) -> int:
    due_ns, exact_ns = bucket.due_ns(), reference.due_ns()
    if exact_ns is None or exact_ns > NEVER:
        assert due_ns == NEVER
    elif abs(reference.level - 1) > NEAR and exact_ns < 2**60:
        assert abs(due_ns - exact_ns) <= 2 + (exact_ns - reference.refilled_ns) * NEAR
    return due_ns


@settings(max_examples=LONG_SCRIPTS)
@given(rate=rates, burst=bursts, script=st.lists(steps, min_size=40, max_size=150))
def test_the_compiled_bucket_agrees_with_exact_arithmetic(rate, burst, script):
    now_ns = 5 * NS_PER_S
    bucket, reference = TokenBucket(rate, burst, now_ns), ReferenceBucket(rate, burst, now_ns)
    both = (bucket, reference)
    for name, *arguments in script:
        if name == "refill":
            now_ns += arguments[0]
            for each in both:
                each.refill(now_ns, arguments[1])
        elif name == "back_in_time":
            for each in both:
                each.refill(now_ns - arguments[0], True)
        elif name == "drain":
            for _ in range(arguments[0]):
                if not take_if_both_agree(*both):
                    break
        elif name == "give_back":
            for each in both:
                each.give_back()
        elif name == "configure":
            for each in both:
                each.configure(arguments[0], arguments[1], now_ns)
        elif (due_ns := due_of_both(*both)) < 2**60:
            now_ns = max(now_ns, due_ns + arguments[0])
            for each in both:
                each.refill(now_ns, True)
            assert bucket.has()
        assert abs(Fraction(bucket.level) - reference.level) <= NEAR * (1 + abs(reference.level))
        if abs(reference.level - round(reference.level)) > NEAR:
            assert bucket.tokens() == max(0, reference.level // 1)


@given(
    rate=st.floats(0, 5000),
    burst=st.one_of(st.just(0.0), st.floats(1, 200)),
    script=st.lists(st.tuples(pauses_ns, st.booleans(), st.integers(0, 400)), min_size=20, max_size=80),
)
def test_over_any_window_no_more_passes_than_the_curve_allows(rate, burst, script):
    bucket = TokenBucket(rate, burst)
    now_ns = passed = 0
    start = 0.0  # the largest rate * t - passes before some pass: where a window is worst begun
    starts = []
    for pause_ns, demanded, wanted in script:
        now_ns += pause_ns
        bucket.refill(now_ns, demanded)
        for _ in range(wanted):
            starts.append(rate * now_ns / NS_PER_S - passed)
            start = max(starts) if len(starts) == 1 else max(start, starts[-1])
            if not bucket.take():
                break
            passed += 1
            in_window = start - (rate * now_ns / NS_PER_S - passed)
            assert in_window <= burst + rate * 0.010 + 1 + 1e-6
    assert burst > 0 or passed == 0


@settings(max_examples=30)
@given(rate=st.floats(0.1, 1500), burst=st.one_of(st.just(1.0), st.floats(1, 50)), seed=st.integers(0, 2**32))
@example(rate=400.0, burst=1.0, seed=0)
@example(rate=99.9, burst=1.0, seed=1)
def test_a_waiter_that_wakes_up_to_ten_milliseconds_late_gets_the_configured_rate(rate, burst, seed):
    chance = random.Random(seed)
    bucket = TokenBucket(rate, burst)
    late_ns_max = chance.choice([0, 50_000, 1_000_000, LATENESS_NS])
    now_ns = passed = 0

    while now_ns <= 10 * NS_PER_S:
        bucket.refill(now_ns, True)
        while bucket.take():
            passed += 1
        now_ns = bucket.due_ns() + chance.randint(0, late_ns_max)

    assert passed >= rate * 10 * 0.99 - 1
    assert passed <= rate * 10 * 1.01 + burst + 1


def test_an_idle_bucket_saves_no_more_than_its_burst():
    bucket = TokenBucket(100, 5)
    bucket.refill(3600 * NS_PER_S)
    assert bucket.tokens() == 5


def test_a_look_by_somebody_who_does_not_wait_cuts_no_credit():
    bucket = TokenBucket(1000, 1)
    bucket.refill(LATENESS_NS, True)
    assert bucket.tokens() == 11
    bucket.refill(LATENESS_NS, False)
    bucket.refill(LATENESS_NS + 1, False)
    assert bucket.tokens() == 11


def test_nothing_above_the_burst_is_earned_while_nobody_waits():
    bucket = TokenBucket(1000, 1)
    bucket.refill(LATENESS_NS // 2, True)
    assert bucket.tokens() == 6
    bucket.refill(3600 * NS_PER_S, False)
    assert bucket.tokens() == 6


def test_one_sleeper_that_takes_all_it_finds_loses_nothing_to_its_own_second_look():
    bucket = TokenBucket(400, 1)
    now_ns = passed = 0

    while now_ns <= 10 * NS_PER_S:
        bucket.refill(now_ns, True)  # the timer, while it waits
        bucket.refill(now_ns + 1000, False)  # on its turn: it left the line, so nobody waits
        while bucket.take():
            passed += 1
        now_ns = bucket.due_ns() + 8_000_000

    assert abs(passed - 4000) <= 40 + 2


def test_a_burst_of_zero_stops_everything_at_any_rate():
    bucket = TokenBucket(1e9, 0)
    bucket.refill(3600 * NS_PER_S, True)
    assert not bucket.has()
    assert bucket.due_ns() == NEVER


def test_a_rate_of_zero_gives_only_what_is_there():
    bucket = TokenBucket(0, 3)
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    bucket.refill(NEVER // 2, True)
    assert not bucket.has()
    assert bucket.due_ns() == NEVER


def test_a_token_that_is_there_is_due_now_even_at_a_rate_of_zero():
    bucket = TokenBucket(0, 3, now_ns=77)
    assert bucket.due_ns() == 77


def test_who_sleeps_until_a_token_is_due_finds_it():
    for rate in (1e-6, 0.1, 1 / 3, 3, 7, 400, 997.7, 123_456.789, 1e12):
        bucket = TokenBucket(rate, 1, now_ns=1_000_000_007)
        for _ in range(200):
            assert bucket.take()
            while bucket.take():  # a nanosecond may bring more than one
                pass
            bucket.refill(bucket.due_ns(), True)


def test_ten_tenths_of_a_token_are_a_token():
    bucket = TokenBucket(0.1, 1)
    bucket.take()
    for second in range(1, 11):
        bucket.refill(second * NS_PER_S, True)
    assert bucket.level < 1  # in doubles
    assert bucket.has()
    assert bucket.tokens() == 1


def test_a_new_limit_keeps_the_level_and_clamps_it():
    bucket = TokenBucket(10, 100)
    bucket.configure(1, 20, 0)
    assert bucket.tokens() == 20
    bucket.configure(1, 50, 0)
    assert bucket.tokens() == 20


def test_time_before_a_change_earns_at_the_old_rate():
    bucket = TokenBucket(2, 10)
    while bucket.take():
        pass
    bucket.configure(1000, 10, 3 * NS_PER_S)
    assert bucket.tokens() == 6


def test_a_token_given_back_does_not_lift_a_bucket_above_its_burst():
    bucket = TokenBucket(1, 2)
    bucket.give_back()
    assert bucket.tokens() == 2
    bucket.take()
    bucket.give_back()
    assert bucket.tokens() == 2


def test_a_clock_that_goes_back_takes_nothing_and_adds_nothing():
    bucket = TokenBucket(1, 10, now_ns=100 * NS_PER_S)
    while bucket.take():
        pass
    bucket.refill(50 * NS_PER_S)
    assert bucket.level == 0
    bucket.refill(101 * NS_PER_S)
    assert bucket.tokens() == 1


def test_a_moment_beyond_the_clocks_range_is_never():
    bucket = TokenBucket(1e-300, 1)
    bucket.take()
    assert bucket.due_ns() == NEVER


amounts = st.one_of(st.sampled_from([0.001, 1.0, 3.5, 2000.0]), st.floats(0.001, 1e4))
amount_steps = st.one_of(
    st.tuples(st.just("refill"), pauses_ns, st.booleans()),
    st.tuples(st.just("take"), amounts, st.sampled_from([0.0, 1.0, 7.25])),
    st.tuples(st.just("give_back"), amounts),
    st.tuples(st.just("configure"), rates, bursts),
)


@settings(max_examples=LONG_SCRIPTS)
@given(rate=rates, burst=bursts, script=st.lists(amount_steps, min_size=20, max_size=120))
def test_amounts_agree_with_exact_arithmetic_and_overdraw_by_one_message_at_most(rate, burst, script):
    now_ns = 5 * NS_PER_S
    bucket, reference = TokenBucket(rate, burst, now_ns), ReferenceBucket(rate, burst, now_ns)
    for name, *arguments in script:
        if name == "refill":
            now_ns += arguments[0]
            bucket.refill(now_ns, arguments[1])
            reference.refill(now_ns, arguments[1])
        elif name == "take":
            amount, before = arguments
            needed = reference.needs(amount, before)
            near = abs(reference.level - needed) <= max(needed, Fraction(1)) * NEAR
            has = bucket.has_amount(amount, before)
            assert near or has == (bool(reference.burst) and reference.level >= needed)
            due_ns, exact_ns = bucket.amount_due_ns(amount, before), reference.due_ns(amount, before)
            if exact_ns is None or exact_ns > NEVER:
                assert due_ns == NEVER or near
            elif not near and exact_ns < 2**60:
                assert abs(due_ns - exact_ns) <= 2 + (exact_ns - reference.refilled_ns) * NEAR
            if has:
                bucket.take_amount(amount)
                reference.take_amount(amount)
                owed = max(Fraction(0), Fraction(amount) - reference.burst)
                assert reference.level >= -owed - NEAR * (1 + Fraction(amount))
        elif name == "give_back":
            bucket.give_back_amount(*arguments)
            reference.give_back_amount(*arguments)
        else:
            new_rate, new_burst = arguments
            bucket.configure(new_rate, new_burst, now_ns)
            reference.configure(new_rate, new_burst, now_ns)
        assert abs(bucket.level - reference.level) <= NEAR * (1 + abs(reference.level))
