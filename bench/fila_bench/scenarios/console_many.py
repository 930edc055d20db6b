"""The console before a broker of 20,000 queues and 1,000,000 keys: how soon it finds and paints, what open overviews
cost, and what enqueues lose beside them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

from fila import FilaClient, NewMessage
from fila_bench import go_load
from fila_bench.admin import Admin
from fila_bench.callers import percentile
from fila_bench.console import LINGERS_S, LOAD, OVERVIEW, PAINTED, QUEUE, RATE, Console, chromium, loaded
from fila_bench.pairs import in_turn, ratio_of
from fila_bench.plan import key_text
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.backlog import fill
from fila_bench.server import Server

_NAME = "console-many"
_QUEUES = 20_000
_AT_ONCE = 64
_TOLD_S_MAX = 300.0
_SETTLES_S = 3.0
_CLIENTS = 20
_LOOKS = 20
_PAINTS = 10
_PAIRS = 8
_RUN_S = 5.0
_STRETCH_S = 100.0
"""Longer than an open overview waits until it asks again who waits longest in all queues."""
_BASE_S = 30.0
_A_QUARTER = 0.25
_TRIED_RATE = 4_000.0


class _Size(NamedTuple):
    queues: int
    keys: int
    is_quick: bool

    @property
    def words(self) -> str:
        return f"{self.queues:,} queues, {self.keys:,} keys"


def _size(budget: Budget) -> _Size:
    is_quick = budget.message_count < 1_000_000
    return _Size(_QUEUES // 10 if is_quick else _QUEUES, budget.message_count, is_quick)


@contextlib.contextmanager
def _many(size: _Size) -> Iterator[Server]:
    """A broker with so many queues. Of the keys, each with a message, half are in one queue and the others equally in
    all others. Nobody consumes."""
    with Server(durability="os") as server:
        with Admin(server.address) as admin:
            for name in (QUEUE, LOAD):
                admin.create(name, fairness_key_header="tenant")
        fill(server, message_count=size.keys // 2, payload_bytes=64, keys=size.keys // 2)
        asyncio.run(_fill_others(server.address, size))
        yield server


async def _fill_others(address: str, size: _Size) -> None:
    each = size.keys // 2 // size.queues
    places = asyncio.Semaphore(_AT_ONCE)
    async with FilaClient.connect(address) as client:

        async def one(number: int) -> None:
            messages = [
                NewMessage(payload=b"x" * 64, headers={"tenant": f"t{number}-{key}"}) for key in range(each)
            ]
            async with places:
                await client.create_queue(_name(number), fairness_key_header="tenant")
                await client.enqueue_many(_name(number), messages)

        await asyncio.gather(*(one(number) for number in range(size.queues - 2)))


async def _until_told(address: str) -> None:
    """Return once the broker has found that nobody consumes."""
    began_s = time.monotonic()
    async with FilaClient.connect(address) as client:
        while not (await client.get_status(max_troubles=1)).troubles:
            if time.monotonic() - began_s > _TOLD_S_MAX:
                raise TimeoutError("the broker tells of no trouble, though nobody consumes")
            await asyncio.sleep(1)


def _name(number: int) -> str:
    return f"queue-{number:05}"


@benchmark(
    "console-many",
    "the console, 20,000 queues, 1,000,000 keys: search, first paint, CPU of open overviews, enqueues beside them",
    "The broker syncs by the system (`durability = os`), so that p99 is no other program's disk.",
)
def many(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    size = _size(budget)
    with _many(size) as server:
        yield _beside(server, size)
        asyncio.run(_until_told(server.address))
        with Console(server.address) as console:
            yield from _finds(console, size)
            yield from _cores(server, console, size)


def _finds(console: Console, size: _Size) -> Iterator[Finding]:
    for case, path in (
        ("a queue by its beginning", "search?q=queue-{0:03}"),
        ("a queue by a part of its name", "search?q={0:03}7"),
        ("a key of the queues in which most waits", "search?q=t{0}"),
        (f"a key of a queue with {size.keys // 2:,}", f"search?queue={QUEUE}&q={key_text(7)[:-1]}{{0}}"),
    ):
        took = sorted(console.get(path.format(number)) for number in range(_LOOKS))
        yield Finding(
            benchmark=_NAME,
            case=f"search, {size.words}: {case}, the slowest of {_LOOKS}",
            value=took[-1],
            unit="s",
            reach=0.5,
            better="less",
            details={"p50 s": percentile(took, 0.5)},
        )
    paints: list[float] = []
    with chromium() as browser:
        for number in range(3 if size.is_quick else _PAINTS):
            if number:
                time.sleep(LINGERS_S)  # nobody looks any more, so nothing is there when the next one comes
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            tab = context.new_page()
            tab.goto(console.url)
            tab.wait_for_function(PAINTED)
            paints.append(tab.evaluate(PAINTED) / 1000)
            context.close()
    first, paints = paints[0], sorted(paints)
    yield Finding(
        benchmark=_NAME,
        case=f"first paint of the overview, {size.words}, where nobody looked before, median of {len(paints)}",
        value=percentile(paints, 0.5),
        unit="s",
        reach=1.0,
        better="less",
        details={"slowest s": paints[-1], "the browser's first page s": first},
    )


def _cores(server: Server, console: Console, size: _Size) -> Iterator[Finding]:
    """CPU of both while nobody looks, while one overview is open, and while twenty are."""
    stretch_s = 5.0 if size.is_quick else _STRETCH_S

    def used(clients: int) -> tuple[float, float]:
        if clients:
            console.look(clients, paths=(OVERVIEW,))
            time.sleep(_SETTLES_S)
        broker_s, console_s, began_s = server.cpu_s(), console.cpu_s(), time.monotonic()
        time.sleep(stretch_s if clients else min(stretch_s, _BASE_S))
        took_s = time.monotonic() - began_s
        both = (server.cpu_s() - broker_s) / took_s, (console.cpu_s() - console_s) / took_s
        console.leave()
        return both

    time.sleep(LINGERS_S)
    still = {clients: used(clients) for clients in (0, 1, _CLIENTS)}
    time.sleep(LINGERS_S)
    with loaded(server, stretch_s + min(stretch_s, _BASE_S) + _SETTLES_S + 3):
        busy = {clients: used(clients) for clients in (0, 1)}
    for found, how in ((still, "nothing stirs"), (busy, f"{RATE:,} msg/s")):
        yield Finding(
            benchmark=_NAME,
            case=f"broker, one open overview less none, {size.words}, {how}",
            value=found[1][0] - found[0][0],
            unit="core",
            reach=0.02,
            better="less",
            details={"with": found[1][0], "without": found[0][0]},
        )
        yield Finding(
            benchmark=_NAME,
            case=f"console, one open overview, {size.words}, {how}",
            value=found[1][1],
            unit="core",
            reach=0.05,
            better="less",
            details={"without": found[0][1]},
        )
    yield Finding(
        benchmark=_NAME,
        case=f"broker, {_CLIENTS} open overviews of one console / one, {size.words}",
        value=still[_CLIENTS][0] / still[1][0],
        unit="",
        reach=1.5,
        better="less",
        details={f"with {_CLIENTS}": still[_CLIENTS][0], "console": still[_CLIENTS][1]},
    )


def _beside(server: Server, size: _Size) -> Finding:
    """20 open overviews, while a quarter of the machine is busy."""
    pairs = 1 if size.is_quick else _PAIRS
    rate, busy = _rate_of_a_quarter(server)

    def alone() -> float:
        return _p99(server, rate)

    def looked_at() -> float:
        with Console(server.address) as console:
            console.look(_CLIENTS, paths=(OVERVIEW,))
            time.sleep(_SETTLES_S)
            return _p99(server, rate)

    found = in_turn({"alone": alone, "beside": looked_at, "alone again": alone}, pairs)
    ratio, itself = (ratio_of(found["alone"], found[side]) for side in ("beside", "alone again"))
    return Finding(
        benchmark=_NAME,
        case=f"p99 of enqueues beside {_CLIENTS} open overviews / none, {size.words}, median of {pairs} pairs",
        value=ratio.median,
        unit="",
        reach=max(1.15, itself.median, 1 / itself.median),
        better="less",
        details={
            "90 % interval": ratio.interval,
            "from itself": f"{itself.median:.2f}, {itself.interval}",
            "beside ms": statistics.median(found["beside"]) / 1e3,
            "alone ms": statistics.median(found["alone"]) / 1e3,
            "msg/s": rate,
            "of the machine": busy,
        },
    )


def _p99(server: Server, rate: float) -> float:
    with loaded(server, _RUN_S, rate=rate) as reports:
        pass
    return float(reports[0]["enqueue_us"]["p99"])


def _rate_of_a_quarter(server: Server) -> tuple[float, float]:
    """Messages a second at which broker and load together take a quarter of the machine; and what part they took."""
    rate, part = _TRIED_RATE, 0.0
    for _ in range(3):
        before_s, began_s = server.cpu_s() + _children_s(), time.monotonic()
        _p99(server, rate)
        used = (server.cpu_s() + _children_s() - before_s) / (time.monotonic() - began_s)
        part = used / len(os.sched_getaffinity(0))
        if 0.9 < part / _A_QUARTER < 1.1:
            break
        rate *= min(4.0, _A_QUARTER / part)
    return round(rate, -1), part


def _children_s() -> float:
    """CPU of loads that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
