"""Whether what was recorded follows from what was taken in: inputs through the core again, decision by decision.

One process verifies one recording: the core's hash maps are seeded once. It begins at the recording's base, or where
a checkpoint was written (checkpoints.py).
"""

from __future__ import annotations

import itertools
import json
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
from fila_server.history_files.runs import each

R = TypeVar("R", bound=Replay)

GROUP_MAX = 1024
"""Messages that are decided on together at most (core/threads/blocks.pxd)."""

COMPARED = ("pass", "kind", "queue", "channel", "fairness_key", "consumer", "offset", "attempt")


class NoBase(Exception):
    """The recording has no beginning to start from."""


class OlderRules(NotReplayable):
    """The recording follows from other rules of decision than this core's; the text says which."""


@dataclass(frozen=True)
class Difference:
    """The first decision that is not the recorded one; None: there is none on that side."""

    recorded: dict[str, Any] | None
    replayed: dict[str, Any] | None

    def __str__(self) -> str:
        return f"recorded {_said(self.recorded)}, replayed {_said(self.replayed)}"


@dataclass(frozen=True)
class Outcome:
    """What a replay came to."""

    passes: int
    decisions: int
    messages_delivered: int
    difference: Difference | None


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


def verify(inputs: Iterable[pa.Table], decisions: Iterable[pa.Table]) -> Outcome:
    """Replay the inputs of one segment, in their order, and compare with its decisions, in theirs.

    The last recorded pass is not compared: the recording may end in the middle of it. Raises NoBase, and
    NotReplayable where the inputs contradict themselves.
    """
    folder = tempfile.mkdtemp(prefix="fila-replay-")
    rows = iter(inputs)
    try:
        replay, rest = begin(rows, Path(folder), Replay)
        try:
            return follow(Start(replay, rest), rows, decisions).outcome
        finally:
            replay.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def follow(
    start: Start, inputs: Iterable[pa.Table], decisions: Iterable[pa.Table], *, runs_newest: bool = True
) -> Followed:
    """Go on from a start. runs_newest: run the newest pass, too, though there may be more of it than was recorded.

    Raises NotReplayable; OlderRules where a recording does not follow that was made under other rules. Most such
    recordings follow all the same: rules change in one place at a time.
    """
    rules = start.replay.head.get("rules", 1)
    why = ""
    try:
        followed = _follow(start, inputs, decisions, runs_newest)
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
    start: Start, inputs: Iterable[pa.Table], decisions: Iterable[pa.Table], runs_newest: bool
) -> Followed:
    comparison = _Comparison(decisions, start.decisions)
    passes = WholePasses(itertools.chain([start.inputs], inputs))
    for part in passes:
        for made in _fed(start.replay, part):
            comparison.take(made)
            if comparison.difference is not None:
                break
        if comparison.difference is not None:
            break
    if comparison.difference is None:
        if runs_newest:
            for made in _fed(start.replay, passes.pending):
                comparison.take(made)
        start.replay.finish()
        for made in _taken(start.replay, cut=True):
            comparison.take(made)
        comparison.end(passes.newest)
    outcome = Outcome(start.replay.passes, comparison.compared, comparison.delivered, comparison.difference)
    return Followed(outcome, passes.pending, comparison.recorded_left)


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
        return kind(str(folder), head, records, sample=sample), so_far.slice(ends + 1)
    raise NoBase(
        "the recording has no base: its first file is gone, or follows a gap. Only what was recorded since a "
        "start of the broker can be replayed"
    )


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


def _fed(replay: Replay, part: pa.Table) -> Iterator[pa.Table]:
    """Feed rows; gives what was decided whenever the core's blocks have to be emptied."""
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


def _taken(replay: Replay, *, cut: bool) -> Iterator[pa.Table]:
    recording = replay.recording
    assert recording is not None
    if cut:
        recording.end_block()
    while (block := recording.take()) is not None:
        made = columns.tables(block).get(columns.DECISIONS)
        if made is not None:
            yield flat(made)
        block.give_back()


