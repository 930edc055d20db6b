"""The long runs, in slices of minutes, each done once for one state of the code: `make soak` goes on where it stopped.

    python -m tests.soak                          everything that is left, a part of every kind at a time
    python -m tests.soak --for 40 kills cuts      what is left of these kinds, for forty minutes
    python -m tests.soak plain-0601 cuts-02-os    these slices
    python -m tests.soak --list                   what there is, and how far it has come
    python -m tests.soak --medians                how often each oracle judged in a run, over all runs so far

What was done stands in build/soak/done.jsonl, with the state of what it rests on: the core alone, or all of the server.
A slice that failed is run again the next time; what one said is in build/soak/NAME.log. Exit code 1 when one failed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.faults.catalogue import FAULTS

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "soak"
DONE = FOLDER / "done.jsonl"
JUDGED = FOLDER / "judged.jsonl"
CORE, SERVER = "server/src/fila_server/core", "server/src/fila_server"

SEEDS, SEEDS_A_SLICE = 5_000, 50
LIVES, LIVES_A_SLICE = 1_000, 25
SANITIZED_SEEDS = 500
WORLDS = {
    "plain": ("tests.simulation.simulate",),
    "policy": ("tests.simulation.simulate", "--policy"),
    "sessions": ("tests.simulation.session_world",),
    "hardships": ("tests.simulation.hardships",),
}
SANITIZED = ("core", "store")
FUZZED = ("wire", "routing", "resp")
FUZZ_S, FUZZ_S_A_SLICE = 3_600, 300
THREADS_S, THREADS_S_A_SLICE = 1_200, 120
CRASHES = {
    "kills": "test_nothing_answered_is_lost_and_nothing_settled_returns_when_the_process_is_killed",
    "cuts": "test_a_power_cut_loses_nothing_that_was_answered_under_fsync_and_nothing_in_between_under_os",
}
AT_LENGTH = (
    "crash/test_begun_over_crashes.py",
    "crash/test_sink_kills.py",
    "core/test_sinks_random.py",
    "redis/test_random_pipelines.py",
    "e2e/test_redis_load.py",
    "http/test_openapi.py",
    "simulation/test_forecast.py",
    "simulation/test_preview.py",
    "liveness",
)
"""Tests that do more when FILA_SOAK is set."""
ON_THE_OTHER_EDGE = ("e2e", "crash", "liveness")
WITH_TWO_THREADS = ("e2e", "grpc_edge", "access")


@dataclass(frozen=True)
class Slice:
    """Some minutes of one kind of run."""

    kind: str
    what: str
    command: tuple[str, ...]
    rests_on: str
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.what}"


def slices() -> Iterator[Slice]:
    """All there are, kind after kind."""
    for kind, world in WORLDS.items():
        for first in range(1, SEEDS + 1, SEEDS_A_SLICE):
            command = ("-m", *world, str(first), str(SEEDS_A_SLICE))
            yield Slice(kind, f"{first:04}", command, CORE, {"FILA_SIM_JUDGED": str(JUDGED)})
    for kind, test in CRASHES.items():
        for number in range(LIVES // LIVES_A_SLICE):
            durability = ("fsync", "os")[number % 2]
            environ = {"FILA_KILLS": str(LIVES_A_SLICE), "FILA_KILLS_SEED": str(number + 1)}
            path = f"tests/crash/test_kills.py::{test}[{durability}]"
            yield Slice(kind, f"{number + 1:02}-{durability}", _tests(path), SERVER, environ)
    for fault in FAULTS:
        yield Slice("faults", fault.name, ("-m", "tests.faults.plant", fault.name), CORE)
    for path in SANITIZED:
        command = ("-m", "tests.sanitized", "pytest", "-q", "-s", "--timeout", "0", f"tests/{path}")
        yield Slice("sanitized", path, command, CORE)
    for kind, world in WORLDS.items():
        for first in range(1, SANITIZED_SEEDS + 1, SEEDS_A_SLICE):
            command = ("-m", "tests.sanitized", *world, str(first), str(SEEDS_A_SLICE))
            yield Slice("sanitized", f"{kind}-{first:04}", command, CORE)
    for target in FUZZED:
        for number in range(FUZZ_S // FUZZ_S_A_SLICE):
            command = ("-m", "tests.fuzz.run", target, str(FUZZ_S_A_SLICE))
            yield Slice("fuzz", f"{target}-{number + 1:02}", command, SERVER)
    for number in range(THREADS_S // THREADS_S_A_SLICE):
        command = ("-m", "tests.threads", str(THREADS_S_A_SLICE))
        yield Slice("threads", f"{number + 1:02}", command, CORE)
    for path in AT_LENGTH:
        name = path.removesuffix(".py").replace("/", "-")
        yield Slice("length", name, _tests(f"tests/{path}"), SERVER, {"FILA_SOAK": "1"})
    for path in ON_THE_OTHER_EDGE:
        yield Slice("edge", path, _tests(f"tests/{path}"), SERVER, {"FILA_SERVER__EDGE": "python"})
    for path in WITH_TWO_THREADS:
        two = {"FILA_SERVER__IO_THREADS": "2"}
        yield Slice("edge", f"{path}-two-threads", _tests(f"tests/{path}"), SERVER, two)


def _tests(path: str) -> tuple[str, ...]:
    return ("-m", "pytest", "-q", "-s", "--timeout", "0", path)


def in_turn(chosen: list[Slice]) -> list[Slice]:
    """A part of every kind before more of any: an hour of it says something of all."""
    many = Counter(each.kind for each in chosen)
    seen: Counter[str] = Counter()
    at: dict[str, float] = {}
    for each in chosen:
        at[each.name] = (seen[each.kind] + 0.5) / many[each.kind]
        seen[each.kind] += 1
    return sorted(chosen, key=lambda each: at[each.name])


def state_of(path: str) -> str:
    """What git knows this folder by; SystemExit where it holds what nobody could check out again."""
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    if changed.stdout:
        raise SystemExit(f"{path} has changes that are not committed: the ledger could not say what was run")
    return _git("rev-parse", f"HEAD:{path}")


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def rows(path: Path) -> list[dict[str, object]]:
    """What a file of lines holds; a line that was cut off by the end of a run is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def run(each: Slice, state: str) -> bool:
    """One slice, and its row."""
    began, clock = datetime.now(UTC), time.monotonic()
    done = subprocess.run(
        [sys.executable, *each.command],
        cwd=ROOT,
        env=os.environ | each.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if line.strip()]
    row = {
        "slice": each.name,
        "kind": each.kind,
        "state": state,
        "commit": _git("rev-parse", "--short", "HEAD"),
        "began": began.isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - clock),
        "good": done.returncode == 0,
        "said": said[-1] if said else "",
    }
    with DONE.open("a") as file:
        file.write(json.dumps(row) + "\n")
    (FOLDER / f"{each.name}.log").write_text(done.stdout)
    print(f"{'good' if row['good'] else 'BAD '} {each.name}, {row['seconds']} s: {row['said']}", flush=True)
    return done.returncode == 0


