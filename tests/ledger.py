"""Which long runs were done on which state of the code, and what of that holds today.

A run rests on a state: what git calls the tree of the core, or of all of the server. Once that has changed, what was
green before holds again when a tenth of it, and at least AT_LEAST seeds or lives, was run anew and was green; a series
that has fewer than that is run anew as a whole. The oldest runs are asked for first, so that in the end all of them
come again.

docs/proof/runs.jsonl is the part that is committed, a line a run, the last of a slice on a state: another tree, on
another machine, goes on from there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "docs" / "proof" / "runs.jsonl"
A_PART = 10
AT_LEAST = 100


@dataclass(frozen=True)
class Run:
    """One slice, once. `cpu_s` counts the seconds of all processes it took; None where nobody had counted."""

    slice: str
    state: str
    commit: str
    began: str
    good: bool
    said: str = ""
    seconds: int | None = None
    cpu_s: int | None = None


@dataclass
class Standing:
    """How far the slices of one series have come, by name."""

    done: list[str] = field(default_factory=list)
    """Green on the present state."""
    failed: list[str] = field(default_factory=list)
    """Not green when they last ran on it."""
    earlier: list[str] = field(default_factory=list)
    """Green on another state, and not run on this one."""
    again: list[str] = field(default_factory=list)
    """Those of `earlier` that run before the others count."""
    left: list[str] = field(default_factory=list)
    """Never green on any state."""

    @property
    def holds(self) -> bool:
        """Whether what was green earlier counts."""
        return not self.again and not self.failed


def rows(path: Path) -> list[dict[str, object]]:
    """What a file of lines holds; a line that was cut off by the end of a run is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def runs(*paths: Path) -> list[Run]:
    """The last run of each slice on each state, of all these files."""
    known = {each.name for each in fields(Run)}
    told = [row for path in paths for row in rows(path)]
    found = [Run(**{key: value for key, value in row.items() if key in known}) for row in told]  # type: ignore[arg-type]
    return list({(run.slice, run.state): run for run in sorted(found, key=lambda run: run.began)}.values())


def write(path: Path, found: Iterable[Run], order: Sequence[str]) -> None:
    """All of them, slice after slice in this order (others behind), and the older first."""
    place = {name: number for number, name in enumerate(order)}
    found = sorted(found, key=lambda run: (place.get(run.slice, len(place)), run.slice, run.began))
    lines = [
        json.dumps({key: value for key, value in asdict(run).items() if value is not None}) for run in found
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def standing(names: Sequence[str], units: int, found: Iterable[Run], state: str) -> Standing:
    """Where a series of slices stands, each of which has so many of what AT_LEAST counts."""
    now: dict[str, bool] = {}
    before: dict[str, str] = {}
    for run in found:
        if run.state == state:
            now[run.slice] = run.good
        elif run.good:
            before[run.slice] = max(run.began, before.get(run.slice, ""))
    known = [name for name in names if name in before]
    enough = min(len(known), max(math.ceil(len(known) / A_PART), math.ceil(AT_LEAST / units)))
    missing = enough - sum(now.get(name, False) for name in known)
    earlier = [name for name in known if name not in now]
    return Standing(
        done=[name for name in names if now.get(name)],
        failed=[name for name in names if now.get(name) is False],
        earlier=earlier,
        again=sorted(earlier, key=lambda name: before[name])[: max(missing, 0)],
        left=[name for name in names if name not in now and name not in before],
    )
