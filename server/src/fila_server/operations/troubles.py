"""What is wrong, and since when: judged at each look from its facts, and told to each caller as far as it may know.

    Facts of a look ──► what is so now ──► begun, once it was so for its kind's `begins_s` ──► told, by harm
                                      └──► ended, once it was not so for `ends_s`

Nothing here reads a clock or asks the core. At most KEPT_MAX are followed at a time, and of more the first ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from fila.v1 import events_pb2 as pb
from fila.v1.limit_pb2 import LIMIT_PART_BUDGET
from fila_server.events import emit
from fila_server.operations import trouble_kinds as kinds
from fila_server.operations import trouble_words as words
from fila_server.operations.pauses import Names
from fila_server.operations.trouble_facts import Facts, Place
from fila_server.operations.trouble_rates import Rates
from fila_server.operations.trouble_words import About
from fila_server.telemetry.series import TroubleReading
from fila_server.telemetry.snapshot import text_of

KEPT_MAX = 10_000
THE_QUEUE = "queue"
REPORTED_DEFAULT = 4
REPORTED_MAX = 100
READINGS_MAX = 200
STALE_S = 60.0
"""A look that is older says nothing of now."""

Sees = Callable[[str, str], bool]
"""Whether the caller may know of (queue, channel); an empty queue: of the broker itself, and so of everything."""


class _Seen(NamedTuple):
    """Something that is so at this look."""

    about: About
    fact: Any
    waiting: int = 0
    since_ms: int = 0
    """0: since it was seen first."""
    places: tuple[Place, ...] = ()
    """Who may know of one of these is told; none: of its queue and channel."""


@dataclass(slots=True)
class Trouble:
    """What is so, and for how long."""

    seen: _Seen
    first_s: float
    last_s: float
    since_ms: int
    is_reported: bool = False

    @property
    def about(self) -> About:
        return self.seen.about

    @property
    def rank(self) -> tuple[Any, ...]:
        """By harm; of a kind by the messages that wait."""
        return (kinds.KINDS.index(self.about.kind), -self.seen.waiting, self.since_ms, self.about[1:])


class Troubles:
    """Belongs to the loop's thread; is told the time."""

    def __init__(self) -> None:
        self._rates = Rates()
        self._kept: dict[About, Trouble] = {}
        self._ranked: list[Trouble] = []
        self._looked_s: float | None = None

    @property
    def ranked(self) -> list[Trouble]:
        """All that have begun, by harm."""
        return self._ranked

    # --- looking --------------------------------------------------------------------------------

    def look(self, facts: Facts, now_s: float, wall_ms: int) -> bool:
        """Take the facts of a look; emit what begins and what ends. True: the same facts later would change nothing."""
        for seen in self._so_now(facts, now_s):
            trouble = self._kept.get(seen.about)
            if trouble is None:
                if len(self._kept) >= KEPT_MAX:
                    continue
                since_ms = seen.since_ms or wall_ms
                trouble = self._kept[seen.about] = Trouble(seen, now_s, now_s, since_ms)
            trouble.seen, trouble.last_s = seen, now_s
            if seen.since_ms:
                trouble.since_ms = seen.since_ms
            if not trouble.is_reported and now_s - trouble.first_s >= seen.about.kind.begins_s:
                trouble.is_reported = True
                _emit("trouble.began", trouble, wall_ms)
        for about, trouble in list(self._kept.items()):
            is_over = trouble.last_s < now_s and now_s - trouble.last_s >= about.kind.ends_s
            if is_over or (trouble.last_s < now_s and not trouble.is_reported):
                del self._kept[about]
                if trouble.is_reported:
                    _emit("trouble.ended", trouble, wall_ms)
        self._ranked = sorted(
            (each for each in self._kept.values() if each.is_reported), key=lambda each: each.rank
        )
        self._looked_s = now_s
        are_so = all(each.is_reported and each.last_s == now_s for each in self._kept.values())
        return are_so and not self._rates.are_watched

    def hold(self, now_s: float) -> None:
        """The facts are those of the last look."""
        self._looked_s = now_s

    def _so_now(self, facts: Facts, now_s: float) -> Iterator[_Seen]:
        yield from _of_broker(facts)
        yield from self._unserved(facts)
        for row, now in self._rates.failing(
            facts.failing, now_s, lambda queue: self._is_reported(About(kinds.FAILING, queue))
        ):
            yield _Seen(About(kinds.FAILING, row.queue), now, row.ready)
        for pause in facts.pauses:
            about = About(kinds.PAUSED, pause.queue, pause.channel, pause.fairness_key)
            if pause.is_queue:
                about = about._replace(part=THE_QUEUE)
            yield _Seen(about, pause, pause.ready, pause.since_ms, ((pause.queue, pause.channel),))
        yield from self._limits(facts, now_s)
        yield from self._budgets(facts)
        for key, flood in self._rates.floods(facts, now_s):
            place = (text_of(key.queue), text_of(key.channel))
            yield _Seen(About(kinds.FLOOD, *place, text_of(key.fairness_key)), flood, key.pending)

    def _unserved(self, facts: Facts) -> Iterator[_Seen]:
        paused: dict[str, int] = {}
        for pause in facts.pauses:
            if pause.channel:
                continue  # what is unserved is another channel's
            paused[pause.queue] = paused.get(pause.queue, 0) + pause.ready
        for row in facts.unserved:
            about = About(kinds.NOBODY_CONSUMES, row.queue, row.channel)
            before = self._kept.get(about)
            ready = row.ready - paused.get(row.queue, 0)  # of paused keys nobody could be given any
            if ready > 0 and (before is None or before.seen.fact.delivered == row.delivered):
                yield _Seen(about, row, ready)

    def _limits(self, facts: Facts, now_s: float) -> Iterator[_Seen]:
        def is_reported(name: str) -> bool:
            return self._is_reported(About(kinds.LIMIT_BEHIND, throttle_key=name))

        for row, now in self._rates.limits(facts.limits, now_s, is_reported):
            places = tuple((queue, channel) for queue, channel, _ in row.places)
            about = About(kinds.LIMIT_BEHIND, throttle_key=row.throttle_key)
            yield _Seen(about, now, row.messages, places=places)

    def _budgets(self, facts: Facts) -> Iterator[_Seen]:
        for row in facts.limits:
            about = About(kinds.BUDGET_SPENT, throttle_key=row.throttle_key)
            before = self._kept.get(about)
            # A period as short as a look would seem to be spent all the time: each one begins anew.
            is_same = before is None or before.seen.fact.ends_ms == row.ends_ms
            if row.part == LIMIT_PART_BUDGET and is_same:
                places = tuple((queue, channel) for queue, channel, _ in row.places)
                yield _Seen(about, row, row.messages, places=places)

    def _is_reported(self, about: About) -> bool:
        trouble = self._kept.get(about)
        return trouble is not None and trouble.is_reported

    # --- telling --------------------------------------------------------------------------------

    def readings(self) -> list[TroubleReading]:
        """The worst, for metrics."""
        return [
            TroubleReading(
                each.about.kind.name,
                *_place_of(each.seen),
                each.about.fairness_key,
                each.about.throttle_key,
                each.since_ms / 1000,
            )
            for each in self._ranked[:READINGS_MAX]
        ]

    def reported(
        self, request: pb.GetStatusRequest, sees: Sees, names: Names, now_s: float, now_ms: int
    ) -> pb.GetStatusResponse:
        """The troubles of an answer, for a caller that may know what `sees` and `names` let through."""
        reported = pb.GetStatusResponse()
        whole = sees("", "")
        most = min(request.max_troubles or REPORTED_DEFAULT, REPORTED_MAX)
        asks_for_all = whole and not request.queue and not request.fairness_key
        for place, trouble in enumerate(self._ranked):
            if asks_for_all and place >= most:
                reported.more_troubles = len(self._ranked) - place
                break
            mine = trouble.seen if whole else _as_seen(trouble.seen, sees)
            if mine is None or not _asked_for(mine, request):
                continue
            if len(reported.troubles) >= most:
                reported.more_troubles += 1
                continue
            if mine.about.kind is kinds.PAUSED and not names(mine.fact.by):
                mine = _unsigned(mine)
            _put(reported.troubles.add(), mine, trouble.since_ms, now_ms)
        if not reported.troubles:
            reported.well = self._well(now_s, whole=whole)
        return reported

    def _well(self, now_s: float, *, whole: bool) -> str:
        if self._looked_s is None:
            return words.NOT_LOOKED_YET
        if now_s - self._looked_s > STALE_S:
            age = words.age_text(int((now_s - self._looked_s) * 1000))
            return (
                f"The broker is too busy to look around: it last did so {age} ago, and found nothing wrong."
            )
        return words.ALL_IS_WELL if whole else words.ALL_IS_WELL_IN_PART


