"""`make bench`: run the benchmarks, print what they found, write it down.

    bench/run.py                                 all of them (a quarter of an hour)
    bench/run.py --only full-life,unary          some, by name
    bench/run.py --quick --only headline         short and small, for a first look
    bench/run.py --markdown docs/benchmarks.md   write the page of the documentation
    bench/run.py --keep --only unary --markdown docs/benchmarks.md    measure one again, keep the rest

Exit code 1 when a number that should be reached was missed and --strict was given.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
from dataclasses import replace
from pathlib import Path

from fila_bench import report, scenarios
from fila_bench.registry import BENCHMARK_BY_NAME, QUICK, Budget
from fila_bench.report import Finding

_DEFAULT_JSON = Path(__file__).resolve().parents[1] / "build" / "bench" / "results.json"


def main() -> int:
    scenarios.register_all()
    # A thousand connections on either side take more descriptors than a shell usually gives.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    options = _options()
    if options.list:
        for benchmark in BENCHMARK_BY_NAME.values():
            print(f"{benchmark.name:18} {benchmark.about}")
        return 0

    asked = [name for name in options.only.split(",") if name]
    if unknown := [name for name in asked if not _named(name)]:
        print(f"no benchmark is called {', '.join(unknown)}; --list shows their names", file=sys.stderr)
        return 2
    names = [name for part in asked for name in _named(part)] or list(BENCHMARK_BY_NAME)

    budget = QUICK if options.quick else Budget()
    if options.seconds:
        budget = replace(budget, seconds=options.seconds)
    findings, failed = _run(names, budget)

    machine = report.this_machine()
    measured = f"commit {machine.commit}, {machine.cpu}, {machine.cores} cores"
    findings = [replace(finding, measured=measured) for finding in findings]
    print("\n" + report.table(findings))
    print(f"\n{machine.cpu}, {machine.cores} cores, commit {machine.commit}, {machine.measured_at}")
    if options.keep and options.json.exists():
        earlier = report.from_json(options.json.read_text())
        findings = _in_order(_not_measured_again(earlier, names, findings) + findings)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(report.as_json(findings, machine) + "\n")
    if options.markdown:
        options.markdown.write_text(_page(findings, machine, options))
    missed = any(finding.reached is False for finding in findings)
    return 1 if failed or (options.strict and missed) else 0


def _named(name: str) -> list[str]:
    """The benchmark of this name, or all of `name/...`."""
    return [known for known in BENCHMARK_BY_NAME if known == name or known.startswith(f"{name}/")]


def _run(names: list[str], budget: Budget) -> tuple[list[Finding], bool]:
    findings: list[Finding] = []
    failed = False
    for name in names:
        print(f"{name} ...", file=sys.stderr)
        load_before = os.getloadavg()[0]
        try:
            for found in BENCHMARK_BY_NAME[name].run(budget):
                # What else the machine was busy with belongs to the number.
                details = {**found.details, "load before": round(load_before, 1)}
                finding = replace(found, details=details, at=report.now())
                print(report.table([finding]).splitlines()[1], file=sys.stderr, flush=True)
                findings.append(finding)
        except Exception as error:  # noqa: BLE001 - one broken benchmark should not cost the others' half hour
            failed = True
            print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr)
    return findings, failed


def _not_measured_again(earlier: list[Finding], names: list[str], now: list[Finding]) -> list[Finding]:
    """Without the benchmarks that ran whole, and without the cases of those that ran in part."""
    cases = {(finding.benchmark, finding.case) for finding in now}
    return [
        finding
        for finding in earlier
        if finding.benchmark not in names and (finding.benchmark, finding.case) not in cases
    ]


def _page(findings: list[Finding], machine: report.Machine, options: argparse.Namespace) -> str:
    if options.keep and options.markdown.exists():
        return report.markdown_kept(options.markdown.read_text(), findings)
    return report.markdown(findings, machine)


def _section(name: str) -> str:
    return name.partition("/")[0]


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
