"""What recording a history costs: rate with and without, bytes a message, and how fast the core follows it again."""

from __future__ import annotations

import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from fila_bench import core_load
from fila_bench.admin import Admin
from fila_bench.callers import in_process
from fila_bench.core_load import CoreLoad, CoreRun
from fila_bench.load import Load
from fila_bench.pairs import in_turn, ratio_of
from fila_bench.plan import ConsumerPlan, Counter
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE, Life, measure_life, producer_plan
from fila_bench.server import Server

_PAIRS = 8
_VERIFIED = 5
MESSAGES = 333_400
"""Enqueued, delivered and acked: a million decisions."""
_DRAINED_S_MAX = 120.0
_REPLAY = """
import json, sys
from pathlib import Path
import pyarrow.parquet as pq
from fila_server.history_files import replaying

folder = Path(sys.argv[1])
listed = [json.loads(path.read_text()) for path in folder.glob("_list/[!_]*.json")]
end = min((entry["last_at"] for entry in listed if "gap" in entry), default="9")

def groups(table):
    files = sorted(e["file"] for e in listed if e.get("table") == table and e["first_at"] < end)
    for name in files:
        opened = pq.ParquetFile(folder / name)
        for number in range(opened.num_row_groups):
            yield opened.read_row_group(number)

found = replaying.verify(groups("inputs"), groups("decisions"))
print(json.dumps([found.passes, found.decisions, found.messages_delivered, str(found.difference)]))
"""


@benchmark("history", "the headline with and without a history, in pairs; bytes a message; its replay")
def history(budget: Budget) -> Iterator[Finding]:
    with tempfile.TemporaryDirectory(prefix="fila-bench-history-") as folder:
        directories = [Path(folder, str(number)) for number in range(_PAIRS)]
        left = iter(directories)
        found = in_turn(
            {"recorded": lambda: _life(budget, next(left)), "not": lambda: _life(budget, None)}, _PAIRS
        )
        rates = {side: [rate for rate, _ in runs] for side, runs in found.items()}
        cpu_us = {side: [us for _, us in runs] for side, runs in found.items()}
        ratio = ratio_of(rates["not"], rates["recorded"])
        yield Finding(
            benchmark="history",
            case=f"{Life().case}: recorded / not, median of {_PAIRS} pairs",
            value=ratio.median,
            unit="",
            reach=0.95,
            details={
                "90 % interval": ratio.interval,
                "recorded/s": statistics.median(rates["recorded"]),
                "not recorded/s": statistics.median(rates["not"]),
                "server us/msg recorded": statistics.median(cpu_us["recorded"]),
                "not recorded": statistics.median(cpu_us["not"]),
            },
        )
        yield from _files(directories[-1])


@benchmark(
    "history-threads", "what a history costs the scheduler's thread and its own, in the compiled core alone"
)
def history_threads(budget: Budget) -> Iterator[Finding]:
    def run(records: bool) -> CoreRun:
        load = CoreLoad(history=records, warm_up_s=budget.warm_up_s, seconds=budget.seconds)
        found: CoreRun = in_process(core_load.run, load)()
        return found

    found = in_turn({"without": lambda: run(False), "with": lambda: run(True)}, _PAIRS)
    scheduler = {side: [each.thread_us["scheduler"] for each in runs] for side, runs in found.items()}
    more = sorted(on - off for off, on in zip(scheduler["without"], scheduler["with"], strict=True))
    yield Finding(
        benchmark="history-threads",
        case=f"the scheduler's thread, more a message, median of {_PAIRS} pairs",
        value=statistics.median(more),
        unit="us",
        reach=0.15,
        better="less",
        details={
            "least": more[0],
            "most": more[-1],
            "with": statistics.median(scheduler["with"]),
            "without": statistics.median(scheduler["without"]),
            "acked/s with": statistics.median(each.acked_per_s for each in found["with"]),
            "without a history": statistics.median(each.acked_per_s for each in found["without"]),
        },
    )
    own = sorted(each.thread_us["history"] for each in found["with"])
    yield Finding(
        benchmark="history-threads",
        case=f"the history's own thread, a message, median of {_PAIRS}",
        value=statistics.median(own),
        unit="us",
        reach=0.3,
        better="less",
        details={"least": own[0], "most": own[-1]},
    )


def _life(budget: Budget, directory: Path | None) -> tuple[float, float]:
    settings: dict[str, str | int] = {}
    if directory is not None:
        settings = {"history__enabled": "true", "history__dir": str(directory)}
    steady, server_us = measure_life(Life(), budget, **settings)  # type: ignore[arg-type]
    return steady.acked_per_s, server_us


