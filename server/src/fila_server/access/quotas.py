"""Quotas that no thread can count by itself: what tenants have stored, and what names hold in flight. And how far each
quota is used, for telemetry.

    the core counts the bytes of some fairness keys, over all queues  ──►  core/requests/rights judges frames by them
                                                                           and adds what it lets in meanwhile
    the core keeps names within their messages in flight by itself    ◄──  it is told each bound that changes, and
                                                                           tells how many there are

So a tenant is let in beyond its bound by no more than what two of its keys send in the same second, and what of it
waits for a script or for the next pass while the core counts.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from fila_server import errors
from fila_server.access.directory import Directory
from fila_server.core.protocol import commands, seam_frames
from fila_server.core.requests.rights_table import Rights
from fila_server.telemetry.series import QuotaReading

log = structlog.get_logger()

LOOK_EVERY_S = 1.0
CHANGED_EVERY_S = 0.25
"""How soon a quota that was set is looked at."""
REST_TIMES = 10
REST_A_PAGE_S_MAX = 0.1
"""A page of the count takes the core some milliseconds: what a look lasts beyond that, it waited on a busy machine."""
CHANGED_REST_S_MAX = 0.75
"""How long changes are let be at most after some were followed: one is in force within a second."""
KEYS_A_CALL = 64
HOLDERS_A_CALL = 256
LISTED_MAX = 1_000
"""Names with series of their own; more would be more than anybody's dashboard reads."""

Call = Callable[[int, bytes], Awaitable[bytes]]


class Quotas:
    """Belongs to the loop's thread."""

    def __init__(
        self,
        call: Call,
        table: Rights,
        directory: Directory,
        now_s: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._call = call
        self._table = table
        self._directory = directory
        self._now_s = now_s
        self._sleep = sleep
        self._looking: asyncio.Task[None] | None = None
        self._generation = -1
        """Of the table, when changes were last followed."""
        self._counted: set[int] = set()
        """Numbers of names whose tenant was counted since they have a bound: a name that joins others of its tenant has
        to hear of what these have stored."""
        self._pages = 0
        """Asked of the core in this look."""

    def start(self) -> None:
        """Look from now on."""
        self._looking = asyncio.get_running_loop().create_task(self._look_on())

    def stop(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()

    async def look(self) -> None:
        """Have the core count what is bounded. Raises what the core answers."""
        generation = self._table.generation
        await self._look_at_holders()
        bounded = self._directory.bounded_tenants()
        self._counted.intersection_update(itertools.chain.from_iterable(bounded.values()))
        # Those first of whom nothing is known yet.
        tenants = sorted(bounded, key=lambda tenant: self._counted.issuperset(bounded[tenant]))
        self._generation = generation
        for at in range(0, len(tenants), KEYS_A_CALL):
            # However long the whole takes, what an admin changes meanwhile does not wait for its end.
            await self._follow_changes()
            await self._look_at_tenants(tenants[at : at + KEYS_A_CALL], bounded)

    async def _follow_changes(self) -> None:
        """Tell the core the bounds there are now, and have some of those counted who have their first one."""
        if (generation := self._table.generation) == self._generation:
            return
        await self._look_at_holders()
        bounded = self._directory.bounded_tenants()
        new = sorted(tenant for tenant in bounded if not self._counted.issuperset(bounded[tenant]))
        if new:
            await self._look_at_tenants(new[:KEYS_A_CALL], bounded)
        if len(new) <= KEYS_A_CALL:
            self._generation = generation

    async def _look_at_holders(self) -> None:
        bounds = self._directory.bounded_holders()
        numbers = sorted(bounds)
        for at in range(0, len(numbers), HOLDERS_A_CALL):
            part = numbers[at : at + HOLDERS_A_CALL]
            asked = seam_frames.Holders()
            for number in part:
                asked.holders.add(principal=number, most=bounds[number])
            self._pages += 1
            reply = await self._call(commands.HOLDERS, asked.SerializeToString())
            for number, row in zip(part, seam_frames.Held.FromString(reply).rows, strict=True):
                self._table.put_held(number, row.in_flight if bounds[number] else 0, row.refused)

    async def _look_at_tenants(self, tenants: Sequence[str], bounded: Mapping[str, Sequence[int]]) -> None:
        # Before the core counts: what is let in from here on may be in its number or not, and is added.
        let_in = {number: self._table.let_in(number) for each in tenants for number in bounded[each]}
        for tenant, stored in zip(tenants, await self._count(tenants), strict=True):
            self._counted.update(bounded[tenant])
            for number in bounded[tenant]:
                self._table.put_stored(number, stored, let_in[number])

    async def _count(self, tenants: Sequence[str]) -> list[int]:
        page = seam_frames.StoredPage(keys=[tenant.encode() for tenant in tenants])
        counts = [0] * len(tenants)
        capacity = 0
        while True:
            self._pages += 1
            reply = await self._call(commands.STORED_BYTES, page.SerializeToString())
            reported = seam_frames.StoredBytes.FromString(reply)
            if capacity not in (0, reported.capacity):
                # The table of queues grew meanwhile, and its parts are others now.
                page.cursor, capacity, counts = 0, 0, [0] * len(tenants)
                continue
            counts = [count + more for count, more in zip(counts, reported.stored, strict=True)]
            page.cursor, capacity = reported.cursor, reported.capacity
            if not page.cursor:
                return counts

    async def _look_on(self) -> None:
        due_s = self._now_s()
        while True:
            self._pages = 0
            if (began_s := self._now_s()) >= due_s:
                await self._unless_refused(self.look)
                due_s = max(began_s + LOOK_EVERY_S, self._now_s() + self._rest_s(began_s))
                await self._sleep(CHANGED_EVERY_S)
            else:
                await self._unless_refused(self._follow_changes)
                # Bounds may change without an end, and each time all names are told and tenants counted.
                await self._sleep(max(CHANGED_EVERY_S, min(self._rest_s(began_s), CHANGED_REST_S_MAX)))

    def _rest_s(self, began_s: float) -> float:
        """At most a tenth of the time, however many tenants and queues there are: each look costs the scheduler."""
        return min(REST_TIMES * (self._now_s() - began_s), REST_A_PAGE_S_MAX * self._pages)

    async def _unless_refused(self, work: Callable[[], Awaitable[None]]) -> None:
        """Whatever goes wrong, it is asked again: what is let in only grows in between, until all is refused."""
        try:
            await work()
        except errors.FilaServerError:  # the core is overloaded
            pass
        except Exception:
            log.exception("access.quotas_not_counted")

    def readings(self) -> list[QuotaReading]:
        """How far each quota is used, and how often it refused; those that refuse most first."""
        found = []
        for name, record in self._directory.principals.items():
            bounds = record.quotas
            refused = self._directory.refused(name)
            connections, streams, in_flight = self._directory.in_use(name)
            counted = (
                ("connections", connections, bounds.connections),
                ("streams", streams, bounds.streams),
                ("in_flight", in_flight, bounds.in_flight),
                ("stored_bytes", self._directory.stored(name), bounds.stored_bytes),
            )
            used = {quota: count / most for quota, count, most in counted if most}
            if used or refused:
                found.append(QuotaReading(name, refused, used))
        found.sort(key=lambda reading: (-reading.refused, reading.principal))
        return found[:LISTED_MAX]
