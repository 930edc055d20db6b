"""A TCP proxy in front of a broker that can misbehave as networks do."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal

Mode = Literal["pass", "cut", "black_hole", "lose_answers"]


class Proxy:
    """Forwards connections to a broker.

    pass          forwards both ways
    cut           closes what is open and refuses what comes
    black_hole    keeps connections open, accepts new ones, and forwards nothing
    lose_answers  forwards requests and no answers, and closes a connection when an answer would come
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._mode: Mode = "pass"
        self._passing = asyncio.Event()
        self._passing.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    @property
    def address(self) -> str:
        """host:port to connect to."""
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def set_mode(self, mode: Mode) -> None:
        """Behave so from now on."""
        self._mode = mode
        if mode == "black_hole":
            self._passing.clear()
        else:
            self._passing.set()
        if mode == "cut":
            for writer in [*self._open]:
                writer.transport.abort()

    async def stop(self) -> None:
        """Close everything."""
        assert self._server is not None
        self._server.close()
        for writer in [*self._open]:
            writer.transport.abort()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._mode == "cut":
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            await self._passing.wait()
            upstream_reader, upstream_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            self._open.discard(writer)
            return
        self._open.add(upstream_writer)
        asked = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._forward_requests(reader, upstream_writer, asked))
                both.create_task(self._forward_answers(upstream_reader, writer, asked))
        except* OSError:
            pass
        finally:
            for end in (writer, upstream_writer):
                end.transport.abort()
                self._open.discard(end)

    async def _forward_requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: asyncio.Event
    ) -> None:
        """`asked` is set once something was asked whose answer shall be lost."""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                await self._passing.wait()
                if self._mode == "lose_answers":
                    asked.set()
                writer.write(data)
                await writer.drain()
        writer.transport.abort()

    async def _forward_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: asyncio.Event
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                await self._passing.wait()
                if self._mode == "lose_answers" and asked.is_set():
                    break
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