def _of_broker(facts: Facts) -> Iterator[_Seen]:
    """What has no rate and no beginning of its own to be watched."""
    if facts.lost is not None:
        yield _Seen(About(kinds.LOST), facts.lost, since_ms=facts.lost.since_ms)
    if facts.damaged is not None:
        yield _Seen(About(kinds.DAMAGED), facts.damaged, since_ms=facts.damaged.since_ms)
    if facts.disk is not None:
        yield _Seen(About(kinds.DISK), facts.disk)
    for circuit in facts.circuits:
        about = About(kinds.CIRCUIT_OPEN, circuit.queue, part=circuit.hook)
        yield _Seen(about, circuit, places=((circuit.queue, ""),))


def _as_seen(seen: _Seen, sees: Sees) -> _Seen | None:
    """What a caller may know of it; None: nothing."""
    about = seen.about
    if not about.queue and not seen.places:
        return None  # the broker's own, for those that see all
    if about.kind not in kinds.OF_THROTTLES:
        place = seen.places[0] if seen.places else (about.queue, about.channel)
        return seen if sees(*place) else None
    mine = tuple(place for place in seen.fact.places if sees(*place[:2]))
    if not mine:
        return None
    waiting = sum(messages for _, _, messages in mine)
    places = tuple(place[:2] for place in mine)
    return seen._replace(fact=seen.fact._replace(places=mine), waiting=waiting, places=places)


