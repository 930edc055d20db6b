"""Runs a load and samples it: a rate is what the counters gained between two instants.

Start and end of a run are not measured: processes start, windows fill, the last messages
trickle. What is reported is the steady middle.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from fila_bench import consumer, producer
from fila_bench.plan import PROCESSES, ConsumerPlan, Counter, Counters, ProducerPlan, new_counters

_READY_TIMEOUT_S = 120
_JOIN_TIMEOUT_S = 20


class LoadFailed(Exception):
    """A load process died or never got ready; its own error is on stderr."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """What happened between two instants of a running load."""

    seconds: float
    produced_per_s: float
    consumed_per_s: float
    acked_per_s: float
    refused: int
    settle_failed: int
    backlog_start: int
    backlog_end: int


class Load:
    """A set of producer and consumer processes around one set of counters each."""

    def __init__(
        self, producers: Sequence[ProducerPlan] = (), consumers: Sequence[ConsumerPlan] = ()
    ) -> None:
        self._go = PROCESSES.Event()
        self._ready = PROCESSES.Semaphore(0)
        # One array a pair would do; one for all would lose counts between processes.
        self._counters: list[Counters] = []
        self._processes: list[Any] = []
        pairs = max(len(producers), len(consumers))
        shared = [new_counters() for _ in range(pairs)]
        for plan, counters in zip(producers, shared, strict=False):
            self._spawn(producer.run, plan, counters)
        for plan_, counters in zip(consumers, shared, strict=False):
            self._spawn(consumer.run, plan_, counters)
        self._counters = shared

    def _spawn(self, target: Any, plan: object, counters: Counters) -> None:
        process = PROCESSES.Process(target=target, args=(plan, counters, self._ready, self._go), daemon=True)
        process.start()
        self._processes.append(process)

    def __enter__(self) -> Self:
        for _ in self._processes:
            self._await_one_ready()
        self._go.set()
        return self

    def _await_one_ready(self) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while not self._ready.acquire(timeout=0.2):
            self.check()
            if time.monotonic() > deadline:
                raise LoadFailed(
                    f"no load process got ready within {_READY_TIMEOUT_S} s: does the server answer?"
                )

    def __exit__(self, *_: object) -> None:
        self._go.set()
        for counters in self._counters:
            counters[Counter.STOP] = 1
        for process in self._processes:
            process.join(_JOIN_TIMEOUT_S)
            if process.is_alive():
                process.kill()
                process.join()

    def check(self) -> None:
        """Raise when a process has died: its counters would simply stand still."""
        for process in self._processes:
            if process.exitcode not in (None, 0):
                raise LoadFailed(f"{process.name} exited with {process.exitcode}")

    def total(self, counter: Counter) -> int:
        return sum(int(counters[counter]) for counters in self._counters)

    def measure(self, *, warm_up_s: float, seconds: float) -> Steady:
        self._sleep(warm_up_s)
        began, first = time.monotonic(), self._snapshot()
        self._sleep(seconds)
        elapsed, last = time.monotonic() - began, self._snapshot()
        gained = {counter: last[counter] - first[counter] for counter in Counter}
        return Steady(
            seconds=elapsed,
            produced_per_s=gained[Counter.PRODUCED] / elapsed,
            consumed_per_s=gained[Counter.CONSUMED] / elapsed,
            acked_per_s=gained[Counter.ACKED] / elapsed,
            refused=last[Counter.REFUSED],
            settle_failed=last[Counter.SETTLE_FAILED],
            backlog_start=first[Counter.PRODUCED] - first[Counter.CONSUMED],
            backlog_end=last[Counter.PRODUCED] - last[Counter.CONSUMED],
        )

    def wait_for(self, counter: Counter, count: int, *, timeout_s: float) -> float:
        """Wait until `counter` reached `count`; return the seconds that took."""
        began = time.monotonic()
        while self.total(counter) < count:
            self.check()
            if time.monotonic() - began > timeout_s:
                raise LoadFailed(
                    f"{counter.name.lower()} reached {self.total(counter)} of {count} in {timeout_s} s"
                )
            time.sleep(0.002)
        return time.monotonic() - began

    def _snapshot(self) -> dict[Counter, int]:
        return {counter: self.total(counter) for counter in Counter}

    def _sleep(self, seconds: float) -> None:
        """Sleep in slices, so that a dead load is noticed at once."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, 0.2))
