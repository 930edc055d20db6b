"""What limits, rates, caps and pauses let go, by docs/fairness.md and docs/concepts.md, in exact fractions.

All that is not recorded is taken in the broker's favour: a limit is full at the start, a key's rate when it is set, and
each delivery that came back gave its tokens back. A pass delivers last, so what it changed holds for what it delivers.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from fila_server.core.structures.reference import LATENESS_S, ReferenceBucket

A_LITTLE = Fraction(1, 10**6)
"""Of a token: the broker counts in doubles."""


@dataclass
class Limit:
    """A limit of an exact name, as it is in force."""

    rates: list[tuple[ReferenceBucket, bool]]
    """Each with whether it counts costs."""
    slots: int = 0
    kept: Fraction = Fraction(0)
    """The most that a message which needs several limits may have kept of this one: so much more may go."""


@dataclass
class Key:
    """What an operator, or the queue's defaults, set for a fairness key."""

    weight: int = 0
    """0: none was set."""
    cap: int = 0
    is_paused: bool = False
    rate: ReferenceBucket | None = None
    is_committed: bool = False
    """It has a committed rate, and may go before its turn."""
    is_shared: bool = False
    """Its numbers may be the queue's defaults, which changed."""

    @property
    def holds(self) -> bool:
        """Whether it may keep a message from its turn, or let it go before."""
        return bool(
            self.cap or self.is_paused or self.rate is not None or self.is_committed or self.is_shared
        )


