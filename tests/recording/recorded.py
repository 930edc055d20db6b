"""A driven engine that records, what it recorded as tables and as plain rows, and what the slow judge says of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from fila_server.core.history.tap import Recording
from fila_server.history_files import columns, judging, replaying
from fila_server.history_files.judge import Judgement
from fila_server.history_files.runs import spread
from tests.core.driven_engine import DrivenEngine

Tables = dict[str, list[pa.Table]]

LISTS = {
    "offsets": "offset",
    "costs": "cost",
    "attempts": "attempt",
    "held_ms": "held_ms",
    "wait_no_consumer_ms": "wait_no_consumer_ms",
    "wait_share_ms": "wait_share_ms",
    "wait_throttle_ms": "wait_throttle_ms",
    "wait_delay_ms": "wait_delay_ms",
    "wait_held_ms": "wait_held_ms",
}

ENDS = ("acked", "nacked", "expired", "returned")
"""Of a delivery."""


def in_flight(decisions: Iterable[pa.Table]) -> set[tuple[str, str, int]]:
    """Follow every delivery of a start to its one end; returns the messages, as (queue, channel, offset), whose
    delivery has none.

    A lease that was there at the start ends without a delivery. Where a queue or a channel is deleted and made again
    under its name, a message may be new there while leases of the old one still end: then as many may be out.
    """
    out: Counter[tuple[str, str, int]] = Counter()
    lives: dict[tuple[str, str, int], int] = {}
    for part in decisions:
        for row in replaying.flat(part).to_pylist():
            message = (row["queue"], row["channel"], row["offset"])
            if row["kind"] in ("enqueued", "redriven", "rewound"):
                lives[message] = out[message] + 1
            elif row["kind"] == "delivered":
                assert out[message] < lives.setdefault(message, 1), f"delivered, and somebody has it: {row}"
                out[message] += 1
            elif row["kind"] in ENDS:
                assert out[message] or message not in lives, f"ended, and nobody had it: {row}"
                out[message] = max(0, out[message] - 1)
                lives.setdefault(message, 1)
            else:
                assert out[message] < lives.setdefault(message, 1), f"moved on, and somebody has it: {row}"
    return {message for message, count in out.items() if count}


def kept(recording: Recording, tables: dict[str, list[pa.Table]]) -> None:
    """Take the full blocks, and keep copies of what is in them: their memory is the scheduler's again."""
    while (block := recording.take()) is not None:
        for name, rows in columns.tables(block).items():
            data = pa.BufferOutputStream()
            with pa.ipc.new_stream(data, rows.schema) as stream:
                stream.write_table(rows)
            tables.setdefault(name, []).append(pa.ipc.open_stream(data.getvalue()).read_all())
        block.give_back()


class RecordedEngine(DrivenEngine):
    """A DrivenEngine with a history, whose blocks are taken when somebody asks."""

    def __init__(self, settings: dict[str, Any] | None = None, seed: int = 7) -> None:
        self.kept: dict[str, list[pa.Table]] = {}
        super().__init__({"history.enabled": True, **(settings or {})}, seed)

    def take(self, cut: bool = True) -> None:
        """Take what is full, and with `cut` what there is."""
        recording = self.core.recording
        assert recording is not None
        if cut:
            recording.cut()
            self.run_pass()
        kept(recording, self.kept)

    def table(self, name: str) -> pa.Table:
        self.take()
        found = self.kept.get(name)
        return pa.concat_tables(found) if found else columns.SCHEMAS[name].empty_table()

    def rows(self, *kinds: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.table(columns.DECISIONS).to_pylist()
        return [row for row in rows if not kinds or row["kind"] in kinds]

    def decisions(self, *kinds: str) -> list[dict[str, Any]]:
        """One row a message."""
        found = []
        for row in self.rows(*kinds):
            count = len(row["offsets"])
            lists = {LISTS[name]: spread(row[name] or [None], count) for name in LISTS}
            for i in range(count):
                one = {name: value for name, value in row.items() if name not in LISTS}
                found.append(one | {name: values[i] for name, values in lists.items()})
        return found

    def story(self, offset: int, channel: str = "default", queue: str = "orders") -> list[str]:
        return [
            row["kind"]
            for row in self.decisions()
            if row["offset"] == offset and row["channel"] == channel and row["queue"] == queue
        ]

    def pending(self, queue: str, channel: str) -> int:
        """What the history says is still to be done: what came in, less what ended."""
        counted: Counter[str] = Counter(
            row["kind"] for row in self.decisions() if (row["queue"], row["channel"]) == (queue, channel)
        )
        came = counted["enqueued"] + counted["redriven"] + counted["rewound"]
        return came - counted["acked"] - counted["dead_lettered"] - counted["dropped"]

    def crowd(
        self, headers: Callable[[random.Random], dict[str, str]], at_once: int, steps: int = 60
    ) -> None:
        """Let so many messages come at each step, with headers by chance, before a consumer with little room; some
        fail, and come back later. The queue is `orders`."""
        chance = random.Random(11)
        for _ in range(steps):
            for _ in range(at_once):
                self.enqueue("orders", b"x", headers(chance))
            leased = self.lease("orders", most=8)
            self.ack("orders", leased[:6])
            self.nack("orders", leased[6:7], delay_ms=100)
            self.sleep(20)


def tables_of(engine: RecordedEngine) -> Tables:
    """All that it recorded; the engine ends."""
    found = {name: [engine.table(name)] for name in columns.SCHEMAS}
    engine.remove()
    return found


def judged(tables: Tables) -> Judgement:
    """What the slow judge says of a recording."""
    return judging.judgement(
        tables[columns.INPUTS],
        tables[columns.DECISIONS],
        tables.get(columns.CHANGES, []),
        judging.replaced_untold(tables[columns.DECISIONS]),
    )
