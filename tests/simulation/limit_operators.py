"""Limits come, change and go while messages wait at them; providers' feedback lies; and in the end everybody goes.

What `feedback` says is no word of a provider: it refuses where nobody refused, and lets pass what no limit let pass.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

from fila.v1 import limit_pb2 as pb
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.simulation.asked import Asked
from tests.simulation.channel_operators import ChannelOperators
from tests.simulation.limit_model import LEARNING, LIMITS, NAMES
from tests.simulation.model import DELAYED, READY, Entry, Note
from tests.simulation.oracles import Broken
from tests.simulation.world import World

PERIODS_MS = (3_000, 20_000)
RATES_PER_S = (0.5, 5.0, 50.0)
STEPS = 20
"""In which somebody has to go at the end."""
CLOSED_MS_MAX = 3_000
SHORT_OF = 1e-6
"""A timer is a nanosecond later than its token, so at that very moment a token may be there and nobody has it."""


class Limits:
    """An admin of limits, and consumers that tell of providers."""

    def __init__(self, world: World, operators: ChannelOperators, chance: random.Random) -> None:
        self.world = world
        self.operators = operators
        self.random = chance
        """Of its own, so that a run without limits is the one it was."""
        self.judged = 0
        self.judged_in_time = 0

    # --- limits change --------------------------------------------------------------------------

    def set(self) -> None:
        if self.operators.nobody_pulls():
            limit = self._some_limit(self.random.choice(LIMITS))
            request = pb.SetLimitRequest(limit=limit)
            self.world.ask(
                commands.SET_LIMIT, request, self._changed, self._answered, name=limit.name, limit=limit,
                expected=0, fsync=1,
            )  # fmt: skip

    def _some_limit(self, name: str) -> pb.Limit:
        chance = self.random
        limit = pb.Limit(name=name)
        for _ in range(chance.choice([0, 1, 1, 2, 4])):
            burst = chance.choice([1.0, 3.0, 10.0])
            limit.rates.add(per_second=chance.choice(RATES_PER_S), burst=burst, unit=self._unit())
        if chance.random() < 0.4 or not limit.rates:
            limit.max_in_flight = chance.randint(1, 4)
        if chance.random() < 0.3:
            limit.budget.MergeFrom(
                pb.Budget(
                    amount=chance.randint(2, 12), period_ms=chance.choice(PERIODS_MS),
                    anchor_ms=chance.randrange(20_000), unit=self._unit(),
                )
            )  # fmt: skip
        if name in LEARNING and limit.rates and chance.random() < 0.5:
            limit.rates[0].unit = pb.Limit.UNIT_MESSAGES
            limit.learn.min, limit.learn.max = 0.5, limit.rates[0].per_second * 2
        else:
            limit.shadow = chance.random() < 0.15
        return limit

    def _unit(self) -> pb.Limit.Unit:
        return self.random.choice([pb.Limit.UNIT_MESSAGES, pb.Limit.UNIT_COST])

    def delete(self) -> None:
        if self.operators.nobody_pulls():
            self._delete(self.random.choice(LIMITS))

    def _delete(self, name: str) -> None:
        request = pb.DeleteLimitRequest(limit_name=name)
        self.world.ask(
            commands.DELETE_LIMIT, request, self._changed, self._answered, name=name, limit=None, fsync=1
        )

    def _changed(self, asked: Asked) -> None:
        limits, name, limit = self.world.model.limits, asked.notes["name"], asked.notes["limit"]
        if limit is None:
            asked.notes["expected"] = 0 if name in limits.by_name else 5
        self.world.say(f"limit {name}: {limit}".replace("\n", " "))
        limits.changes(name, limit, self.world.pass_number)

    def reset(self) -> None:
        if self.operators.nobody_pulls():
            key, spent = self.random.choice(NAMES), self.random.choice([0.0, 1.5, 100.0])
            request = pb.ResetLimitRequest(throttle_key=key, spent=spent)
            self.world.ask(
                commands.RESET_LIMIT, request, self._reset, self._answered, key=key, spent=spent, fsync=1
            )

    def _reset(self, asked: Asked) -> None:
        limits, key = self.world.model.limits, asked.notes["key"]
        nearest = limits.nearest(key)
        asked.notes["expected"] = 5 if nearest is None else 0 if nearest.HasField("budget") else 9
        self.world.say(f"reset {key} to {asked.notes['spent']}: {asked.notes['expected']}")
        if asked.notes["expected"] == 0:
            limits.is_reset(key, asked.notes["spent"])

    def _answered(self, asked: Asked, status: int, _payload: bytes) -> None:
        if status == 0:
            self.world.check_synced(asked)
        if status != asked.notes["expected"]:
            raise Broken(f"{asked.kind} {asked.notes} was answered {status}")

    # --- feedback that lies ---------------------------------------------------------------------

    def feedback(self, names: Iterable[str]) -> list[service.LimitFeedback]:
        """Of a message that names these: about one of them, or all, or seldom about one that it does not name."""
        chance, known = self.random, self.world.model.limits
        about = sorted(set(names) & set(NAMES))
        if not about or not known.by_name or chance.random() < 0.4:
            return []
        said = service.LimitFeedback(limit=chance.choice([*about, "", chance.choice(NAMES)]))
        if chance.random() < 0.6:
            said.kind = service.LimitFeedback.KIND_LIMITED
            said.retry_after_ms = chance.choice([0, 20, 500, CLOSED_MS_MAX])
        else:
            said.kind = service.LimitFeedback.KIND_REMAINING
            said.remaining = chance.choice([0, 1, 5, 10**12])
            said.reset_ms = chance.choice([0, 500, CLOSED_MS_MAX])
        return [said]

    # --- whether it could go --------------------------------------------------------------------

    def lets(self, note: Note) -> bool:
        """All its limits have enough, even for the dearest that waits there: whose turn it is goes, then it does."""
        named = [key for key in note.entry.throttles if self._holds(key)]
        self.judged += bool(named)
        return all(self._has_enough(key) for key in named)

    def _holds(self, key: str) -> bool:
        nearest = self.world.model.limits.nearest(key)
        return nearest is not None and not nearest.shadow

    def _has_enough(self, key: str) -> bool:
        state = self._state(key)
        limit, dearest = state.limit, self._dearest(key)
        if state.HasField("closed_until") or (limit.max_in_flight and state.in_flight >= limit.max_in_flight):
            return False
        for rate, tokens in zip(limit.rates, state.tokens, strict=True):
            needs = dearest if rate.unit == pb.Limit.UNIT_COST else 1.0
            if tokens - SHORT_OF < min(needs, rate.burst):
                return False
        needs = dearest if limit.budget.unit == pb.Limit.UNIT_COST else 1.0
        left = limit.budget.amount - state.spent - SHORT_OF * bool(state.spent)
        return not limit.HasField("budget") or left >= min(needs, limit.budget.amount)

    def _state(self, key: str) -> pb.LimitState:
        got: list[bytes] = []
        self.world.ask(
            commands.LIST_LIMITS, pb.ListLimitsRequest(throttle_key=key),
            answered=lambda _, __, payload: got.append(payload),
        )  # fmt: skip
        self.world.run_pass()
        (state,) = pb.ListLimitsResponse.FromString(got[0]).limits
        if state.limit != self.world.model.limits.nearest(key):
            raise Broken(f"{key} has the limit {state.limit}, not {self.world.model.limits.nearest(key)}")
        return state

    def _entries(self, key: str) -> list[Entry]:
        """What may wait for it, or come to."""
        queues = [queue for queue in self.world.model.queues.values() if not queue.is_dlq]
        notes = [
            note for queue in queues for channel in queue.channels.values() for note in channel.all_notes()
        ]
        waiting = [note.entry for note in notes if note.state in (READY, DELAYED)]
        waiting += [ghost for queue in queues for ghost in queue.ghosts.values()]
        return [entry for entry in waiting if key in entry.throttles]

    def _dearest(self, key: str) -> float:
        return max((entry.cost / 1000 for entry in self._entries(key)), default=1.0)

    # --- in the end everybody goes --------------------------------------------------------------

    def wait_out(self, take_all: Callable[[], None]) -> None:
        """`take_all` takes and acks all that comes. Whenever every limit has had the time to be whole again, somebody
        goes, and so everybody in the end: nobody waits for somebody who waits."""
        world = self.world
        if not world.model.limits.by_name or world.lost_leases():
            return
        for _ in range(STEPS):
            take_all()
            if not self._waiting():
                return
            world.engine.advance(self._whole_in_ms())
            world.quiet()
            before = self._waiting()
            if not before:
                return
            given = self._leases_given()
            take_all()
            if given == self._leases_given():
                raise Broken(f"{before[0]} could go, or another, and nobody did: {self._state_of(before[0])}")
            self.judged_in_time += 1

    def _waiting(self) -> list[Note]:
        return [
            note
            for note in self.world.model.all_notes()
            if note.state == READY
            and not note.maybe
            and not note.channel.queue.is_dlq
            and any(self._holds(key) for key in note.entry.throttles)
        ]

    def _leases_given(self) -> object:
        return self.world.engine.core.counters()["next_lease_id"]

    def _state_of(self, note: Note) -> list[pb.LimitState]:
        return [self._state(key) for key in note.entry.throttles if self._holds(key)]

    def _whole_in_ms(self) -> int:
        """All leases were acked, so all slots are there. What learns is filled from the moment it opens again."""
        wait_ms = float(CLOSED_MS_MAX)
        for key in filter(self._holds, NAMES):
            state = self._state(key)
            limit = state.limit
            opens_ms = 0
            if state.HasField("closed_until"):
                opens_ms = max(0, state.closed_until.ToMilliseconds() + 1 - self.world.engine.wall_ms)
            for rate, tokens in zip(limit.rates, state.tokens, strict=True):
                per_second = limit.learn.min if limit.HasField("learn") else rate.per_second
                wait_ms = max(wait_ms, opens_ms + (rate.burst - tokens) / per_second * 1000 + 1)
            if limit.HasField("budget"):
                ends_ms = state.period_ends_at.ToMilliseconds()
                wait_ms = max(wait_ms, ends_ms + 1 - self.world.engine.wall_ms)
        return math.ceil(wait_ms)

    def lift(self) -> None:
        for name in list(self.world.model.limits.by_name):
            self._delete(name)
        self.world.quiet()
