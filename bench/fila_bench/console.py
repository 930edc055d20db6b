"""`fila console` before a broker, for benchmarks: its process, logins, and browsers that only follow streams."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import psutil

from fila_bench import go_load
from fila_bench.server import Server, ServerFailed

QUEUE, LOAD = "bench", "load"
"""The queue whose page is looked at, and the one of the load beside it."""
RATE = 2_000
OVERVIEW = "live/overview"
LINGERS_S = 11.0
"""Longer than the console goes on to ask after the last who looked."""
PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
_ANSWER_S_MAX = 30.0


@contextlib.contextmanager
def on_cores(cores: Collection[int]) -> Iterator[None]:
    """This thread, and what it starts meanwhile, on these cores alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def behind_the_broker() -> Iterator[None]:
    """This thread, and what it starts meanwhile, behind the broker. The console sees to that by its nice value, which
    says nothing where the run is of real time (`chrt -r 2 bench/run.py`): there it is one priority less."""
    policy, before = os.sched_getscheduler(0), os.sched_getparam(0)
    is_real_time = policy == os.SCHED_RR and before.sched_priority > 1
    if is_real_time:
        os.sched_setparam(0, os.sched_param(before.sched_priority - 1))
    try:
        yield
    finally:
        if is_real_time:
            os.sched_setparam(0, before)


class Console:
    """`fila console` before a broker, and how many browsers look at it."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._stop = threading.Event()
        self._browsers: threading.Thread | None = None

    def __enter__(self) -> Self:
        command = str(Path(sys.executable).with_name("fila"))
        with behind_the_broker():
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

    def get(self, path: str) -> float:
        """Ask for a page, and return how many seconds its answer took. Raises ServerFailed where it is no page."""
        began_s = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_ANSWER_S_MAX)
        connection.request("GET", f"/b/broker/{path}")
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status != 200:
            raise ServerFailed(f"fila console answered {answer.status} for {path}")
        return time.monotonic() - began_s

    def log_in(self, keys: Sequence[str]) -> list[str]:
        """A login for each key, as a browser makes it; returns their cookies."""
        return [self._log_in(key) for key in keys]

    def _log_in(self, key: str) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_ANSWER_S_MAX)
        headers = {
            "Origin": f"http://127.0.0.1:{self.port}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        connection.request("POST", "/b/broker/login", urllib.parse.urlencode({"key": key}), headers)
        answer = connection.getresponse()
        cookie = answer.headers.get("Set-Cookie", "").partition(";")[0]
        connection.close()
        if answer.status != 303 or not cookie:
            raise ServerFailed(f"fila console let nobody in: {answer.status}")
        return cookie

    def look(
        self,
        clients: int,
        *,
        reads: bool = True,
        cookies: Sequence[str] = ("",),
        cores: Collection[int] | None = None,
        paths: Sequence[str] = (OVERVIEW, f"live/queue?queue={QUEUE}"),
    ) -> None:
        """Let so many browsers look, half at the overview and half at a queue, until `leave`.

        `reads` False: none reads what comes. `cookies` are their logins, and `paths` what they look at, taken in turn;
        `cores` are where they run. Raises ServerFailed where one of them is shown nothing.
        """
        opened = threading.Event()

        def run() -> None:
            with on_cores(cores or os.sched_getaffinity(0)), behind_the_broker():
                asyncio.run(self._look(clients, opened, reads, cookies, paths))

        self._browsers = threading.Thread(target=run)
        self._browsers.start()
        if not opened.wait(_ANSWER_S_MAX):
            raise ServerFailed(f"not every one of {clients} browsers was shown its page")

    def leave(self) -> None:
        """Nobody looks any more."""
        if self._browsers is not None:
            self._stop.set()
            self._browsers.join()
            self._stop.clear()
            self._browsers = None

    async def _look(
        self,
        clients: int,
        opened: threading.Event,
        reads: bool,
        cookies: Sequence[str],
        paths: Sequence[str],
    ) -> None:
        told = 0

        async def browser(number: int) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            cookie = cookies[number % len(cookies)]
            head = f"GET /b/broker/{paths[number % len(paths)]} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            head += f"Cookie: {cookie}\r\n\r\n" if cookie else "\r\n"
            writer.write(head.encode())
            await reader.readuntil(b"event: whole")
            nonlocal told
            told += 1
            if told == clients:
                opened.set()
            while reads and await reader.read(1 << 16):
                pass
            await asyncio.Event().wait()

        looking = [asyncio.create_task(browser(number)) for number in range(clients)]
        while not self._stop.is_set():
            await asyncio.sleep(0.1)
        for each in looking:
            each.cancel()
        await asyncio.gather(*looking, return_exceptions=True)


@contextlib.contextmanager
def loaded(
    server: Server, seconds: float, key: str = "", *, rate: float = RATE
) -> Iterator[list[dict[str, Any]]]:
    """So many messages a second, enqueued and consumed; the report is in the list once this is left."""
    reports: list[dict[str, Any]] = []

    def run() -> None:
        flags: dict[str, str | float] = {
            "queue": LOAD,
            "rate": rate,
            "batch": 10,
            "keys": 1_000,
            "warm_up": "1s",
        }
        reports.append(go_load.run(server.address, key, duration=f"{seconds}s", **flags))

    running = threading.Thread(target=run)
    running.start()
    time.sleep(1.0)
    yield reports
    running.join()


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """The system's browser."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
