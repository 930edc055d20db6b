"""How keys of one channel share a limit that holds them: Promise 2 of docs/fairness.md, over every interval.

A recording says when the messages of a key and a set of throttle keys begin to wait for a limit, and when each goes on.
So somebody here stands in a line with as many messages as wait. A key wants tokens for sure while more messages stand
there than tokens can be spoken for at once. While two keys do, what they got for each of their weight may not come
further apart than the promise says.

What cannot be known is taken in the broker's favour: as many tokens as there can be were spoken for, each for the
dearest message and thought to be the cheapest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from fila_server.history_files.channel_twin import Flow

KEYS_MAX = 32
"""Whose shares are compared in one line at a time."""
A_LITTLE = 1e-6


@dataclass(slots=True, eq=False)
class Stand:
    """One key in one line."""

    flow: Flow
    waiting: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Messages that wait, by the throttle keys that they name."""
    windows: dict[Stand, Window] = field(default_factory=dict)
    """With each other key that wants tokens now, one for both."""
    reweighed: int = 0
    """How often its weight had changed when its windows began."""


@dataclass(slots=True, eq=False)
class Window:
    """An interval in which two keys wanted tokens. `drift` is what one got for its weight, less the other."""

    one: Stand
    since_pass: int
    drift: float = 0.0
    least: float = 0.0
    most: float = 0.0


class Line:
    """The keys of one channel before one limit."""

    def __init__(self, limit: str, quantum: int) -> None:
        self._limit = limit
        self._quantum = quantum
        self._stands: dict[Flow, Stand] = {}
        self._wanting: dict[Stand, None] = {}

    def waits(self, flow: Flow, throttle_keys: tuple[str, ...], messages: int) -> None:
        """So many messages more of a key wait; fewer, where it is below 0."""
        stand = self._stands.get(flow)
        if stand is None:
            stand = self._stands[flow] = Stand(flow)
        stand.waiting[throttle_keys] += messages
        if stand.waiting[throttle_keys] <= 0:
            del stand.waiting[throttle_keys]
        if not stand.waiting:
            self.forget(flow)
            del self._stands[flow]

    def look(self, flow: Flow, at_once: int, in_pass: int) -> None:
        """Whether a key wants tokens for sure. at_once: how many can be spoken for; 0: nobody can say."""
        stand = self._stands.get(flow)
        if stand is None:
            return
        wants = 0 < at_once < stand.waiting.total()
        if stand in self._wanting and (not wants or stand.reweighed != flow.reweighed):
            self.forget(flow)
        if wants and stand not in self._wanting and len(self._wanting) < KEYS_MAX:
            stand.reweighed = flow.reweighed
            for other in self._wanting:
                stand.windows[other] = other.windows[stand] = Window(stand, in_pass)
            self._wanting[stand] = None

    def forget(self, flow: Flow) -> None:
        """Its intervals end."""
        stand = self._stands.get(flow)
        if stand is None or stand not in self._wanting:
            return
        del self._wanting[stand]
        for other in stand.windows:
            del other.windows[stand]
        stand.windows.clear()

    def steps_out(self, flow: Flow) -> None:
        """It is held by something else, and stands here no more: it counts once messages begin to wait anew."""
        self.forget(flow)
        self._stands.pop(flow, None)

    def forget_all(self) -> None:
        """The limit is another from now on."""
        for stand in list(self._wanting):
            self.forget(stand.flow)

    def goes(self, flow: Flow, cost: int, at_once: int) -> str | None:
        """A message of a key was delivered: what is wrong with the shares, "" for nothing, None: there is nobody beside
        it."""
        stand = self._stands.get(flow)
        if stand is None or not stand.windows:
            return None
        for other in [other for other in stand.windows if other.reweighed != other.flow.reweighed]:
            self.forget(other.flow)
        got = cost / flow.weight
        own = self._bound(flow, at_once)
        for other, window in stand.windows.items():
            if window.one is stand:
                window.drift += got
                window.most = max(window.most, window.drift)
            else:
                window.drift -= got
                window.least = min(window.least, window.drift)
            apart = window.most - window.least
            bound = own + self._bound(other.flow, at_once)
            if apart > bound + A_LITTLE:
                said = (
                    f"keys {flow.key!r} of weight {flow.weight} and {other.flow.key!r} of weight {other.flow.weight} "
                    f"waited for the limit {self._limit!r} since pass {window.since_pass}, and came "
                    f"{apart / 1000:.3f} apart for each of their weight, where {bound / 1000:.3f} is promised"
                )
                self.forget(flow)
                return said
        return ""

    def _bound(self, flow: Flow, at_once: int) -> float:
        grant = flow.weight * self._quantum
        cost = max(flow.dearest, grant) if flow.came_back else flow.dearest
        spoken = at_once * flow.dearest
        owed = at_once * (flow.dearest - flow.cheapest)
        return (cost + grant + spoken + owed) / flow.weight
