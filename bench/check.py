"""`make bench-check`: is this tree slower than another commit, on this machine, in this hour?

    bench/check.py                             the headline, 15 pairs of 5 s, against 792dccc
    bench/check.py --against COMMIT --pairs 31 --only headline,unary

The other commit is built once, in build/bench/against/COMMIT. One load generator, this tree's, drives both servers,
old and new in turn. Each case's figure is the median of the pairs' ratios, new by old, with its 90 % interval; the
check fails (exit code 1) where that interval ends below the case's figure. A machine with other work on it makes the
interval wide, not the answer wrong: the load beside each pair is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from fila_bench.against import BASELINE, ROOT, NotBuilt, full_name, outside_make, server_of
from fila_bench.pairs import ratio_of

REACH_BY_BENCHMARK = {"headline": 0.98}
"""What the interval has to reach; of a benchmark that is not named here, 0.95."""


def main() -> int:
    options = _options()
    names = options.only.split(",")
    try:
        commit, old = full_name(options.against), server_of(options.against)
    except NotBuilt as refusal:
        raise SystemExit(str(refusal)) from None
    new = ROOT / ".venv" / "bin" / "fila-server"
    rates: dict[str, dict[str, list[tuple[float, float]]]] = {name: defaultdict(list) for name in names}
    for pair in range(options.pairs):
        for name in names:
            # Each is first as often as second, so that what warms up or wears out favours neither.
            sides = [("old", old), ("new", new)]
            for side, server in sides if pair % 2 else sides[::-1]:
                rates[name][side].append(_measured(name, server, options.seconds))
            print(_line(pair, name, rates[name]), flush=True)
    return _verdict(names, commit, rates)


def _line(pair: int, name: str, sides: dict[str, list[tuple[float, float]]]) -> str:
    old, new = (sides[side][-1][0] for side in ("old", "new"))
    return (
        f"{pair + 1:3} {name:18} {old:12,.0f} {new:12,.0f} {new / old:7.3f}   load {os.getloadavg()[0]:.1f}"
    )


def _verdict(names: list[str], commit: str, rates: dict[str, dict[str, list[tuple[float, float]]]]) -> int:
    lost = False
    print()
    for name in names:
        old, new = rates[name]["old"], rates[name]["new"]
        ratio = ratio_of([rate for rate, _ in old], [rate for rate, _ in new])
        reach = REACH_BY_BENCHMARK.get(name, 0.95)
        is_met = ratio.reaches(reach)
        lost = lost or not is_met
        cpu = [after / before for (_, before), (_, after) in zip(old, new, strict=True) if before and after]
        print(
            f"{name}: {ratio.median:.3f} of {commit}'s rate, 90 % interval {ratio.low:.3f} to {ratio.high:.3f}, "
            f"{ratio.pairs} pairs; to reach {reach}: {'reached' if is_met else 'LOST'}"
            + (f"; server CPU a message {statistics.median(cpu):.3f}" if cpu else "")
        )
    return 1 if lost else 0


def _measured(name: str, server: Path, seconds: float) -> tuple[float, float]:
    """The rate of the benchmark's first case, and the server's CPU a message where it is told."""
    with tempfile.TemporaryDirectory() as directory:
        results = Path(directory) / "results.json"
        command = [sys.executable, str(ROOT / "bench" / "run.py"), "--quick", "--only", name]
        command += ["--seconds", str(seconds), "--json", str(results)]
        done = subprocess.run(
            command,
            env={**outside_make(), "FILA_BENCH_SERVER": str(server)},
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not results.exists():
            raise SystemExit(f"{name} against {server} failed:\n{done.stderr}")
        finding = json.loads(results.read_text())["findings"][0]
    return finding["value"], float(finding["details"].get("server us/msg", 0.0))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    given = os.environ
    parser.add_argument("--against", default=given.get("AGAINST") or BASELINE, metavar="COMMIT")
    parser.add_argument("--pairs", type=int, default=int(given.get("PAIRS") or 15), metavar="COUNT")
    parser.add_argument("--seconds", type=float, default=5, help="length of each measured stretch")
    parser.add_argument("--only", default=given.get("ONLY") or "headline", metavar="NAMES")
    options = parser.parse_args()
    if options.pairs < 1:
        parser.error(f"--pairs {options.pairs}: at least 1; 15 tell two builds apart that differ by a tenth")
    return options


if __name__ == "__main__":
    sys.exit(main())
