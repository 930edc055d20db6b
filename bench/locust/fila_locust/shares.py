"""Did everybody get what they were due? The account of a run, and the judgement over it.

A tenant is due what weighted max-min fairness gives it: as much as it asked for, or its weight's part of what was
served, with whatever others leave unused divided among those who want more. Weights alone would not do: a quiet
tenant that gets all of its five messages a second has lost nothing, however small its share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

SECONDS_A_WINDOW = 2
"""Long enough that messages between a producer's answer and a consumer's receipt are few beside those of the window."""

LEAST_DUE = 30.0
"""A tenant due less than that over a run is not judged: one message more or less would be a large part of it."""

# (asked, served) by tenant
Bin = dict[str, list[float]]


class Account:
    """What tenants asked for and what they were served, second by second; costs, which are 1 unless set."""

    def __init__(self) -> None:
        self.bin_by_second: dict[int, Bin] = {}

    def asked(self, second: float, tenant: str, cost: float = 1.0) -> None:
        self._entry(int(second), tenant)[0] += cost

    def served(self, second: float, tenant: str, cost: float = 1.0) -> None:
        self._entry(int(second), tenant)[1] += cost

    def take(self) -> dict[int, Bin]:
        """What was counted since the last call; for a worker process that reports to its master."""
        taken, self.bin_by_second = self.bin_by_second, {}
        return taken

    def add(self, reported: Mapping[int, Bin]) -> None:
        """Count in what another process has taken from its own account."""
        for second, tenants in reported.items():
            for tenant, (asked, served) in tenants.items():
                entry = self._entry(int(second), tenant)
                entry[0] += asked
                entry[1] += served

    def _entry(self, second: int, tenant: str) -> list[float]:
        return self.bin_by_second.setdefault(second, {}).setdefault(tenant, [0.0, 0.0])


@dataclass(frozen=True, slots=True)
class Share:
    """One tenant over a whole run; costs."""

    tenant: str
    asked: float
    due: float
    served: float

    @property
    def shortfall(self) -> float:
        """The part of what it was due that it did not get, 0 to 1."""
        return max(0.0, self.due - self.served) / self.due if self.due else 0.0


def shares(account: Account, weight_by_tenant: Mapping[str, float] | None = None) -> list[Share]:
    """Every tenant's share, the worst first. A tenant without a weight has 1.

    Dues are found window by window, since a tenant that comes late has no claim on what was served before it came,
    and summed."""
    weights = weight_by_tenant or {}
    asked: dict[str, float] = {}
    served: dict[str, float] = {}
    due: dict[str, float] = {}
    for window in _windows(account):
        for tenant, (a, s) in window.items():
            asked[tenant] = asked.get(tenant, 0.0) + a
            served[tenant] = served.get(tenant, 0.0) + s
        total = sum(s for _, s in window.values())
        before = {tenant: due.get(tenant, 0.0) for tenant in asked}
        # What it still wants of what it asked so far, had it always been given its due.
        wants = {tenant: max(0.0, asked[tenant] - before[tenant]) for tenant in asked}
        for tenant, part in max_min(wants, weights, total).items():
            due[tenant] = before[tenant] + part
    found = [Share(tenant, asked[tenant], due.get(tenant, 0.0), served[tenant]) for tenant in asked]
    return sorted(found, key=lambda share: (-share.shortfall, share.tenant))


def worst_shortfall(found: list[Share]) -> Share | None:
    """The tenant that lost most of its due, among those that were due enough to tell; None when there is none."""
    judged = [share for share in found if share.due >= LEAST_DUE]
    return max(judged, key=lambda share: share.shortfall, default=None)


def max_min(wants: Mapping[str, float], weights: Mapping[str, float], total: float) -> dict[str, float]:
    """Divide `total` by weight; nobody gets more than it wants, and what it leaves goes to the others by weight."""
    # In this order each tenant either is content with less than its part, or all that follow are not.
    order = sorted(wants, key=lambda tenant: wants[tenant] / weights.get(tenant, 1.0))
    left, weight_left = total, sum(weights.get(tenant, 1.0) for tenant in order)
    given = {}
    for tenant in order:
        weight = weights.get(tenant, 1.0)
        given[tenant] = min(wants[tenant], left * weight / weight_left if weight_left > 0 else 0.0)
        left -= given[tenant]
        weight_left -= weight
    return given


def _windows(account: Account) -> Iterator[Bin]:
    seconds = sorted(account.bin_by_second)
    if not seconds:
        return
    bounds = [*range(seconds[0], seconds[-1] + 1, SECONDS_A_WINDOW), seconds[-1] + 1]
    for first, end in pairwise(bounds):
        window: Bin = {}
        for second in range(first, end):
            for tenant, (asked, served) in account.bin_by_second.get(second, {}).items():
                entry = window.setdefault(tenant, [0.0, 0.0])
                entry[0] += asked
                entry[1] += served
        yield window
