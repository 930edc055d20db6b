"""When will a key's message go? An interval, from what stands before it and from how fast its channel was served.

    work    what the channel sends until then. Deficit round robin serves a backlogged key its weight's part, so with
            x = rounds the key needs, each rival adds what x rounds grant it, or all it has if that is less.
            At least that (`least`); with others' arrivals as fast as lately, `likely`; at most what x rounds grant
            when no rival ever runs out, and keys that have nothing now come to it (`most`).
    speed    cost a second, from stretches in which messages waited for it; scaled to the consumers there are now. Its
            error over as long a time is how wrong the same guess was, again and again, over the looks that are kept.
            The next few messages go when consumers happen to finish, whatever the speed is: their n-th comes as the
            n-th of a random stream does.
    bucket  the line in front of it is a ring, so the work is found in the same way, in tokens; the rate is its speed.

The time is the longer of work / speed and the bucket's. The interval is meant to hold nine times in ten as long as
nobody pauses, weighs or scales anything meanwhile. Where something decisive isn't known it says so and guesses nothing.

Everything is an argument: what would happen under another policy is the same function of another `Situation`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from fila_server.broker.speed import Look
from fila_server.operations.channel_speed import (
    FAR_S,
    SPEED_OF_S,
    Speed,
    rate_of_last,
    speed_error,
    speed_seen,
    was_served_lately,
)

SPREAD_OF_WORK = 0.78
"""How far into [least, most] nine of ten lie, on the logarithm; found by simulation."""
LIKELY_OF_WORK = 0.95
"""How far arrivals bring the work from the least to what they would make of it, on the logarithm; likewise. Some of
them come too late to be served before."""
BEYOND_OF_WORK = 0.27
"""Who stays and who comes is a guess; where much hangs on it, so much of that, on the logarithm, is taken for possible
on the other side as well; likewise."""
NEWCOMERS_MIN = 0.3
"""Of the messages that come, at least so many are taken to go to keys that are then served before, however few there
are now; found by simulation."""
NEWCOMERS_ROUNDS = 0.5
"""How much of each round keys that have nothing now may take, in grants of weight 1; likewise."""
FINISHING_SPREAD = 1.35
"""Standard deviations on either side, of when the n-th consumer from now is done: they finish a little more regularly
than at random, and nine of ten of those moments lie within."""
JOINING_EARLY, JOINING_SPREAD = 0.7, 1.1
"""Who comes from a line comes behind everybody: so much of their turn at least, and standard deviations above it;
found by simulation."""
LINE_SPREAD_DOWN, LINE_EARLY, LINE_LATE = 0.87, 0.03, 0.05
"""As SPREAD_OF_WORK towards the least, and beyond both ends, where keys of a line come and go; likewise."""
LINE_ROUNDS = 0.6
"""On either side, in rounds of a line in which everybody pays for a message, where all in it stay; likewise."""
BURSTINESS_STEADY, BURSTINESS_WILD = 2.0, 11.0
"""Up to the first, keys that wait in a line that grows stay there; from the second on, nobody can say."""
SHRINKS_WILD = 1 / 3
"""Nor where a line becomes shorter by such a part of its rate."""
SHARED_MIN = 0.02
"""Of the speed, at least so much is taken to be left beyond what is committed."""
BUCKET_EXACT_S = 0.01
"""Where each turn in a line is for whole messages, tokens come at moments that are known."""
WEIGHT_MIN = 0.01
"""A key whose round grants less of a message than that does not make a whole line unsure."""
ARRIVALS_MAX = 0.8
"""Of the speed; beyond, arrivals meanwhile would make the time endless."""
NINE_OF_TEN = 1.645
"""Standard deviations on either side."""


class Unknown(Enum):
    """Why there is no interval."""

    NOTHING_PENDING = "nothing_pending"
    PAUSED = "paused"
    DELAYED = "delayed"
    NO_CONSUMER = "no_consumer"
    """Nobody consumes the channel, or nothing was served of late."""
    NO_TOKENS = "no_tokens"
    """The bucket it waits for never refills."""
    NOT_WATCHED = "not_watched"
    """The broker has not watched this channel for long enough."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Milliseconds from now. Nine times in ten it is between the first and the last."""

    earliest_ms: int
    likely_ms: int
    latest_ms: int


