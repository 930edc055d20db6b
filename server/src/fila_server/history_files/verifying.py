"""Whether a history follows, start by start: replayed from its base or from a checkpoint.

The core seeds its maps once, so a process follows one segment and ends: `verify_all` starts them. A checkpoint lies in
the history, in `checkpoints/`, under the name of the last file of inputs that is in it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from fila_server.history_files import chain, checkpoints, replaying
from fila_server.history_files.files import CORE, RECORDED_BY, listed, write_entry
from fila_server.history_files.segments import Entry, FileUnreadable, Segment, opened, segments, tables
from fila_server.version import core_fingerprint, version

SAME, DIFFERENT, REFUSED, NO_BASE = "same", "different", "refused", "no base"
OTHER_VERSION, OTHER_BUILD, OLDER_RULES = "other version", "other build", "older rules"
NOTHING_NEW = "nothing new"
WRONG = (DIFFERENT, REFUSED, OTHER_BUILD)
"""Outcomes of what does not follow."""
CHECKPOINTS = "checkpoints"
"""The folder of a history that they lie in."""
SUFFIX = ".checkpoint"


@dataclass(frozen=True)
class Verdict:
    """What came of one segment."""

    run: str
    outcome: str
    passes: int = 0
    decisions: int = 0
    deliveries: int = 0
    said: str = ""
    since: str = ""
    """The moment of the checkpoint that it begins at, ISO 8601; empty: the start of the broker."""


@dataclass(frozen=True)
class Usable:
    """A checkpoint that what is left of a run goes on from."""

    path: Path
    head: checkpoints.Head
    rest: Segment
    """The files behind it."""


def verify(segment: Segment) -> Verdict:
    """Replay one segment in this process, which can do so once: from its base, or else from a checkpoint."""
    try:
        other = _of_another_version(segment)
        if other is not None:
            return other
        return _of_another_build(segment, _verified(segment))
    except FileUnreadable as damaged:
        return Verdict(segment.run, REFUSED, said=str(damaged))


def _verified(segment: Segment) -> Verdict:
    try:
        outcome = replaying.verify(
            *(tables(segment, files) for files in (segment.inputs, segment.decisions, segment.changes))
        )
    except replaying.NoBase as missing:
        return _verify_from_checkpoint(segment) or Verdict(segment.run, NO_BASE, said=str(missing))
    except replaying.OlderRules as older:
        return Verdict(segment.run, OLDER_RULES, said=str(older))
    except replaying.NotReplayable as refused:
        return Verdict(segment.run, REFUSED, said=str(refused))
    return _verdict_of(segment, outcome, segment.gap or "")


def _verdict_of(segment: Segment, outcome: replaying.Outcome, said: str, since: str = "") -> Verdict:
    """Judge what a replay came to.

    said: what there is to say where it is the same; otherwise the first difference is.
    """
    same = outcome.difference is None
    return Verdict(
        segment.run,
        SAME if same else DIFFERENT,
        outcome.passes,
        outcome.decisions,
        outcome.messages_delivered,
        _all_said(said, outcome.lacking) if same else str(outcome.difference),
        since,
    )


def _all_said(said: str, lacking: Sequence[str]) -> str:
    """What there is to say of a recording that follows, and how far that goes."""
    if not lacking:
        return said
    columns = f"the recording has no {', '.join(lacking)}, so that is not compared"
    return f"{said}; {columns}" if said else columns


def _of_another_version(segment: Segment) -> Verdict | None:
    """Say so where another version's core recorded it; None: it is this one's, or nobody can tell."""
    recorded = _recorded(segment, RECORDED_BY)
    if "unknown" in (recorded, version()) or recorded == version():
        return None
    said = f"Fila {recorded} recorded it, and the core here is of {version()}; replay it with fila-server=={recorded}"
    return Verdict(segment.run, OTHER_VERSION, said=said)


def _of_another_build(segment: Segment, verdict: Verdict) -> Verdict:
    """Say so where a core of other sources recorded it: what does not follow here may be its doing."""
    recorded, here = _recorded(segment, CORE), core_fingerprint()
    if "unknown" in (recorded, here) or recorded == here:
        return verdict
    builds = f"another build recorded it (its core is {recorded[:12]}, and here it is {here[:12]})"
    if verdict.outcome in (DIFFERENT, REFUSED):
        return replace(
            verdict, outcome=OTHER_BUILD, said=f"{builds}, and here it does not follow: {verdict.said}"
        )
    return replace(verdict, said=f"{builds}; {verdict.said}" if verdict.said else builds)


def _recorded(segment: Segment, fact: bytes) -> str:
    """A fact of the segment's first file; "unknown" where it has none. Raises FileUnreadable."""
    if not segment.inputs:
        return "unknown"
    facts: dict[bytes, bytes] = opened(segment, segment.inputs[0]).metadata.metadata or {}
    return facts.get(fact, b"unknown").decode()


def usables(segment: Segment) -> list[Usable]:
    """The checkpoints that what is left of a run goes on from, oldest first; damaged ones are none.

    Where the last file that is in one was removed, the first that is left has to begin with its next pass, or the one
    behind it: a file often ends where a pass does.
    """

    found: list[Usable] = []
    for path in sorted(_folder(segment.directory).glob(f"{segment.run}-*{SUFFIX}")):
        try:
            head = checkpoints.read_head(path)
        except checkpoints.CheckpointRefused:
            continue
        rest = _behind(segment, head)
        if head.run != segment.run or not segment.inputs:
            continue
        if head.inputs_through not in segment.inputs and _first_pass(segment) > head.passes + 2:
            continue
        found.append(Usable(path, head, rest))
    return sorted(found, key=lambda usable: usable.head.passes)


