"""The console: how soon its pages are painted, what browsers that look cost, and what a console that hangs costs."""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import time
from collections.abc import Callable, Iterator

from fila.sync import FilaClient
from fila_bench import go_load
from fila_bench.admin import Admin
from fila_bench.callers import percentile
from fila_bench.console import LINGERS_S, LOAD, PAINTED, QUEUE, RATE, Console, chromium, loaded, on_cores
from fila_bench.pairs import ratio_of
from fila_bench.plan import key_text
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.backlog import fill
from fila_bench.scenarios.full_life import Life, measure_life
from fila_bench.server import Server

_WAITING = QUEUE
_CLIENTS = 20
_PAINTS = 20
_PAIRS = 4
_PAGES = {
    "overview": "",
    "queue": f"queues/{_WAITING}",
    "key": f"queues/{_WAITING}/key?key={key_text(7)}",
    "dead letters": f"queues/{_WAITING}.dlq/dead-letters",
    "policy": f"queues/{_WAITING}/policy",
    "log": f"queues/{_WAITING}/log",
    "events": "events",
}
_FETCHED = (
    "() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
    ".filter((each) => each.initiatorType !== 'eventsource').reduce((sum, each) => sum + each.transferSize, 0)"
)
_SHIFTS = (
    "window.shifted = 0; new PerformanceObserver((list) => { for (const each of list.getEntries()) "
    "window.shifted += each.value; }).observe({ type: 'layout-shift', buffered: true });"
)


@contextlib.contextmanager
def _busy(keys: int) -> Iterator[Server]:
    """A broker with a key for each of many messages that wait, and a dead letter or two."""
    with Server() as server:
        with Admin(server.address) as admin:
            admin.create(_WAITING, fairness_key_header="tenant")
            admin.create(LOAD, fairness_key_header="tenant")
        fill(server, message_count=keys, payload_bytes=64, keys=keys)
        yield server