@dataclass
class Allowances:
    """Every limit and every key's numbers, and what was used of them."""

    limits: dict[str, Limit | None] = field(default_factory=dict)
    """None: it has parts that are not judged."""
    keys: dict[tuple[str, str], Key] = field(default_factory=dict)
    in_flight: Counter[str] = field(default_factory=Counter)
    """Messages out at consumers, by throttle key."""
    out: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """The same by queue, channel and fairness key."""
    patterns: list[str] = field(default_factory=list)
    now_ns: int = 0

    def limit_changed(self, change: Mapping[str, Any]) -> None:
        """A row of kind `limit`."""
        name = change["name"]
        if name.endswith("*"):
            self.patterns.append(name[:-1])
            return
        said = json.loads(change["value"]) if change["value"] else {}
        rates = said.get("rates", [])
        if not said and change["rate"] is not None:
            rates = [[change["rate"], change["burst"], "messages"]]
        if said.get("shadow") or any(said.get("learn", ())) or said.get("budget"):
            self.limits[name] = None
            return
        old = self.limits.get(name)
        made = [(ReferenceBucket(rate, burst, self.now_ns), unit == "cost") for rate, burst, unit in rates]
        if old is not None and [unit for _, unit in old.rates] == [unit for _, unit in made]:
            for (bucket, _), (before, _) in zip(made, old.rates, strict=True):
                before.refill(self.now_ns, demanded=True)
                if before.level < before.burst:  # one that is full may have been forgotten, and is made anew
                    bucket.level = min(bucket.burst, before.level)
        if not made and not said.get("slots"):
            self.limits.pop(name, None)
        else:
            kept = old.kept if old is not None else Fraction(0)
            self.limits[name] = Limit(made, int(said.get("slots", 0)), kept)

    def key_changed(self, change: Mapping[str, Any]) -> Key:
        """A row of kind `key`."""
        said = json.loads(change["value"])
        key = Key(said["weight"], said["cap"], said["paused"], is_committed="committed" in said)
        if change["rate"] is not None:
            key.rate = ReferenceBucket(change["rate"], change["burst"], self.now_ns)
        self.keys[change["queue"], change["name"]] = key
        return key

    def defaults_changed(self, queue: str) -> None:
        """The numbers of its keys may be others now: they are not judged until one is set anew."""
        for (of, _), key in self.keys.items():
            if of == queue:
                key.cap, key.rate, key.is_committed, key.is_shared = 0, None, False, True

    def queue_deleted(self, queue: str) -> None:
        """What was set for its keys went with it."""
        self.keys = {at: key for at, key in self.keys.items() if at[0] != queue}

    def is_limited(self, throttle_keys: Iterable[str]) -> bool:
        """Whether a limit may hold a message that names these."""
        return any(
            name in self.limits or any(name.startswith(pattern) for pattern in self.patterns)
            for name in throttle_keys
        )

    def only_limit(self, sets: Iterable[tuple[str, ...]]) -> str:
        """The one limit that may hold messages which name these; "": none, another too, or nobody can say."""
        names = set()
        for throttle_keys in sets:
            limiting = [name for name in throttle_keys if self.is_limited((name,))]
            if len(limiting) != 1:
                return ""
            names.add(limiting[0])
        return names.pop() if len(names) == 1 else ""

    def at_once(self, name: str) -> int:
        """For how many messages tokens of a limit can be spoken for at once; 0: nobody can say."""
        limit = self.limits.get(name)
        if limit is None or any(name.startswith(pattern) for pattern in self.patterns):
            return 0
        counts = [
            math.floor(bucket.burst + bucket.rate * LATENESS_S)
            for bucket, in_cost in limit.rates
            if not in_cost
        ]
        if limit.slots:
            counts.append(limit.slots)
        return max(1, min(counts)) if counts else 0

    def taken(self, at: tuple[str, str, str], throttle_keys: tuple[str, ...], cost: int) -> str:
        """A message was delivered: what was not allowed about it, "" for nothing."""
        queue, _, fairness_key = at
        self.out[at] += 1
        said = self._of_key(self.keys.get((queue, fairness_key)), self.out[at])
        several = sum(1 for name in throttle_keys if self.is_limited((name,))) > 1
        for name in throttle_keys:
            self.in_flight[name] += 1
            limit = self.limits.get(name)
            if limit is not None:
                said = said or self._of_limit(name, limit, cost, several)
        return said

    def ended(
        self, at: tuple[str, str, str], throttle_keys: tuple[str, ...], cost: int, *, back: bool
    ) -> None:
        """A delivery ended. back: it came back uncounted, so its tokens may have come back, too."""
        self.out[at] -= 1
        key = self.keys.get((at[0], at[2]))
        if back and key is not None and key.rate is not None:
            key.rate.give_back()
        for name in throttle_keys:
            self.in_flight[name] -= 1
            limit = self.limits.get(name)
            if back and limit is not None:
                for bucket, in_cost in limit.rates:
                    bucket.give_back_amount(cost / 1000 if in_cost else 1)

    def _of_key(self, key: Key | None, out: int) -> str:
        if key is None:
            return ""
        if key.is_paused:
            return "its key is paused"
        if key.cap and out > key.cap:
            return f"its key may have {key.cap} out at once, and this is number {out}"
        if key.rate is None:
            return ""
        key.rate.refill(self.now_ns, demanded=True)
        level = key.rate.level
        key.rate.take()
        if level < 1 - A_LITTLE:
            return (
                f"its key may have {float(key.rate.rate):g} a second, and {float(level):.3f} of one was there"
            )
        return ""

    def _of_limit(self, name: str, limit: Limit, cost: int, several: bool) -> str:
        said = ""
        out = self.in_flight[name]
        if limit.slots and out > limit.slots:
            said = f"the limit {name!r} has {limit.slots} slots, and this is number {out}"
        for bucket, in_cost in limit.rates:
            amount = Fraction(cost, 1000) if in_cost else Fraction(1)
            bucket.refill(self.now_ns, demanded=True)
            if several:
                limit.kept = max(limit.kept, amount)
            if bucket.level + limit.kept < bucket.needs(float(amount)) - A_LITTLE:
                said = said or (
                    f"the limit {name!r} of {float(bucket.rate):g} a second had {float(bucket.level):.3f} left, "
                    f"and it takes {float(amount):g}"
                )
            bucket.take_amount(float(amount))
        return said
