"""Gathers what may be a trouble, every two seconds, for troubles.py to judge.

    the observer's METRICS ──► the disk, loss, the busiest keys and their channels
    TROUBLES_PAGE          ──► channels nobody consumes, pauses, failures, buckets that are waited for
    records                ──► loss and damage until they are acknowledged; since when something is paused, by whom, why

A look asks for PAGES_A_LOOK pages at most, each of a slice of the broker's queues or buckets, so a look costs the same
whatever is stored. A broker of some thousand queues is seen whole at each look, one of 20,000 every ten seconds. While
nothing stirs the snapshot is the same one, and so are the facts: once time brings nothing either, none are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fila.v1.limit_pb2 import LIMIT_PART_RATE
from fila_server.broker.calls import Broker
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations import pauses
from fila_server.operations.damage import Damage
from fila_server.operations.trouble_facts import Circuit, Disk, Facts, Failing, Limit, Pause, Unserved
from fila_server.operations.troubles import KEPT_MAX, Troubles
from fila_server.telemetry.snapshot import Snapshot, text_of

PAGES_A_LOOK = 4
RECORDS_A_LOOK = 50
"""Of pauses, that are asked for their beginning."""
AGAIN_A_LOOK = 4
"""Of these, pauses whose beginning is known, in turn: one may have been paused anew, or for another reason."""
_QUEUES, _BUCKETS = 0, 1
_FULL = 2


class TroubleSurvey:
    """Asks the core, and hands what it finds to `troubles` once it has come round."""

    def __init__(self, broker: Broker, troubles: Troubles, circuits: Callable[[], Iterable[Circuit]]) -> None:
        self._broker = broker
        self._troubles = troubles
        self._circuits = circuits
        self._damage = Damage(broker)
        self._begun: dict[bytes, pauses.Paused | None] = {}
        self._looked = 0
        self._round = _Round()
        self._settled: Snapshot | None = None
        """What holds until something stirs, if `circuits` stay as they were."""
        self._circuits_then: list[Circuit] = []

    async def look(self, snapshot: Snapshot, now_s: float, wall_ms: int) -> None:
        """Ask for some pages more; where that was the last one, judge. Raises FilaServerError."""
        if snapshot is self._settled and self._circuits_then == list(self._circuits()):
            self._troubles.hold(now_s)
            return
        self._round.begin(snapshot)
        for _ in range(PAGES_A_LOOK):
            asked = self._round.next_page()
            reply = await self._broker.call(commands.TROUBLES_PAGE, asked.SerializeToString())
            self._round.take(seam_frames.TroublesFound.FromString(reply))
            if self._round.is_over:
                break
        else:
            return
        facts = self._round.facts()
        is_whole = self._round.snapshot is snapshot
        self._round = _Round()
        facts.pauses = await self._with_beginnings(facts.pauses)
        facts.lost, facts.damaged = await self._damage.look(snapshot, wall_ms)
        if snapshot.totals.disk_level:
            facts.disk = Disk(snapshot.totals.disk_level >= _FULL, snapshot.totals.disk_free_bytes)
        facts.circuits = self._circuits_then = list(self._circuits())
        facts.keys = snapshot.keys
        facts.channels = {
            (queue.name, channel.name): channel for queue in snapshot.queues for channel in queue.channels
        }
        is_settled = self._troubles.look(facts, now_s, wall_ms)
        self._settled = snapshot if is_whole and is_settled else None

    async def _with_beginnings(self, found: Sequence[Pause]) -> list[Pause]:
        begun, self._begun = self._begun, {}
        left = RECORDS_A_LOOK
        self._looked += 1
        found_since: list[Pause] = []
        for number, pause in enumerate(found):
            name = pauses.of_key(pause.queue, pause.fairness_key)
            if pause.channel:
                name = pauses.of_channel(pause.queue, pause.channel)
            elif pause.is_queue:
                name = pauses.of_queue(pause.queue)
            is_due = (number - self._looked * AGAIN_A_LOOK) % len(found) < AGAIN_A_LOOK
            if name in begun and not (is_due and left):
                self._begun[name] = begun[name]
            elif left:
                left -= 1
                self._begun[name] = await pauses.read(self._broker.call, name)
            record = self._begun.get(name)
            found_since.append(
                pause._replace(since_ms=record.since_ms, by=record.by, comment=record.comment)
                if record
                else pause
            )
        return found_since


class _Round:
    """The pages of all queues, then those of all buckets."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        """The one that it began with."""
        self._part = _QUEUES
        self._cursor = self._capacity = 0
        self._rows: dict[str, list[Any]] = {"unserved": [], "paused": [], "failing": [], "limits": []}

    @property
    def is_over(self) -> bool:
        return self._part > _BUCKETS

    def begin(self, snapshot: Snapshot) -> None:
        """With this snapshot, unless it has begun."""
        self.snapshot = self.snapshot or snapshot

    def next_page(self) -> Any:
        return seam_frames.TroublesPage(part=self._part, cursor=self._cursor, capacity=self._capacity)

    def take(self, found: Any) -> None:
        """Rows of a page. A table that has grown begins anew, and what was found of it may be told twice."""
        for name, rows in self._rows.items():
            rows.extend(getattr(found, name)[: KEPT_MAX - len(rows)])
        self._cursor, self._capacity = found.cursor, found.capacity
        if not self._cursor:
            self._part, self._capacity = self._part + 1, 0

    def facts(self) -> Facts:
        rows = self._rows
        return Facts(
            unserved=[
                Unserved(text_of(row.queue), text_of(row.channel), row.ready, row.delivered)
                for row in rows["unserved"]
            ],
            pauses=[
                Pause(
                    text_of(row.queue), text_of(row.fairness_key), row.ready,
                    is_queue=row.is_queue, channel=text_of(row.channel),
                )
                for row in rows["paused"]
            ],
            failing=[
                Failing(
                    text_of(row.queue), row.acked, row.failed, row.dead,
                    row.acked_before, row.failed_before, row.dead_before, row.began_ago_ms / 1000, row.ready,
                )
                for row in rows["failing"]
            ],
            limits=[
                Limit(
                    text_of(row.throttle_key), row.rate, row.burst, row.passed, row.messages,
                    tuple((text_of(at.queue), text_of(at.channel), at.messages) for at in row.places),
                    row.is_compound, row.part or LIMIT_PART_RATE, row.slots,
                    row.amount, row.in_cost, row.period_ms, row.ends_ms,
                )
                for row in rows["limits"]
            ],
        )  # fmt: skip