@benchmark("console-cost", "the console: CPU of broker and console with 20 browsers that look, less none")
def cost(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    with (
        _busy(budget.message_count) as server,
        Console(server.address) as console,
        loaded(server, 4 * budget.seconds + LINGERS_S + 3),
    ):
        measured = _cores(server, console, budget.seconds, lambda: console.look(_CLIENTS))
    yield from _told("console-cost", f"{_CLIENTS} streams of one login", budget, measured, reach=0.01)


@benchmark("console-logins", "as console-cost, each of the 20 browsers with a login of its own")
def logins(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    with _busy(budget.message_count) as server:
        # Its backlog is there: from now on everybody needs a key.
        server.stop()
        server.configure(auth__enabled="true")
        server.start()
        key = (server.data_dir / "bootstrap-key").read_text().strip()
        with FilaClient.connect(server.address, api_key=key) as client:
            keys = [client.create_key(f"operator-{number}") for number in range(_CLIENTS)]
            for number in range(_CLIENTS):
                client.grant(f"operator-{number}", admin=True)
        with (
            Console(server.address) as console,
            loaded(server, 4 * budget.seconds + LINGERS_S + 10, key),
        ):
            cookies = console.log_in(keys)
            measured = _cores(
                server, console, budget.seconds, lambda: console.look(_CLIENTS, cookies=cookies)
            )
    yield from _told(
        "console-logins", f"{_CLIENTS} streams of {_CLIENTS} logins", budget, measured, reach=0.03
    )


def _cores(
    server: Server, console: Console, seconds: float, look: Callable[[], None]
) -> tuple[float, float, float]:
    """Cores that the broker uses without and with browsers that look, and the console's with them."""

    def stretch() -> tuple[float, float]:
        broker_s, console_s, began_s = server.cpu_s(), console.cpu_s(), time.monotonic()
        time.sleep(seconds)
        took_s = time.monotonic() - began_s
        return (server.cpu_s() - broker_s) / took_s, (console.cpu_s() - console_s) / took_s

    # Without, with twice, without: what drifts is in both.
    without = [stretch()[0]]
    look()
    looked_at = [stretch(), stretch()]
    console.leave()
    time.sleep(LINGERS_S)
    without.append(stretch()[0])
    broker, own = (statistics.mean(each) for each in zip(*looked_at, strict=True))
    return statistics.mean(without), broker, own


def _told(
    name: str, who: str, budget: Budget, measured: tuple[float, float, float], *, reach: float
) -> Iterator[Finding]:
    without, broker, console = measured
    yield Finding(
        benchmark=name,
        case=f"broker, {who} less none, {budget.message_count:,} keys, {RATE:,} msg/s",
        value=broker - without,
        unit="core",
        reach=reach,
        better="less",
        details={"with": broker, "without": without},
    )
    yield Finding(
        benchmark=name,
        case=f"console, {who}",
        value=console,
        unit="core",
        reach=0.25,
        better="less",
    )


@benchmark(
    "console-beside", "full life, broker and load on one core: a console with 20 browsers on the other / none"
)
def beside(budget: Budget) -> Iterator[Finding]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise RuntimeError(
            "broker and console need a core each, and there is one: run it where there are two"
        )
    life, pairs = Life(), _PAIRS if budget.seconds > 4 else 1

    @contextlib.contextmanager
    def looked_at(server: Server) -> Iterator[None]:
        with on_cores(cores[1:2]), Console(server.address) as console:
            console.look(_CLIENTS, cores=cores[1:2])
            yield

    rates: dict[bool, list[float]] = {False: [], True: []}
    with on_cores(cores[:1]):
        for number in range(pairs):
            for looks in (False, True) if number % 2 else (True, False):
                steady, _ = measure_life(life, budget, beside=looked_at if looks else None)
                rates[looks].append(steady.acked_per_s)
    ratio = ratio_of(rates[False], rates[True])
    yield Finding(
        benchmark="console-beside",
        case=f"{life.case}: with {_CLIENTS} browsers / none, median of {pairs} pairs",
        value=ratio.median,
        unit="",
        reach=0.98,
        details={
            "90 % interval": ratio.interval,
            "with/s": statistics.median(rates[True]),
            "without/s": statistics.median(rates[False]),
        },
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
                with loaded(server, budget.seconds) as reports:
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
        head = f"GET /b/broker/live/queue?queue={LOAD} HTTP/1.1\r\nHost: 127.0.0.1:{console.port}\r\n\r\n"
        stream.sendall(head.encode())
        lines = stream.makefile("r", encoding="utf-8")
        for number in range(_PAINTS + 1):
            began_s = time.monotonic()
            if number:
                admin.enqueue(LOAD, {"tenant": "k"}, b"x")
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
    with _busy(budget.message_count) as server, Console(server.address) as console, chromium() as browser:
        for name, path in _PAGES.items():
            took: list[float] = []
            for _ in range(times):
                context = browser.new_context(viewport={"width": 1440, "height": 900})
                tab = context.new_page()
                tab.goto(console.url + path)
                tab.wait_for_function(PAINTED)
                took.append(tab.evaluate(PAINTED))
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
    pages = ("", f"queues/{LOAD}", f"queues/{LOAD}/key?key={key_text(7)}")
    with (
        _busy(min(budget.message_count, 100_000)) as server,
        Console(server.address) as console,
        chromium() as browser,
    ):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_init_script(_SHIFTS)
        tabs = [context.new_page() for _ in pages]
        with loaded(server, seconds):
            for tab, path in zip(tabs, pages, strict=True):
                tab.goto(console.url + path)
            time.sleep(seconds)
            shifted = [float(tab.evaluate("() => window.shifted")) for tab in tabs]
    yield Finding(
        benchmark="console-shift",
        case=f"overview, a queue and a key, {seconds:.0f} s at {RATE:,} msg/s, the worst",
        value=max(shifted),
        unit="",
        reach=0.0,
        better="less",
    )
