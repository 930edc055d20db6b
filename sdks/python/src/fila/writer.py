"""Writes of one session's stream: gRPC takes one at a time, and several parts of a session have something to say."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from grpc.aio import StreamStreamCall

from fila.connection import raise_if_cancelled, write
from fila.v1.service_pb2 import ConsumeSessionRequest, ConsumeSessionResponse

SessionStream = StreamStreamCall[ConsumeSessionRequest, ConsumeSessionResponse]

_log = logging.getLogger("fila")


class StreamWriter:
    """Writes to the stream that is open now. Without one, and on a broken one, a write is dropped: its reader meets
    the same end, and says anew on the next stream what is still true."""

    def __init__(self) -> None:
        self._stream: SessionStream | None = None
        self._writing = asyncio.Lock()
        self._posted: deque[ConsumeSessionRequest] = deque()
        self._post_task: asyncio.Task[None] | None = None

    def attach(self, stream: SessionStream) -> None:
        """From now on write here."""
        self._stream = stream

    def detach(self) -> None:
        """The stream is over; what was posted for it is worth nothing on another."""
        self._stream = None
        self._posted.clear()

    async def write(self, request: ConsumeSessionRequest) -> bool:
        """Return when the frame is written, True, or lost with the stream that was open when it was given, False.
        What was posted before is written before it: a smaller window must precede a settlement, which makes room."""
        stream = self._stream
        async with self._writing:
            if stream is None or stream is not self._stream:
                return False
            return await self._write_in_turn(stream, request)

    async def _write_in_turn(self, stream: SessionStream, request: ConsumeSessionRequest | None) -> bool:
        try:
            while self._posted and self._stream is stream:
                await write(stream, self._posted.popleft())
            if request is not None:
                await write(stream, request)
        except Exception as failure:  # noqa: BLE001 - whatever grpc.aio says here, the stream is over
            _log.debug("write on a broken stream: %r", failure)
        except asyncio.CancelledError:
            raise_if_cancelled()
        else:
            return self._stream is stream
        return False

    def post(self, request: ConsumeSessionRequest) -> None:
        """Write soon, in the order of posting."""
        if self._stream is None:
            return
        self._posted.append(request)
        if self._post_task is None:
            self._post_task = asyncio.get_running_loop().create_task(self._write_posted())

    async def _write_posted(self) -> None:
        try:
            while self._posted:
                async with self._writing:
                    if self._stream is not None:
                        await self._write_in_turn(self._stream, None)
        finally:
            self._post_task = None

    async def posted(self) -> None:
        """Return when all that was posted is written."""
        if self._post_task is not None:
            await asyncio.wait([self._post_task])
