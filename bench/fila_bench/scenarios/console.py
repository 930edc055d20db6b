"""The console: how soon its pages are painted, what browsers that look cost, and what a console that hangs costs."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import psutil

from fila_bench import go_load
from fila_bench.admin import Admin
from fila_bench.callers import percentile
from fila_bench.plan import key_text
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.backlog import fill
from fila_bench.server import Server, ServerFailed

_WAITING, _LOAD = "bench", "load"
_RATE = 2_000
_CLIENTS = 20
_PAINTS = 20
_LINGERS_S = 11.0
"""Longer than the console goes on to ask after the last who looked."""
_PAGES = {
    "overview": "",
    "queue": f"queues/{_WAITING}",
    "key": f"queues/{_WAITING}/key?key={key_text(7)}",
    "dead letters": f"queues/{_WAITING}.dlq/dead-letters",
    "policy": f"queues/{_WAITING}/policy",
    "log": f"queues/{_WAITING}/log",
    "events": "events",
}
_PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
_FETCHED = (
    "() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
    ".filter((each) => each.initiatorType !== 'eventsource').reduce((sum, each) => sum + each.transferSize, 0)"
)
_SHIFTS = (
    "window.shifted = 0; new PerformanceObserver((list) => { for (const each of list.getEntries()) "
    "window.shifted += each.value; }).observe({ type: 'layout-shift', buffered: true });"
)


class Console:
    """`fila console` before a broker, and how many browsers look at it."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._stop = threading.Event()
        self._browsers: threading.Thread | None = None

    def __enter__(self) -> Self:
        command = str(Path(sys.executable).with_name("fila"))
        self._process = subprocess.Popen(
            [command, "--addr", self._broker, "console", "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        if found is None:
            raise ServerFailed(f"fila console did not start: {line}")
        self.port = int(found[1])
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()
        self._process.send_signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/b/broker/"

    def cpu_s(self) -> float:
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def hang(self) -> None:
        """As a process that is stopped, with its connections open."""
        self._process.send_signal(signal.SIGSTOP)

    def look(self, clients: int, *, reads: bool = True) -> None:
        """Let so many browsers look, half at the overview and half at a queue; `reads` False: none reads what comes."""
        opened = threading.Event()
        self._browsers = threading.Thread(target=lambda: asyncio.run(self._look(clients, opened, reads)))
        self._browsers.start()
        opened.wait(20)

    def leave(self) -> None:
        """Nobody looks any more."""
        if self._browsers is not None:
            self._stop.set()
            self._browsers.join()
            self._stop.clear()
            self._browsers = None

    async def _look(self, clients: int, opened: threading.Event, reads: bool) -> None:
        paths = ("live/overview", f"live/queue?queue={_WAITING}")
        told = 0

        async def browser(number: int) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            head = f"GET /b/broker/{paths[number % 2]} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n"
            writer.write(head.encode())
            await reader.readuntil(b"event: whole")
            nonlocal told
            told += 1
            if told == clients:
                opened.set()
            while reads:
                await reader.read(1 << 16)
            await asyncio.Event().wait()

        looking = [asyncio.create_task(browser(number)) for number in range(clients)]
        while not self._stop.is_set():
            await asyncio.sleep(0.1)
        for each in looking:
            each.cancel()
        await asyncio.gather(*looking, return_exceptions=True)


@contextlib.contextmanager
def _busy(keys: int) -> Iterator[Server]:
    """A broker with a key for each of many messages that wait, and a dead letter or two."""
    with Server() as server:
        with Admin(server.address) as admin:
            admin.create(_WAITING, fairness_key_header="tenant")
            admin.create(_LOAD, fairness_key_header="tenant")
        fill(server, message_count=keys, payload_bytes=64, keys=keys)
        yield server


@contextlib.contextmanager
def _load(server: Server, seconds: float) -> Iterator[list[dict[str, Any]]]:
    """2,000 messages a second, enqueued and consumed; the report is in the list once this is left."""
    reports: list[dict[str, Any]] = []

    def run() -> None:
        flags: dict[str, str | float] = {
            "queue": _LOAD,
            "rate": _RATE,
            "batch": 10,
            "keys": 1_000,
            "warm_up": "1s",
        }
        reports.append(go_load.run(server.address, duration=f"{seconds}s", **flags))

    running = threading.Thread(target=run)
    running.start()
    time.sleep(1.0)
    yield reports
    running.join()


@benchmark("console-cost", "the console: CPU of broker and console with 20 browsers that look, less none")
def cost(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    keys, seconds = budget.message_count, budget.seconds
    with (
        _busy(keys) as server,
        Console(server.address) as console,
        _load(server, 4 * seconds + _LINGERS_S + 3),
    ):

        def cores() -> tuple[float, float]:
            broker_s, console_s, began_s = server.cpu_s(), console.cpu_s(), time.monotonic()
            time.sleep(seconds)
            took_s = time.monotonic() - began_s
            return (server.cpu_s() - broker_s) / took_s, (console.cpu_s() - console_s) / took_s

        # Without, with twice, without: what drifts is in both.
        without = [cores()[0]]
        console.look(_CLIENTS)
        looked_at = [cores(), cores()]
        console.leave()
        time.sleep(_LINGERS_S)
        without.append(cores()[0])
    brokers, consoles = (sum(each) / len(each) for each in zip(*looked_at, strict=True))
    alone = sum(without) / len(without)
    yield Finding(
        benchmark="console-cost",
        case=f"broker, {_CLIENTS} streams of one login less none, {keys:,} keys, {_RATE:,} msg/s",
        value=brokers - alone,
        unit="core",
        reach=0.01,
        better="less",
        details={"with": brokers, "without": alone},
    )
    yield Finding(
        benchmark="console-cost",
        case=f"console, {_CLIENTS} streams",
        value=consoles,
        unit="core",
        reach=0.25,
        better="less",
    )


@benchmark(
    "console-hangs",
    "the console stopped (SIGSTOP), killed, browsers that never read: the broker's p99 and memory",
)
def hangs(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    found: dict[str, tuple[float, float]] = {}
    with _busy(min(budget.message_count, 100_000)) as server:
        for case in ("no console", "stopped", "killed", "browsers that never read"):
            with contextlib.ExitStack() as stack:
                if case != "no console":
                    console = stack.enter_context(Console(server.address))
                    console.look(_CLIENTS, reads=case != "browsers that never read")
                before = server.resident_bytes()
                if case == "killed":
                    stack.close()
                if case == "stopped":
                    console.hang()
                with _load(server, budget.seconds) as reports:
                    pass
                found[case] = (reports[0]["enqueue_us"]["p99"], (server.resident_bytes() - before) / 1e6)
    p99_without, grown_without = found.pop("no console")
    for case, (p99, grown) in found.items():
        yield Finding(
            benchmark="console-hangs",
            case=f"{case}: p99 of an enqueue / without a console",
            value=p99 / p99_without,
            unit="",
            reach=1.05,
            better="less",
            details={"p99 ms": p99 / 1e3, "memory MB": grown, "memory MB without": grown_without},
        )


@benchmark("console-moves", "an enqueue, until a browser that looks at the queue is told of it")
def moves(budget: Budget) -> Iterator[Finding]:
    took: list[float] = []
    with (
        _busy(min(budget.message_count, 100_000)) as server,
        Console(server.address) as console,
        Admin(server.address) as admin,
        socket.create_connection(("127.0.0.1", console.port), 20) as stream,
    ):
        head = f"GET /b/broker/live/queue?queue={_LOAD} HTTP/1.1\r\nHost: 127.0.0.1:{console.port}\r\n\r\n"
        stream.sendall(head.encode())
        lines = stream.makefile("r", encoding="utf-8")
        for number in range(_PAINTS + 1):
            began_s = time.monotonic()
            if number:
                admin.enqueue(_LOAD, {"tenant": "k"}, b"x")
            while f'"number-waiting":{{"t":"{number}"' not in next(lines):
                pass
            if number:
                took.append(time.monotonic() - began_s)
    took.sort()
    yield Finding(
        benchmark="console-moves",
        case=f"the slowest of {_PAINTS}",
        value=took[-1],
        unit="s",
        reach=2.0,
        better="less",
        details={"p50 s": percentile(took, 0.5)},
    )


@benchmark(
    "console-paint", "each page of the console, cold cache: first contentful paint, and what it fetches"
)
def paint(budget: Budget) -> Iterator[Finding]:
    times = _PAINTS if budget.seconds > 4 else 3
    with _busy(budget.message_count) as server, Console(server.address) as console, _browser() as browser:
        for name, path in _PAGES.items():
            took: list[float] = []
            for _ in range(times):
                context = browser.new_context(viewport={"width": 1440, "height": 900})
                tab = context.new_page()
                tab.goto(console.url + path)
                tab.wait_for_function(_PAINTED)
                took.append(tab.evaluate(_PAINTED))
                fetched = tab.evaluate(_FETCHED)
                context.close()
            took.sort()
            yield Finding(
                benchmark="console-paint",
                case=f"{name}, median of {times}",
                value=percentile(took, 0.5),
                unit="ms",
                reach=300,
                better="less",
                details={"p95 ms": percentile(took, 0.95), "KB": fetched / 1e3},
            )


@benchmark("console-shift", "the console: how much a page's layout moves while it is live")
def shift(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    seconds = 60.0 if budget.seconds > 4 else 10.0
    pages = ("", f"queues/{_LOAD}", f"queues/{_LOAD}/key?key={key_text(7)}")
    with (
        _busy(min(budget.message_count, 100_000)) as server,
        Console(server.address) as console,
        _browser() as browser,
    ):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_init_script(_SHIFTS)
        tabs = [context.new_page() for _ in pages]
        with _load(server, seconds):
            for tab, path in zip(tabs, pages, strict=True):
                tab.goto(console.url + path)
            time.sleep(seconds)
            shifted = [float(tab.evaluate("() => window.shifted")) for tab in tabs]
    yield Finding(
        benchmark="console-shift",
        case=f"overview, a queue and a key, {seconds:.0f} s at {_RATE:,} msg/s, the worst",
        value=max(shifted),
        unit="",
        reach=0.0,
        better="less",
    )


@contextlib.contextmanager
def _browser() -> Iterator[Any]:
    """The system's chromium."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
