"""One cell: start the broker, put the load on it, and say what both sides used meanwhile.

The load generator tells when its measured stretch begins and ends; the broker's processor time and bytes written are
taken at those moments. So is what everybody else on the machine used: beyond a tenth of a core a cell is void.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any

import psutil

from . import install
from .brokers import Running, running
from .cells import Cell
from .errors import LoadFailed, PeerFailed
from .processes import Usage

FOREIGN_CORES_MAX = 0.1

_LOAD_TIMEOUT_S = 900
_KERNEL_PARENT = 2
_BUSY = 0.9


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one cell in one round."""

    key: str
    round: int
    state: str
    """measured, void (somebody else was busy) or failed."""

    why: str = ""
    settings: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)
    """What the load generator reported."""

    server: dict[str, float] = field(default_factory=dict)
    """cpu_s, written_bytes, resident_bytes, cores; of the measured stretch."""

    foreign_cores: float = 0.0
    bottleneck: str = ""


@dataclass(slots=True)
class Stretch:
    """Readings at the marks of the load generator."""

    began: float = 0.0
    ended: float = 0.0
    before: Usage | None = None
    after: Usage | None = None
    foreign_before: dict[int, float] = field(default_factory=dict)
    foreign_cores: float = 0.0


def measure(cell: Cell, number: int, foreign_max: float = FOREIGN_CORES_MAX) -> Outcome:
    """Measure the cell once. A peer or load that fails is an outcome; nothing of it is left running."""
    try:
        with running(cell.peer, cell.durability) as (broker, crash_and_restart):
            stretch = Stretch()
            if cell.case.how == "life":
                numbers = _load(cell, broker, stretch, cell.case.flags)
            else:
                numbers = _backlog(cell, broker, crash_and_restart, stretch)
            return _outcome(cell, number, broker, stretch, numbers, foreign_max)
    except (PeerFailed, LoadFailed) as failure:
        return Outcome(cell.key, number, "failed", why=str(failure))


def _backlog(cell: Cell, broker: Running, crash_and_restart: Any, stretch: Stretch) -> dict[str, Any]:
    filled = _load(cell, broker, Stretch(), ("-workload=fill", *cell.case.flags))
    resident = broker.started.usage().resident_bytes
    restart_s = 0.0
    if cell.case.how == "crash":
        began = time.monotonic()
        broker = crash_and_restart()
        restart_s = time.monotonic() - began
    drained = _load(cell, broker, stretch, ("-workload=drain", "-setup=false", *cell.case.flags))
    return {
        **drained,
        "fill_per_s": filled["per_s"],
        "resident_full_bytes": resident,
        "lost": filled["messages"] - drained["messages"],
        # Listening is not serving: recovered is who has given out a first message.
        "restart_s": restart_s,
        "first_delivery_s": restart_s + drained["first_ms"] / 1000,
    }


def _load(cell: Cell, broker: Running, stretch: Stretch, flags: tuple[str, ...]) -> dict[str, Any]:
    command = [str(install.DRIVER), "-broker", cell.peer.name, "-addr", broker.address]
    command += [f"-synced={'true' if cell.durability == 'synced' else 'false'}", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stderr is not None
        said: list[str] = []
        try:
            ours = {os.getpid(), driver.pid}
            for line in driver.stderr:
                if line.startswith("mark "):
                    _read(line.split()[1], broker, stretch, ours)
                else:
                    said.append(line.strip())
            text = driver.stdout.read()
            code = driver.wait(_LOAD_TIMEOUT_S)
        except BaseException:
            driver.kill()
            raise
    if code:
        raise LoadFailed(
            f"{' | '.join(said[-5:]) or f'exit code {code}'} (broker: {broker.started.log_tail()[-300:]})"
        )
    report: dict[str, Any] = json.loads(text)
    return report


def _read(mark: str, broker: Running, stretch: Stretch, ours: set[int]) -> None:
    everyone_of_ours = ours | {process.pid for process in broker.started.family()}
    if mark == "begin":
        stretch.before = broker.started.usage()
        stretch.foreign_before = _others(everyone_of_ours)
        stretch.began = time.monotonic()
        return
    stretch.ended = time.monotonic()
    stretch.after = broker.started.usage()
    others = _others(everyone_of_ours)
    used = sum(max(0.0, cpu_s - stretch.foreign_before.get(pid, 0.0)) for pid, cpu_s in others.items())
    stretch.foreign_cores = used / max(1e-3, stretch.ended - stretch.began)


def _others(ours: set[int]) -> dict[int, float]:
    """Processor time so far of every process that is neither ours nor the kernel's, which works for ours."""
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.pid in ours or _KERNEL_PARENT in {process.pid, process.ppid()}:
                continue
            times = process.cpu_times()
            found[process.pid] = times.user + times.system
    return found


def _outcome(
    cell: Cell, number: int, broker: Running, stretch: Stretch, numbers: dict[str, Any], foreign_max: float
) -> Outcome:
    if stretch.before is None or stretch.after is None:
        raise LoadFailed("the load generator ended without a measured stretch")
    seconds = max(1e-3, stretch.ended - stretch.began)
    before, after = stretch.before, stretch.after
    server = {
        "cpu_s": after.cpu_s - before.cpu_s,
        "cores": (after.cpu_s - before.cpu_s) / seconds,
        "written_bytes": float(after.written_bytes - before.written_bytes),
        "resident_bytes": float(after.resident_bytes),
        "seconds": seconds,
    }
    busiest = max(
        (cpu - before.thread_cpu_s.get(thread, 0.0) for thread, cpu in after.thread_cpu_s.items()),
        default=0.0,
    )
    client_cores = float(numbers.get("client_cpu_s", 0.0)) / seconds
    void = stretch.foreign_cores > foreign_max
    return Outcome(
        cell.key,
        number,
        "void" if void else "measured",
        why=f"others used {stretch.foreign_cores:.2f} cores" if void else "",
        settings=broker.settings,
        numbers=numbers,
        server=server,
        foreign_cores=round(stretch.foreign_cores, 3),
        bottleneck=bottleneck(server["cores"], client_cores, busiest / seconds, len(os.sched_getaffinity(0))),
    )


def bottleneck(server_cores: float, client_cores: float, busiest_thread: float, cores: int) -> str:
    """What held the rate back, as far as processor time tells."""
    if server_cores + client_cores >= _BUSY * cores:
        return "machine, mostly " + ("the broker" if server_cores >= client_cores else "its client")
    if busiest_thread >= _BUSY:
        return "one thread of the broker"
    return "disk and round trips"