def _unsigned(seen: _Seen) -> _Seen:
    """A pause, without who made it."""
    return seen._replace(fact=seen.fact._replace(by=""))


def _asked_for(seen: _Seen, request: pb.GetStatusRequest) -> bool:
    queues = {seen.about.queue} if seen.about.queue else {place[0] for place in seen.places}
    if request.queue and request.queue not in queues:
        return False
    others_pause = seen.about.kind is kinds.PAUSED and not (seen.fact.is_queue or seen.fact.channel)
    return not (request.fairness_key and others_pause and seen.about.fairness_key != request.fairness_key)


def _put(trouble: pb.Trouble, seen: _Seen, since_ms: int, now_ms: int) -> None:
    about, kind = seen.about, seen.about.kind
    trouble.kind = kind.number  # type: ignore[assignment]  # the table has its numbers
    trouble.text, trouble.lever, trouble.command = words.words(
        about, seen.fact, seen.waiting, since_ms, now_ms
    )
    trouble.since.FromMilliseconds(since_ms)
    trouble.queue, trouble.channel = _place_of(seen)
    trouble.fairness_key = about.fairness_key
    trouble.throttle_key = about.throttle_key
    trouble.waiting = seen.waiting


def _place_of(seen: _Seen) -> Place:
    about = seen.about
    queues = {place[0] for place in seen.places}
    if not about.queue and len(queues) == 1:
        return next(iter(queues)), ""
    return about.queue, about.channel


def _emit(event: str, trouble: Trouble, wall_ms: int) -> None:
    # All who see the queue read the event, and not all of them may learn who paused it.
    kind = trouble.about.kind
    seen = _unsigned(trouble.seen) if kind is kinds.PAUSED else trouble.seen
    queue, channel = _place_of(seen)
    lasted: dict[str, Any] = {}
    if event == "trouble.ended":
        lasted["lasted"] = words.age_text(wall_ms - trouble.since_ms)
    emit(
        event,
        level="warning" if event == "trouble.began" else "info",
        queue=queue,
        channel=channel,
        fairness_key=trouble.about.fairness_key,
        trouble=kind.name,
        text=words.words(trouble.about, seen.fact, seen.waiting, trouble.since_ms, wall_ms).text,
        **lasted,
    )