@dataclass(frozen=True, slots=True)
class Rivals:
    """Keys that share the channel and will stay about equally many rounds."""

    weight: float
    work: float
    """What they have, in thousandths of a message, all together."""


@dataclass(frozen=True, slots=True)
class Waiters:
    """The line that the key waits in for a token bucket: a ring in which each message costs one token."""

    rate: float
    """Tokens a second."""
    level: float
    channels: int
    """Channels that take turns at the bucket."""
    weight: float
    """Tokens that a round grants the key."""
    before_its_turn: float
    """Tokens that others take before the key's next turn."""
    rounds_to_save: int
    own: int
    """Messages of the key that wait in the line."""
    rivals: tuple[Rivals, ...] = ()
    """Other keys in the line; their weights and work in tokens."""

    @property
    def is_even(self) -> bool:
        """A round grants each key whole messages, so that nobody saves for one."""
        grants = (self.weight, *(rivals.weight for rivals in self.rivals))
        return all(abs(grant - round(grant)) < 1e-6 for grant in grants)

    @property
    def rounds_for_all(self) -> float:
        """Rounds in which a round grants everybody one message."""
        least = min(self.weight, *(rivals.weight for rivals in self.rivals), 1.0)
        return 1 / max(least, WEIGHT_MIN)

    @property
    def messages(self) -> float:
        return self.own + sum(rivals.work for rivals in self.rivals)

    def as_situation(self) -> Situation:
        """Before the ring, a token is a message that costs 1."""
        return Situation(
            backlog=self.own,
            weight=self.weight,
            head_cost=1.0,
            mean_cost=1.0,
            usual_cost=1.0,
            quantum=1.0,
            before_its_turn=self.before_its_turn,
            rounds_to_save=self.rounds_to_save,
            rivals=self.rivals,
        )

    def reweighed(self, by: float) -> Waiters:
        """The same, did the key weigh `by` times as much."""
        rounds = math.ceil(self.rounds_to_save / by)
        return replace(self, weight=self.weight * by, rounds_to_save=rounds)


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides when the messages of one key go. Costs are in thousandths of a message."""

    backlog: int = 0
    """Its messages that are ready, or wait for a token."""
    weight: float = 1
    cap: int = 0
    """Most of its messages leased at once; 0 is no cap."""
    is_paused: bool = False
    is_delayed: bool = False
    head_cost: float = 1000.0
    mean_cost: float = 1000.0
    usual_cost: float = 1000.0
    """Of the channel's messages."""
    quantum: float = 1000.0
    before_its_turn: float = 0.0
    """What others send before the key's next turn."""
    rounds_to_save: int = 0
    """Rounds more until it can pay for its first message."""
    rivals: tuple[Rivals, ...] = ()
    waiters: Waiters | None = None
    own_rate: float = 0.0
    """Most of its messages a second, as an operator set it; 0 is no rate."""
    own_tokens: float = 0.0
    """Of these, what may go at once."""
    own_burst: float = 0.0
    """The most that may ever go at once; 0 where there is no rate."""
    committed_rate: float = 0.0
    """Of its messages, those a second that go before those of keys that are not within theirs; 0 is none."""
    committed_tokens: float = 0.0
    """Of these, what may go at once."""
    others_committed: float = 0.0
    """Cost a second of other keys that have something, which goes first likewise."""
    weight_by_policy: int = 1
    """What it weighs without an operator's word."""
    is_aside: bool = False
    """It has no place in the round: paused, at its cap, or out of its rate."""
    was_paused: bool = False
    """It would be resumed: what was served of late was all others'."""
    own_held: int = 0
    """Of its messages, those that are leased."""
    consumers: int = 0
    waiting_pulls: int = 0
    room: int = 0
    """Messages that consumers would take at once."""
    held: int = 0
    """Messages leased to them."""
    ready: int = 0
    """Of the channel, those that wait for a token included."""

    def under(
        self,
        *,
        weight: int | None = None,
        cap: int | None = None,
        rate: float | None = None,
        burst: float | None = None,
        committed: float | None = None,
        is_paused: bool | None = None,
    ) -> Situation:
        """The same, were the key's policy another; what is None stays. 0 is no operator's weight, no cap, no rate, and
        for a burst one second's worth."""
        changed = replace(
            self,
            weight=self.weight if weight is None else weight or max(self.weight_by_policy, 1),
            cap=self.cap if cap is None else cap,
            is_paused=self.is_paused if is_paused is None else is_paused,
            was_paused=self.is_paused and is_paused is False,
        )
        if rate is not None or burst is not None:
            changed = _with_rate(changed, rate, burst)
        if committed is not None:
            most = max(committed, 1.0) if committed else 0.0
            tokens = min(self.committed_tokens, most) if self.committed_rate else most
            changed = replace(changed, committed_rate=committed, committed_tokens=tokens)
        if changed.weight != self.weight:
            by = changed.weight / self.weight
            waiters = self.waiters.reweighed(by) if self.waiters is not None else None
            changed = replace(changed, rounds_to_save=math.ceil(self.rounds_to_save / by), waiters=waiters)
        if self.is_aside and changed != self:
            # Once it may, it comes behind everybody who has a place in the round.
            changed = replace(changed, before_its_turn=self.round_work)
        return changed

    @property
    def round_work(self) -> float:
        """What a turn of everybody else sends."""
        return sum(min(rivals.work, rivals.weight * self.quantum) for rivals in self.rivals)

    @property
    def rivals_weight(self) -> float:
        return sum(rivals.weight for rivals in self.rivals)


