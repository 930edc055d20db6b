"""A connection to a broker that can be cut for a while."""

from __future__ import annotations

import asyncio
import contextlib


class Wire:
    """Carries bytes between a client and `target`, until it is cut; `open` again listens on the same port."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._wires: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._port = 0

    async def open(self) -> str:
        """Listen, and return the address."""
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return f"127.0.0.1:{self._port}"

    def cut(self) -> None:
        """Break what is connected, and refuse what comes."""
        if self._server is not None:
            self._server.close()
        for wire in self._wires:
            wire.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self.target.rpartition(":")
        try:
            there = await asyncio.open_connection(host, int(port))
        except OSError:  # the broker is not there just now
            writer.close()
            return
        self._wires |= {writer, there[1]}
        try:
            await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
        finally:
            for wire in (writer, there[1]):
                wire.close()
                self._wires.discard(wire)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()
