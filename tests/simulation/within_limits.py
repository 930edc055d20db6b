"""The judge of limits: no part gives more than it may, at any moment, and what is closed gives nothing.

The bounds are those of limit_oracle.py. Where deliveries are under way that nobody saw, an interval begins anew: they
took something, and may give it back. Dead letters take nothing.
"""

from __future__ import annotations

from functools import partial

from tests.simulation.limit_model import LimitModel
from tests.simulation.limit_oracle import Wrong
from tests.simulation.model import DONE, LEASED, Model, Note
from tests.simulation.oracles import Broken

CLOCK_BACK_MS = 3_000
"""The most that a crash of the simulation sets the wall clock back, and more."""


class WithinLimits:
    """Looks at each message that goes and names throttle keys."""

    def __init__(self) -> None:
        self.judged = 0

    def taken(self, model: Model, note: Note, pass_number: int, *, is_seen: bool) -> None:
        """Delivered; `is_seen` unless it was picked at a moment of which not all is known."""
        if note.channel.queue.is_dlq:
            return
        limits = model.limits
        for key in note.entry.throttles:
            oracle = limits.oracles.get(key)
            if oracle is None or not limits.is_settled(key, pass_number):
                continue
            if not is_seen:
                oracle.forgets()
                continue
            if oracle.terms.shadow:
                continue
            self.judged += 1
            self._judge_slots(model, key, oracle.terms.max_in_flight)
            self._judge_closed(limits, key)
            try:
                dearest_since = partial(self._dearest_since, model, key)
                oracle.goes(limits.clock_s, limits.wall_ms, note.entry.cost / 1000, dearest_since)
            except Wrong as wrong:
                raise Broken(f"{key}: {wrong}, with {note}") from None

    @staticmethod
    def _dearest_since(model: Model, key: str, wall_ms: int) -> float:
        """Of those that name it and have not ended before that, unless the clock was set back meanwhile."""
        waited = (
            note.entry.cost / 1000
            for note in model.all_notes()
            if key in note.entry.throttles
            and (note.state != DONE or note.ended_ms >= wall_ms - CLOCK_BACK_MS)
        )
        return max(waited, default=0.0)

    def given_back(self, model: Model, note: Note) -> None:
        """It was never seen, and gives back what it took."""
        for key in note.entry.throttles if not note.channel.queue.is_dlq else ():
            oracle = model.limits.oracles.get(key)
            if oracle is not None:
                oracle.comes_back(model.limits.clock_s, note.entry.cost / 1000)

    def unseen(self, model: Model) -> None:
        """Leases were given that nobody saw."""
        for oracle in model.limits.oracles.values():
            oracle.forgets()

    @staticmethod
    def _judge_slots(model: Model, key: str, most: int) -> None:
        held = [
            note
            for note in model.leases.values()
            if note.state == LEASED and key in note.entry.throttles and not note.channel.queue.is_dlq
        ]
        if most and len(held) > most:
            raise Broken(f"{key}: {len(held)} are in flight, and {most} may be: {held}")

    @staticmethod
    def _judge_closed(limits: LimitModel, key: str) -> None:
        until_s = limits.closed_until_s.get(key, 0.0)
        if limits.clock_s < until_s - 0.001:
            raise Broken(f"{key}: closed for {until_s - limits.clock_s:.3f} s more, and a message went")