def _with_rate(situation: Situation, rate: float | None, burst: float | None) -> Situation:
    """With another bucket of its own, as the core sets it: a new one is full, a changed one keeps what fits."""
    rate = situation.own_rate if rate is None else rate
    burst = situation.own_burst if burst is None else burst
    burst = burst if burst >= 1 else max(rate, 1.0)
    if rate <= 0:
        return replace(situation, own_rate=0.0, own_tokens=0.0, own_burst=0.0)
    tokens = min(situation.own_tokens, burst) if situation.own_rate else burst
    return replace(situation, own_rate=rate, own_tokens=tokens, own_burst=burst)


@dataclass(frozen=True, slots=True)
class _Work:
    least: float
    likely: float
    most: float
    if_all_stay: float
    """If all that have something now have something until then, and nobody comes."""


def forecast(situation: Situation, looks: Sequence[Look], place: int = 1) -> Interval | Unknown:
    """When the key's `place`-th message goes out, 1 being its first and `backlog` its last."""
    if situation.backlog < 1 or not 1 <= place <= situation.backlog:
        return Unknown.DELAYED if situation.is_delayed else Unknown.NOTHING_PENDING
    if situation.is_paused:
        return Unknown.PAUSED
    waiters = situation.waiters
    if waiters is not None and waiters.rate <= 0:
        return Unknown.NO_TOKENS
    if situation.consumers == 0 and situation.waiting_pulls == 0 and not was_served_lately(looks):
        return Unknown.NO_CONSUMER
    speed = speed_seen(looks, situation.consumers, situation.usual_cost)
    if speed is None:
        return Unknown.NOT_WATCHED
    if speed.per_s <= 0:
        return Unknown.NO_CONSUMER
    turn = _of_rings(situation, speed, place)
    own_s = max(place - situation.own_tokens, 0.0) / situation.own_rate if situation.own_rate else 0.0
    turn = (max(turn[0], own_s), max(turn[1], own_s), max(turn[2], own_s * 1.1))
    if waiters is None:
        return _interval(*turn)
    # A token first, and then a turn among those who are on the ring by then.
    bucket = _of_bucket(situation, waiters, speed, place)
    one_s = situation.usual_cost / speed.per_s
    others = _round_s(situation, speed) / one_s
    # Where a consumer has room it goes with its token.
    turns_s = (
        JOINING_EARLY * others * one_s,
        others * one_s,
        0.0 if situation.room else _nth(others + 1, JOINING_SPREAD) * one_s,
    )
    return _interval(
        *(max(token_s + turn_s, own_s) for token_s, turn_s, own_s in zip(bucket, turns_s, turn, strict=True))
    )


def speed_of(situation: Situation, looks: Sequence[Look]) -> float:
    """Cost a second that the channel sends while messages wait for it, in thousandths; 0 where nobody can say."""
    speed = speed_seen(looks, situation.consumers, situation.usual_cost)
    return speed.per_s if speed is not None else 0.0


