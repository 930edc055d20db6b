"""How long each recorded delivery was worked on, and how it ended: what consumers do in a model.

What was delivered in the model and never in the recording is drawn from what was recorded of its key, or of its
queue where the key has nothing.
"""

from __future__ import annotations

import random
from enum import IntEnum

import pyarrow as pa
import pyarrow.compute as pc

from fila_server.history_files.runs import spread

SAMPLES_MAX = 1_000
"""Of each key and queue, to draw from."""
ATTEMPTS_MAX = 0xFFF
REJECTED_REASON = "rejected"
GONE_REASON = "consumer gone"

_HOW = {"acked": 0, "nacked": 1, "expired": 2}


class How(IntEnum):
    """How a delivery ended."""

    ACKED = 0
    NACKED = 1
    EXPIRED = 2
    REJECTED = 3
    """Nacked, and sent to the dead letters at once."""


def _place(offset: int, attempt: int) -> int:
    return offset << 12 | min(attempt, ATTEMPTS_MAX)


class Handling:
    """Filled from recorded decisions, then asked about each delivery of a model. About 100 bytes a delivery."""

    def __init__(self, seed: int, slowness: float = 1.0) -> None:
        """slowness: how long consumers take for each message, as a multiple of what was recorded."""
        self._slowness = slowness
        self._known: dict[tuple[str, str], dict[int, int]] = {}
        self._samples: dict[tuple[str, str | None], list[int]] = {}
        self._chance = random.Random(seed)  # noqa: S311 - the same course for the same seed
        self.delivered = 0
        """How many deliveries were recorded."""
        self.last_pass = 0
        """In which the last of them was."""
        self.drawn = 0
        """Deliveries that were not recorded."""
        self.unknown = 0
        """Of these, without anything to draw from: nobody ends them."""

    def take(self, decisions: pa.Table) -> None:
        """Take in recorded decisions, in their order."""
        wanted = pc.is_in(
            decisions.column("kind"), pa.array([*_HOW, "delivered", "returned", "dead_lettered"])
        )
        names = [
            "pass",
            "kind",
            "queue",
            "channel",
            "fairness_key",
            "reason",
            "offsets",
            "attempts",
            "held_ms",
        ]
        for row in decisions.select(names).filter(wanted).to_pylist():
            for name in ("attempts", "held_ms"):
                row[name] = row[name] and spread(row[name], len(row["offsets"]))
            known = self._known.setdefault((row["queue"], row["channel"]), {})
            if row["kind"] == "dead_lettered":
                if row["reason"] == REJECTED_REASON:
                    self._rejected(known, row)
                continue
            if row["kind"] == "delivered":  # until it is known how it ends: not by its consumer
                self.delivered += len(row["offsets"])
                self.last_pass = max(self.last_pass, row["pass"])
                for offset, attempt in zip(row["offsets"], row["attempts"], strict=True):
                    known[_place(offset, attempt)] = How.EXPIRED
                continue
            if row["kind"] == "returned" or row["reason"] == GONE_REASON:
                # Its consumer left: that says nothing of how long the message is worked on.
                for offset, attempt in zip(row["offsets"], row["attempts"], strict=True):
                    known.pop(_place(offset, attempt), None)
                continue
            how = _HOW[row["kind"]]
            samples = [
                self._samples.setdefault((row["queue"], key), []) for key in (row["fairness_key"], None)
            ]
            for offset, attempt, held_ms in zip(row["offsets"], row["attempts"], row["held_ms"], strict=True):
                packed = held_ms << 2 | how
                known[_place(offset, attempt)] = packed
                for sample in samples:
                    self._sample(sample, packed)

    def of(self, queue: str, channel: str, key: str, offset: int, attempt: int) -> tuple[int, How] | None:
        """Return for how many ms this delivery is held, and how it ends; None: nothing is known of its queue."""
        packed = self._known.get((queue, channel), {}).get(_place(offset, attempt))
        if packed is None:
            self.drawn += 1
            sample = self._samples.get((queue, key)) or self._samples.get((queue, None))
            if not sample:
                self.unknown += 1
                return None
            packed = self._chance.choice(sample)
        return round((packed >> 2) * self._slowness), How(packed & 3)

    def _sample(self, sample: list[int], packed: int) -> None:
        """Keep each with the same chance, however many there are."""
        if len(sample) < SAMPLES_MAX:
            sample.append(packed)
        elif self._chance.random() < 0.01:
            sample[self._chance.randrange(SAMPLES_MAX)] = packed

    @staticmethod
    def _rejected(known: dict[int, int], row: dict[str, list[int]]) -> None:
        """The nack right before it, whether the attempt was counted by then or not."""
        for offset, attempt in zip(row["offsets"], row["attempts"], strict=True):
            for before in (attempt, attempt - 1):
                packed = known.get(_place(offset, before)) if before >= 0 else None
                if packed is not None and packed & 3 == How.NACKED:
                    known[_place(offset, before)] = packed | How.REJECTED
                    break
