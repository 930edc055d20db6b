"""Whether what was recorded follows from what was taken in: inputs through the core again, decision by decision.

One process verifies one recording: the core's hash maps are seeded once. It begins at the recording's base, or where
a checkpoint was written (checkpoints.py).
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from fila_server.core.replay.replay import NotReplayable, Replay
from fila_server.core.runtime.engine import DECISION_RULES
from fila_server.history_files import columns
from fila_server.history_files.alike import Comparison, Difference, flat

R = TypeVar("R", bound=Replay)
SHARED, SHARED_BYTES = Path("/dev/shm"), 256 << 20  # noqa: S108 - in a folder of its own
META, APPLIED = 0, b"applied"
"""A copy of a group has this record: how far it is in the log (core/formats/applying.pxd). That of a group that begins
has not: there it shows in the second pass that the opening promised nothing by itself."""


class NoBase(Exception):
    """The recording has no beginning to start from."""


class OlderRules(NotReplayable):
    """The recording follows from other rules of decision than this core's; the text says which."""


@dataclass(frozen=True)
class Outcome:
    """What a replay came to."""

    passes: int
    decisions: int
    messages_delivered: int
    difference: Difference | None
    lacking: tuple[str, ...] = ()
    """Columns that the recording has not, and so are not compared: those who recorded it did not know them."""


@dataclass(frozen=True)
class Start:
    """Where a replay begins."""

    replay: Replay
    inputs: pa.Table
    """Rows that were read beyond it."""
    decisions: pa.Table | None = None
    """Recorded decisions that are still to be made, one row a message."""


@dataclass(frozen=True)
class Followed:
    """How far a replay came."""

    outcome: Outcome
    pending: pa.Table
    """The inputs of the newest pass."""
    recorded: pa.Table | None
    """Recorded decisions of that pass and later, one row a message."""


def verify(
    inputs: Iterable[pa.Table], decisions: Iterable[pa.Table], changes: Iterable[pa.Table] | None = None
) -> Outcome:
    """Replay the inputs of one segment, in their order, and compare with its decisions and its changes, in theirs.

    changes: None compares none.

    The last recorded pass is not compared: the recording may end in the middle of it. Raises NoBase, and
    NotReplayable where the inputs contradict themselves.
    """
    rows = iter(inputs)
    first = next(rows, None)
    if first is not None:
        rows = itertools.chain([first], rows)
    folder = tempfile.mkdtemp(prefix="fila-replay-", dir=_place_of(first))
    try:
        replay, rest = begin(rows, Path(folder), Replay)
        try:
            return follow(Start(replay, rest), rows, decisions, changes).outcome
        finally:
            replay.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _place_of(first: pa.Table | None) -> Path | None:
    """Where the store goes: into memory, if the base is no larger than what was read of it. The core syncs what it
    writes, and nobody reads it again."""
    if first is None or pc.index(first.column("kind"), "base_ends").as_py() < 0:
        return None
    has_room = (
        SHARED.is_dir() and os.access(SHARED, os.W_OK) and shutil.disk_usage(SHARED).free > SHARED_BYTES
    )
    return SHARED if has_room else None


def follow(
    start: Start,
    inputs: Iterable[pa.Table],
    decisions: Iterable[pa.Table],
    changes: Iterable[pa.Table] | None = None,
    *,
    runs_newest: bool = True,
) -> Followed:
    """Go on from a start. runs_newest: run the newest pass, too, though there may be more of it than was recorded.

    changes: those before the start are passed over; None compares none.

    Raises NotReplayable; OlderRules where a recording does not follow that was made under other rules. Most such
    recordings follow all the same: rules change in one place at a time.
    """
    rules = start.replay.head.get("rules", 1)
    why = ""
    try:
        followed = _follow(start, inputs, decisions, changes, runs_newest)
        if followed.outcome.difference is None or rules == DECISION_RULES:
            return followed
        why = str(followed.outcome.difference)
    except NotReplayable as refused:
        if rules == DECISION_RULES:
            raise
        why = str(refused)
    raise OlderRules(
        f"it was recorded under rules {rules} of decision, and this core decides by rules {DECISION_RULES} ({why}). "
        "What was recorded counts as before, reports included; to replay it, install the version that recorded it"
    )


