"""Keeps the log of a group short, by the rule of truncating.py: each node notes where the log is, its owner truncates.

What a node has in mind of the log is kept in DATA_DIR/log-marks, so that a process that begins anew knows it. It is no
promise: without it the log is truncated an hour later.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from fila_server.cluster.reports import Report
from fila_server.cluster.truncating import Mark, Truncation
from fila_server.core.log.kafka import LogRefused

log = structlog.get_logger("fila_server.cluster.log_keeper")

MARKS = "log-marks"
LOOK_S = 1.0


class Copy(Protocol):
    """As much of a copy as tells where it is."""

    @property
    def position(self) -> int:
        """Of the last record that was read."""
        ...

    @property
    def synced(self) -> int:
        """Of the last one that is on the disk."""
        ...

    @property
    def read_bytes(self) -> int:
        """Of all records since the copy was opened."""
        ...


class Asked(Protocol):
    """Another node, which is asked how it is (peers.Peer)."""

    report: Report | None
    answers: bool


class Truncates(Protocol):
    """As much of a log as is needed to shorten it."""

    def truncate(self, below: int) -> None:
        """Forget what is below the offset. Raises LogRefused."""
        ...


class LogKeeper:
    """One node's. One thread at a time may use it."""

    def __init__(self, data_dir: Path, node: int, truncation: Truncation, log_end: Truncates) -> None:
        self._file, self._node, self._truncation, self._log = data_dir / MARKS, node, truncation, log_end
        self._before_bytes = 0
        """Of what earlier processes, and copies, have read."""

    def begin(self, copy: Copy) -> None:
        """A copy is open, and nothing of the log was read into it yet."""
        try:
            marks = msgspec.json.decode(self._file.read_bytes(), type=list[Mark])
        except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
            marks = []
        self._before_bytes = self._truncation.restore(marks, copy.position)

    def note(self, now_ms: int, copy: Copy) -> None:
        """Where the copy is now."""
        if self._truncation.read(now_ms, copy.position, self._before_bytes + copy.read_bytes):
            beside = self._file.with_name(f"{MARKS}.new")
            with contextlib.suppress(OSError):
                beside.write_bytes(msgspec.json.encode(self._truncation.marks))
                beside.replace(self._file)

    def look(self, now_ms: int, copy: Copy, others: Sequence[Asked]) -> None:
        """An owner's round: truncate, if it is time to. It may wait for the brokers."""
        truncation = self._truncation
        self.note(now_ms, copy)
        truncation.synced(now_ms, self._node, copy.synced)
        for other in others:
            if other.answers and other.report:
                truncation.synced(now_ms, other.report.node, other.report.synced)
        step = truncation.decide(now_ms)
        if step.why:
            log.warning("cluster.one_copy", detail=step.why)
        if step.below is None:
            return
        try:
            self._log.truncate(step.below)
        except LogRefused as refused:
            truncation.failed(now_ms)
            log.warning("cluster.log_not_truncated", below=step.below, detail=str(refused))
        else:
            truncation.truncated(step.below)
            log.info("cluster.log_truncated", below=step.below)

    def keep(self, copy: Copy, others: Sequence[Asked], term_over: threading.Event) -> None:
        """Until this node's term is over. Marks are read by processes to come, so the wall clock tells their time."""
        while not term_over.wait(LOOK_S):
            self.look(time.time_ns() // 1_000_000, copy, others)
