"""One consumer's side of the core: frames come out in order, WRITTEN goes back.

The core lets at most two deliveries of a consumer be unwritten. So the one thing this
class must get right is *when* a delivery counts as written: at the moment its edge comes
back for the next frame, because only then has the transport taken the last one. What was
never written is pending again as soon as the stream closes, with tokens and attempts as
before, and that promise is only as good as this report.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from fila.v1.service_pb2 import ConsumeResponse, ConsumeSessionResponse
from fila_server import commands, errors
from fila_server.broker.unwritten import Unwritten

INBOX_FRAMES_MAX = 64
"""Frames waiting to be written before `send` stops taking more of the session's input."""

SEND_RETRY_S = 0.002


class Poster(Protocol):
    """What a stream needs of the broker."""

    unwritten: Unwritten

    @property
    def is_draining(self) -> bool: ...
    def post(self, kind: int, token: int, frame: bytes) -> None: ...
    def submit_session(self, token: int, frame: bytes) -> None: ...
    def forget_stream(self, token: int) -> bool: ...
    def give_back_leases(self, lease_ids: list[int]) -> None: ...


class Stream:
    """Deliveries and settle results of one consumer. `async for` over it until the core ends it."""

    def __init__(self, broker: Poster, token: int, *, is_session: bool = False) -> None:
        self._broker = broker
        self._token = token
        self._is_session = is_session
        self._inbox: deque[tuple[bytes, bool]] = deque()
        self._changed: asyncio.Future[None] | None = None
        self._room: asyncio.Event = asyncio.Event()
        self._room.set()
        self._delivery_in_hand = False
        self._bytes_in_hand = 0
        """Of the frame that is being written."""
        self._withheld = 0
        """Deliveries given back because nobody reads; reported written only when there is room again."""
        self._ended = False
        self._error: errors.FilaServerError | None = None
        self.opened: bytes = b""
        """The payload of the core's answer to the opening frame."""

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> bytes:
        if self._delivery_in_hand:
            self._delivery_in_hand = False
            self._broker.post(commands.WRITTEN, self._token, b"")
        self._broker.unwritten.give(self._bytes_in_hand)
        self._bytes_in_hand = 0
        while not self._inbox:
            if self._ended:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            self._changed = asyncio.get_running_loop().create_future()
            await self._changed
        payload, is_delivery = self._inbox.popleft()
        if len(self._inbox) < INBOX_FRAMES_MAX:
            self._room.set()
        self._delivery_in_hand = is_delivery
        self._bytes_in_hand = len(payload)
        return payload

    async def send(self, frame: bytes) -> None:
        """Hand a later frame of a session to the core, in order, waiting while there is no room.

        Waiting here is what stops reading from the socket: a peer that sends acks and
        does not read their results, or sends faster than the scheduler, is slowed down.
        """
        while not self._ended:
            await self._room.wait()
            try:
                self._broker.submit_session(self._token, frame)
                return
            except errors.Overloaded:
                await asyncio.sleep(SEND_RETRY_S)

    def half_close(self) -> None:
        """The peer has no more to say and did not say Close: the core answers what is due, then ends the stream."""
        if not self._ended:
            self._broker.post(commands.CONSUMER_CLOSE, self._token, b"half-closed")

    def revoke(self, error: errors.FilaServerError) -> None:
        """End it now, whether its peer reads or not: what it holds is pending again at once."""
        self.end(error)
        self._leave(release=True)

    async def close(self, release: bool = False) -> None:
        """The consumer is gone. With `release`, what it holds is pending again at once."""
        self._leave(release)

    def _leave(self, release: bool) -> None:
        if self._broker.forget_stream(self._token):
            # A broker that stops is not its consumers' failure: what they hold waits for them over the restart.
            word = b"release" if release else b"drain" if self._broker.is_draining else b""
            self._broker.post(commands.CONSUMER_CLOSE, self._token, word)
        self.end(None)
        # Whoever wrote these frames is gone.
        self._broker.unwritten.give(self._bytes_in_hand)
        self._bytes_in_hand = 0
        for payload, _ in self._inbox:
            self._broker.unwritten.give(len(payload))
        self._inbox.clear()

    # --- for the broker -------------------------------------------------------------------

    def push(self, payload: bytes, *, is_delivery: bool) -> None:
        """Take one frame from the core."""
        if self._ended:
            return
        if not is_delivery:
            self._broker.unwritten.add(len(payload))
        elif not self._broker.unwritten.take(len(payload)):
            self._withhold(payload)
            return
        self._inbox.append((payload, is_delivery))
        if len(self._inbox) >= INBOX_FRAMES_MAX:
            self._room.clear()
        self._wake()

    def end(self, error: errors.FilaServerError | None) -> None:
        """No more frames will come; those in the inbox can still be read."""
        if self._ended:
            return
        self._ended = True
        self._error = error
        self._room.set()
        self._wake()

    def _withhold(self, payload: bytes) -> None:
        """Give a delivery back. Not reported as written, it still fills its place in the core, which sends no more."""
        if self._is_session:
            messages = list(ConsumeSessionResponse.FromString(payload).delivery.messages)
        else:
            response = ConsumeResponse.FromString(payload)
            messages = list(response.messages) or [response.message]
        self._broker.give_back_leases([message.metadata.lease_id for message in messages])
        self._withheld += 1
        if self._withheld == 1:
            self._broker.unwritten.at_room(len(payload), self._report_withheld)

    def _report_withheld(self) -> None:
        withheld, self._withheld = self._withheld, 0
        if not self._ended:
            for _ in range(withheld):
                self._broker.post(commands.WRITTEN, self._token, b"")

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)
