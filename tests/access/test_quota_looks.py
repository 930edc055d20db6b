"""When the core is asked how far quotas are used: seldom where that costs much, and soon where a quota changed."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fila_server import errors
from fila_server.access.directory import Directory
from fila_server.access.quotas import HOLDERS_A_CALL, KEYS_A_CALL, Quotas
from fila_server.access.records import PrincipalRecord, QuotaRecord
from fila_server.core.protocol import commands, seam_frames
from fila_server.core.requests.rights_table import Rights
from tests.access.holders import answer_to_holders

TURNS = 50
"""Of the loop: more than any step of a look takes."""


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = itertools.count()

    async def sleep(self, seconds: float) -> None:
        awaited = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.now_s + seconds, next(self._count), awaited))
        await awaited

    async def run_until(self, ends_s: float) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)
        while self._waiting and self._waiting[0][0] <= ends_s:
            self.now_s, _, awaited = heapq.heappop(self._waiting)
            if not awaited.done():
                awaited.set_result(None)
            for _ in range(TURNS):
                await asyncio.sleep(0)
        self.now_s = ends_s


class SlowCore:
    """Answers each question after `takes_s`, as a core does whose edge gets no processor."""

    def __init__(self, clock: Clock, takes_s: float) -> None:
        self._clock = clock
        self.takes_s = takes_s
        self.refuses = False
        self.stored = 0
        """Bytes of each tenant's."""
        self.counted: list[tuple[float, list[str]]] = []
        """When it was asked for whose bytes."""
        self.bounds: list[tuple[float, list[int]]] = []
        """When it was told which bounds."""

    async def call(self, kind: int, frame: bytes) -> bytes:
        if kind == commands.ACCESS_CHANGE:
            return b""
        asked_s = self._clock.now_s
        await self._clock.sleep(self.takes_s)
        if self.refuses:
            raise errors.Overloaded("busy")
        if kind == commands.HOLDERS:
            told, held = answer_to_holders(frame)
            self.bounds.append((asked_s, told))
            return held
        assert kind == commands.STORED_BYTES
        page = seam_frames.StoredPage.FromString(frame)
        self.counted.append((asked_s, [key.decode() for key in page.keys]))
        return bytes(
            seam_frames.StoredBytes(stored=[self.stored] * len(page.keys), capacity=8).SerializeToString()
        )


class World:
    """Quotas over a slow core."""

    def __init__(self, data_dir: Path) -> None:
        self.clock = Clock()
        self.core = SlowCore(self.clock, 0.001)
        table = Rights()
        self.directory = Directory(
            self.core.call, table, str(data_dir), wall_ms=lambda: 1000, mono_ns=lambda: 0
        )
        self.quotas = Quotas(
            self.core.call, table, self.directory, lambda: self.clock.now_s, self.clock.sleep
        )

    async def bound(self, name: str, tenant: str = "", **quotas: int) -> None:
        await self.directory.change(
            [PrincipalRecord(name, 1, tenant=tenant, quotas=QuotaRecord(**quotas))], []
        )

    async def have_tenants(self, count: int) -> None:
        bound = QuotaRecord(stored_bytes=1000)
        names = [f"tenant-{number}" for number in range(count)]
        await self.directory.change(
            [PrincipalRecord(name, 1, tenant=name, quotas=bound) for name in names], []
        )


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    await made.bound("shop", "acme", stored_bytes=1000)
    made.quotas.start()
    yield made
    made.quotas.stop()


async def test_what_changes_is_told_within_a_second_however_long_the_last_look_took(world: World):
    world.core.takes_s = 5.0
    await world.clock.run_until(6.0)  # the first look is over, which took five
    world.core.takes_s = 0.001
    await world.bound("worker", in_flight=3)
    await world.bound("other", "globex", stored_bytes=1000)
    await world.clock.run_until(7.0)

    assert world.core.bounds
    assert world.core.bounds[-1][1] == [3]
    assert any("globex" in tenants for _, tenants in world.core.counted)


async def test_what_changes_during_a_long_look_does_not_wait_for_its_end(world: World):
    await world.have_tenants(KEYS_A_CALL * 4)
    world.core.takes_s = 5.0
    await world.clock.run_until(2.0)
    await world.bound("worker", in_flight=3)
    await world.clock.run_until(12.0)

    assert len(world.core.counted) < 4, "the look goes on"
    assert [most for _, most in world.core.bounds] == [[3]]


async def test_who_is_counted_already_is_counted_once_a_second_though_others_change(world: World):
    for second in range(10):
        for step in range(4):
            await world.bound("worker", in_flight=second * 4 + step + 1)
            await world.clock.run_until(second + step / 4)
    assert 5 <= len(world.core.counted) <= 11


async def test_a_count_of_many_pages_takes_a_tenth_of_the_time(world: World):
    await world.have_tenants(KEYS_A_CALL * 20)
    world.core.takes_s = 0.01
    await world.clock.run_until(10.0)
    asked = len(world.core.counted)
    await world.clock.run_until(40.0)
    assert 0.05 < (len(world.core.counted) - asked) * world.core.takes_s / 30 <= 0.11


async def test_what_could_not_be_told_is_told_again(world: World):
    await world.clock.run_until(2.0)
    world.core.refuses = True
    await world.bound("worker", in_flight=3)
    await world.clock.run_until(2.9)
    assert not world.core.bounds
    world.core.refuses = False
    await world.clock.run_until(3.8)
    assert world.core.bounds[0][1] == [3]


async def test_a_name_that_joins_others_of_its_tenant_hears_at_once_what_these_have_stored(world: World):
    await world.clock.run_until(1.1)
    world.core.stored = 700
    await world.bound("second", "acme", stored_bytes=2000)
    await world.clock.run_until(1.7)
    assert world.directory.stored("second") == 700


async def test_changes_without_end_are_followed_a_tenth_of_the_time(world: World):
    """Beside the looks, which take another."""
    bound = QuotaRecord(in_flight=3)
    names = [f"worker-{number}" for number in range(HOLDERS_A_CALL * 8)]
    await world.directory.change([PrincipalRecord(name, 1, quotas=bound) for name in names], [])
    world.core.takes_s = 0.01
    await world.clock.run_until(5.0)
    asked = len(world.core.bounds)
    for step in range(40):
        await world.bound("worker-0", in_flight=step + 4)
        await world.clock.run_until(5.0 + step / 4)
    assert 0.1 < (len(world.core.bounds) - asked) * world.core.takes_s / 10 <= 0.2
