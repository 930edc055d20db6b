"""Who looks: `fila late` over many keys, and what `fila events --follow` takes from those who work."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from fila_bench.admin import Admin
from fila_bench.callers import percentile
from fila_bench.pairs import in_turn, ratio_of
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.backlog import fill
from fila_bench.scenarios.full_life import QUEUE, Life, measure_life
from fila_bench.server import Server

_TIMES = 20
_FOLLOWERS = 3
_PAIRS = 4
_EVENTS_A_SECOND = 20
_FILA = "from fila_cli.main import main; main()"


def _fila(server: Server, *words: str) -> list[str]:
    return [sys.executable, "-c", _FILA, "--addr", server.address, *words]


@benchmark(
    "late", "`fila late` while as many keys wait: the command from its start to its end, and its call alone"
)
def late(budget: Budget) -> Iterator[Finding]:
    with Server() as server:
        with Admin(server.address) as admin:
            admin.create(QUEUE, fairness_key_header="tenant")
        fill(server, message_count=budget.message_count, payload_bytes=64, keys=budget.message_count)
        for name, words in (
            ("fila late", ()),
            (f"fila late {QUEUE} --count 1000", (QUEUE, "--count", "1000")),
        ):
            took: list[float] = []
            for _ in range(_TIMES):
                began_s = time.monotonic()
                done = subprocess.run(
                    _fila(server, "late", *words, "-o", "json"), check=True, capture_output=True
                )
                took.append(time.monotonic() - began_s)
            answer = json.loads(done.stdout)
            if answer["waiting_keys"] != budget.message_count:
                raise RuntimeError(f"{answer['waiting_keys']:,} keys wait of {budget.message_count:,}")
            took.sort()
            yield Finding(
                benchmark="late",
                case=f"{name}, {budget.message_count:,} keys, the slowest of {_TIMES}",
                value=took[-1],
                unit="s",
                reach=1.0,
                better="less",
                details={"p50 s": percentile(took, 0.5)},
            )


@benchmark(
    "followers", "full life beside three `fila events --follow`, by full life without, runs alternating"
)
def followers(budget: Budget) -> Iterator[Finding]:
    life, pairs = Life(), _PAIRS if budget.seconds > 4 else 1

    def rate(beside: Callable[[Server], AbstractContextManager[None]]) -> float:
        steady, _ = measure_life(life, budget, beside=beside)
        return steady.acked_per_s

    rates = in_turn({"with": lambda: rate(_eventful_and_followed), "without": lambda: rate(_eventful)}, pairs)
    ratio = ratio_of(rates["without"], rates["with"])
    yield Finding(
        benchmark="followers",
        case=f"{life.case}: {_FOLLOWERS} followers / none, median of {pairs} pairs",
        value=ratio.median,
        unit="",
        reach=0.98,
        details={
            "90 % interval": ratio.interval,
            "with/s": statistics.median(rates["with"]),
            "without/s": statistics.median(rates["without"]),
            "events/s": _EVENTS_A_SECOND,
        },
    )


@contextlib.contextmanager
def _eventful(server: Server) -> Iterator[None]:
    """Events all the time, whether anybody follows or not: what is compared is the following."""
    over = threading.Event()

    def happen() -> None:
        with Admin(server.address) as admin:
            number = 0
            while not over.wait(1 / _EVENTS_A_SECOND):
                number += 1
                admin.set_config("bench", str(number))

    happening = threading.Thread(target=happen)
    happening.start()
    try:
        yield
    finally:
        over.set()
        happening.join()


@contextlib.contextmanager
def _eventful_and_followed(server: Server) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(_eventful(server))
        for _ in range(_FOLLOWERS):
            process = subprocess.Popen(_fila(server, "events", "--follow"), stdout=subprocess.PIPE, text=True)
            stack.callback(_end, process)
            # Its first line has come: it follows. The rest is read by nobody but a thread that drops it.
            assert process.stdout is not None
            process.stdout.readline()
            threading.Thread(target=process.stdout.read, daemon=True).start()
        yield


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
