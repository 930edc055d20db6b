"""One segment fed through the broker's own core again, in this process: verified, taken to a checkpoint, or modelled.

It needs `fila-server` beside it (`fila-spark[backtest]`), of the version that recorded. The core seeds its maps once,
so a process follows one segment and ends: `tasks` starts it by `python -m`. A checkpoint lies in the history, in
`checkpoints/`, under the name of the last file of inputs that is in it.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fila_pipeline.segments import (
    CHECKPOINTS,
    DIFFERENT,
    NO_BASE,
    NOTHING_NEW,
    OLDER_RULES,
    OTHER_VERSION,
    REFUSED,
    SAME,
    FileUnreadable,
    Segment,
    Verdict,
    opened,
    tables,
)

SUFFIX = ".checkpoint"
RECORDED, FIFO = "recorded", "FIFO"
"""Two kinds of courses: what was recorded, and a model in which a queue has no tenants: first in, first out."""
MISSING = (
    "backtest replays through the broker's own core, and fila-server is not installed here: "
    "install it in this environment too (docs/install.md), or run make pipeline-core in a checkout"
)


class BacktestMissing(Exception):
    """The broker's core is not installed beside the pipeline."""


@dataclass(frozen=True)
class Usable:
    """A checkpoint that what is left of a run goes on from."""

    path: Path
    head: Any
    """fila_server.history_files.checkpoints.Head"""
    rest: Segment
    """The files behind it."""


def core_is_here() -> bool:
    """Return whether the broker's core is installed beside the pipeline."""
    return importlib.util.find_spec("fila_server") is not None


def verify(segment: Segment) -> Verdict:
    """Replay one segment in this process, which can do so once: from its base, or else from a checkpoint."""
    from fila_server.history_files import replaying

    try:
        other = _of_another_version(segment)
        if other is not None:
            return other
        outcome = replaying.verify(tables(segment, segment.inputs), tables(segment, segment.decisions))
    except replaying.NoBase as missing:
        return _verify_from_checkpoint(segment) or Verdict(segment.run, NO_BASE, said=str(missing))
    except replaying.OlderRules as older:
        return Verdict(segment.run, OLDER_RULES, said=str(older))
    except (FileUnreadable, replaying.NotReplayable) as refused:
        return Verdict(segment.run, REFUSED, said=str(refused))
    return _verdict_of(segment, outcome, segment.gap or "")


def _verdict_of(segment: Segment, outcome: Any, said: str, since: str = "") -> Verdict:
    """Judge what a replay came to, a fila_server.history_files.replaying.Outcome.

    said: what there is to say where it is the same; otherwise the first difference is.
    """
    same = outcome.difference is None
    return Verdict(
        segment.run,
        SAME if same else DIFFERENT,
        outcome.passes,
        outcome.decisions,
        outcome.messages_delivered,
        said if same else str(outcome.difference),
        since,
    )


def _of_another_version(segment: Segment) -> Verdict | None:
    """Say so where another version's core recorded it; None: it is this one's, or nobody can tell."""
    from fila_server.history_files.files import RECORDED_BY
    from fila_server.version import version

    if not segment.inputs:
        return None
    recorded = (
        (opened(segment, segment.inputs[0]).metadata.metadata or {}).get(RECORDED_BY, b"unknown").decode()
    )
    if "unknown" in (recorded, version()) or recorded == version():
        return None
    said = f"Fila {recorded} recorded it, and the core here is of {version()}; replay it with fila-server=={recorded}"
    return Verdict(segment.run, OTHER_VERSION, said=said)


def usables(segment: Segment) -> list[Usable]:
    """The checkpoints that what is left of a run goes on from, oldest first; damaged ones are none.

    Where the last file that is in one was removed, the first that is left has to begin with its next pass, or the one
    behind it: a file often ends where a pass does.
    """
    from fila_server.history_files import checkpoints

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
    from fila_server.history_files import checkpoints, replaying

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
            path, reached, start, tables(rest, rest.inputs), tables(rest, rest.decisions)
        )
    except replaying.NoBase as missing:
        return Verdict(segment.run, NO_BASE, said=str(missing))
    except replaying.OlderRules as older:
        return Verdict(segment.run, OLDER_RULES, said=str(older))
    except (FileUnreadable, replaying.NotReplayable, checkpoints.CheckpointRefused) as refused:
        return Verdict(segment.run, REFUSED, said=str(refused))
    written = f"{path.name}, {path.stat().st_size:,} bytes" if outcome.difference is None else ""
    return _verdict_of(segment, outcome, written)