def _interval(earliest_s: float, likely_s: float, latest_s: float) -> Interval:
    earliest, likely, latest = (
        round(min(max(seconds, 0.0), FAR_S) * 1000) for seconds in (earliest_s, likely_s, latest_s)
    )
    return Interval(min(earliest, likely), likely, max(likely, latest))


# --- those within their committed rate, and all others ---------------------------------------


def _of_rings(situation: Situation, speed: Speed, place: int) -> tuple[float, float, float]:
    """Seconds until its turn on either ring comes. What others have committed goes before what all share; of the
    key's messages some go within its own committed rate, and meanwhile the rest goes by its share."""
    committed = situation.committed_rate * situation.mean_cost
    first = committed + situation.others_committed
    if first <= 0:
        return _of_turns(situation, speed, place)
    shared = speed.slowed(max(1 - first / speed.per_s, SHARED_MIN))
    if committed <= 0:
        return _of_turns(situation, shared, place)
    per_s = situation.committed_rate * min(1.0, speed.per_s / first)
    rest = max(place - situation.committed_tokens, 0.0)
    # Both serve it at the same time.
    earliest, likely, latest = (
        rest / (per_s / spread + place / share_s) if share_s > 0 else 0.0
        for spread, share_s in zip((0.95, 1.0, 1.1), _of_turns(situation, shared, place), strict=True)
    )
    one_s = situation.usual_cost / speed.per_s
    return earliest, likely, latest if situation.room else latest + _nth(1, FINISHING_SPREAD) * one_s


# --- turns -----------------------------------------------------------------------------------


def _of_turns(situation: Situation, speed: Speed, place: int) -> tuple[float, float, float]:
    """Seconds until its turn comes and somebody has room: earliest, likely, latest."""
    work = _work_before(situation, speed, place)
    room = situation.room * situation.usual_cost
    likely_s = max(work.likely - room, 0.0) / speed.per_s
    per_s = rate_of_last(speed.stretches, max(SPEED_OF_S, min(likely_s, FAR_S)))
    if per_s <= 0:
        per_s = speed.per_s
    one_s = situation.usual_cost / per_s
    if work.likely <= room:
        return 0.0, 0.0, one_s
    gone = max((work.likely - room) / situation.usual_cost, 1.0)
    likely_s = gone * one_s
    error = speed_error(speed, likely_s) * NINE_OF_TEN
    finishing_down = math.log(gone / _nth(gone, -FINISHING_SPREAD))
    finishing_up = math.log(_nth(gone, FINISHING_SPREAD) / gone)
    down = math.hypot(error, finishing_down, SPREAD_OF_WORK * math.log(work.likely / work.least))
    up = math.hypot(error, finishing_up, SPREAD_OF_WORK * math.log(work.most / work.likely))
    return likely_s * math.exp(-down), likely_s, likely_s * math.exp(up)


def _nth(n: float, deviations: float) -> float:
    """When the n-th of a random stream comes, in its mean gaps, so many standard deviations off: Wilson and Hilferty's
    cube."""
    return n * max(1 - 1 / (9 * n) + deviations / (3 * math.sqrt(n)), 0.02) ** 3


def _round_s(situation: Situation, speed: Speed) -> float:
    """One turn of everybody else; nothing where somebody has room anyway."""
    if situation.room:
        return 0.0
    return situation.round_work / speed.per_s


