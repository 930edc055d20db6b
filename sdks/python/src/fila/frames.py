"""Messages that travel to the broker together, and where the answer for each of them goes.

Two kinds, of one shape: what single `enqueue` calls gathered, each with a future of its own, and a
slice of one `enqueue_many`, with one list of results for all.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Self

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from fila.errors import FilaError
from fila.messages import MessageId
from fila.v1.service_pb2 import EnqueueMessage, EnqueueStreamRequest

Outcome = MessageId | FilaError


class Frame(ABC):
    """The request as it will be sent, and what the producer needs to know of it."""

    __slots__ = ("bytes", "first_at_s", "messages", "request", "sent_at_s", "tries")

    def __init__(self, queue: str, first_at_s: float) -> None:
        self.request = EnqueueStreamRequest()
        self.request.batch.queue = queue
        self.messages: RepeatedCompositeFieldContainer[EnqueueMessage] = self.request.batch.messages
        self.bytes = 0
        self.first_at_s = first_at_s
        """When its first message was given, on the client's clock."""
        self.sent_at_s = first_at_s
        """When it was last sent."""
        self.tries = 0
        """How often its messages were sent before."""

    @property
    def queue(self) -> str:
        """The queue of every message that names none itself."""
        return self.request.batch.queue

    @abstractmethod
    def resolve(self, index: int, outcome: Outcome) -> None:
        """Message `index` was stored, or refused, or its answer is lost."""

    @abstractmethod
    def part(self, indexes: list[int]) -> Self:
        """Return a frame of only these messages, to send them again."""

    def _copy_messages(self, part: Self, indexes: list[int]) -> Self:
        part.messages.extend([self.messages[i] for i in indexes])
        part.sent_at_s = self.sent_at_s
        part.tries = self.tries + 1
        return part


class GatheredFrame(Frame):
    """Messages of single calls."""

    __slots__ = ("futures",)

    def __init__(self, queue: str, first_at_s: float) -> None:
        super().__init__(queue, first_at_s)
        self.futures: list[asyncio.Future[MessageId]] = []

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
        part = self._copy_messages(GatheredFrame(self.queue, self.first_at_s), indexes)
        part.futures = [self.futures[i] for i in indexes]
        return part


class SliceFrame(Frame):
    """Messages of one `enqueue_many`. Filled first, then given places in the list of results."""

    __slots__ = ("_positions", "_results", "_unresolved", "done")

    def __init__(self, queue: str, first_at_s: float) -> None:
        super().__init__(queue, first_at_s)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._results: list[Outcome | None] = []
        self._positions: range | list[int] = range(0)
        self._unresolved = [0]  # in a list, since the parts share it

    def take_places(self, results: list[Outcome | None]) -> None:
        """Append a place in `results` for each message."""
        self._results = results
        self._positions = range(len(results), len(results) + len(self.messages))
        self._unresolved[0] = len(self.messages)
        results.extend([None] * len(self.messages))

    def resolve(self, index: int, outcome: Outcome) -> None:
        """Note the outcome; the slice is done when all have one."""
        self._results[self._positions[index]] = outcome
        self._unresolved[0] -= 1
        if not self._unresolved[0] and not self.done.done():
            self.done.set_result(None)

    def part(self, indexes: list[int]) -> SliceFrame:
        """Return a frame of only these messages, which fills in the same results."""
        part = self._copy_messages(SliceFrame(self.queue, self.first_at_s), indexes)
        part.done = self.done
        part._results = self._results
        part._positions = [self._positions[i] for i in indexes]
        part._unresolved = self._unresolved
        return part
