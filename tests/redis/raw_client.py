"""A client without manners: it sends the bytes it is told to and reads one reply at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

READ_TIMEOUT_S = 30.0
"""Kept by `asyncio.timeout`: in Python 3.11 `wait_for` swallows a cancellation that comes together with the answer, so
that a test's own timeout around a loop of replies would be lost."""


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until the server has got there; the test's own timeout bounds it."""
    while not condition():  # noqa: ASYNC110 - what is waited for happens in other people's code
        await asyncio.sleep(0.001)


class ErrorReply(str):
    """What came after the minus sign."""


class Status(str):
    """What came after the plus sign."""


def command(*args: str | bytes | int) -> bytes:
    """Return a command as clients send it."""
    parts = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class RawClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def __call__(self, *args: str | bytes | int) -> Any:
        """Send one command, return its reply."""
        self.send(command(*args))
        return await self.reply()

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def reply(self) -> Any:
        """Return the next reply: int, bytes, list, dict, None, Status or ErrorReply."""
        async with asyncio.timeout(READ_TIMEOUT_S):
            return await self._reply()

    async def replies(self, count: int) -> list[Any]:
        return [await self.reply() for _ in range(count)]

    async def is_closed(self) -> bool:
        """Wait until the server closes; False when it says something instead."""
        async with asyncio.timeout(READ_TIMEOUT_S):
            return await self._reader.read(1) == b""

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()

    async def _reply(self) -> Any:
        line = (await self._reader.readuntil(b"\r\n"))[:-2]
        kind, rest = line[:1], line[1:]
        match kind:
            case b"+":
                return Status(rest.decode())
            case b"-":
                return ErrorReply(rest.decode())
            case b":":
                return int(rest)
            case b"_":
                return None
            case b"$":
                return None if rest == b"-1" else (await self._reader.readexactly(int(rest) + 2))[:-2]
            case b"*":
                return None if rest == b"-1" else [await self._reply() for _ in range(int(rest))]
            case b"%":
                return {await self._reply(): await self._reply() for _ in range(int(rest))}
        raise AssertionError(f"no reply starts like this: {line!r}")
