"""What the clients of one Redis port share, whoever reads their sockets: who is connected, and how many may be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from fila_server.access.door import Door
from fila_server.broker.calls import Broker
from fila_server.config.schema import Limits, Redis
from fila_server.edges.redis.client import Client
from fila_server.edges.redis.overrides import Overrides
from fila_server.edges.redis.turns import Turns


class Port:
    """All methods belong to the loop's thread. `listen` of a class below binds it, `close` ends it."""

    def __init__(
        self,
        broker: Broker,
        settings: Redis,
        limits: Limits,
        data_dir: str,
        may_be_kept: Callable[[int], bool],
        door: Door,
    ) -> None:
        """`data_dir` is only shown, by CONFIG GET. `may_be_kept` says of a new connection's descriptor whether there
        are enough besides it."""
        self.broker = broker
        self.door = door
        self.data_dir = data_dir
        self.limits = limits
        self.overrides = Overrides(broker, settings)
        self.loop = asyncio.get_running_loop()
        self.turns = Turns(self.loop.call_soon)
        self.started_at_s = self.now()
        self.connections_total = 0
        self._commands = 0
        self.may_be_kept = may_be_kept
        self.address = ("", 0)
        """Where it listens; the port that was really bound."""
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
        raise NotImplementedError

    @property
    def commands_total(self) -> int:
        """Carried out since the start."""
        return self._commands

    def count_commands(self, number: int) -> None:
        """So many more are carried out."""
        self._commands += number

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
        raise NotImplementedError
