"""The questions. Most count deliveries and not seconds: an order is the same on a slow machine and on a fast one.

Each is a function of an adapter, the sizes and a way to kill the broker, and returns its findings. A bound is what a
tenant may expect of a broker that shares fairly; the comments say why it is not tighter.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from .adapter import Ability, Adapter, Message, Taken, Tenant

BATCH = 10
"""Most that is taken at once. Whatever a consumer holds, nobody else can be served, so it is little."""

_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Sizes:
    flood: int = 5_000
    """Messages of the tenant that floods."""

    tenants: int = 10
    rate_seconds: float = 5.0
    churn_rounds: int = 100


QUICK = Sizes(flood=500, tenants=5, rate_seconds=2.0, churn_rounds=20)


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer: a number, and at most what it should be."""

    question: str
    value: float
    unit: str
    bound: float | None = None
    note: str = ""

    @property
    def passed(self) -> bool | None:
        return None if self.bound is None else self.value <= self.bound


Restart = Callable[[], str]
Question = Callable[[Adapter, Sizes, Restart], list[Finding]]


def share_error(adapter: Adapter, sizes: Sizes, restart: Restart) -> list[Finding]:
    """Everybody has a backlog, one ten times as much as the others: does everybody get the same?"""
    del restart
    names = _names(sizes)
    adapter.open({name: Tenant(name) for name in names})
    each = max(20, sizes.flood // 10)
    _send_flood(adapter, names[0], 10 * each)
    for name in names[1:]:
        adapter.send([Message(name, number) for number in range(each)])
    # Half of what the smaller ones have in all: nobody runs dry meanwhile.
    served = Counter(taken.message.tenant for taken in _take(adapter, each * sizes.tenants // 2))
    error = _worst_error(served, dict.fromkeys(names, 1.0))
    findings = [Finding("share error, equal weights", 100 * error, "%", 10)]
    if Ability.WEIGHTS in adapter.abilities:
        findings.append(_weighted(adapter, sizes))
    return findings


def _weighted(adapter: Adapter, sizes: Sizes) -> Finding:
    tenants = {f"w{weight}": Tenant(f"w{weight}", weight) for weight in (1, 2, 4)}
    adapter.open(tenants)
    each = max(200, sizes.flood // 5)
    for name in tenants:
        adapter.send([Message(name, number) for number in range(each)])
    served = Counter(taken.message.tenant for taken in _take(adapter, each))
    error = _worst_error(served, {name: float(tenant.weight) for name, tenant in tenants.items()})
    return Finding("share error, weights 1, 2 and 4", 100 * error, "%", 10)


def starvation(adapter: Adapter, sizes: Sizes, restart: Restart) -> list[Finding]:
    """One tenant has flooded, then each other sends one message: how many deliveries go before the last of them?"""
    del restart
    names = _names(sizes)
    adapter.open({name: Tenant(name) for name in names})
    _send_flood(adapter, names[0], sizes.flood)
    adapter.send([Message(name, 0) for name in names[1:]])
    waiting, position = set(names[1:]), 0
    for taken in _take(adapter, sizes.flood + len(names)):
        position += 1
        waiting.discard(taken.message.tenant)
        if not waiting:
            break
    # A turn each, and what was on its way to the consumer already.
    bound = 2 * len(names) + 2 * BATCH
    return [Finding("starvation: deliveries until everybody was served", position, "", bound)]


def burst(adapter: Adapter, sizes: Sizes, restart: Restart) -> list[Finding]:
    """Two tenants, one comes back from a pause with a burst: how many of it in a row, while the other waits?"""
    del restart
    adapter.open({name: Tenant(name) for name in ("steady", "bursty")})
    adapter.send([Message("steady", number) for number in range(sizes.flood // 2)])
    list(_take(adapter, sizes.flood // 10))
    _send_flood(adapter, "bursty", sizes.flood)
    longest = run = 0
    for taken in _take(adapter, sizes.flood // 2):
        run = run + 1 if taken.message.tenant == "bursty" else 0
        longest = max(longest, run)
    return [Finding("burst: longest run of one tenant's messages", longest, "", 2 * BATCH)]


def unequal_cost(adapter: Adapter, sizes: Sizes, restart: Restart) -> list[Finding]:
    """One tenant's messages cost ten times the other's: do both get the same cost served?"""
    del restart
    adapter.open({name: Tenant(name) for name in ("light", "heavy")})
    for name, cost in (("light", 1), ("heavy", 10)):
        adapter.send([Message(name, number, cost) for number in range(sizes.flood)])
    served: Counter[str] = Counter()
    for taken in _take(adapter, sizes.flood // 2):
        served[taken.message.tenant] += taken.message.cost
    error = _worst_error(served, {"light": 1.0, "heavy": 1.0})
    return [Finding("unequal cost: share error by cost", 100 * error, "%", 10)]


def rate_error(adapter: Adapter, sizes: Sizes, restart: Restart) -> list[Finding]:
    """Every tenant may have so many messages a second, and has more waiting: is the rate kept, and at what price?"""
    del restart
    names, rate = _names(sizes), 20.0
    adapter.open({name: Tenant(name, rate_per_s=rate) for name in names})
    for number in range(int(rate * sizes.rate_seconds * 2)):
        adapter.send([Message(name, number) for name in names])
    bucket = _Buckets(rate, by_broker=Ability.RATES in adapter.abilities)
    handled: Counter[str] = Counter()
    deliveries, began = 0, time.monotonic()
    while (now := time.monotonic()) < began + sizes.rate_seconds:
        for taken in adapter.take(BATCH, 0.05):
            deliveries += 1
            wait_s = bucket.wait(taken.message.tenant, now)
            if wait_s > 0:
                adapter.give_back([taken], wait_s)
            else:
                handled[taken.message.tenant] += 1
                adapter.settle([taken])
    seconds = time.monotonic() - began
    wanted = rate * seconds + 1
    worst = max(abs(handled[name] - wanted) for name in names)
    wasted = (deliveries - handled.total()) / max(1, handled.total())
    return [
        # One message on either side of the end is no error.
        Finding("rate error of the worst tenant", 100 * max(0.0, worst - 1) / wanted, "%", 5),
        Finding("wasted deliveries for one that was handled", wasted, "", 0.1),
    ]


def shared_limit(adapter: Adapter, sizes: Sizes, restart: Restart) -> list[Finding]:
    """Three tenants of weights 3, 1, 1 and costs 1, 1, 4 share one rate: do weights and costs count behind it?"""
    del restart
    rate = 200.0
    tenants = {
        name: Tenant(name, weight, rate_per_s=rate, limit="provider")
        for name, weight in (("a", 3), ("b", 1), ("c", 1))
    }
    costs = {"a": 1, "b": 1, "c": 4}
    adapter.open(tenants)
    for name, cost in costs.items():
        adapter.send(
            [Message(name, number, cost) for number in range(int(rate * sizes.rate_seconds) + BATCH)]
        )
    bucket = _Buckets(rate, by_broker=Ability.RATES in adapter.abilities)
    served: Counter[str] = Counter()
    began = time.monotonic()
    while (now := time.monotonic()) < began + sizes.rate_seconds:
        for taken in adapter.take(BATCH, 0.05):
            wait_s = bucket.wait("provider", now)
            if wait_s > 0:
                adapter.give_back([taken], wait_s)
            else:
                served[taken.message.tenant] += taken.message.cost
                adapter.settle([taken])
    error = _worst_error(served, {name: float(tenant.weight) for name, tenant in tenants.items()})
    return [Finding("shared limit: share error by weight and cost", 100 * error, "%", 10)]


class _Buckets:
    """The consumer's own token buckets, of one token, for brokers that have none."""

    def __init__(self, rate_per_s: float, *, by_broker: bool) -> None:
        self._interval_s = 1 / rate_per_s
        self._by_broker = by_broker
        self._due: dict[str, float] = {}

    def wait(self, tenant: str, now: float) -> float:
        if self._by_broker:
            return 0.0
        due = self._due.get(tenant, now)
        if due > now:
            return due - now
        self._due[tenant] = max(due + self._interval_s, now)
        return 0.0


def churn(adapter: Adapter, sizes: Sizes, restart: Restart) -> list[Finding]:
    """Beside one that floods, tenants come with five messages and leave: how long until each has its five?"""
    del restart
    names = [f"c{number}" for number in range(sizes.churn_rounds)]
    adapter.open({name: Tenant(name) for name in ("flood", *names)})
    _send_flood(adapter, "flood", sizes.flood + 40 * sizes.churn_rounds)
    worst = 0
    for name in names:
        adapter.send([Message(name, number) for number in range(5)])
        left, position = 5, 0
        for taken in _take(adapter, 40):
            position += 1
            left -= taken.message.tenant == name
            if not left:
                break
        worst = max(worst, position if not left else sizes.flood)
    return [Finding("churn: deliveries until a newcomer has its five", worst, "", 10 + 2 * BATCH)]


def after_restart(adapter: Adapter, sizes: Sizes, restart: Restart) -> list[Finding]:
    """The broker is killed with a backlog of everybody: is the rest shared as before, and is all of it there?"""
    names = _names(sizes)
    adapter.open({name: Tenant(name) for name in names})
    each = max(40, sizes.flood // 10)
    for name in names:
        adapter.send([Message(name, number) for number in range(each)])
    settled = {(t.message.tenant, t.message.number) for t in _take(adapter, each * len(names) // 4)}
    adapter.reconnect(restart())
    served: Counter[str] = Counter()
    again = 0
    half = each * len(names) // 4
    everything = set(settled)
    for position, taken in enumerate(_take(adapter, each * len(names) * 2), 1):
        identity = (taken.message.tenant, taken.message.number)
        again += identity in everything
        everything.add(identity)
        if position <= half:
            served[taken.message.tenant] += 1
    lost = each * len(names) - len(everything)
    error = _worst_error(served, dict.fromkeys(names, 1.0))
    return [
        Finding("restart: share error after it", 100 * error, "%", 10),
        Finding("restart: messages lost", lost, "", 0),
        # At least once is the promise of all of them: settled messages that come again are counted, not judged.
        Finding("restart: messages that came again", again, ""),
    ]


def order(adapter: Adapter, sizes: Sizes, restart: Restart) -> list[Finding]:
    """A fifth of the messages fails once: is a tenant's message handled after one of its own that was sent later?"""
    del restart
    names = _names(sizes)
    adapter.open({name: Tenant(name, in_order=True) for name in names})
    each = 20
    for name in names:
        adapter.send([Message(name, number) for number in range(each)])
    handled: dict[str, set[int]] = {name: set() for name in names}
    failed: set[Message] = set()
    too_early = 0
    while sum(map(len, handled.values())) < each * len(names):
        batch = adapter.take(BATCH, _PATIENCE_S)
        if not batch:
            break
        fails = [t for t in batch if t.message.number % 5 == 1 and t.message not in failed]
        failed.update(taken.message for taken in fails)
        adapter.give_back(fails, 0.05)
        adapter.settle([taken for taken in batch if taken not in fails])
        for taken in batch:
            if taken not in fails:
                before = handled[taken.message.tenant]
                too_early += any(number not in before for number in range(taken.message.number))
                before.add(taken.message.number)
    return [
        Finding(
            "order: messages of a hundred handled before an earlier one",
            100 * too_early / (each * len(names)),
            "",
            0,
        )
    ]


QUESTIONS: Mapping[str, Question] = {
    "share": share_error,
    "starvation": starvation,
    "burst": burst,
    "cost": unequal_cost,
    "rate": rate_error,
    "shared-limit": shared_limit,
    "churn": churn,
    "restart": after_restart,
    "order": order,
}


def _names(sizes: Sizes) -> list[str]:
    return [f"t{number}" for number in range(sizes.tenants)]


def _send_flood(adapter: Adapter, tenant: str, count: int) -> None:
    for first in range(0, count, 500):
        adapter.send([Message(tenant, number) for number in range(first, min(first + 500, count))])


def _take(adapter: Adapter, count: int) -> Iterator[Taken]:
    """So many deliveries, each settled, in the order in which they came; fewer when nothing comes any more."""
    while count > 0:
        batch = adapter.take(min(BATCH, count), _PATIENCE_S)
        if not batch:
            return
        adapter.settle(batch)
        count -= len(batch)
        yield from batch


def _worst_error(served: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Of the tenant farthest from its due share, as a part of what it was due."""
    total, all_weights = sum(served.values()), sum(weights.values())
    if not total:
        return 1.0
    return max(
        abs(served.get(name, 0) / total * all_weights / weight - 1) for name, weight in weights.items()
    )
