"""The promise of docs/fairness.md as it is stated there, its two lemmas, and the case that makes it tight."""

import random
from collections import Counter, deque

from hypothesis import given
from hypothesis import strategies as st

from fila_server.core.structures.reference import ON_RING
from fila_server.core.structures.ring import FairRing

COST_MAX = 1_000_000_000  # thousandths of a message


@st.composite
def backlogs(draw):
    """Two flows that stay backlogged, up to four that come and go, and a seed for their messages."""
    # A round is walked for every flow that can pay in it, so the extremes are combined in ways that end.
    quantum = draw(st.sampled_from([1, 7, 1000, 1_000_000]))
    weights = draw(st.lists(st.integers(1, 1000), min_size=2, max_size=6))
    cost_maxima = draw(
        st.lists(
            st.sampled_from([1, 900, 1000, 5_000, 777_777, COST_MAX]),
            min_size=len(weights),
            max_size=len(weights),
        )
    )
    return quantum, weights, cost_maxima, draw(st.integers(0, 2**32))


@given(backlogs())
def test_over_any_interval_two_backlogged_flows_stay_within_the_stated_bound(backlog):
    quantum, weights, cost_maxima, seed = backlog
    chance = random.Random(seed)
    ring = FairRing(quantum, len(weights))
    next_cost = [chance.randint(1, cost_max) for cost_max in cost_maxima]
    cost_seen_max = list(next_cost)
    for flow, weight in enumerate(weights):
        ring.reweigh(flow, weight)
        ring.join(flow)
    served = [0] * len(weights)
    drift = drift_min = drift_max = 0  # (S_0/w_0 - S_1/w_1) * w_0 * w_1, so that it stays an integer

    for _ in range(1500):
        flow = ring.turn()
        if ring.afford(flow, next_cost[flow]):
            ring.charge(flow, next_cost[flow])
            served[flow] += next_cost[flow]
            next_cost[flow] = chance.randint(max(1, cost_maxima[flow] // 2), cost_maxima[flow])
            cost_seen_max[flow] = max(cost_seen_max[flow], next_cost[flow])
        if len(weights) > 2 and chance.random() < 0.2:
            name = chance.choice(["join", "leave", "park", "rejoin", "pass_on"])
            getattr(ring, name)(chance.randrange(2, len(weights)))
        drift = served[0] * weights[1] - served[1] * weights[0]
        drift_min, drift_max = min(drift, drift_min), max(drift, drift_max)

    # The largest difference over any interval is the range in which the difference since the start moved.
    # (C_0 + g_0)/w_0 + (C_1 + g_1)/w_1, times w_0 * w_1
    bound = (cost_seen_max[0] + quantum * weights[0]) * weights[1] + (
        cost_seen_max[1] + quantum * weights[1]
    ) * weights[0]
    assert drift_max - drift_min <= bound


@given(backlogs())
def test_a_flow_that_returns_brings_at_most_one_grant_more_of_the_weight_it_has_now(backlog):
    """As the stated bound, over the intervals between returns and changes of weight, with max(C, g) in place of C."""
    quantum, weights, cost_maxima, seed = backlog
    chance = random.Random(seed)
    ring = FairRing(quantum, 2)
    costs = cost_maxima[:2]
    for flow in (0, 1):
        ring.reweigh(flow, weights[flow])
        ring.join(flow)
    drift = drift_min = drift_max = 0

    for _ in range(1500):
        flow = ring.turn()
        if ring.afford(flow, costs[flow]):
            ring.charge(flow, costs[flow])
            drift += costs[flow] * weights[1] if flow == 0 else -costs[flow] * weights[0]
        drift_min, drift_max = min(drift, drift_min), max(drift, drift_max)
        assert drift_max - drift_min <= sum(
            (max(costs[flow], quantum * weights[flow]) + quantum * weights[flow]) * weights[1 - flow]
            for flow in (0, 1)
        )
        if chance.random() < 0.1:
            returning = chance.randrange(2)
            ring.park(returning)
            ring.rejoin(returning)
            drift_min = drift_max = drift
        if chance.random() < 0.1:
            weights[flow := chance.randrange(2)] = chance.choice([1, 2, 10, 1000])
            ring.reweigh(flow, weights[flow])
            drift = drift_min = drift_max = 0


def test_the_grant_a_flow_returns_with_can_be_seen_in_the_bound():
    """The tightest case known: with C in place of max(C, g) the bound would be 4001."""
    ring = FairRing(1000, 2)
    ring.reweigh(0, 1000)
    ring.join(1)
    ring.join(0)
    next_costs = {0: deque([1000] * 10_000), 1: deque([1000, 1000, 2001, 2001])}
    served = {0: 0, 1: 0}

    def step() -> None:
        flow = ring.turn()
        if ring.afford(flow, next_costs[flow][0]):
            ring.charge(flow, next_costs[flow][0])
            served[flow] += next_costs[flow].popleft()

    while ring.turn() == 1:
        step()
    ring.park(0)  # with its whole grant
    ring.rejoin(0)
    while served[1] < 2000:
        step()
    before = served[0] // 1000
    while served[1] == 2000:
        step()

    ahead = served[0] // 1000 - before
    assert ahead == 5000
    assert ahead <= (1_000_000 + 1_000_000) // 1000 + (2001 + 1000)


@given(backlogs())
def test_a_flow_earns_exactly_one_grant_a_round_walked_or_skipped(backlog):
    quantum, weights, cost_maxima, seed = backlog
    chance = random.Random(seed)
    ring = FairRing(quantum, len(weights))
    for flow, weight in enumerate(weights):
        ring.reweigh(flow, weight)
        ring.join(flow)
    served = [0] * len(weights)

    for _ in range(500):
        flow = ring.turn()
        cost = chance.randint(1, cost_maxima[flow])
        if ring.afford(flow, cost):
            ring.charge(flow, cost)
            served[flow] += cost
        for flow, weight in enumerate(weights):
            grants, rest = divmod(served[flow] + ring.deficit(flow), quantum * weight)
            assert rest == 0
            if ring.place(flow) == ON_RING:
                assert grants in (ring.round - 1, ring.round)
            else:
                assert grants <= ring.round


def plain_round_robin(
    quantum: int, weights: list[int], costs: list[list[int]], rounds: int
) -> list[Counter[int]]:
    """The algorithm as published: each round looks at every flow. Returns who sent how much, round by round."""
    queues = [deque(own) for own in costs]
    deficits = [0] * len(weights)
    sent_by_round = []
    for _ in range(rounds):
        sent: Counter[int] = Counter()
        for flow, weight in enumerate(weights):
            deficits[flow] += quantum * weight
            while deficits[flow] >= queues[flow][0]:
                deficits[flow] -= queues[flow][0]
                sent[flow] += queues[flow].popleft()
        sent_by_round.append(sent)
    return sent_by_round


@given(seed=st.integers(0, 2**32), weights=st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_skipping_rounds_leaves_every_message_in_the_round_it_would_have_had(seed, weights):
    chance = random.Random(seed)
    quantum, rounds = chance.choice([1, 10, 1000]), 200
    costs = [[chance.randint(1, 30 * quantum * weight) for _ in range(6000)] for weight in weights]
    for own in costs:
        own[:2] = [1, 30 * quantum]
    expected = plain_round_robin(quantum, weights, costs, rounds)
    ring = FairRing(quantum, len(weights))
    for flow, weight in enumerate(weights):
        ring.reweigh(flow, weight)
        ring.join(flow)

    sent_by_round: list[Counter[int]] = [Counter() for _ in range(rounds)]
    queues = [deque(own) for own in costs]
    while True:
        flow = ring.turn()
        if ring.round > rounds:
            break
        if ring.afford(flow, queues[flow][0]):
            ring.charge(flow, queues[flow][0])
            sent_by_round[ring.round - 1][flow] += queues[flow].popleft()

    assert sent_by_round == expected
