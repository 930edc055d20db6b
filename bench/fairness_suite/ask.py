"""How fairly does a broker share itself out? Nine questions, put to any broker through a small adapter.

    python bench/fairness_suite/ask.py                           Fila and Redis, each started for the occasion
    python bench/fairness_suite/ask.py --brokers fila,rabbitmq-queues  others; some need their client: --list says which
    python bench/fairness_suite/ask.py --brokers fila --address localhost:5555  one that runs already, without "restart"
    python bench/fairness_suite/ask.py --questions starvation,burst --quick

Exit code 0 when everything was answered, whatever the answers; 1 when --strict was given and a bound was missed; 2 when
a broker could not be judged.
"""

from __future__ import annotations

import argparse
import functools
import json
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent), str(_HERE.parent / "peers")]

from fairness_suite import properties  # noqa: E402
from fairness_suite.adapter import NotPossible  # noqa: E402
from fairness_suite.adapters import ADAPTERS, adapter  # noqa: E402
from fairness_suite.properties import QUESTIONS, Finding, Sizes  # noqa: E402
from fila_peers import brokers, processes  # noqa: E402
from fila_peers.errors import PeerFailed  # noqa: E402

_DEFAULT = "fila,redis-stream,redis-streams"


def main() -> int:
    options = _options()
    if options.list:
        for name, entry in ADAPTERS.items():
            print(f"{name:16} {entry.about} (pip install {entry.needs})")
        return 0
    names, questions = options.brokers.split(","), options.questions.split(",")
    for what, given, known in (("broker", names, ADAPTERS), ("question", questions, QUESTIONS)):
        if unknown := [name for name in given if name not in known]:
            print(f"no {what} is called {', '.join(unknown)}; they are {', '.join(known)}", file=sys.stderr)
            return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    answers: dict[str, list[Finding]] = {}
    unjudged = False
    try:
        for name in names:
            answers[name], whole = _judge(name, questions, options)
            unjudged |= not whole
    finally:
        processes.stop_all()
    print(table(answers))
    if options.json:
        listed = {name: [asdict(finding) for finding in found] for name, found in answers.items()}
        options.json.write_text(json.dumps(listed, indent=2) + "\n")
    missed = any(finding.passed is False for found in answers.values() for finding in found)
    return 2 if unjudged else 1 if options.strict and missed else 0


def _judge(name: str, questions: list[str], options: argparse.Namespace) -> tuple[list[Finding], bool]:
    """Everything that one broker answered, and whether it answered all."""
    sizes = properties.QUICK if options.quick else Sizes()
    if options.address:
        asked = [question for question in questions if question != "restart"]
        return _ask(name, asked, sizes, options.address, _cannot_restart)
    found: list[Finding] = []
    whole = True
    for question in questions:
        # A broker of its own for each: what one question left behind must not answer the next.
        try:
            with brokers.running(brokers.PEERS[ADAPTERS[name].peer], brokers.SYNCED) as (broker, again):
                restart = functools.partial(_address_after, again)
                one, complete = _ask(name, [question], sizes, broker.address, restart)
        except PeerFailed as failure:
            print(f"{name}: {failure}", file=sys.stderr)
            return found, False
        found += one
        whole &= complete
    return found, whole


def _address_after(again: Callable[[], brokers.Running]) -> str:
    return again().address


def _cannot_restart() -> str:
    raise NotPossible("a broker that was given by its address is not killed")


def _ask(
    name: str, questions: list[str], sizes: Sizes, address: str, restart: Callable[[], str]
) -> tuple[list[Finding], bool]:
    found: list[Finding] = []
    whole = True
    for question in questions:
        try:
            connected = adapter(name, address)
            try:
                found += QUESTIONS[question](connected, sizes, restart)
            finally:
                connected.close()
        except NotPossible as missing:
            print(f"{name}, {question}: {missing}", file=sys.stderr)
            whole = False
        except Exception:  # noqa: BLE001 - an adapter's fault must not cost the other brokers' answers
            print(f"{name}, {question}: {traceback.format_exc(limit=-3)}", file=sys.stderr)
            whole = False
    return found, whole


def table(answers: dict[str, list[Finding]]) -> str:
    """A row an answer, a column a broker; ! where a bound was missed."""
    rows = list(dict.fromkeys(finding.question for found in answers.values() for finding in found))
    lines = ["| | bound | " + " | ".join(answers) + " |", "|---|---:|" + "---:|" * len(answers)]
    for row in rows:
        cells, bound = [], ""
        for found in answers.values():
            finding = next((each for each in found if each.question == row), None)
            if finding is None:
                cells.append("not answered")
                continue
            cells.append(
                f"{finding.value:,.4g} {finding.unit}".strip() + (" !" if finding.passed is False else "")
            )
            if finding.bound is not None:
                bound = f"≤ {finding.bound:g} {finding.unit}".strip()
        lines.append(f"| {row} | {bound} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--brokers", default=_DEFAULT, metavar="NAMES", help="comma-separated")
    parser.add_argument("--questions", default=",".join(QUESTIONS), metavar="NAMES", help="comma-separated")
    parser.add_argument("--address", default="", metavar="HOST:PORT", help="a broker that runs already")
    parser.add_argument("--quick", action="store_true", help="smaller")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bound was missed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the answers")
    parser.add_argument("--list", action="store_true", help="list the brokers and stop")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
