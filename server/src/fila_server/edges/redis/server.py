"""The listening side of the Redis protocol on the asyncio loop: whoever knocks, and the end.

`serving.py` calls `start(broker, config.redis, limits)` once the broker runs, and `close()` before
the broker stops. Next: connection.py, one object a client. On the native edge its threads have the sockets
(edges/native/redis_port.py), and the commands are the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from fila_server import errors
from fila_server.access.door import Door
from fila_server.access.tls import Tls
from fila_server.broker.calls import Broker
from fila_server.config.schema import Limits, Redis
from fila_server.edges.redis.connection import Connection
from fila_server.edges.redis.port import Port

log = structlog.get_logger("fila_server.edges.redis")

BACKLOG = 1024
"""Connections the kernel may hold until the loop takes them: a thousand readers start at once."""
CLOSE_TIMEOUT_S = 5.0


class Server(Port):
    """Everything the Redis edge shares between its connections."""

    def __init__(
        self,
        broker: Broker,
        settings: Redis,
        limits: Limits,
        data_dir: str,
        may_be_kept: Callable[[int], bool],
        door: Door,
        tls: Tls,
    ) -> None:
        super().__init__(broker, settings, limits, data_dir, may_be_kept, door)
        self._tls = tls

    @property
    def blocked_count(self) -> int:
        """Clients whose read waits for a message."""
        return sum(isinstance(client, Connection) and client.blocked for client in self._connections)

    async def listen(self) -> None:
        """Bind the port and take clients from now on."""
        address = self.overrides.settings.bind_address
        try:
            self._listener = await self.loop.create_server(
                lambda: Connection(self), address.host, address.port, backlog=BACKLOG, ssl=self._tls.context()
            )
        except OSError as error:
            raise errors.PortTaken.of("redis.bind_address", address, error) from error
        host, port = self._listener.sockets[0].getsockname()[:2]
        self.address = (host, port)
        self.overrides.follow()
        log.info("redis.started", address=f"{host}:{port}")

    async def close(self) -> None:
        """Take nobody in, end waiting reads, let what runs be answered, then close every connection."""
        self._listener.close()
        self._none_left.clear()
        for connection in list(self._connections):
            connection.end()
        if self._connections:
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._none_left.wait()
            except TimeoutError:
                log.warning("redis.close_timed_out", clients=len(self._connections))
                for connection in list(self._connections):
                    connection.abort()
        await self._listener.wait_closed()


async def start(
    broker: Broker,
    settings: Redis,
    limits: Limits,
    data_dir: str = "",
    may_be_kept: Callable[[int], bool] = lambda _descriptor: True,
    *,
    door: Door,
    tls: Tls,
) -> Server:
    """Listen on `redis.bind_address`; raises PortTaken. `data_dir` is only shown, by CONFIG GET.

    `may_be_kept` says of a new connection's descriptor whether there are enough besides it.
    """
    server = Server(broker, settings, limits, data_dir, may_be_kept, door, tls)
    await server.listen()
    return server
