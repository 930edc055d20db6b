"""What `client.consume` returns: something to loop over, by one task or by many.

    async for msg in client.consume("orders"):      # one by one
    async for batch in client.consume("orders").batches():  # all that has arrived

The stream is opened by the first loop and left when the last one ends, be it by `break`, by an
error, or by cancellation. What was prefetched and not handed out goes back to the queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Generic, Self

from fila.errors import ClientClosed
from fila.session import MessageT, Session

BATCH_MESSAGES_MAX = 1_000
"""Most messages of one `batches()` step, unless asked otherwise."""


class Consumer(Generic[MessageT]):
    """A consumer of one queue and channel. Several tasks may loop over it; each message goes to one of them."""

    def __init__(self, open_session: Callable[[], Session[MessageT]], stop_when_idle_s: float | None) -> None:
        self._open_session = open_session
        self._session: Session[MessageT] | None = None
        self._stop_when_idle_s = stop_when_idle_s
        self._loops = 0
        self._closed = False

    def __aiter__(self) -> AsyncIterator[MessageT]:
        return self._each()

    async def _each(self) -> AsyncGenerator[MessageT, None]:
        session = self._join()
        try:
            while True:
                while (message := session.take()) is not None:
                    yield message
                if not await self._more(session):
                    return
        finally:
            self._part(session)

    async def batches(self, max_messages: int = BATCH_MESSAGES_MAX) -> AsyncGenerator[list[MessageT], None]:
        """Loop over lists of what has arrived: at least one message each, at most `max_messages`."""
        session = self._join()
        try:
            while True:
                if batch := take_batch(session, max_messages):
                    yield batch
                elif not await self._more(session):
                    return
        finally:
            self._part(session)

    # For callers that loop by themselves, as the synchronous client does: join, next_batch ..., part.

    async def join(self) -> Session[MessageT]:
        """Begin a loop."""
        return self._join()

    async def next_batch(self, max_messages: int = BATCH_MESSAGES_MAX) -> list[MessageT]:
        """Return what has arrived, waiting for the first message; empty when the consumer is over."""
        session = self._session
        if session is None:
            return []
        while not (batch := take_batch(session, max_messages)):
            if not await self._more(session):
                break
        return batch

    def part(self, session: Session[MessageT], unseen: Sequence[MessageT] = ()) -> None:
        """End a loop; `unseen` are messages of the last batch that nobody has looked at."""
        session.give_back(unseen)
        self._part(session)

    async def _more(self, session: Session[MessageT]) -> bool:
        """Wait for messages; False when there will be none, and the session's failure when that ended it."""
        if session.failure is not None:
            raise session.failure
        if session.task.done() and not session.task.cancelled():
            session.task.result()  # a mistake of ours must not end the loop in silence
        if session.leaving or session.task.done():
            return False
        if self._stop_when_idle_s is None:
            await session.arrived.wait()
            return True
        try:
            async with asyncio.timeout(self._stop_when_idle_s):
                await session.arrived.wait()
        except TimeoutError:
            return False
        return True

    def _join(self) -> Session[MessageT]:
        if self._closed:
            raise ClientClosed("this consumer was closed; call consume() for a new one")
        self._loops += 1
        if self._session is None:
            self._session = self._open_session()
        return self._session

    def _part(self, session: Session[MessageT]) -> None:
        if self._session is session:
            self._loops -= 1
            if self._loops == 0:
                self._leave()

    def _leave(self) -> None:
        if self._session is not None:
            self._session.leave()
            self._session = None
            self._loops = 0

    def close(self) -> None:
        """Leave for good: the loops over this consumer end. What you still hold can be settled until its
        lease ends."""
        self._closed = True
        self._leave()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def take_batch(session: Session[MessageT], max_messages: int) -> list[MessageT]:
    """Return up to `max_messages` of what a session has ready."""
    batch: list[MessageT] = []
    while len(batch) < max_messages and (message := session.take()) is not None:
        batch.append(message)
    return batch
