"""What each test costs: seconds by the clock, and of the CPU with its servers, drivers and Java included.

A plugin of pytest. Where FILA_COSTS names a file, each test's row is added to it, and a test that takes more than
CPU_S_MAX fails, unless its marker says why: `@pytest.mark.costly("nine servers start")`. What a
fixture of a module or of all tests takes is a row of its own, and no test's. The files that took longest last time
(docs/proof/durations.tsv) are run first, so that no process is left alone with a long one at the end.

    python -m tests.costs        what `make test` measured last (build/costs), into docs/proof/durations.tsv
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "costs"
TABLE = ROOT / "docs" / "proof" / "durations.tsv"
CPU_S_MAX = 5.0
TICKS_A_S = os.sysconf("SC_CLK_TCK")
SLOWEST = 100

_shared = [0.0, 0.0]
"""Clock and CPU that fixtures of several tests took since the running test began."""


def cpu_s() -> float:
    """Seconds of the CPU of this process, its children that ended, and those that are at work, down to the last."""
    mine = os.times()
    return sum(mine[:4]) + sum(_ticks(pid) for pid in _descendants(os.getpid())) / TICKS_A_S


def _descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            children = (task / "children").read_text().split()
        except OSError:  # it ended meanwhile
            continue
        for child in map(int, children):
            yield child
            try:
                yield from _descendants(child)
            except OSError:
                continue


def _ticks(pid: int) -> int:
    """Its own, and those of its children that ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))


@contextmanager
def _measured(found: list[float]) -> Iterator[None]:
    clock, cpu = time.monotonic(), cpu_s()
    try:
        yield
    finally:
        found[0] += time.monotonic() - clock
        found[1] += cpu_s() - cpu


def _keep(name: str, clock: float, cpu: float) -> None:
    path = Path(os.environ["FILA_COSTS"])
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps({"test": name, "s": round(clock, 2), "cpu_s": round(cpu, 2)}) + "\n")


def _judge(item: Any, cpu: float) -> None:
    if cpu > CPU_S_MAX and item.get_closest_marker("costly") is None:
        pytest.fail(
            f"{item.name} took {cpu:.1f} s of the CPU, its processes included, and a test may take {CPU_S_MAX:.0f}: "
            "make it cheaper, move it to make soak, or say why it must be so with @pytest.mark.costly(why)",
            pytrace=False,
        )


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Every process of pytest-xdist finds the same order, as it must, since the table is part of the tree."""
    if "FILA_COSTS" in os.environ:
        took = seconds_of(TABLE.read_text().splitlines())
        items.sort(key=lambda item: -took.get(item.nodeid.partition("::")[0], 0.0))


def seconds_of(lines: list[str]) -> dict[str, float]:
    """Of each line of the table: a file's seconds, or a test's."""
    fields = [line.split("\t") for line in lines[1:]]
    return {name: float(clock) for _, clock, _, name in fields}


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
    if "FILA_COSTS" not in os.environ or fixturedef.scope == "function":
        return (yield)
    before = list(_shared)
    found = [0.0, 0.0]
    with _measured(found):
        value = yield
    # One fixture may have set up another within.
    own = [found[0] - _shared[0] + before[0], found[1] - _shared[1] + before[1]]
    _shared[:] = [_shared[0] + own[0], _shared[1] + own[1]]
    if own[1] > 0.1:
        _keep(f"{request.node.nodeid}: {fixturedef.argname}", *own)
    return value


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any) -> Generator[None, Any, Any]:
    if "FILA_COSTS" not in os.environ:
        return (yield)
    _shared[:] = [0.0, 0.0]
    item.began = time.monotonic(), cpu_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: Any) -> Generator[None, Any, Any]:
    value = yield
    if hasattr(item, "began"):
        clock = time.monotonic() - item.began[0] - _shared[0]
        cpu = cpu_s() - item.began[1] - _shared[1]
        _keep(item.nodeid, clock, cpu)
        _judge(item, cpu)
    return value


def rows() -> list[tuple[str, float, float]]:
    """(test, seconds by the clock, of the CPU) of the last run."""
    lines = [line for file in sorted(FOLDER.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [(row["test"], row["s"], row["cpu_s"]) for row in map(json.loads, lines)]


def table(found: list[tuple[str, float, float]]) -> Iterator[str]:
    """A line a file of tests, the costliest first, then the costliest tests."""
    files: dict[str, list[float]] = {}
    for test, clock, cpu in found:
        sums = files.setdefault(test.partition("::")[0].partition(": ")[0], [0, 0.0, 0.0])
        sums[:] = [sums[0] + 1, sums[1] + clock, sums[2] + cpu]
    yield "cpu_s\tseconds\ttests\tof"
    for name, (count, clock, cpu) in sorted(files.items(), key=lambda each: -each[1][2]):
        yield f"{cpu:.1f}\t{clock:.1f}\t{count:.0f}\t{name}"
    for test, clock, cpu in sorted(found, key=lambda each: -each[2])[:SLOWEST]:
        yield f"{cpu:.1f}\t{clock:.1f}\t1\t{test}"


def main() -> None:
    """Write the table."""
    if not rows():
        raise SystemExit("nothing was measured: run make test first")
    TABLE.write_text("".join(f"{line}\n" for line in table(rows())))


if __name__ == "__main__":
    main()