def _follow(
    start: Start,
    inputs: Iterable[pa.Table],
    decisions: Iterable[pa.Table],
    changes: Iterable[pa.Table] | None,
    runs_newest: bool,
) -> Followed:
    compared = {columns.DECISIONS: Comparison(decisions, start.decisions, flat)}
    if changes is not None:
        behind = pc.field("pass") > start.replay.passes
        compared[columns.CHANGES] = Comparison(
            part.filter(behind) if start.decisions is not None else part for part in changes
        )
    passes = WholePasses(itertools.chain([start.inputs], inputs))
    for part in passes:
        if _all_alike(compared, _fed(start.replay, part)):
            continue
        break
    else:
        if not runs_newest or _all_alike(compared, _fed(start.replay, passes.pending)):
            start.replay.finish()
            _all_alike(compared, _taken(start.replay, cut=True))
            for each_table in compared.values():
                each_table.end(passes.newest)
    found = compared[columns.DECISIONS]
    differences = [each_table.difference for each_table in compared.values()]
    lacking = sorted({name for each_table in compared.values() for name in each_table.lacking})
    outcome = Outcome(
        start.replay.passes,
        found.compared,
        found.delivered,
        next(filter(None, differences), None),
        tuple(lacking),
    )
    return Followed(outcome, passes.pending, found.recorded_left)


def _all_alike(compared: dict[str, Comparison], made: Iterable[tuple[str, pa.Table]]) -> bool:
    """Compare what is made, up to the first difference."""
    for name, rows in made:
        if name in compared:
            compared[name].take(rows)
            if compared[name].difference is not None:
                return False
    return True


class WholePasses:
    """Inputs, cut between passes wherever their pieces were cut. The newest pass is kept back in `pending`, since the
    next piece may have more of it, or the rest of a row whose bytes did not fit."""

    def __init__(self, parts: Iterable[pa.Table]) -> None:
        self._parts = parts
        self.pending = columns.SCHEMAS[columns.INPUTS].empty_table()
        self.newest = 0

    def __iter__(self) -> Iterator[pa.Table]:
        for part in self._parts:
            if not len(part):
                continue
            whole = pa.concat_tables([self.pending, part]) if len(self.pending) else part
            numbers = whole.column("pass")
            self.newest = pc.max(numbers).as_py()
            before = pc.index(numbers, self.newest).as_py()
            self.pending = whole.slice(before)
            if before:
                yield whole.slice(0, before)


def begin(inputs: Iterator[pa.Table], folder: Path, kind: type[R], more_seed: int = 0) -> tuple[R, pa.Table]:
    """Open a Replay, or a Model, at the base; returns what was read beyond it. Raises NoBase.

    more_seed: added to the recorded one, for a model that draws other random numbers.
    """
    head: dict[str, Any] | None = None
    records: list[tuple[int, bytes, bytes]] = []
    so_far: pa.Table | None = None
    for part in inputs:
        so_far = part if so_far is None else pa.concat_tables([so_far, part])
        kinds = so_far.column("kind")
        ends = pc.index(kinds, "base_ends").as_py()
        if ends < 0:
            if pc.index(kinds, "base").as_py() != 0:
                break
            continue
        if pc.index(kinds, "base").as_py() != 0:
            break
        for row in in_whole(so_far.slice(0, ends).to_pylist()):
            if row["kind"] == "base":
                head = json.loads(row["data"])
            else:
                records.append((row["a"], *_record(row["data"])))
        assert head is not None
        if head.get("headers") == "none":
            raise NoBase(
                'the recording was made with history.headers = "none": where a message went cannot be followed; '
                'record with "policy"'
            )
        sample = int(head.get("sample", 1))
        head["seed"] += more_seed
        is_of_group = any(family == META and key == APPLIED for family, key, _ in records)
        replay = kind(str(folder), head, records, sample=sample)
        rest = _to_second_pass(so_far.slice(ends + 1), inputs)
        if is_of_group or _begins_a_group(rest):
            replay.runs_in_group()
        return replay, rest
    raise NoBase(
        "the recording has no base: its first file is gone, or follows a gap. Only what was recorded since a "
        "start of the broker can be replayed"
    )


