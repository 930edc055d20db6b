"""A history before the slow judge, start by start. Nothing of the compiled core schedules here (judge.py)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fila_server.history_files.alike import BETWEEN_KEYS, flat
from fila_server.history_files.judge import NOT_JUDGED, Judge, Judgement
from fila_server.history_files.rows import REPLACED, Row
from fila_server.history_files.segments import Entry, FileUnreadable, Segment, segments, tables

KEPT, BROKEN, UNREAD = "promises kept", "promise broken", "not judged"
END = 2**63
"""Behind the last pass."""
QUANTUM = 1000
"""scheduler.quantum, where it was not set."""


@dataclass(frozen=True)
class Judged:
    """What came of one start of the broker."""

    run: str
    outcome: str
    judgement: Judgement = field(default_factory=Judgement)
    said: str = ""
    """Why it was not judged, or how far."""


def as_json(judged: Judged) -> dict[str, Any]:
    """As another process is told of it."""
    return {
        "run": judged.run,
        "outcome": judged.outcome,
        "judgement": vars(judged.judgement),
        "said": judged.said,
    }


def from_json(said: Mapping[str, Any]) -> Judged:
    """What another process said."""
    judgement = Judgement(**said["judgement"] | {"not_judged": Counter(said["judgement"]["not_judged"])})
    return Judged(said["run"], said["outcome"], judgement, said["said"])


class Unjudged(Exception):
    """Nobody can judge this recording; the text says why."""


def judge_all(directory: Path, entries: Sequence[Entry]) -> list[Judged]:
    """Judge every start of a history, oldest first."""
    return [judge(segment) for segment in segments(entries, str(directory))]


def judge(segment: Segment) -> Judged:
    """Judge what one start recorded, up to its first gap."""
    try:
        found = judgement(
            tables(segment, segment.inputs),
            tables(segment, segment.decisions),
            tables(segment, segment.changes),
            replaced_untold(tables(segment, segment.decisions)),
        )
    except (FileUnreadable, Unjudged) as why:
        return Judged(segment.run, UNREAD, said=str(why))
    return Judged(segment.run, BROKEN if found.faults else KEPT, found, segment.gap or "")


def judgement(
    inputs: Iterable[pa.Table],
    decisions: Iterable[pa.Table],
    changes: Iterable[pa.Table],
    untold: Collection[str] = (),
) -> Judgement:
    """Judge a recording from its beginning: of its inputs only the settings and the clocks are read. untold: see
    replaced_untold.

    Raises Unjudged.
    """
    clocks = _clocks(inputs)
    _, head = next(clocks, (0, None))
    if not isinstance(head, dict):
        raise Unjudged("its beginning is gone, so nobody knows what was waiting")
    if int(head.get("sample", 1)) != 1:
        raise Unjudged("one message in several was recorded (history.sample)")
    judge = Judge(int(head.get("settings", {}).get("scheduler.quantum", QUANTUM)), untold)
    changed, decided = _ByPass(_changes(changes)), _ByPass(_rows(decisions))
    clock, before_ns, now_ns = 0, 0, 0
    while (number := min(changed.number, decided.number)) != END:
        while clock < number:
            before_ns = now_ns
            clock, now_ns = next(clocks, (END, now_ns))
        judge.take(number, before_ns, now_ns, changed.of(number), decided.of(number))
        judge.found.passes += 1
    return judge.found


def replaced_untold(decisions: Iterable[pa.Table]) -> set[str]:
    """The queues in which messages were replaced, of a recording that does not tell by which: nothing is read of one
    that does."""
    found: set[str] = set()
    for part in decisions:
        if "replaces" in part.column_names:
            return set()
        gone = part.filter(
            pc.and_(pc.equal(part.column("kind"), "dropped"), pc.equal(part.column("reason"), REPLACED))
        )
        found.update(gone.column("queue").to_pylist())
    return found


class _ByPass:
    """What follows one another and is of one pass, together."""

    number: int
    """The pass that comes next; END when there is none."""

    def __init__(self, each: Iterator[tuple[int, Any]]) -> None:
        self._groups = groupby(each, key=lambda one: one[0])
        self._next()

    def _next(self) -> None:
        self.number, group = next(self._groups, (END, ()))
        self._group = [row for _, row in group]

    def of(self, number: int) -> list[Any]:
        if number != self.number:
            return []
        found = self._group
        self._next()
        return found


def _clocks(inputs: Iterable[pa.Table]) -> Iterator[tuple[int, Any]]:
    """The settings that a recording begins with, then the number of each pass and its monotonic clock."""
    base = b""
    is_read = False
    for part in inputs:
        if not is_read:
            for row in part.filter(pc.equal(part.column("kind"), "base")).to_pylist():
                base, is_read = base + row["data"], not row["goes_on"]
            if is_read:
                yield 0, json.loads(base)
        passes = part.filter(pc.equal(part.column("kind"), "pass"))
        yield from zip(passes.column("pass").to_pylist(), passes.column("a").to_pylist(), strict=True)


def _changes(changes: Iterable[pa.Table]) -> Iterator[tuple[int, dict[str, Any]]]:
    for part in changes:
        for row in part.to_pylist():
            yield row["pass"], row


def _rows(decisions: Iterable[pa.Table]) -> Iterator[tuple[int, Row]]:
    names = (
        *("pass", "kind", "queue", "channel", "fairness_key", "weight", "consumer", "throttle_keys"),
        *("offset", "cost", "attempt", "held_ms", "bucket", "messages", "priority", "reason", "replaces"),
    )
    sets: dict[str, tuple[str, ...]] = {"": ()}
    for part in decisions:
        listed = flat(part)
        if "replaces" not in listed.column_names:
            listed = listed.append_column("replaces", pa.nulls(len(listed), pa.int64()))
        columns = (listed.column(name).to_pylist() for name in names)
        for number, kind, queue, channel, key, weight, consumer, named, offset, *rest in zip(
            *columns, strict=True
        ):
            cost, attempt, held_ms, bucket, messages, priority, reason, replaces = rest
            throttle_keys = sets.get(named or "")
            if throttle_keys is None:
                throttle_keys = sets[named] = tuple(named.split(BETWEEN_KEYS))
            yield (
                number,
                Row(
                    *(kind, queue, channel, key or "", weight, consumer or 0, throttle_keys, offset),
                    *(round(cost * 1000), attempt or 0, held_ms or 0, bucket or "", messages or 1, priority),
                    *(reason or "", replaces or 0),
                ),
            )


def answer(judged: Sequence[Judged]) -> str:
    """Return the answer in a sentence or two."""
    broken = [each for each in judged if each.outcome == BROKEN]
    if broken:
        faults = sum(each.judgement.faults for each in broken)
        more = f", and {faults - 1:,} more" if faults > 1 else ""
        return f"A promise was broken. {broken[0].run}: {broken[0].judgement.wrong[0]}{more}."
    deliveries = sum(each.judgement.deliveries for each in judged)
    if not deliveries:
        return "No delivery could be judged."
    turns = sum(each.judgement.turns for each in judged)
    shares = sum(each.judgement.shares for each in judged)
    return (
        f"Promises kept: each of {deliveries:,} deliveries was one lease at a time, of its cost and within its limits; "
        f"whose turn it was could be judged of {turns:,}, and each went in its turn"
        + (
            f"; {shares:,} waited for a limit beside others, and each key got its share of it."
            if shares
            else "."
        )
    )


def not_judged(judged: Sequence[Judged]) -> list[str]:
    """Return what this says nothing about, a line each."""
    turns: Counter[str] = sum((each.judgement.not_judged for each in judged), Counter())
    return [
        *(f"the turn of {count:,} deliveries {why}" for why, count in turns.most_common()),
        *NOT_JUDGED,
    ]