def _verify_from_checkpoint(segment: Segment) -> Verdict | None:
    """Verify a run whose beginning is gone from the oldest checkpoint that it goes on from; None: there is none."""
    from fila_server.history_files import checkpoints, replaying

    refused = ""
    for usable in usables(segment):
        try:
            outcome, head = checkpoints.verify(
                usable.path,
                segment.run,
                tables(usable.rest, usable.rest.inputs),
                tables(usable.rest, usable.rest.decisions),
            )
        except checkpoints.CheckpointRefused as why:
            refused = refused or str(why)
            continue
        except replaying.OlderRules as older:
            return Verdict(segment.run, OLDER_RULES, said=str(older))
        except (FileUnreadable, replaying.NotReplayable) as why:
            return Verdict(segment.run, REFUSED, said=str(why))
        return _verdict_of(segment, outcome, segment.gap or "", since=head.last_at)
    return Verdict(segment.run, NO_BASE, said=refused) if refused else None


def _folder(directory: str) -> Path:
    return Path(directory) / CHECKPOINTS


def _behind(segment: Segment, head: Any) -> Segment:
    def after(files: Sequence[str], last: str) -> tuple[str, ...]:
        return tuple(file for file in files if file > last)

    return Segment(
        segment.run,
        segment.directory,
        after(segment.inputs, head.inputs_through),
        after(segment.decisions, head.decisions_through),
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


def course(segment: Segment, kind: str, policy: str | None, seed: int, slowness: float) -> dict[str, Any]:
    """What came of one segment: as recorded, or in a model; `refused` says why it cannot be told.

    kind: what to call it; RECORDED and FIFO mean something.
    """
    from fila_server.history_files import replaying
    from fila_server.modelling import course as modelled
    from fila_server.modelling.policy import Policy, PolicyRefused, read_policy
    from fila_server.modelling.served import Served

    told: dict[str, Any] = {"run": segment.run, "course": kind, "seed": seed, "slowness": slowness}
    if kind == RECORDED:
        served = Served()
        for part in tables(segment, segment.decisions):
            served.take(part)
        return told | {"served": served.rows()}
    try:
        came = modelled.run(
            tables(segment, segment.inputs),
            tables(segment, segment.decisions),
            read_policy(policy) if policy is not None else Policy(fifo=kind == FIFO),
            seed,
            slowness,
        )
    except (
        FileUnreadable,
        PolicyRefused,
        modelled.NotModelled,
        replaying.NoBase,
        replaying.NotReplayable,
    ) as refused:
        return told | {"refused": str(refused)}
    return told | {
        "served": came.served,
        "drawn": came.drawn,
        "unknown": came.unknown,
        "refused_calls": came.refused,
        "script_failures": came.script_failures,
        "waited_before": came.waited_before,
    }


def import_log(arrivals: str, workers: int, directory: str) -> int:
    """Write the history of a core that serves arrivals, an Arrow file; returns when they ended, in ms since 1970."""
    import pyarrow as pa

    from fila_server.modelling.arrivals import record

    with pa.memory_map(arrivals) as file:
        return record(pa.ipc.open_file(file).read_all(), workers, Path(directory))


def _main(argument: str) -> None:
    given: dict[str, Any] = json.loads(argument)
    if given["what"] == "import":
        print(import_log(given["arrivals"], given["workers"], given["directory"]))
        return
    listed = given["segment"]
    segment = Segment(**listed | {"inputs": tuple(listed["inputs"]), "decisions": tuple(listed["decisions"])})
    if given["what"] == "verify":
        told = asdict(verify(segment))
    elif given["what"] == "checkpoint":
        told = asdict(write_checkpoint(segment))
    else:
        told = course(segment, given["what"], given["policy"], given["seed"], given["slowness"])
    print(json.dumps(told))


if __name__ == "__main__":
    _main(sys.argv[1])