def _work_before(situation: Situation, speed: Speed, place: int) -> _Work:
    own = situation.head_cost + (place - 1) * situation.mean_cost
    if place == 1:
        round_work = (situation.rivals_weight + situation.weight) * situation.quantum
        first = situation.before_its_turn + situation.rounds_to_save * situation.round_work + own
        least = min(situation.before_its_turn, round_work) * 0.5 + own
        most = first + situation.before_its_turn * 0.5
        if situation.cap and situation.own_held >= situation.cap:
            # As many of its own must be finished first as are above the cap, and one.
            beyond = (situation.own_held - situation.cap + 1) / situation.own_held
            waits = beyond * situation.held * situation.usual_cost + situation.round_work
            first, most = max(first, waits), max(most, 2 * waits)
        return _Work(min(least, first), first, most, first)
    rounds = own / (situation.weight * situation.quantum)
    # The round of now is begun: of it only those are still to come who stand before the key.
    begun = max(situation.round_work - situation.before_its_turn, 0.0)
    least = most = own - begun
    staying = 0.0
    for rivals in situation.rivals:
        granted = rivals.weight * situation.quantum * rounds
        least += min(rivals.work, granted)
        most += granted
        if rivals.work >= granted:
            staying += rivals.weight
    least, most = max(least, own), max(most, own)
    if_all_stay = most
    # What comes to keys that stay until then anyway is served after; what comes to others makes rivals of them.
    others = situation.rivals_weight
    counted = 1 - staying / others if others else 1.0
    own_part = 0.0 if situation.was_paused else situation.weight / (others + situation.weight)
    busy = speed.arrivals_per_s / speed.per_s
    coming = min(busy * max(counted * (1 - own_part), NEWCOMERS_MIN), ARRIVALS_MAX)
    most += min(busy, 1.0) * NEWCOMERS_ROUNDS * situation.quantum * rounds
    likely = least / (1 - coming)
    # Of a key that was paused, rivals are served as they come: those who will come are not among those who wait.
    if not situation.was_paused:
        likely = min(likely, max(most, least))
    guessed = likely / least
    most = max(most, likely * guessed**BEYOND_OF_WORK)
    likely = least * guessed**LIKELY_OF_WORK
    slowed = 0.0
    if situation.cap:
        # Each message is held as long as the others are, and the next one then waits for a turn of everybody else.
        cycle = max(situation.held, 1) * situation.usual_cost + situation.round_work
        slowed = own * cycle / (situation.cap * situation.mean_cost)
    return _Work(max(least, slowed), max(likely, slowed), max(most, likely, slowed), max(if_all_stay, slowed))


# --- the bucket ------------------------------------------------------------------------------


def _of_bucket(
    situation: Situation, waiters: Waiters, speed: Speed, place: int
) -> tuple[float, float, float]:
    """Seconds until its token is there: earliest, likely, latest. Its line is a ring, and the bucket the speed at which
    that is served."""
    channels = max(waiters.channels, 1)
    per_s = waiters.rate / channels
    # What comes to the line is what it gives, and its part of what the channel's backlog grows by.
    growth_per_s = speed.growth_per_s * min(waiters.messages / max(situation.ready, 1), 1.0)
    line = Speed(per_s, max(per_s + growth_per_s, 0.0), 0.0, (), (), True)
    part = min(place / max(situation.backlog, 1), 1.0)
    tokens = max(round(part * waiters.own), 1) if place > 1 else 1
    ring = waiters.as_situation()
    work = _work_before(ring, line, tokens)

    def seconds(of_work: float) -> float:
        return max(of_work - waiters.level / channels, 0.0) / per_s

    if place == 1:
        likely_s = seconds(work.likely)
        if waiters.is_even:
            return likely_s - BUCKET_EXACT_S, likely_s, likely_s + BUCKET_EXACT_S
        return seconds(work.least) * 0.95, likely_s, seconds(work.most) * 1.1
    # What comes to a line that grows comes to keys that wait there: all stay, unless messages come in bursts.
    likely = min(work.likely, work.if_all_stay)
    unsure = _unsure_who_stays(line, speed)
    down = unsure * (LINE_SPREAD_DOWN * math.log(likely / work.least) + LINE_EARLY)
    up = unsure * (SPREAD_OF_WORK * math.log(work.most / likely) + LINE_LATE)
    round_s = LINE_ROUNDS * (ring.round_work + waiters.weight) * waiters.rounds_for_all / per_s
    likely_s = seconds(likely)
    return likely_s * math.exp(-down) - round_s, likely_s, likely_s * math.exp(up) + round_s


def _unsure_who_stays(line: Speed, speed: Speed) -> float:
    """0 where all that wait in the line will have something there all the time, 1 where nobody can say."""
    bursts = (speed.burstiness - BURSTINESS_STEADY) / (BURSTINESS_WILD - BURSTINESS_STEADY)
    shrinks = (1 - line.arrivals_per_s / line.per_s) / SHRINKS_WILD
    return min(max(bursts, shrinks, 0.0), 1.0)
