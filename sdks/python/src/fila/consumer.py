"""What `client.consume` returns: something to loop over, by one task or by many.

    async for msg in client.consume("orders"):      # one by one
    async for batch in client.consume("orders").batches():  # all that has arrived

The stream is opened by the first loop and left when the last one ends, be it by `break`, by an
error, or by cancellation. What was prefetched and not handed out goes back to the queue.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NoReturn, Self

from fila.errors import ClientClosed
from fila.holding import MessageT
from fila.loops import Loop
from fila.session import Session

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

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise TypeError(
                "loop over a consumer with `async for`; without an event loop use fila.sync.FilaClient"
            )

    async def _each(self) -> AsyncGenerator[MessageT, None]:
        session, loop = self.join()
        try:
            while True:
                message = session.take_one(loop)
                if message is not None and message.must_declare:
                    message = await self._declared(session, message)
                if message is not None:
                    yield message
                elif not await self._more(session):
                    return
        finally:
            self.part(session, loop)

    async def batches(self, max_messages: int | None = None) -> AsyncGenerator[list[MessageT], None]:
        """Loop over lists of what has arrived: at least one message each, at most `max_messages`.

        A batch is begun whole. Give `max_messages` where a batch costs about the same however large it is (one
        transaction, one request): then so many are fetched for it. Without it a batch is what has arrived, at most
        1,000, and how much arrives follows how fast you work.
        """
        if max_messages is not None and max_messages < 1:
            raise ValueError(f"max_messages must be at least 1, got {max_messages}")
        session, loop = self.join(max_messages or 1)
        try:
            while True:
                if batch := await self._take_batch(session, loop, max_messages):
                    yield batch
                elif not await self._more(session):
                    return
        finally:
            self.part(session, loop)

    # For callers that loop by themselves, as workers and the synchronous client do: join, next ..., part.

    def join(self, size: int = 1) -> tuple[Session[MessageT], Loop]:
        """Begin a loop that works on up to `size` messages at once."""
        if self._closed:
            raise ClientClosed("this consumer was closed; call consume() for a new one")
        self._loops += 1
        if self._session is None:
            self._session = self._open_session()
        return self._session, self._session.join(size)

    async def next(self, session: Session[MessageT], loop: Loop, *, declares: bool = True) -> MessageT | None:
        """Return the next message, waiting for it; None when the consumer is over. Without `declares` the caller
        declares those that `must_declare` before the program sees it."""
        while True:
            message = session.take_one(loop)
            if message is not None and message.must_declare and declares:
                message = await self._declared(session, message)
            if message is not None:
                return message
            if not await self._more(session):
                return None

    async def _declared(self, session: Session[MessageT], message: MessageT) -> MessageT | None:
        taken = await session.declare([message])
        return taken[0] if taken else None

    async def next_batch(
        self,
        session: Session[MessageT],
        loop: Loop,
        max_messages: int | None = None,
        *,
        declares: bool = True,
    ) -> list[MessageT]:
        """Return what has arrived, waiting for the first message; empty when the consumer is over. `declares` as in
        `next`."""
        while not (batch := await self._take_batch(session, loop, max_messages, declares=declares)):
            if not await self._more(session):
                break
        return batch

    async def _take_batch(
        self, session: Session[MessageT], loop: Loop, max_messages: int | None, *, declares: bool = True
    ) -> list[MessageT]:
        batch = session.take(loop, max_messages or BATCH_MESSAGES_MAX)
        came_back = [message for message in batch if message.must_declare and declares]
        if came_back:
            lost = {*came_back}.difference(await session.declare(came_back))
            batch = [message for message in batch if message not in lost]
        return batch

    def part(self, session: Session[MessageT], loop: Loop) -> None:
        """End a loop. With the last one the session is left."""
        session.part(loop)
        if self._session is session:
            self._loops -= 1
            if self._loops == 0:
                self._leave()

    async def _more(self, session: Session[MessageT]) -> bool:
        """Wait for messages; False when there will be none, and the session's failure when that ended it."""
        if session.failure is not None:
            raise session.failure
        if session.task.done() and not session.task.cancelled():
            session.task.result()  # a mistake of ours must not end the loop in silence
        if session.leaving or session.task.done():
            return False
        arrivals = session.holding.arrivals
        if self._stop_when_idle_s is None:
            await arrivals.wait()
            return True
        clock = asyncio.get_running_loop().time
        idle_since_s = clock()
        while (until_s := idle_since_s + self._stop_when_idle_s) > clock():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until_s):
                    await arrivals.wait()
                    return True
            # What other loops got has arrived, too; and an outage is not an empty queue.
            idle_since_s = max(idle_since_s, arrivals.came_at_s) if session.is_heard else clock()
        return False

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
