"""The ring: who is served next, and what coming, going and changing does to it. The promise: test_fairness.py."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila_server.core.structures.reference import DEFERRED, IDLE, ReferenceRing
from fila_server.core.structures.ring import FairRing
from tests.core.at_length import LONG_SCRIPTS

MESSAGE = 1000  # the cost of one message, in thousandths
COST_MAX = 1_000_000_000

flows = st.integers(0, 5)
costs = st.one_of(st.integers(1, 3_000), st.integers(1, 60_000))  # thousandths of a quantum: the twin walks
steps = st.one_of(
    *[st.tuples(st.just("send"), st.integers(1, 5), costs)] * 3,
    *[
        st.tuples(st.just(name), flows)
        for name in ("join", "join", "leave", "park", "rejoin", "again", "pass_on")
    ],
    st.tuples(st.just("refund"), flows, costs),
    st.tuples(st.just("reweigh"), flows, st.one_of(st.integers(0, 4), st.integers(0, 1000))),
)


def send(ring: FairRing | ReferenceRing, cost: int) -> tuple[int, int, bool] | None:
    """Ask whose turn it is and send one message if that flow can pay. Returns flow, deficit before, sent."""
    flow = ring.turn()
    if flow is None:
        return None
    deficit = ring.deficit(flow)
    sent = ring.afford(flow, cost)
    if sent:
        ring.charge(flow, cost)
    return flow, deficit, sent


def serve(ring: FairRing, cost: int = MESSAGE) -> int:
    """Send one message and return whose."""
    while True:
        pick = send(ring, cost)
        assert pick is not None
        if pick[2]:
            return pick[0]


@settings(max_examples=LONG_SCRIPTS)
@given(quantum=st.integers(1, 1500), script=st.lists(steps, min_size=60, max_size=250))
def test_the_compiled_ring_agrees_with_one_that_walks_every_round(quantum, script):
    ring, reference = FairRing(quantum, 6), ReferenceRing(quantum, 6)
    for name, *arguments in script:
        if name in ("send", "refund"):
            arguments[1] = -(-arguments[1] * quantum // 1000)
        if name == "send":
            times, cost = arguments
            for _ in range(times):
                assert send(ring, cost) == send(reference, cost)
        else:
            getattr(ring, name)(*arguments)
            getattr(reference, name)(*arguments)
        assert ring.round == reference.round
        for flow in range(6):
            assert ring.place(flow) == reference.place(flow)
            if ring.place(flow) != DEFERRED:  # the grants of one that waits are not written down yet
                assert ring.deficit(flow) == reference.deficit(flow)


def test_a_quiet_flow_is_not_made_to_wait_for_the_backlog_of_a_noisy_one():
    ring = FairRing(1000, 2)
    backlog = {0: 100, 1: 5}
    ring.join(0)
    ring.join(1)
    order = []

    while any(backlog.values()):
        flow = serve(ring)
        order.append(flow)
        backlog[flow] -= 1
        if backlog[flow] == 0:
            ring.leave(flow)

    assert order[:10] == [0, 1] * 5
    assert order[10:] == [0] * 95


def test_a_weight_of_three_gets_three_messages_to_one():
    ring = FairRing(1000, 2)
    ring.reweigh(0, 3)
    ring.join(0)
    ring.join(1)

    assert [serve(ring) for _ in range(8)] == [0, 0, 0, 1, 0, 0, 0, 1]


def test_a_message_of_a_million_million_rounds_is_reached_in_one_step():
    ring = FairRing(1, 2)
    ring.join(0)
    ring.join(1)

    assert [send(ring, COST_MAX) for _ in range(2)] == [(0, 1, False), (1, 1, False)]
    assert [ring.place(flow) for flow in (0, 1)] == [DEFERRED, DEFERRED]
    assert send(ring, COST_MAX) == (0, COST_MAX, True)
    assert ring.round == COST_MAX


def test_a_flow_that_goes_idle_forfeits_its_deficit():
    ring = FairRing(1000, 2)
    ring.join(0)
    ring.join(1)
    assert ring.turn() == 0
    ring.charge(0, 100)

    ring.leave(0)
    ring.join(0)

    assert ring.deficit(0) == 0
    assert ring.turn() == 1  # and it is behind those that stayed


def test_leaving_and_joining_within_a_round_earns_no_second_grant():
    ring = FairRing(1000, 3)
    for flow in range(3):
        ring.join(flow)
    order = []

    for _ in range(9):
        flow = serve(ring)
        order.append(flow)
        if flow == 0:
            ring.leave(0)
            ring.join(0)

    assert Counter(order) == {0: 3, 1: 3, 2: 3}


def test_a_throttled_flow_keeps_at_most_one_grant():
    ring = FairRing(1000, 2)
    ring.join(0)
    assert not ring.afford(ring.turn(), 5_000)
    ring.join(1)
    for _ in range(3):
        serve(ring)

    ring.park(0)

    assert ring.place(0) == IDLE
    assert ring.deficit(0) == 1000


def test_a_throttled_flow_returns_at_the_end_with_what_it_kept():
    ring = FairRing(1000, 3)
    for flow in range(3):
        ring.join(flow)
    assert ring.turn() == 0
    ring.charge(0, 400)

    ring.park(0)
    ring.rejoin(0)

    assert ring.deficit(0) == 600
    assert [serve(ring) for _ in range(3)] == [1, 2, 0]


def test_a_weight_going_up_and_down_within_a_turn_earns_nothing():
    ring = FairRing(1000, 1)
    ring.join(0)
    ring.turn()
    spent = 0

    for _ in range(50):
        ring.reweigh(0, 1000)
        ring.reweigh(0, 1)
        ring.turn()
        paid = min(ring.deficit(0), 500)
        ring.charge(0, paid)
        spent += paid

    assert spent <= 1000


def test_a_lower_weight_takes_back_what_the_running_grant_gave_too_much():
    ring = FairRing(1000, 1)
    ring.reweigh(0, 1000)
    ring.join(0)
    ring.turn()

    ring.reweigh(0, 2)

    assert ring.deficit(0) == 2000


def test_a_higher_weight_shortens_the_wait_of_a_flow_that_saves_for_a_large_message():
    ring = FairRing(1000, 1)
    ring.join(0)
    assert not ring.afford(ring.turn(), 1_000_000)

    ring.reweigh(0, 1000)

    assert not ring.afford(ring.turn(), 1_002_000)
    assert ring.afford(ring.turn(), 1_002_000 - 1000)
    assert ring.round == 3


def test_what_comes_back_is_paid_back_up_to_one_grant():
    ring = FairRing(1000, 2)
    ring.join(0)
    ring.join(1)
    assert [serve(ring) for _ in range(4)] == [0, 1, 0, 1]

    for _ in range(250):
        ring.refund(0, MESSAGE)

    assert [serve(ring) for _ in range(4)] == [0, 0, 1, 0]


def test_taking_and_returning_for_ever_saves_no_more_than_one_grant():
    ring = FairRing(1000, 2)
    ring.reweigh(0, 10)
    ring.join(0)
    ring.join(1)

    for _ in range(100):
        assert serve(ring) == 0
        ring.refund(0, MESSAGE)
        assert serve(ring) == 1

    assert ring.deficit(0) <= 10 * MESSAGE


def test_a_refund_does_not_lift_a_flow_that_saves_above_one_grant():
    ring = FairRing(1000, 1)
    ring.join(0)
    assert not ring.afford(ring.turn(), 50_000)

    ring.refund(0, 48_000)

    assert ring.turn() == 0
    assert not ring.afford(0, 50_000)
    assert ring.deficit(0) <= 2_000


def test_a_refund_to_a_throttled_flow_does_not_lift_it_above_one_grant():
    ring = FairRing(1000, 1)
    ring.join(0)
    ring.charge(ring.turn(), 700)
    ring.park(0)

    ring.refund(0, 50_000)

    assert ring.deficit(0) == 1000


def test_passing_the_turn_on_for_ever_saves_no_more_than_one_grant():
    ring = FairRing(1000, 2)
    ring.join(0)
    ring.join(1)

    for _ in range(10):
        ring.pass_on(ring.turn())

    assert ring.deficit(0) == ring.deficit(1) == 1000


def test_passing_the_turn_on_does_not_lose_what_was_saved_for_a_large_message():
    ring = FairRing(1000, 1)
    ring.join(0)
    assert not ring.afford(ring.turn(), 5_000)
    assert ring.turn() == 0
    assert ring.deficit(0) == 5_000

    ring.pass_on(0)

    assert ring.turn() == 0
    assert ring.deficit(0) == 5_000


def test_a_flow_may_leave_while_it_waits_for_a_round():
    ring = FairRing(1000, 4)
    for flow in range(4):
        ring.join(flow)
        assert not ring.afford(ring.turn(), 10_000 * (flow + 1))

    ring.leave(1)
    ring.leave(0)

    assert ring.counts == (0, 2)
    assert (ring.turn(), ring.round) == (2, 30 + 2)


@given(st.integers(0, 2**32))
def test_flows_that_leave_the_waiting_keep_the_rest_in_order(seed):
    chance = random.Random(seed)
    ring = FairRing(1000, 200)
    grants_needed = [chance.randint(2, 400) for _ in range(200)]
    for flow in range(200):
        ring.join(flow)
    for _ in range(200):
        flow = ring.turn()
        assert not ring.afford(flow, 1000 * grants_needed[flow])

    gone = set(chance.sample(range(200), 120))
    for flow in sorted(gone, key=lambda _: chance.random()):
        ring.leave(flow)
    order = []
    while (flow := ring.turn()) is not None:
        assert ring.round == grants_needed[flow]
        order.append(flow)
        ring.leave(flow)

    expected = sorted(set(range(200)) - gone, key=lambda flow: (grants_needed[flow], flow))
    assert order == expected


def test_an_empty_ring_has_nobody_at_turn():
    ring = FairRing(1000, 1)
    assert ring.turn() is None
    ring.join(0)
    assert ring.turn() == 0
    ring.leave(0)
    assert ring.turn() is None


def test_a_weight_nobody_set_counts_as_one():
    ring = FairRing(1000, 1)
    ring.reweigh(0, 0)
    ring.join(0)

    assert ring.turn() == 0
    assert ring.deficit(0) == 1000


@pytest.mark.parametrize("first_round", [(1 << 60) - 5, 1 << 60, (1 << 60) + 1])
def test_the_round_count_starts_over_long_before_it_overflows(first_round):
    ring, fresh = FairRing(1, 3, first_round), FairRing(1, 3)
    for flow in range(3):
        ring.join(flow)
        fresh.join(flow)

    for step in range(60):
        cost = 1 + 7 * step % 23
        assert send(ring, cost) == send(fresh, cost)

    assert ring.round < 1000


def test_a_million_flows_are_served_without_looking_at_them_all():
    flow_count = 1_000_000
    ring = FairRing(1000, flow_count)
    for flow in range(flow_count):
        ring.join(flow)

    # A pick that looked at every flow would take a million times a million steps here, and hours.
    assert ring.spin(flow_count, 5 * MESSAGE, 3) == flow_count
    assert sum(ring.counts) == flow_count


@pytest.mark.parametrize("at_turn", [False, True])
def test_of_a_grant_kept_through_a_throttle_a_lower_weight_leaves_one_of_its_own(at_turn):
    ring = FairRing(1000, 2)
    ring.reweigh(0, 1000)
    ring.join(0)
    ring.turn()
    ring.park(0)
    ring.rejoin(0)
    if at_turn:
        ring.turn()

    ring.reweigh(0, 2)
    ring.turn()

    assert ring.deficit(0) == 2 * 2000  # what was kept, and the grant of this turn


def test_of_what_was_given_back_to_a_flow_that_waits_a_lower_weight_leaves_one_grant_of_its_own():
    ring = FairRing(1000, 2)
    ring.reweigh(0, 8)
    ring.join(0)
    ring.join(1)
    assert [serve(ring) for _ in range(9)] == [0] * 8 + [1]
    for _ in range(8):
        ring.refund(0, MESSAGE)

    ring.reweigh(0, 1)

    assert ring.deficit(0) == MESSAGE


def test_what_was_saved_for_a_large_message_stays_when_the_weight_falls():
    ring = FairRing(1000, 1)
    ring.reweigh(0, 10)
    ring.join(0)
    ring.park(0)
    ring.rejoin(0)
    assert not ring.afford(ring.turn(), 11_000)
    assert not ring.afford(ring.turn(), 1_000_000)

    ring.reweigh(0, 1)

    assert ring.deficit(0) == 20_000


def test_a_flow_whose_next_message_changed_is_asked_again_with_all_it_is_owed():
    ring = FairRing(1000, 2)
    ring.join(0)
    ring.join(1)
    assert not ring.afford(ring.turn(), 1_000_000)
    for _ in range(3):
        serve(ring)

    ring.again(0)

    assert ring.deficit(0) == 3000
    assert ring.turn() == 1
    ring.charge(1, ring.deficit(1))
    assert not ring.afford(1, MESSAGE)
    assert ring.turn() == 0
    assert ring.round == 4