def flat(decisions: pa.Table) -> pa.Table:
    """One row a message, with what is compared, in the order in which it was decided."""
    lists = decisions.column("offsets").combine_chunks()
    rows = pc.list_parent_indices(lists)
    plain = decisions.select(["pass", "kind", "queue", "channel", "fairness_key", "consumer"]).take(rows)
    offsets = pc.list_flatten(lists)
    attempts = each(decisions, "attempts")
    plain = plain.append_column("offset", offsets).append_column("attempt", attempts)
    if "places" not in decisions.column_names:
        return plain  # of before there were any: each row was one key's, in the order of decisions
    return plain.take(_as_decided(pc.list_flatten(decisions.column("places").combine_chunks())))


def _as_decided(places: pa.Array) -> pa.Array:
    """In which order to take messages: a group begins with the one at place 0, and its rows follow one another."""
    groups = pc.cumulative_sum(pc.cast(pc.equal(places, 0), pa.int64()))
    return pc.sort_indices(pc.add(pc.multiply(groups, GROUP_MAX), places))


class _Comparison:
    """Takes what is decided anew in pieces, and the recorded decisions as they are needed."""

    def __init__(self, recorded: Iterable[pa.Table], first: pa.Table | None) -> None:
        self._recorded = (flat(part) for part in recorded)
        self._left: dict[bool, pa.Table | None] = {True: None, False: first}
        self.compared = 0
        self.delivered = 0
        self.difference: Difference | None = None
        self._over = False

    @property
    def recorded_left(self) -> pa.Table | None:
        """What was recorded, and not made so far."""
        return self._left[False]

    def take(self, made: pa.Table) -> None:
        """Compare with as much as was recorded."""
        self._add(True, made)
        while self.difference is None and self._length(True):
            if not self._length(False) and not self._more():
                return
            self._compare(min(self._length(True), self._length(False)))

    def end(self, last_pass: int) -> None:
        """All is replayed: what is left on one side, before the last pass, is a difference."""
        while self.difference is None and self._more():
            pass
        for is_made in (True, False):
            left = self._left[is_made]
            if self.difference is None and left is not None and len(left):
                early = left.filter(pc.less(left.column("pass"), last_pass))
                if len(early):
                    row = early.slice(0, 1).to_pylist()[0]
                    self.difference = Difference(None if is_made else row, row if is_made else None)

    def _length(self, is_made: bool) -> int:
        left = self._left[is_made]
        return len(left) if left is not None else 0

    def _add(self, is_made: bool, part: pa.Table) -> None:
        left = self._left[is_made]
        self._left[is_made] = part if left is None or not len(left) else pa.concat_tables([left, part])

    def _more(self) -> bool:
        part = next(self._recorded, None)
        if part is not None:
            self._add(False, part)
        return part is not None

    def _compare(self, count: int) -> None:
        made, recorded = self._left[True], self._left[False]
        assert made is not None
        assert recorded is not None
        one, other = made.slice(0, count), recorded.slice(0, count)
        first = count
        for name in COMPARED:
            a, b = one.column(name), other.column(name)
            same = pc.fill_null(pc.equal(a, b), False)
            same = pc.or_(same, pc.and_(pc.is_null(a), pc.is_null(b)))
            at = pc.index(same, False).as_py()
            if 0 <= at < first:
                first = at
        self.compared += first
        self.delivered += pc.sum(pc.equal(one.column("kind").slice(0, first), "delivered")).as_py() or 0
        if first < count:
            self.difference = Difference(
                other.slice(first, 1).to_pylist()[0], one.slice(first, 1).to_pylist()[0]
            )
        self._left[True], self._left[False] = made.slice(count), recorded.slice(count)


def _said(row: dict[str, Any] | None) -> str:
    if row is None:
        return "nothing"
    consumer = f" to consumer {row['consumer']}" if row["consumer"] is not None else ""
    return (
        f"{row['kind']} of {row['queue']}/{row['channel']} key {row['fairness_key']!r} offset {row['offset']} "
        f"attempt {row['attempt']}{consumer} in pass {row['pass']}"
    )


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
