"""Messages that travel to the broker together, and where the answer for each of them goes.

Two kinds, of one shape: what single `enqueue` calls gathered, each with a future of its own, and a
slice of one `enqueue_many`, with one list of results for all.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from fila.errors import FilaError
from fila.messages import MessageId
from fila.v1.service_pb2 import EnqueueMessage

Outcome = MessageId | FilaError


class Frame(Protocol):
    """What the producer needs to know of a frame."""

    messages: list[EnqueueMessage]
    first_at_s: float
    """When its first message was given, on the client's clock."""
    sent_at_s: float
    """When it was last sent."""

    def resolve(self, index: int, outcome: Outcome) -> None:
        """Message `index` was stored, or refused, or its answer is lost."""

    def part(self, indexes: list[int]) -> Frame:
        """Return a frame of only these messages, to send them again."""


class GatheredFrame:
    """Messages of single calls."""

    __slots__ = ("bytes", "first_at_s", "futures", "messages", "sent_at_s")

    def __init__(self, first_at_s: float) -> None:
        self.messages: list[EnqueueMessage] = []
        self.futures: list[asyncio.Future[MessageId]] = []
        self.bytes = 0
        self.first_at_s = first_at_s
        self.sent_at_s = first_at_s

    def resolve(self, index: int, outcome: Outcome) -> None:
        """Wake the caller, unless it went away."""
        future = self.futures[index]
        if future.done():
            return
        if isinstance(outcome, FilaError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    def part(self, indexes: list[int]) -> GatheredFrame:
        """Return a frame of only these messages."""
        part = GatheredFrame(self.first_at_s)
        part.messages = [self.messages[i] for i in indexes]
        part.futures = [self.futures[i] for i in indexes]
        part.sent_at_s = self.sent_at_s
        return part


class SliceFrame:
    """Messages of one `enqueue_many`."""

    __slots__ = ("_positions", "_results", "_unresolved", "done", "first_at_s", "messages", "sent_at_s")

    def __init__(
        self, messages: list[EnqueueMessage], results: list[Outcome | None], first_at_s: float
    ) -> None:
        self.messages = messages
        self.first_at_s = first_at_s
        self.sent_at_s = first_at_s
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._results = results
        self._positions: range | list[int] = range(len(results), len(results) + len(messages))
        self._unresolved = [len(messages)]  # shared with the parts
        results.extend([None] * len(messages))

    def resolve(self, index: int, outcome: Outcome) -> None:
        """Note the outcome; the slice is done when all have one."""
        self._results[self._positions[index]] = outcome
        self._unresolved[0] -= 1
        if not self._unresolved[0] and not self.done.done():
            self.done.set_result(None)

    def part(self, indexes: list[int]) -> SliceFrame:
        """Return a frame of only these messages, which fills in the same results."""
        part = SliceFrame.__new__(SliceFrame)
        part.messages = [self.messages[i] for i in indexes]
        part.first_at_s = self.first_at_s
        part.sent_at_s = self.sent_at_s
        part.done = self.done
        part._results = self._results
        part._positions = [self._positions[i] for i in indexes]
        part._unresolved = self._unresolved
        return part