def _to_second_pass(rest: pa.Table, inputs: Iterator[pa.Table]) -> pa.Table:
    """What is behind the base, with as much more as it takes to see two passes."""
    while pc.sum(pc.equal(rest.column("kind"), "pass")).as_py() in (None, 0, 1):
        part = next(inputs, None)
        if part is None:
            break
        rest = pa.concat_tables([rest, part])
    return rest


def _begins_a_group(rest: pa.Table) -> bool:
    """Whether the second pass saw nothing durable."""
    durable = rest.filter(pc.equal(rest.column("kind"), "pass")).column("b")
    return len(durable) > 1 and durable[1].as_py() == 0


def in_whole(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Put rows together whose bytes did not fit one."""
    held = b""
    for row in rows:
        if row["goes_on"]:
            held += row["data"]
        else:
            yield row | {"data": held + row["data"]}
            held = b""


def _record(data: bytes) -> tuple[bytes, bytes]:
    length, shift, at = 0, 0, 0
    while True:
        byte = data[at]
        length |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return data[at : at + length], data[at + length :]


_KIND_NUMBERS = pa.array(columns.INPUT_KINDS)


def _fed(replay: Replay, part: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Feed rows; gives what was decided, by table, whenever the core's blocks have to be emptied."""
    if pc.any(part.column("goes_on")).as_py():
        part = pa.Table.from_pylist(list(in_whole(part.to_pylist())), schema=part.schema)
    for batch in part.combine_chunks().to_batches():
        kinds = pc.fill_null(pc.index_in(batch.column("kind"), _KIND_NUMBERS), 0)
        data = batch.column("data")
        whole = pa.concat_arrays([data])  # begins at its own beginning
        begins, held = whole.buffers()[1:]
        arguments: tuple[Any, ...] = (
            _numbers(pc.cast(kinds, pa.uint8()), "B"),
            *(_numbers(batch.column(name), "q") for name in ("pass",)),
            _numbers(pc.cast(batch.column("at"), pa.int64()), "q"),
            *(_numbers(batch.column(name), "q") for name in ("token", "a", "b", "c")),
            memoryview(begins).cast("B")[: 4 * (len(whole) + 1)].cast("i"),
            memoryview(held).cast("B") if held is not None and held.size else memoryview(b"\0"),
        )
        at = 0
        while at < len(batch):
            at = replay.feed(*arguments, at)
            yield from _taken(replay, cut=False)


def _numbers(values: pa.Array, code: Literal["B", "q"]) -> memoryview:
    values = pa.concat_arrays([values])
    width = values.type.bit_width // 8
    held: memoryview = memoryview(values.buffers()[1]).cast("B")[: width * len(values)]
    return held.cast(code)


def _taken(replay: Replay, *, cut: bool) -> Iterator[tuple[str, pa.Table]]:
    recording = replay.recording
    assert recording is not None
    if cut:
        recording.end_block()
    while (block := recording.take()) is not None:
        yield from columns.tables(block).items()
        block.give_back()


__all__ = [
    "Difference",
    "Followed",
    "NoBase",
    "NotReplayable",
    "OlderRules",
    "Outcome",
    "Start",
    "WholePasses",
    "begin",
    "flat",
    "follow",
    "in_whole",
    "verify",
]
