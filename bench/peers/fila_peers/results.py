"""Outcomes on disk, a line each, so that a run that was interrupted goes on where it stopped."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from fila_bench.report import Machine

from .errors import OtherRun
from .measure import Outcome


class Results:
    """The first line says on which machine, at which commit and with which sizes; each other line is an outcome."""

    def __init__(self, path: Path, machine: Machine, sizes: str) -> None:
        """Raise OtherRun when the file is of another machine, commit or sizes."""
        self._path = path
        self.outcomes: list[Outcome] = []
        head = {"machine": asdict(machine), "sizes": sizes}
        if path.exists():
            kept, *lines = path.read_text().splitlines()
            self.head: dict[str, Any] = json.loads(kept)
            _same_run(self.head, head, path)
            # The last line may have been cut off by whatever interrupted the run.
            self.outcomes = [Outcome(**json.loads(line)) for line in lines if line.endswith("}")]
            whole = [kept, *(json.dumps(asdict(outcome)) for outcome in self.outcomes)]
            path.write_text("\n".join(whole) + "\n")
        else:
            self.head = head
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(head) + "\n")

    def has(self, key: str, number: int) -> bool:
        """Whether this cell needs no measuring in this round; one that was void does."""
        return any(o.key == key and o.round == number and o.state != "void" for o in self.outcomes)

    def add(self, outcome: Outcome) -> None:
        self.outcomes = [o for o in self.outcomes if (o.key, o.round) != (outcome.key, outcome.round)]
        self.outcomes.append(outcome)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


def _same_run(kept: dict[str, Any], now: dict[str, Any], path: Path) -> None:
    for what in ("cpu", "cores", "commit"):
        if kept["machine"][what] != now["machine"][what]:
            raise OtherRun(
                f"{path} is of {what} {kept['machine'][what]}, this is {now['machine'][what]}: --anew begins again"
            )
    if kept["sizes"] != now["sizes"]:
        raise OtherRun(
            f"{path} is of a {kept['sizes']} run, this is a {now['sizes']} one: --anew begins again"
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """A number over the rounds."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Summary:
    """One cell over its rounds."""

    peer: str
    durability: str
    workload: str
    case: str
    measured: tuple[Outcome, ...]
    others: tuple[Outcome, ...]
    """Void and failed ones; a cell with nothing measured is shown as what these say."""

    def of(self, part: str, name: str) -> Spread | None:
        """A number by its path, as `numbers` and `wait_us.p99`; None where it was not measured."""
        found = [
            value for outcome in self.measured if (value := _value(getattr(outcome, part), name)) is not None
        ]
        return Spread(median(found), min(found), max(found)) if found else None


def _value(where: Any, name: str) -> float | None:
    for word in name.split("."):
        if not isinstance(where, dict) or word not in where:
            return None
        where = where[word]
    return float(where)


def summaries(outcomes: list[Outcome]) -> list[Summary]:
    """A summary a cell, in the order in which they were first measured. Of a cell and round the last outcome counts."""
    latest = {(outcome.key, outcome.round): outcome for outcome in outcomes}
    by_key: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in latest.values():
        by_key[outcome.key].append(outcome)
    found = []
    for key, group in by_key.items():
        peer, durability, workload, case = key.split("|")
        measured = tuple(outcome for outcome in group if outcome.state == "measured")
        others = tuple(outcome for outcome in group if outcome.state != "measured")
        found.append(Summary(peer, durability, workload, case, measured, others))
    return found
