"""The histories of a group's nodes as one: a term is a run, and no two nodes serve at a time.

Entries of a run that the owner of a group recorded say which node it was, where the takeover of its term is in the log
(`term`), and which term that takeover deposed (`deposes`, -1: none). So it shows what the nodes recorded doubly, and
which terms nobody has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

Entry = Mapping[str, Any]
INPUTS = "inputs"
"""The table of what passes took in."""


@dataclass(frozen=True)
class Term:
    """What one node recorded of a term."""

    run: str
    directory: str
    node: str
    term: int
    deposes: int
    first_at: datetime
    last_at: datetime
    decided_at: datetime
    """Of its last decision, or change of a setting; passes without any may have gone on."""
    has_end: bool
    """The run ended well, so that nothing is missing at its end."""

    def __str__(self) -> str:
        """For people."""
        return f"term {self.term} of {self.node}"


def terms(histories: Mapping[str, Sequence[Entry]]) -> list[Term]:
    """The terms of several histories, by their directories; in the order of the log."""
    found = []
    for directory, entries in histories.items():
        runs: dict[str, list[Entry]] = {}
        for entry in entries:
            if "term" in entry and "run" in entry:
                runs.setdefault(entry["run"], []).append(entry)
        for run, of_run in runs.items():
            files = [entry for entry in of_run if entry.get("file")]
            if files:
                found.append(
                    Term(
                        run,
                        directory,
                        str(of_run[0]["node"]),
                        int(of_run[0]["term"]),
                        int(of_run[0]["deposes"]),
                        min(datetime.fromisoformat(entry["first_at"]) for entry in files),
                        max(datetime.fromisoformat(entry["last_at"]) for entry in files),
                        max(
                            datetime.fromisoformat(
                                entry["last_at" if entry["table"] != INPUTS else "first_at"]
                            )
                            for entry in files
                        ),
                        any(entry.get("end") for entry in of_run),
                    )
                )
    return sorted(found, key=lambda term: (term.term, term.directory))


def named(run: str, entries: Sequence[Entry]) -> str:
    """A run, for people: with its term and node, where the owner of a group recorded it."""
    term = next((entry for entry in entries if entry.get("run") == run and "term" in entry), None)
    return f"{run}, term {term['term']} of {term['node']}" if term else run


def notes(found: Sequence[Term]) -> list[str]:
    """What the nodes recorded doubly, and what none of them did; a sentence each."""
    said = []
    for before, after in pairwise(found):
        if before.term == after.term:
            said.append(f"{before} is in {before.directory} and in {after.directory}: it counts once")
        elif before.decided_at > after.first_at:
            said.append(
                f"{before} and {after} both recorded from {_moment(after.first_at)} to {_moment(before.decided_at)}: "
                f"{after.node} had taken over by then, and what {before.node} recorded of that time counts for nobody"
            )
        elif not before.has_end:
            said.append(
                f"the end of {before} was not recorded: nothing is known from {_moment(before.last_at)} to "
                f"{_moment(after.first_at)}, when {after} began"
            )
    return said + list(_missing(found))


def _missing(found: Sequence[Term]) -> Iterable[str]:
    known = {term.term for term in found}
    for first, term in enumerate(found):
        if term.deposes >= 0 and term.deposes not in known and first > 0:
            yield (
                f"term {term.deposes}, which {term} deposed, is in none of the directories: its node recorded nothing, "
                "or its directory is not among them"
            )


def _moment(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", " UTC")