def write_checkpoint(segment: Segment) -> Verdict:
    """Follow one run in this process, which can do so once, and write a checkpoint of where its files end."""
    try:
        other = _of_another_version(segment)
    except FileUnreadable as damaged:
        return Verdict(segment.run, REFUSED, said=str(damaged))
    if other is not None:
        return other
    reached = checkpoints.Reached(
        segment.run, segment.inputs[-1], segment.decisions[-1] if segment.decisions else ""
    )
    path = _folder(segment.directory) / f"{Path(reached.inputs).stem}{SUFFIX}"
    start, rest = None, segment
    for usable in usables(segment):
        if checkpoints.fits(usable.head):
            start, rest = usable.path, usable.rest
    if start is not None and not rest.inputs:
        return Verdict(segment.run, NOTHING_NEW, said=f"{start.name} is of all there is")
    try:
        outcome = checkpoints.make(
            path,
            reached,
            start,
            *(tables(rest, files) for files in (rest.inputs, rest.decisions, rest.changes)),
        )
    except replaying.NoBase as missing:
        return Verdict(segment.run, NO_BASE, said=str(missing))
    except replaying.OlderRules as older:
        return Verdict(segment.run, OLDER_RULES, said=str(older))
    except (FileUnreadable, replaying.NotReplayable, checkpoints.CheckpointRefused) as refused:
        return Verdict(segment.run, REFUSED, said=str(refused))
    if outcome.difference is None:
        _list_checkpoint(segment, path)
    written = f"{path.name}, {path.stat().st_size:,} bytes" if outcome.difference is None else ""
    return _verdict_of(segment, outcome, written)


def _list_checkpoint(segment: Segment, path: Path) -> None:
    """Tie a checkpoint to the entry of the last file that is in it, where there is a list."""
    entries = listed(Path(segment.directory)) if Path(segment.directory, chain.LIST).is_dir() else []
    of = next((entry for entry in chain.chained(entries) if entry.get("file") == segment.inputs[-1]), None)
    if of is None:
        return
    entry = {
        "checkpoint": f"{CHECKPOINTS}/{path.name}",
        "run": segment.run,
        "sha256": chain.file_hash(path),
        "of": chain.entry_hash(of),
        "of_number": of["number"],
    }
    until_ms = int(datetime.fromisoformat(of["last_at"]).timestamp() * 1000)
    write_entry(Path(segment.directory), f"{path.stem}{SUFFIX}", entry, until_ms, until_ms)


def _verify_from_checkpoint(segment: Segment) -> Verdict | None:
    """Verify a run whose beginning is gone from the oldest checkpoint that it goes on from; None: there is none."""
    refused = ""
    for usable in usables(segment):
        rest = usable.rest
        try:
            outcome, head = checkpoints.verify(
                usable.path,
                segment.run,
                *(tables(rest, files) for files in (rest.inputs, rest.decisions, rest.changes)),
            )
        except checkpoints.CheckpointRefused as why:
            refused = refused or str(why)
            continue
        except replaying.OlderRules as older:
            return Verdict(segment.run, OLDER_RULES, said=str(older))
        except replaying.NotReplayable as why:
            return Verdict(segment.run, REFUSED, said=str(why))
        return _verdict_of(segment, outcome, segment.gap or "", since=head.last_at)
    return Verdict(segment.run, NO_BASE, said=refused) if refused else None


def _folder(directory: str) -> Path:
    return Path(directory) / CHECKPOINTS


def _behind(segment: Segment, head: checkpoints.Head) -> Segment:
    def after(files: Sequence[str], last: str) -> tuple[str, ...]:
        return tuple(file for file in files if file > last)

    return Segment(
        segment.run,
        segment.directory,
        after(segment.inputs, head.inputs_through),
        after(segment.decisions, head.decisions_through),
        segment.changes,
        segment.gap,
    )


def _first_pass(segment: Segment) -> int:
    """The first pass that is left, by the statistics of the file's first rows; 0 where the file cannot be read."""
    try:
        facts = opened(segment, segment.inputs[0]).metadata
    except FileUnreadable:
        return 0
    column = facts.schema.to_arrow_schema().get_field_index("pass")
    return int(facts.row_group(0).column(column).statistics.min)


def verify_all(directory: Path, entries: Sequence[Entry], *, is_all: bool = True) -> list[Verdict]:
    """Replay every segment of a history: one alone in this process, which can do so once; several each in a process of
    its own, as many at a time as there are processors. `is_all`: no other history is replayed in this process."""
    found = segments(entries, str(directory))
    if len(found) == 1 and is_all:
        return [verify(found[0])]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(_in_a_process, found))


def _in_a_process(segment: Segment) -> Verdict:
    import subprocess

    command = [sys.executable, "-m", "fila_server.history_files", "segment", json.dumps(asdict(segment))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    if done.returncode != 0:
        last = (done.stderr.splitlines() or ["it said nothing"])[-1]
        return Verdict(segment.run, REFUSED, said=f"the replay broke off: {last}")
    return Verdict(**json.loads(done.stdout.splitlines()[-1]))


def follow_alone(argument: str) -> None:
    """Print the verdict of one segment, in a process of its own."""
    given = json.loads(argument)
    tuples = {table: tuple(given[table]) for table in ("inputs", "decisions", "changes")}
    print(json.dumps(asdict(verify(Segment(**given | tuples)))))
