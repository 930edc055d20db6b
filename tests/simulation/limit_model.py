"""Which limit a throttle key has, as the model knows it, and what went by it; copied with the model at a power cut."""

from __future__ import annotations

from dataclasses import dataclass, field

from fila.v1 import limit_pb2 as pb
from tests.simulation.limit_oracle import Oracle

OWN = "own:"
"""A queue's `key_limit`, where it has one: each message names the limit of this and its fairness key, too."""
MENTIONED = ("tenant:a", "tenant:b", "tenant:bc", "api", "pool")
"""Throttle keys that messages name."""
KEYS = ("ant", "bee", "cat", "dog", "elk", "default", "mail", "sms", "push", *MENTIONED)
"""What may be a fairness key: a queue's settings may say that another header holds it."""
NAMES = (*MENTIONED, *(OWN + key for key in KEYS))
LIMITS = ("tenant:*", "tenant:b*", "tenant:a", "api", "pool", f"{OWN}*", f"{OWN}*", f"{OWN}bee")
LEARNING = ("api", "tenant:a")
"""Of a name, and of no pattern: a pattern's change reaches its names some passes later."""
PASSES_OF_A_CHANGE = 3
"""In which the change of a pattern reaches its names."""


@dataclass
class LimitModel:
    """All limits, and an oracle for each throttle key that has one."""

    by_name: dict[str, pb.Limit] = field(default_factory=dict)
    oracles: dict[str, Oracle] = field(default_factory=dict)
    changed_pass: dict[str, int] = field(default_factory=dict)
    """By throttle key: when its limit changed the last time."""
    closed_until_s: dict[str, float] = field(default_factory=dict)
    clock_s: float = 0.0
    """What refills rates: whichever of both clocks goes on faster. A bucket's record has the wall clock."""
    wall_ms: int = 0
    mono_ms: int = 0
    newest_ms: int = 0

    def ticks(self, wall_ms: int, mono_ms: int) -> None:
        """The clocks read this, in a pass or as the broker starts again."""
        if self.wall_ms:
            self.clock_s += max(0, wall_ms - self.wall_ms, mono_ms - self.mono_ms) / 1000
        self.wall_ms, self.mono_ms = wall_ms, mono_ms
        self.newest_ms = max(self.newest_ms, wall_ms)
        for oracle in self.oracles.values():
            oracle.sees(wall_ms)

    def nearest(self, key: str) -> pb.Limit | None:
        """Its own, otherwise that of the longest beginning."""
        if key in self.by_name:
            return self.by_name[key]
        met = [name for name in self.by_name if name.endswith("*") and key.startswith(name[:-1])]
        return self.by_name[max(met, key=len)] if met else None

    def holds(self, key: str, pass_number: int) -> bool:
        """Whether a message that names it may have to wait for it, or may have had to lately."""
        limit = self.nearest(key)
        return (limit is not None and not limit.shadow) or not self.is_settled(key, pass_number)

    def is_settled(self, key: str, pass_number: int) -> bool:
        """Its limit is for sure the one that counts."""
        return self.changed_pass.get(key, -PASSES_OF_A_CHANGE) + PASSES_OF_A_CHANGE < pass_number

    def learns(self, key: str) -> bool:
        limit = self.nearest(key)
        return limit is not None and limit.HasField("learn")

    def changes(self, name: str, limit: pb.Limit | None, pass_number: int) -> None:
        """It is set, or deleted: for each throttle key whose nearest one it was or is, everything begins anew."""
        before = {key: self.nearest(key) for key in NAMES}
        if limit is None:
            self.by_name.pop(name, None)
        else:
            self.by_name[name] = limit
        for key in NAMES:
            after = self.nearest(key)
            if after is not before[key]:
                self.changed_pass[key] = pass_number
                self.closed_until_s.pop(key, None)
                self.oracles.pop(key, None)
                if after is not None:
                    self.oracles[key] = Oracle(after)
                    self.oracles[key].starts_again(self.wall_ms, self.newest_ms)

    def is_reset(self, key: str, spent: float) -> None:
        """So much counts as used of this period."""
        oracle = self.oracles[key]
        oracle.sees(self.wall_ms)
        oracle.spent[oracle.newest_period] = spent

    def starts_again(self, wall_ms: int, mono_ms: int) -> None:
        """The broker was ended. What it had closed it may open. The monotonic clock begins elsewhere."""
        self.mono_ms = mono_ms
        self.closed_until_s.clear()
        self.ticks(wall_ms, mono_ms)
        for oracle in self.oracles.values():
            oracle.starts_again(self.wall_ms, self.newest_ms)
