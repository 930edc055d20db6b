"""Logs told what they hold, at told times, for tests of where a stream goes on."""

from __future__ import annotations

from typing import Any

from pyspark_fila.broker import Keeping, LogBounds
from pyspark_fila.errors import QueueNotFound
from pyspark_fila.options import parse_options
from pyspark_fila.query_progress import QueryProgress
from pyspark_fila.queue_progress import QueueProgress

HOUR_MS = 3_600_000


class ToldLog:
    """A log that holds `offsets`, with what was asked of it."""

    def __init__(self, *offsets: range, head: int = 0, soft_ms: int = HOUR_MS) -> None:
        self.offsets = [offset for part in offsets for offset in part]
        self.head = head or (self.offsets[-1] + 1 if self.offsets else 1)
        self.kept = Keeping(soft_ms, 0, 0, 0)
        self.creation = "1"
        self.stored_bytes = 0
        self.sizes: dict[int, int] = {}
        self.channels: dict[str, int] = {}
        self.calls: list[str] = []

    def bounds(self) -> LogBounds:
        self.calls.append("bounds")
        oldest = self.offsets[0] if self.offsets else self.head
        return LogBounds(oldest, self.head, self.creation, self.stored_bytes)

    def fill(self, *offsets: int) -> None:
        self.offsets.extend(offsets)
        self.head = self.offsets[-1] + 1

    def size_at(self, offset: int) -> int:
        self.calls.append(f"size {offset}")
        return self.sizes.get(offset, 0)

    def make_anew(self, *offsets: range) -> None:
        """Delete the queue, and make another one of its name that holds `offsets`."""
        self.offsets = [offset for part in offsets for offset in part]
        self.head = self.offsets[-1] + 1 if self.offsets else 1
        self.creation += "1"
        self.channels.clear()

    def keeping(self) -> Keeping:
        return self.kept

    def first_from(self, offset: int):
        return next(((found, None) for found in self.offsets if found >= offset), None)

    def channel_exists(self, channel: str) -> bool:
        return channel in self.channels

    def create_channel(self, channel: str, offset: int) -> None:
        self.channels[channel] = offset

    def seek_channel(self, channel: str, offset: int) -> None:
        self.calls.append(f"seek {offset}")
        self.channels[channel] = offset


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Gone:
    """A queue that is not there."""

    def bounds(self) -> LogBounds:
        raise QueueNotFound("no such queue")


class ToldBroker(dict[str, ToldLog]):
    """Logs by the names of their queues."""

    def __call__(self, queue: str) -> Any:
        return ToldQueue(self, queue) if queue else self

    def queue_names(self) -> list[str]:
        return sorted(self)


class ToldQueue:
    """The log that has a name when it is asked."""

    def __init__(self, broker: ToldBroker, name: str) -> None:
        self._broker, self._name = broker, name

    def __getattr__(self, what: str) -> Any:
        return getattr(self._broker.get(self._name, Gone()), what)


def progress(log: ToldLog, clock: Clock | None = None, **options: object) -> QueueProgress:
    given = {"queue": "orders", **{name: str(value) for name, value in options.items()}}
    return QueueProgress(parse_options(given), log, clock or Clock())


def of_query(broker: ToldBroker, clock: Clock | None = None, **options: object) -> QueryProgress:
    given = {name: str(value) for name, value in options.items()}
    return QueryProgress(parse_options(given), broker, clock or Clock())


def at(
    offset: int, lost: int = 0, *, creation: str = "1", remade: int = 0, queue: str = "orders"
) -> dict[str, Any]:
    return {"queue": queue, "creation": creation, "offset": offset, "lost": lost, "remade": remade}
