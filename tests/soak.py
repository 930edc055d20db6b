"""The long runs, in slices of minutes, each done once for one state of the code: `make soak` goes on where it stopped.

    python -m tests.soak                          everything that is left, a part of every series at a time
    python -m tests.soak --for 40 kills cuts      what is left of these kinds, for forty minutes
    python -m tests.soak plain-0601 cuts-02-os    these slices
    python -m tests.soak --list                   what there is, how far it has come, and what comes next
    python -m tests.soak --record                 what was done in this tree, into docs/proof, to be committed
    python -m tests.soak --medians                how often each oracle judged in a run, over all runs so far
    python -m tests.soak --for 10 --by COMMIT plain length    some of these, other ones for another commit

Several may run at once: each takes slices that no other has. What was done stands in build/soak/done.jsonl and, of
other trees, in docs/proof, with the state of what it rests on: the core alone, or all of the server; tests/ledger.py
says what of it holds when that has changed. A slice that failed is run again the next time; what one said is in
build/soak/NAME.log, and the data that one which failed left is in build/soak/tmp. Exit code 1 when one failed.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests import ledger
from tests.faults.catalogue import FAULTS
from tests.faults.judged import JUDGED as JUDGED_FAULTS
from tests.ledger import RUNS, Run, Standing, standing
from tests.simulation import usual

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "soak"
DONE = FOLDER / "done.jsonl"
JUDGED = FOLDER / "judged.jsonl"
CORE, SERVER = "server/src/fila_server/core", "server/src/fila_server"
CONSOLE = "console/src"

SEEDS, SEEDS_A_SLICE = 5_000, 50
LIVES, LIVES_A_SLICE = 1_000, 25
SANITIZED_SEEDS = 500
WORLDS = {
    "plain": ("tests.simulation.simulate",),
    "policy": ("tests.simulation.simulate", "--policy"),
    "sessions": ("tests.simulation.session_world",),
    "hardships": ("tests.simulation.hardships",),
}
RANDOM_RUNS = {
    "limits": ("shared_limits", 1_000_000, 20_000, CORE),
    "providers": ("providers", 100, 10, CORE),
    "log": ("log_interleavings", 20_000, 500, CORE),
    "group": ("group_world", 10_000, 1_000, CORE),
    "serving": ("serving_world", 10_000, 1_000, SERVER),
    "truncating": ("truncating_world", 10_000, 1_000, SERVER),
    "committed": ("committed_rates", 200_000, 10_000, CORE),
}
"""Of each kind: its module, how many runs there are, how many a slice has, and what code they rest on."""
SANITIZED = ("core", "store")
FUZZED = {
    "wire": "tests.fuzz.run wire",
    "routing": "tests.fuzz.run routing",
    "resp": "tests.fuzz.run resp",
    "edge": "tests.fuzz.edge.run",
}
"""`edge` takes clang and its compiler-rt."""
FUZZ_S, FUZZ_S_A_SLICE = 3_600, 300
THREADS_S, THREADS_S_A_SLICE = 1_200, 120
CRASHES = {
    "kills": "test_nothing_answered_is_lost_and_nothing_settled_returns_when_the_process_is_killed",
    "cuts": "test_a_power_cut_loses_nothing_that_was_answered_under_fsync_and_nothing_in_between_under_os",
}
AT_LENGTH = (
    "access/test_keyring.py",
    "crash/test_begun_over_crashes.py",
    "crash/test_ends_over_kills.py",
    "crash/test_order_over_kills.py",
    "crash/test_limits_over_kills.py",
    "simulation/test_key_order.py",
    "simulation/test_replacing.py",
    "crash/test_sink_kills.py",
    "cluster/test_real_brokers.py",
    "log/test_reading.py",
    "log/test_upgrade_over_kafka.py",
    "core/test_sinks_random.py",
    "core/test_schedules.py",
    *(f"core/test_{name}.py" for name in ("maps", "heap", "timers", "drr", "bucket", "parsed_frame")),
    "redis/test_random_pipelines.py",
    "e2e/test_redis_load.py",
    "e2e/test_learning.py",
    "e2e/test_tutorials.py",
    "grpc_edge/test_floods_over_tls.py",
    "http/test_openapi.py",
    "http/test_reading.py",
    "http/test_generated_clients.py",
    "simulation/test_forecast.py",
    "simulation/test_preview.py",
    "simulation/test_default_rates.py",
    *(f"recording/test_{name}.py" for name in ("simulated", "judge", "checkpoints")),
    *(f"simulation/test_{name}.py" for name in ("simulation", "session_simulation", "hardships")),
    "hooks/test_scripts_that_hoard.py",
    "liveness/test_steady_memory.py",
)
"""Tests that do more when FILA_SOAK is set, and files with tests that `make test` leaves to it (the mark `soak`)."""
LIVENESS = ("liveness/test_descriptors.py", "liveness/test_liveness.py")
"""Such files too. They judge how long a client waits beside a rude one, so they need a machine of their own."""
PATIENT = {"FILA_TESTS_START_S_MAX": "600"}
"""How long a server may take to start where the long runs get what others leave of the machine."""
AT_LEISURE = ("-q", "-s", "--timeout", "0", "-o", "faulthandler_timeout=0")
"""What pytest is told where a test may take hours."""
BUILD_A_COPY = ("faults", "judged", "sanitized", "fuzz", "threads")
SCREENS = ("few", "crowded", "empty", "failing", "down", "keyed", "grouped")
"""States of brokers in which every page of the console is photographed and judged; it takes a chromium."""
INCIDENTS = {"alone": (), "pairs": ("--pairs",), "read-only": ("--read-only",)}
WITH_TWO_THREADS = ("e2e", "grpc_edge", "access")


@dataclass(frozen=True)
class Slice:
    """Some minutes of one kind of run."""

    kind: str
    what: str
    command: tuple[str, ...]
    rests_on: str
    environ: dict[str, str] = field(default_factory=dict)
    units: int = 1
    """How many seeds, lives or seconds it has; 1 for what is run as a whole."""

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.what}"

    @property
    def series(self) -> str:
        """What a part of stands for the rest of, after a change of the code."""
        return self.name.rpartition("-")[0] if self.kind in ("sanitized", "fuzz") else self.kind

    @property
    def claim(self) -> str:
        """What nobody else may have meanwhile: the slice, or the copy of the core that its kind builds in."""
        return self.kind if self.kind in BUILD_A_COPY else self.name


def slices() -> Iterator[Slice]:
    """All there are, kind after kind."""
    for kind, world in WORLDS.items():
        for first in range(1, SEEDS + 1, SEEDS_A_SLICE):
            command = ("-m", *world, str(first), str(SEEDS_A_SLICE))
            yield Slice(kind, f"{first:04}", command, CORE, {"FILA_SIM_JUDGED": str(JUDGED)}, SEEDS_A_SLICE)
    for kind, (module, runs, a_slice, rests_on) in RANDOM_RUNS.items():
        for first in range(1, runs + 1, a_slice):
            command = ("-m", f"tests.simulation.{module}", str(first), str(a_slice))
            yield Slice(kind, f"{first:0{len(str(runs))}}", command, rests_on, units=a_slice)
    for kind, test in CRASHES.items():
        for number in range(LIVES // LIVES_A_SLICE):
            durability = ("fsync", "os")[number % 2]
            environ = {"FILA_KILLS": str(LIVES_A_SLICE), "FILA_KILLS_SEED": str(number + 1)} | PATIENT
            path = f"tests/crash/test_kills.py::{test}[{durability}]"
            yield Slice(kind, f"{number + 1:02}-{durability}", _tests(path), SERVER, environ, LIVES_A_SLICE)
    for fault in FAULTS:
        yield Slice("faults", fault.name, ("-m", "tests.faults.plant", fault.name), CORE)
    for name in JUDGED_FAULTS:
        yield Slice("judged", name, ("-m", "tests.faults.judged", name), CORE)
    for path in SANITIZED:
        command = ("-m", "tests.sanitized", "pytest", *AT_LEISURE, f"tests/{path}")
        yield Slice("sanitized", path, command, CORE)
    for kind, world in WORLDS.items():
        for first in range(1, SANITIZED_SEEDS + 1, SEEDS_A_SLICE):
            command = ("-m", "tests.sanitized", *world, str(first), str(SEEDS_A_SLICE))
            yield Slice("sanitized", f"{kind}-{first:04}", command, CORE, units=SEEDS_A_SLICE)
    for target, command_line in FUZZED.items():
        for number in range(FUZZ_S // FUZZ_S_A_SLICE):
            command = ("-m", *command_line.split(), str(FUZZ_S_A_SLICE))
            yield Slice("fuzz", f"{target}-{number + 1:02}", command, SERVER, units=FUZZ_S_A_SLICE)
    for number in range(THREADS_S // THREADS_S_A_SLICE):
        command = ("-m", "tests.threads", str(THREADS_S_A_SLICE))
        yield Slice("threads", f"{number + 1:02}", command, CORE, units=THREADS_S_A_SLICE)
    for kind, paths in (("length", AT_LENGTH), ("liveness", LIVENESS)):
        for path in paths:
            name = path.removesuffix(".py").replace("/", "-").removeprefix("liveness-test_")
            yield Slice(kind, name, _tests(f"tests/{path}"), SERVER, {"FILA_SOAK": "1"})
    yield from _of_the_console()
    for path in WITH_TWO_THREADS:
        two = {"FILA_SERVER__IO_THREADS": "2"}
        yield Slice("edge", f"{path}-two-threads", _tests(f"tests/{path}"), SERVER, two)


def _of_the_console() -> Iterator[Slice]:
    for state in SCREENS:
        yield Slice("screens", state, ("tests/console/screens.py", "dist/screens", state), CONSOLE)
    for what, options in INCIDENTS.items():
        yield Slice("incidents", what, ("tests/console/incidents.py", *options), SERVER)


def _tests(path: str) -> tuple[str, ...]:
    return ("-m", "pytest", *AT_LEISURE, path)


def in_turn(chosen: list[Slice]) -> list[Slice]:
    """A part of every series before more of any: an hour of it says something of all."""
    many = Counter(each.series for each in chosen)
    seen: Counter[str] = Counter()
    at: dict[str, float] = {}
    for each in chosen:
        at[each.name] = (seen[each.series] + 0.5) / many[each.series] if seen[each.series] else 0
        seen[each.series] += 1
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


@contextmanager
def claimed(name: str) -> Iterator[bool]:
    """Whether nobody else has it; it is given back at the end, or when this process dies."""
    folder = FOLDER / "claims"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def run(each: Slice) -> bool:
    """One slice, and its row; none where the code changed under it."""
    state = state_of(each.rests_on)
    began, clock = datetime.now(UTC), time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Of its own: in the common place pytest keeps what the last three runs of all users left.
    left_behind = FOLDER / "tmp" / each.name
    left_behind.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, *each.command],
        cwd=ROOT,
        env=os.environ | each.environ | {"PYTEST_DEBUG_TEMPROOT": str(left_behind)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = [line for line in done.stdout.splitlines() if line.strip()]
    found = Run(
        slice=each.name,
        state=state,
        commit=_git("rev-parse", "--short", "HEAD"),
        began=began.isoformat(timespec="seconds"),
        good=done.returncode == 0,
        said=said[-1].partition("; judged {")[0] if said else "",
        seconds=round(time.monotonic() - clock),
        cpu_s=round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime),
    )
    (FOLDER / f"{each.name}.log").write_text(done.stdout)
    if found.good:
        shutil.rmtree(left_behind, ignore_errors=True)
    if state_of(each.rests_on) != state:
        print(f"     {each.name}: {each.rests_on} changed meanwhile, so this counts for nothing", flush=True)
        return found.good
    with DONE.open("a") as file:
        file.write(json.dumps(asdict(found)) + "\n")
    print(
        f"{'good' if found.good else 'BAD '} {each.name}, {found.seconds} s, {found.cpu_s} of the CPU: {found.said}",
        flush=True,
    )
    return found.good


def standings(chosen: Sequence[Slice]) -> dict[str, Standing]:
    """How far each series has come, on the present state of the code."""
    series: dict[str, list[Slice]] = {}
    for each in chosen:
        series.setdefault(each.series, []).append(each)
    states = {path: state_of(path) for path in {each.rests_on for each in chosen}}
    found = ledger.runs(RUNS, DONE)
    return {
        name: standing([each.name for each in some], some[0].units, found, states[some[0].rests_on])
        for name, some in series.items()
    }


def to_run(chosen: Sequence[Slice], by: str = "") -> list[Slice]:
    """What is to be run, in order: what makes earlier runs count, what failed, and what never ran, all in turn. With
    `by`, in an order that follows from that text alone."""
    places: dict[str, tuple[int, int]] = {}
    for found in standings(chosen).values():
        for rank, names in enumerate((found.again, found.failed)):
            places |= {name: (rank, number) for number, name in enumerate(names)}
        places |= dict.fromkeys(found.left, (2, 0))
    left = [each for each in in_turn(list(chosen)) if each.name in places]
    if by:
        return sorted(left, key=lambda each: hashlib.sha256(f"{by} {each.name}".encode()).digest())
    return sorted(left, key=lambda each: places[each.name])


def run_all(chosen: Sequence[Slice], end: float, by: str = "") -> list[str]:
    """What is to be run and nobody else runs, each once; the names of what failed."""
    bad: list[str] = []
    tried: set[str] = set()
    while time.monotonic() < end:
        for each in to_run(chosen, by):
            if each.name in tried:
                continue
            with claimed(each.claim) as is_mine:
                # Another may have done it between the look and the claim.
                if not is_mine or each not in to_run(chosen):
                    continue
                tried.add(each.name)
                bad += [] if run(each) else [each.name]
                break
        else:
            break
    return bad


def tell(chosen: Sequence[Slice]) -> None:
    """How far each series has come, and what comes next."""
    for series, found in standings(chosen).items():
        count = sum(each.series == series for each in chosen)
        said = [f"{len(found.done)} of {count} done on this state"]
        if found.earlier:
            hold = (
                "which hold" if found.holds else f"{len(found.again)} of which to run again before they hold"
            )
            said.append(f"{len(found.earlier)} earlier, {hold}")
        said += [f"failed: {', '.join(found.failed)}"] if found.failed else []
        said += [f"{len(found.left)} left"] if found.left else []
        print(f"{series}: {'; '.join(said)}")
    print("next:", ", ".join(each.name for each in to_run(chosen)[:12]) or "nothing")


def record() -> None:
    """What this tree has done beside what is committed, for docs/proof."""
    order = [each.name for each in slices()]
    ledger.write(RUNS, ledger.runs(RUNS, DONE), order)
    lines = usual.pack(usual.counts(usual.PACKED, JUDGED), SEEDS_A_SLICE)
    usual.PACKED.write_text("".join(f"{line}\n" for line in lines))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="The long runs, in slices.")
    every = list(slices())
    kinds = ", ".join(dict.fromkeys(each.kind for each in every))
    parser.add_argument("what", nargs="*", help=f"kinds of slices, or names of some: {kinds}")
    parser.add_argument(
        "--for", dest="minutes", type=float, default=0.0, help="begin no slice after so many minutes"
    )
    parser.add_argument(
        "--list", action="store_true", help="what there is, how far it has come, what comes next"
    )
    parser.add_argument(
        "--by", default="", metavar="TEXT", help="in an order of this text's own, such as a commit's hash"
    )
    parser.add_argument("--record", action="store_true", help="put what was done into docs/proof")
    parser.add_argument("--medians", action="store_true", help="how often each oracle judged in a run")
    given = parser.parse_args()
    unknown = set(given.what) - {each.kind for each in every} - {each.name for each in every}
    if unknown:
        parser.error(f"no such kind or slice: {', '.join(sorted(unknown))}")
    wanted = set(given.what)
    chosen = [each for each in every if not wanted or wanted & {each.kind, each.name}]
    FOLDER.mkdir(parents=True, exist_ok=True)
    if given.medians:
        usual.tell(usual.counts(usual.PACKED, JUDGED))
    elif given.record:
        record()
    elif given.list:
        tell(chosen)
    else:
        end = time.monotonic() + given.minutes * 60 if given.minutes else float("inf")
        bad = run_all(chosen, end, given.by)
        print(f"failed: {', '.join(bad)}" if bad else "all that was run was good")
        return 1 if bad else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
