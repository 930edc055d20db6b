"""Does everybody get what the weights promise, whatever the messages cost?"""

from __future__ import annotations

import random
from collections.abc import Iterator

from fila_bench.admin import Admin
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE
from fila_bench.server import Server

_KEYS = 100
_COST_MAX = 1_000
_LEASE_MESSAGES = 500


@benchmark("share", "share of served cost against the due one: 100 keys, weights 1 to 10, costs 1 to 1,000")
def share(_budget: Budget) -> Iterator[Finding]:
    weights = {f"k{number}": number % 10 + 1 for number in range(_KEYS)}
    # A window in which each key is due a hundred times the largest cost, and a tenth more to stay backlogged.
    window_cost = 100 * _COST_MAX * sum(weights.values())
    with Server(durability="os") as server, Admin(server.address) as admin:
        admin.create(QUEUE, fairness_key_header="tenant", cost_header="cost", weights=weights)
        admin.enqueue_many(QUEUE, _messages(weights))
        served = dict.fromkeys(weights, 0.0)
        while sum(served.values()) < window_cost:
            messages = admin.lease(QUEUE, _LEASE_MESSAGES)
            for message in messages:
                served[message.metadata.fairness_key] += message.metadata.cost
            admin.ack_all(QUEUE, messages)
    total, all_weights = sum(served.values()), sum(weights.values())
    off = {key: served[key] / total / (weight / all_weights) - 1 for key, weight in weights.items()}
    worst = max(off, key=lambda key: abs(off[key]))
    yield Finding(
        benchmark="share",
        case="the key farthest from its due share",
        value=abs(off[worst]) * 100,
        unit="%",
        reach=1,
        better="less",
        details={"its weight": weights[worst], "served cost": total},
    )


def _messages(weights: dict[str, int]) -> Iterator[tuple[dict[str, str], bytes]]:
    dice = random.Random(1)
    left = {key: 110 * _COST_MAX * weight for key, weight in weights.items()}
    while left:
        for key in list(left):
            cost = dice.randint(1, _COST_MAX)
            yield {"tenant": key, "cost": str(cost)}, b"x"
            left[key] -= cost
            if left[key] <= 0:
                del left[key]