def medians() -> None:
    """How often each oracle judged in a run, as `USUAL` in tests/simulation/seeds.py has it: the median of all runs
    so far, or a third of the mean where that is nought."""
    counts: dict[str, dict[object, dict[str, int]]] = defaultdict(dict)
    for row in rows(JUDGED):
        if isinstance(row["judged"], dict):
            counts[str(row["world"])].setdefault(row["seed"], row["judged"])
    for world, runs in counts.items():
        print(f'    "{world}": {{  # {len(runs):,} runs')
        for oracle in sorted({oracle for judged in runs.values() for oracle in judged}):
            found = [judged.get(oracle, 0) for judged in runs.values()]
            usual = statistics.median(found) or statistics.mean(found) / 3
            print(
                f'        "{oracle}": {usual:.3g},' if usual < 1 else f'        "{oracle}": {int(usual):_},'
            )
        print("    },")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="The long runs, in slices.")
    every = list(slices())
    kinds = ", ".join(dict.fromkeys(each.kind for each in every))
    parser.add_argument("what", nargs="*", help=f"kinds of slices, or names of some: {kinds}")
    parser.add_argument(
        "--for", dest="minutes", type=float, default=0.0, help="begin no slice after so many minutes"
    )
    parser.add_argument("--list", action="store_true", help="what there is, and how far it has come")
    parser.add_argument("--medians", action="store_true", help="how often each oracle judged in a run")
    given = parser.parse_args()
    if given.medians:
        medians()
        return 0
    unknown = set(given.what) - {each.kind for each in every} - {each.name for each in every}
    if unknown:
        parser.error(f"no such kind or slice: {', '.join(sorted(unknown))}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    states = {path: state_of(path) for path in (CORE, SERVER)}
    done = {(row["slice"], row["state"]) for row in rows(DONE) if row["good"]}
    wanted = set(given.what)
    chosen = [each for each in every if not wanted or wanted & {each.kind, each.name}]
    left = [each for each in chosen if (each.name, states[each.rests_on]) not in done]
    if given.list:
        there, to_do = Counter(each.kind for each in chosen), Counter(each.kind for each in left)
        for kind, count in there.items():
            print(f"{kind}: {count - to_do[kind]} of {count} slices done")
        return 0
    end = time.monotonic() + given.minutes * 60 if given.minutes else float("inf")
    bad = []
    for each in in_turn(left):
        if time.monotonic() >= end:
            break
        bad += [] if run(each, states[each.rests_on]) else [each.name]
    print(f"failed: {', '.join(bad)}" if bad else "all that was run was good")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
