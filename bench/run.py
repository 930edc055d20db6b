"""`make bench`: run the benchmarks, print what they found, write it down.

    bench/run.py                                 all of them (a quarter of an hour)
    bench/run.py --only full-life,unary          some, by name
    bench/run.py --only edge-table               a group of them, by its name
    bench/run.py --quick --only headline         short and small, for a first look
    bench/run.py --markdown docs/benchmarks.md   write the page of the documentation
    bench/run.py --keep --only unary --markdown docs/benchmarks.md    measure one again, keep the rest

What was measured is written after each benchmark, and what an interrupted one has found so far.
Exit code 1 when a number that should be reached was missed and --strict was given.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
from dataclasses import replace
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path.append(str(_HERE / "peers"))  # whose brokers one benchmark starts beside ours
sys.path.append(str(_HERE.parent))  # whose tools start the brokers of a group

from fila_bench import report, scenarios  # noqa: E402
from fila_bench.registry import BENCHMARK_BY_NAME, GROUP_BY_NAME, QUICK, Budget, named  # noqa: E402
from fila_bench.report import Finding  # noqa: E402

_DEFAULT_JSON = _HERE.parent / "build" / "bench" / "results.json"


def main() -> int:
    scenarios.register_all()
    # A thousand connections on either side take more descriptors than a shell usually gives.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # A kill becomes an exception, so that what was started is stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    options = _options()
    if options.list:
        for benchmark in BENCHMARK_BY_NAME.values():
            print(f"{benchmark.name:18} {benchmark.about}")
        for name, group in GROUP_BY_NAME.items():
            print(f"{name:18} {group.about}: {', '.join(group.names)}")
        return 0

    asked = [name for name in options.only.split(",") if name]
    if unknown := [name for name in asked if not named(name)]:
        print(f"no benchmark is called {', '.join(unknown)}; --list shows their names", file=sys.stderr)
        return 2
    names = list(dict.fromkeys(name for part in asked for name in named(part))) or list(BENCHMARK_BY_NAME)

    budget = QUICK if options.quick else Budget()
    if options.seconds:
        budget = replace(budget, seconds=options.seconds)
    machine = report.this_machine()
    measured = f"commit {machine.commit}, {machine.cpu}, {machine.cores} cores"
    pages = _Pages(options, machine)
    findings: list[Finding] = []
    whole: list[str] = []
    for number, name in enumerate(names):
        try:
            _run(name, budget, measured, findings)
            whole.append(name)
        except Exception as error:  # noqa: BLE001 - one broken benchmark should not cost the others' half hour
            print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            pages.write(whole, findings, is_last=number + 1 == len(names))

    print("\n" + report.table(findings))
    print(f"\n{machine.cpu}, {machine.cores} cores, commit {machine.commit}, {machine.measured_at}")
    missed = any(finding.reached is False for finding in findings)
    return 1 if len(whole) < len(names) or (options.strict and missed) else 0


def _run(name: str, budget: Budget, measured: str, findings: list[Finding]) -> None:
    """Add what one benchmark finds, and show each line as soon as it is known. What came before a failure counts."""
    print(f"{name} ...", file=sys.stderr)
    load_before = os.getloadavg()[0]
    for found in BENCHMARK_BY_NAME[name].run(budget):
        # What else the machine was busy with belongs to the number.
        details = {**found.details, "load before": round(load_before, 1)}
        finding = replace(found, details=details, measured=measured, at=report.now())
        print(report.table([finding]).splitlines()[1], file=sys.stderr, flush=True)
        findings.append(finding)


class _Pages:
    """The JSON file and the page, as they stood before this run and as they are written during it."""

    def __init__(self, options: argparse.Namespace, machine: report.Machine) -> None:
        self._options = options
        self._machine = machine
        self._earlier: list[Finding] = []
        self._page = ""
        if options.keep and options.json.exists():
            self._earlier = report.from_json(options.json.read_text())
        if options.keep and options.markdown and options.markdown.exists():
            self._page = options.markdown.read_text()

    def write(self, names: list[str], now: list[Finding], *, is_last: bool) -> None:
        """`names` are the benchmarks that ran whole so far, and `now` is what these and others found.

        A page on which nothing else is kept is written when the last one ran, since half of it is worth less than
        what stood there.
        """
        findings = _in_order(_not_measured_again(self._earlier, names, now) + now)
        self._options.json.parent.mkdir(parents=True, exist_ok=True)
        self._options.json.write_text(report.as_json(findings, self._machine) + "\n")
        if self._options.markdown and (self._page or is_last):
            methods = _methods()
            page = (
                report.markdown_kept(self._page, findings, methods)
                if self._page
                else report.markdown(findings, self._machine, methods)
            )
            self._options.markdown.write_text(page)


def _not_measured_again(earlier: list[Finding], names: list[str], now: list[Finding]) -> list[Finding]:
    """Without the benchmarks that ran whole, and without the cases of those that ran in part."""
    cases = {(finding.benchmark, finding.case) for finding in now}
    return [
        finding
        for finding in earlier
        if finding.benchmark not in names and (finding.benchmark, finding.case) not in cases
    ]


def _section(name: str) -> str:
    return name.partition("/")[0]


def _methods() -> dict[str, str]:
    """By section: what its benchmarks say of how they measure, each sentence once."""
    said: dict[str, dict[str, None]] = {}
    for name, benchmark in BENCHMARK_BY_NAME.items():
        if benchmark.method:
            said.setdefault(_section(name), {})[benchmark.method] = None
    return {section: " ".join(methods) for section, methods in said.items()}


def _in_order(findings: list[Finding]) -> list[Finding]:
    """By benchmark, in the order `--list` shows them; cases stay as they were measured."""
    place = {_section(name): number for number, name in enumerate(BENCHMARK_BY_NAME)}
    return sorted(findings, key=lambda finding: place.get(finding.benchmark, len(place)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    # make passes variables on in the environment: `make bench ONLY=full-life MARKDOWN=docs/benchmarks.md`.
    given = os.environ
    only = given.get("ONLY", "")
    page = Path(given["MARKDOWN"]) if "MARKDOWN" in given else None
    parser.add_argument("--only", default=only, metavar="NAMES", help="comma-separated names; default: all")
    parser.add_argument("--list", action="store_true", help="list the names and stop")
    parser.add_argument(
        "--quick", action="store_true", default="QUICK" in given, help="short runs and small backlogs"
    )
    parser.add_argument("--seconds", type=float, help="length of each measured stretch")
    parser.add_argument("--json", type=Path, default=_DEFAULT_JSON, metavar="FILE")
    parser.add_argument(
        "--markdown", type=Path, default=page, metavar="FILE", help="write the findings as a page"
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        default="KEEP" in given,
        help="keep what the JSON file and the page hold of other benchmarks",
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when something was not reached")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
