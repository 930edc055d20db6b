"""The listening side of the Redis protocol: who is connected, how many may be, and the end.

`main.py` calls `start(broker, config.redis, limits)` once the broker runs, and `close()` before
the broker stops. Next: connection.py, one object a client.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

import structlog

from fila_server import errors
from fila_server.access.door import Door
from fila_server.access.tls import Tls
from fila_server.broker.calls import Broker
from fila_server.config.schema import Limits, Redis
from fila_server.edges.redis.client import Client
from fila_server.edges.redis.connection import Connection
from fila_server.edges.redis.overrides import Overrides
from fila_server.edges.redis.turns import Turns

log = structlog.get_logger("fila_server.edges.redis")

BACKLOG = 1024
"""Connections the kernel may hold until the loop takes them: a thousand readers start at once."""
CLOSE_TIMEOUT_S = 5.0


class Server:
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
        self.broker = broker
        self.door = door
        self._tls = tls
        self.data_dir = data_dir
        self.limits = limits
        self.overrides = Overrides(broker, settings)
        self.loop = asyncio.get_running_loop()
        self.turns = Turns(self.loop.call_soon)
        self.started_at_s = self.now()
        self.commands_total = 0
        self.connections_total = 0
        self.may_be_kept = may_be_kept
        self._connections: set[Client] = set()
        self._none_left = asyncio.Event()

    @staticmethod
    def now() -> float:
        """Unix seconds, for what people read."""
        return time.time()

    @property
    def connections(self) -> Iterable[Client]:
        """Every client that was taken in."""
        return self._connections

    @property
    def client_count(self) -> int:
        return len(self._connections)

    @property
    def blocked_count(self) -> int:
        """Clients whose read waits for a message."""
        return sum(connection.blocked for connection in self._connections)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens; the port that was really bound."""
        host, port = self._listener.sockets[0].getsockname()[:2]
        return host, port

    async def listen(self) -> None:
        """Bind the port and take clients from now on."""
        address = self.overrides.settings.bind_address
        try:
            self._listener = await self.loop.create_server(
                lambda: Connection(self), address.host, address.port, backlog=BACKLOG, ssl=self._tls.context()
            )
        except OSError as error:
            raise errors.PortTaken.of("redis.bind_address", address, error) from error
        self.overrides.follow()
        log.info("redis.started", address=f"{self.address[0]}:{self.address[1]}")

    def admit(self, client: Client) -> bool:
        """Count a new client in, unless there are max_connections already."""
        if len(self._connections) >= self.overrides.settings.max_connections:
            return False
        self._connections.add(client)
        self.connections_total += 1
        return True

    def forget(self, client: Client) -> None:
        """A client is gone."""
        self._connections.discard(client)
        if not self._connections:
            self._none_left.set()

    async def close(self) -> None:
        """Take nobody in, end waiting reads, let what runs be answered, then close every connection."""
        self._listener.close()
        self._none_left.clear()
        for connection in list(self._connections):
            connection.end()
        if self._connections:
            try:
                await asyncio.wait_for(self._none_left.wait(), CLOSE_TIMEOUT_S)
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