@benchmark(
    "history-verify",
    "what `fila history verify` takes of a million decisions, beside the broker that made them",
)
def history_verify(_budget: Budget) -> Iterator[Finding]:
    """The headline's load, which takes least of a broker; the broker's threads from the load's begin until all is
    acked, without its start and its stop; the command with its start, and with every process that it starts."""
    with tempfile.TemporaryDirectory(prefix="fila-bench-history-") as folder:
        runs = [_recorded_and_verified(Path(folder, str(number))) for number in range(_VERIFIED)]
    ratio = ratio_of([run.recorded_s for run in runs], [run.verified_s for run in runs])
    middle = {name: statistics.median(getattr(run, name) for run in runs) for name in Verified._fields[:2]}
    yield Finding(
        benchmark="history-verify",
        case=f"{Life().case}: `fila history verify` of {3 * MESSAGES:,} decisions / the broker while it recorded, CPU, "
        f"median of {_VERIFIED}",
        value=ratio.median,
        unit="",
        reach=0.5,
        better="less",
        details={
            "least": min(run.verified_s / run.recorded_s for run in runs),
            "most": max(run.verified_s / run.recorded_s for run in runs),
            "verify, CPU s": middle["verified_s"],
            "broker, CPU s": middle["recorded_s"],
            "said": runs[-1].said,
        },
    )


class Verified(NamedTuple):
    """One recording, and what came of its verification."""

    recorded_s: float
    verified_s: float
    said: str


def _recorded_and_verified(directory: Path) -> Verified:
    settings = {"history__enabled": "true", "history__dir": str(directory)}
    with Server(**settings) as server:  # type: ignore[arg-type]
        with Admin(server.address) as admin:
            admin.create(QUEUE, fairness_key_header="tenant")
        producer = replace(producer_plan(Life(), server.address), message_count=MESSAGES)
        recorded_s = server.cpu_s()
        with Load([producer], [ConsumerPlan(address=server.address, queue=QUEUE)]) as load:
            load.wait_for(Counter.ACKED, MESSAGES, timeout_s=_DRAINED_S_MAX)
        recorded_s = server.cpu_s() - recorded_s
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = subprocess.run(
        [str(Path(sys.executable).with_name("fila")), "history", "verify", str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    verified_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert told.returncode == 0, told.stdout + told.stderr
    found = re.search(r"([\d,]+) decisions, [\d,]+ of them deliveries", told.stdout)
    assert found is not None, told.stdout
    assert int(found[1].replace(",", "")) >= 3 * MESSAGES, f"not all of it was recorded: {told.stdout}"
    return Verified(recorded_s, verified_s, found[0])


def _files(directory: Path) -> Iterator[Finding]:
    entries = [json.loads(path.read_text()) for path in (directory / "_list").glob("[!_]*.json")]
    gaps = sum("gap" in entry for entry in entries)
    listed = sum(entry.get("messages") or 0 for entry in entries) / 3  # enqueued, delivered, acked
    recorded = sum(entry.get("bytes") or 0 for entry in entries)
    by_table = {
        table: sum(entry["bytes"] for entry in entries if entry.get("table") == table)
        for table in ("decisions", "inputs")
    }
    began = time.monotonic()
    replay = [sys.executable, "-c", _REPLAY, str(directory)]
    told = subprocess.run(replay, capture_output=True, text=True, check=False)
    took_s = time.monotonic() - began
    if told.returncode:
        yield Finding(
            benchmark="history", case="replay", value=0, unit="", details={"failed": told.stderr[-300:]}
        )
        return
    passes, _decisions, delivered, difference = json.loads(told.stdout)
    count = max(delivered, 1)
    yield Finding(
        benchmark="history",
        case="Parquet, a message's whole life",
        value=recorded / max(listed, 1),
        unit="bytes",
        reach=40,
        better="less",
        details={
            "decisions": by_table["decisions"] / max(listed, 1),
            "inputs": by_table["inputs"] / max(listed, 1),
            "messages": listed,
            "gaps": gaps,
        },
    )
    yield Finding(
        benchmark="history",
        case="replay of 1,000,000 messages, compared decision by decision",
        value=took_s / count * 1e6,
        unit="s",
        reach=60,
        better="less",
        details={"messages": delivered, "passes": passes, "took s": took_s, "difference": difference},
    )
