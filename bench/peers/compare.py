"""`make bench-peers`: Fila and other brokers under the same loads, one after another on one machine.

    bench/peers/compare.py                            all cells, some two and a half hours; resumed when called again
    bench/peers/compare.py --quick                    shorter and smaller: some 20 minutes
    bench/peers/compare.py --peers fila-grpc,redis-stream --workloads "full life"
    bench/peers/compare.py --tiny --foreign-max 2     does every peer work here? Seconds a cell, numbers mean nothing
    bench/peers/compare.py --list

A cell is void when anything else on the machine used more than a tenth of a core meanwhile; it is tried three times,
and again when the run is resumed. Exit code 1 when a cell failed, 2 when the run could not begin.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent)]

from fila_bench.report import this_machine  # noqa: E402
from fila_peers import brokers, cells, charts, install, page, processes  # noqa: E402
from fila_peers.errors import OtherRun, PeerFailed  # noqa: E402
from fila_peers.measure import FOREIGN_CORES_MAX, Outcome, measure  # noqa: E402
from fila_peers.results import Results, summaries  # noqa: E402

_TRIES_WHEN_VOID = 3


def main() -> int:
    """Measure what the command line asks for."""
    options = _options()
    sizes = cells.TINY if options.tiny else cells.QUICK if options.quick else cells.FULL
    peers = [name for name in options.peers.split(",") if name] or list(brokers.PEERS)
    workloads = [name for name in options.workloads.split(",") if name]
    if unknown := [name for name in peers if name not in brokers.PEERS]:
        print(f"no peer is called {', '.join(unknown)}; they are {', '.join(brokers.PEERS)}", file=sys.stderr)
        return 2
    known = {case.workload for case in cells.cases(sizes)}
    if unknown := [name for name in workloads if name not in known]:
        print(f"no workload is called {', '.join(unknown)}; --list shows them", file=sys.stderr)
        return 2
    if options.list:
        for cell in cells.planned(sizes, peers, workloads):
            print(cell.key)
        return 0

    _many_descriptors()
    path = install.BUILD / f"results-{sizes.name}.jsonl"
    if options.anew:
        path.unlink(missing_ok=True)
    # A Ctrl-C or a kill becomes an exception, so that what was started is stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    try:
        results = Results(path, this_machine(), sizes.name)
        install.driver()
        failed = _run(results, sizes, peers, workloads, options.foreign_max)
    except (OtherRun, PeerFailed) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            f"interrupted; {path} holds what was measured, and the same command goes on from there",
            file=sys.stderr,
        )
        return 130
    finally:
        processes.stop_all()
    _show(results, options.markdown)
    return 1 if failed else 0


def _run(
    results: Results, sizes: cells.Sizes, peers: list[str], workloads: list[str], foreign_max: float
) -> bool:
    failed = False
    for number in range(sizes.repeats):
        planned = list(cells.planned(sizes, peers, workloads))
        for at, cell in enumerate(planned, 1):
            if results.has(cell.key, number):
                continue
            outcome = _measured(cell, number, foreign_max)
            results.add(outcome)
            failed |= outcome.state == "failed"
            print(
                f"[{at}/{len(planned)}, round {number + 1}] {cell.key}: {_brief(outcome)}",
                file=sys.stderr,
                flush=True,
            )
    return failed


def _measured(cell: cells.Cell, number: int, foreign_max: float) -> Outcome:
    for _ in range(_TRIES_WHEN_VOID):
        outcome = measure(cell, number, foreign_max)
        if outcome.state != "void":
            break
    return outcome


def _brief(outcome: Outcome) -> str:
    if outcome.state != "measured":
        return f"{outcome.state}: {outcome.why}"
    for name in ("settled_per_s", "per_s"):
        if rate := outcome.numbers.get(name):
            return f"{rate:,.0f}/s, {outcome.bottleneck}"
    return ", ".join(f"{name} {value}" for name, value in list(outcome.numbers.items())[:4])


def _show(results: Results, markdown: Path | None) -> None:
    found = summaries(results.outcomes)
    versions = {}
    for name in dict.fromkeys(summary.peer for summary in found):
        try:
            versions[name] = brokers.PEERS[name].version()
        except PeerFailed as error:
            versions[name] = f"not known: {error}"
    drawn = charts.draw(found, markdown.parent / "images" if markdown else install.BUILD / "images")
    text = page.section(results.head, found, versions, drawn)
    (install.BUILD / "comparison.md").write_text(text)
    if markdown:
        page.put_in(markdown, text)
    print(text)


def _many_descriptors() -> None:
    # Brokers with a file a queue take more than a shell usually gives, and inherit ours.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    # make passes variables on in the environment: `make bench-peers QUICK=1 PEERS=fila-grpc,nats`.
    given = os.environ
    page_given = Path(given["MARKDOWN"]) if "MARKDOWN" in given else None
    parser.add_argument(
        "--peers", default=given.get("PEERS", ""), metavar="NAMES", help="comma-separated; default: all"
    )
    parser.add_argument("--workloads", default=given.get("WORKLOADS", ""), metavar="NAMES", help="likewise")
    parser.add_argument("--quick", action="store_true", default="QUICK" in given)
    parser.add_argument("--tiny", action="store_true", help="to see that every peer works here")
    parser.add_argument("--anew", action="store_true", default="ANEW" in given, help="forget earlier results")
    parser.add_argument(
        "--foreign-max",
        type=float,
        default=FOREIGN_CORES_MAX,
        metavar="CORES",
        help="how busy others may be before a cell is void",
    )
    parser.add_argument(
        "--markdown", type=Path, default=page_given, metavar="FILE", help="write into the page, too"
    )
    parser.add_argument("--list", action="store_true", help="list the cells and stop")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
